//! Who can still use a server, from a scene: what the mark phase says, in the words of a verdict.

use std::collections::BTreeSet;

use super::{candidates::candidates, inspection::Inspection, membership::Members, owner};
use crate::{
    model::{
        Doubt, Image, ProcessId, ReachedBy, SHOWN, Stdio,
        scene::{Holder, ProcessRow, Scene},
    },
    reach::{Edge, Party, Reach, Rows, Source, Way, mark},
    recognise::{Role, Rules, container_client, is_told_to_serve, runs_itself, text_of_shell},
    world::{Agent, Server},
};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Uses {
    /// The doubts about "nobody can use it".
    pub doubts: BTreeSet<Doubt>,
    /// A living process that the server works for.
    pub host: Option<ProcessRow>,
    /// The kernel is still closing the files of the dead owner.
    pub too_early: bool,
    /// Whether nobody outside of the server has the other end of standard input, and of either wire.
    pub hung_up: [bool; 2],
    pub listens: bool,
    pub path: Vec<ReachedBy>,
}

pub(super) fn uses(inspection: &Inspection<'_>, members: &Members) -> Uses {
    let (server, rows) = (inspection.server, inspection.rows);
    let parties = candidates(inspection, members);
    let reach = mark(rows, &parties);
    let mut doubts: BTreeSet<Doubt> = reach.edges_to(0).copied().map(doubt).collect();
    if reach.is_reached(0) && doubts.is_empty() {
        doubts.insert(Doubt::WireUnknown);
    }
    let own = parties.first().map(|party| &party.members).cloned().unwrap_or_default();
    let [talkers, readers] =
        [(server.stdin, true), (server.stdout, false)].map(|(wire, reads)| rows.others_at(wire, reads, &own));
    let inputs = reach.edges_to(0).filter(|edge| edge.way == Way::Input);
    let reaching: BTreeSet<ProcessId> = inputs.filter_map(|edge| edge.from.process()).collect();
    let dead = inspection.dead_owner().map(Agent::main);
    Uses {
        host: owner::next(inspection, &reaching),
        too_early: dead.is_some_and(|dead| {
            talkers.iter().chain(&readers).any(|holder| *holder == Holder::Process(dead))
        }),
        hung_up: [
            server.stdin.is_wire() && talkers.is_empty(),
            !lacks_a_wire(server) && talkers.is_empty() && readers.is_empty(),
        ],
        listens: members.all().any(|process| rows.has_listener(process)),
        path: path(inspection, &reach),
        doubts,
    }
}

/// What is not a wire cannot hang up, and of a pipe that is both nobody knows where the answers go.
fn lacks_a_wire(server: &Server) -> bool {
    let [stdin, stdout] = server.wires();
    !stdin.is_wire() || !stdout.is_wire() || matches!(stdin, Stdio::Pipe(_)) && stdin == stdout
}

/// What is not known of its wires, whoever has an end of them.
pub(super) fn wire_unknown(inspection: &Inspection<'_>, members: &Members) -> Option<Doubt> {
    let server = inspection.server;
    let is_unknown = lacks_a_wire(server)
        || may_have_closed(inspection, members)
        || inspection.rows.lack_an_end_of(server.wires(), members);
    is_unknown.then_some(Doubt::WireUnknown)
}

/// What an edge over which a server is reached says against its end.
pub(super) const fn doubt(edge: Edge) -> Doubt {
    match (edge.way, edge.from) {
        (Way::Input | Way::Output, Source::Unreadable) => Doubt::WireUnknown,
        (Way::Input, _) => Doubt::WireHeld,
        (Way::Output, _) => Doubt::StdoutRead,
        (Way::Trace, _) => Doubt::Traced,
        (Way::Use, _) => Doubt::Clients,
        (Way::Depend, _) => Doubt::DependedOn,
    }
}

/// The path by which it is reached, and before it whoever else can reach the server itself: when one of them ends, the others
/// keep it.
fn path(inspection: &Inspection<'_>, reach: &Reach) -> Vec<ReachedBy> {
    let path = reach.path_to(0);
    let what = |edge: &Edge| (edge.from.process(), edge.words(inspection.rows.scene.endpoint(edge.endpoint)));
    let mut named: BTreeSet<_> = path.iter().map(what).collect();
    let is_new = |edge: &&Edge| named.insert(what(edge));
    let others: Vec<&Edge> = reach.edges_to(0).filter(is_new).take(SHOWN).collect();
    let nearer = path.iter().skip(1).map(|edge| edge.from.process()).chain([None]);
    let steps = others.into_iter().map(|edge| (edge, None)).chain(path.iter().zip(nearer));
    steps.map(|(edge, nearer)| reached_by(inspection, *edge, nearer)).collect()
}

/// A step of the path, with the names that people know. `nearer`: what is reached by it, if that is not the server.
fn reached_by(inspection: &Inspection<'_>, edge: Edge, nearer: Option<ProcessId>) -> ReachedBy {
    let words = edge.words(inspection.rows.scene.endpoint(edge.endpoint));
    let to = nearer.map(|nearer| nearer.pid);
    let step = edge.from.process().map_or_else(|| step(None, words), |from| named(inspection, from, words));
    ReachedBy { to, ..step }
}

/// A step that begins with this process, which need not have a row.
pub(super) fn named(inspection: &Inspection<'_>, process: ProcessId, words: (&str, &str)) -> ReachedBy {
    let row = inspection.rows.row(process).map(|row| (&row.image, row.uid));
    let node = || inspection.node(process).and_then(|node| Some((node.image()?, node.uid)));
    let program = row.or_else(node).map(|(image, user)| (program(inspection.rules, image), user));
    step(Some((process, program)), words)
}

/// The one step that leads from a tool at work to its server.
pub fn at_work(rules: &Rules, rows: &Rows<'_>, tool: ProcessId) -> ReachedBy {
    let program = rows.row(tool).map(|row| (program(rules, &row.image), row.uid));
    step(Some((tool, program)), ("work", "is a tool that it started, and is at work"))
}

fn program(rules: &Rules, image: &Image) -> String {
    rules.role(image).name().map_or_else(|| rules.title(image), str::to_owned)
}

/// A step that begins with this process, whose program and user may be known.
fn step(from: Option<(ProcessId, Option<(String, u32)>)>, (by, via): (&str, &str)) -> ReachedBy {
    let (process, known) = from.unzip();
    let (program, user) = known.flatten().unzip();
    ReachedBy {
        pid: process.map(|process| process.pid),
        start: process.map(|process| process.start),
        program: program.filter(|name| !name.is_empty()),
        user,
        by: by.to_owned(),
        via: via.to_owned(),
        to: None,
    }
}

/// Whether the server put its wires away by itself: it may be a service now. Where its owner lives and let it go, one closed wire
/// may say so; else it must have neither, and nothing for its input, as a program has that goes into the background, perhaps with
/// a log. A launcher that waits for it has them still, and uses neither. What a launcher has started so may be the server, of which a
/// daemon that has begun later knows no more.
fn may_have_closed(inspection: &Inspection<'_>, members: &Members) -> bool {
    let server = inspection.server;
    // While it is being ended, its main process may have exited.
    if server.phase.is_signalled() {
        return false;
    }
    let wires = [(server.stdin, true), (server.stdout, false)];
    let closed = |members: &Members| {
        wires.map(|(wire, reads)| !inspection.rows.has_own_end(wire, reads, |one| members.contains(one)))
    };
    let is_let_go = inspection.living_owner().is_some()
        && server.phase.released().is_some()
        && (inspection.is_abandoned() || inspection.thread_has_ended());
    if is_let_go {
        return closed(members).contains(&true);
    }
    // The client of a container works for what runs elsewhere.
    let is_at_work =
        |image: &Image, role: &Role| runs_itself(image, role) || container_client(image).is_some();
    let core = inspection.processes(members).filter(|row| members.core.contains(&row.process));
    let (at_work, launching): (Vec<_>, Vec<_>) =
        core.partition(|row| is_at_work(&row.image, &inspection.rules.role(&row.image)));
    // A script for a shell may be the server.
    let is_a_script = |row: &ProcessRow| {
        inspection.rules.role(&row.image) == Role::Shell && text_of_shell(&row.image).is_none()
    };
    let launchers = launching.into_iter().filter(|row| !is_a_script(row));
    let launchers: BTreeSet<ProcessId> = launchers.map(|row| row.process).collect();
    let is_in_background = |row: &ProcessRow| {
        row.stdio[0] == Stdio::Null
            && (members.core.contains(&row.process)
                || row.parent.is_some_and(|parent| launchers.contains(&parent)))
    };
    let behind = inspection.rows_of_server().filter(|row| is_in_background(row));
    let behind: BTreeSet<ProcessId> = behind.map(|row| row.process).collect();
    // What that runs has its first streams.
    let is_below = |row: &ProcessRow| inspection.rows.parents(row).any(|above| behind.contains(&above));
    let core = at_work.into_iter().filter(|row| !is_below(row)).map(|row| row.process).collect();
    !behind.is_empty() && closed(&Members { core, ..Members::default() }) == [true; 2]
}

/// Whether somebody can reach an agent that may have been left behind, or waits for what it writes, or a person may type to it.
/// What is `below` it works for it.
pub fn is_used(scene: &Scene, process: ProcessId, below: &[ProcessId]) -> bool {
    let stdio = scene.full(&[process]).next().map(|row| row.stdio).unwrap_or_default();
    // A connection that it began (the journal's socket) is no wire.
    let is_call = |wire| scene.endpoints.iter().any(|endpoint| endpoint.is(wire) && endpoint.is_call());
    let wires = [stdio[0], stdio[1]].map(|wire| if is_call(wire) { Stdio::Closed } else { wire });
    let reach =
        mark(&Rows::new(scene), &[Party { members: BTreeSet::from([process]), wires, ..Party::default() }]);
    let is_below = |from: Source| matches!(from, Source::Root(process) if below.contains(&process));
    wires.contains(&Stdio::Terminal) || reach.edges_to(0).any(|edge| !is_below(edge.from))
}

/// Whether nobody can speak to an agent any more, nobody reads what it writes, and nobody can reach it in another way: both
/// of its streams are wires that others made and that have hung up for good. What has a file, a terminal or the journal
/// for its output is at work for whoever looks there, and so is what serves at a port.
pub fn is_cut_off(scene: &Scene, process: ProcessId, below: &[ProcessId]) -> bool {
    let rows = Rows::new(scene);
    let Some(row) = rows.row(process) else { return false };
    let [input, output, _] = row.stdio;
    rows.is_over(process, input, true)
        && rows.is_over(process, output, false)
        && !row.told_to_serve
        && !is_told_to_serve(&row.image)
        && !rows.is_at_a_chosen_port(process)
        && !is_used(scene, process, below)
}

#[cfg(test)]
mod tests;
