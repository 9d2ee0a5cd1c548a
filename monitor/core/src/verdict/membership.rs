//! What belongs to a server: its main process, its launch chain, and the processes tied to them.
//!
//! A process belongs to a server while it shares a standard stream with it, or has left neither its parents nor its
//! session and serves nobody else. Anything else has been let go: for example a browser opened for a person, a
//! daemon, the job of a hook, or what a shell started with `&`. Such a process is reported and never ended.

use std::{collections::BTreeSet, iter};

use super::{inspection::Inspection, rows::Sides};
use crate::{
    model::{ProcessId, Stdio, scene::ProcessRow, text::base},
    recognise::{Role, is_browser},
};

/// How often the processes that are not tied yet are looked at again: as many links a line may have whose later processes tie
/// the earlier ones. Whoever is not tied by then has been let go. It bounds what the shape of one server costs others.
const PASSES: usize = 16;

/// The living processes of a server, by their relation to it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Members {
    /// The server's main process and its launch chain: processes that a rule recognised, and processes with the
    /// server's wire as standard input.
    pub core: BTreeSet<ProcessId>,
    /// Shells and launchers around it.
    pub wrappers: BTreeSet<ProcessId>,
    /// Descendants that are tied to the server by their parents or by a standard stream.
    pub tied: BTreeSet<ProcessId>,
    /// Descendants that the server has let go. They are not ended.
    pub let_go: BTreeSet<ProcessId>,
    /// The session ids of the core.
    pub sessions: BTreeSet<u32>,
}

impl Members {
    /// Whether the process belongs to the server.
    pub fn contains(&self, process: ProcessId) -> bool {
        self.core.contains(&process) || self.wrappers.contains(&process) || self.tied.contains(&process)
    }

    /// All processes that belong to the server.
    pub fn all(&self) -> impl Iterator<Item = ProcessId> + '_ {
        self.core.iter().chain(&self.wrappers).chain(&self.tied).copied()
    }
}

/// Sorts the living processes of a server by their relation to it.
pub fn members(inspection: &Inspection<'_>) -> Members {
    let server = inspection.server;
    let rows: Vec<&ProcessRow> = inspection.rows_of_server().collect();
    let windows = with_windows(inspection, &rows);
    let mut members = Members::default();
    let mut others: Vec<&ProcessRow> = Vec::new();
    for facts in &rows {
        let process = facts.process;
        if server.wrappers().contains(&process) && !server.processes().contains(&process) {
            members.wrappers.insert(process);
        } else if is_core(inspection, &windows, facts) {
            members.core.insert(process);
            members.sessions.insert(facts.sid);
        } else {
            others.push(*facts);
        }
    }
    // Once orphand has begun to end the server, its main process may have exited. What shared its session then still
    // belongs to the server.
    let attempt = server.phase.orphan().map(|verdict| &verdict.attempt);
    if let Some(attempt) = attempt.filter(|attempt| attempt.first_signal.is_some()) {
        members.sessions.extend(&attempt.sessions);
    }
    // The more belongs to it, the more is tied to it. So the order does not matter, and a pass may use what it has found.
    let mut held: Sides = members.all().flat_map(|process| inspection.rows.sides(process)).collect();
    for _ in 0..PASSES {
        let unsettled = others.len();
        let bonds = Bonds::of(inspection, &members, &held, &windows, &rows);
        others.retain(|facts| {
            let tied = is_tied(inspection, &members, &held, &bonds, facts);
            if tied {
                members.tied.insert(facts.process);
                held.extend(inspection.rows.sides(facts.process));
            }
            !tied
        });
        if others.len() == unsettled {
            break;
        }
    }
    members.let_go.extend(others.into_iter().map(|facts| facts.process));
    members
}

/// What one pass over the processes of a server asks of all of them.
struct Bonds<'a> {
    /// Those that have windows, and those below them.
    windows: &'a BTreeSet<ProcessId>,
    /// Those that serve others, and those above them. Who runs a service (`npm run dev`, a reloader, a supervisor) ends it
    /// when he is ended.
    serving: BTreeSet<ProcessId>,
    /// Whether a process of the core ignores SIGHUP.
    core_ignores_hangup: bool,
    /// The parents of those that do not ignore SIGINT.
    interruptible: BTreeSet<ProcessId>,
}

impl<'a> Bonds<'a> {
    fn of(
        inspection: &Inspection<'_>,
        members: &Members,
        held: &Sides,
        windows: &'a BTreeSet<ProcessId>,
        all: &[&ProcessRow],
    ) -> Self {
        let rows = inspection.rows;
        let serves = |one: &&&ProcessRow| {
            let process = one.process;
            !members.contains(process) && rows.listens(process) && !rows.is_called_by(process, held)
        };
        let serving = all.iter().filter(serves);
        let core_ignores_hangup =
            all.iter().any(|one| one.ignores_hangup && members.core.contains(&one.process));
        let serving = serving.flat_map(|one| iter::once(one.process).chain(rows.parents(one))).collect();
        let interruptible =
            all.iter().filter(|one| !one.ignores_interrupt).filter_map(|one| one.parent).collect();
        Self { windows, serving, core_ignores_hangup, interruptible }
    }
}

/// Whether a process is the server's main process or a link of its launch chain: a rule recognised it, or the
/// server's wire is its standard input. A process that was started on that wire and has moved it since also counts,
/// unless it left the session, because a daemon is born with the wire as well. So is a job with output of its own that
/// merely inherited the standard input.
fn is_core(inspection: &Inspection<'_>, windows: &BTreeSet<ProcessId>, facts: &ProcessRow) -> bool {
    let server = inspection.server;
    let was_started_on_it = || {
        let node = inspection.node(facts.process).filter(|node| node.origin().process == node.id);
        node.is_some_and(|node| node.stdin() == server.stdin)
    };
    server.recognised().contains(&facts.process)
        || (server.stdin.is_wire()
            && !is_opened(inspection, windows, facts)
            && !is_a_browser(inspection, facts)
            && !only_inherits_input(inspection, facts)
            && !is_a_daemon(inspection, facts)
            && (facts.stdio.contains(&server.stdin) || (facts.sid == server.session && was_started_on_it())))
}

/// Whether the process has nothing of the server's but its standard input, neither now nor when its program began: what a
/// server starts with a log for its output inherits that.
fn only_inherits_input(inspection: &Inspection<'_>, facts: &ProcessRow) -> bool {
    let server = inspection.server;
    let is_ours = |stream: &Stdio| stream.is_wire() && [server.stdin, server.stdout].contains(stream);
    let [_, output @ ..] = &facts.stdio;
    let began = || {
        let node = inspection.node(facts.process).filter(|node| node.origin().process == node.id);
        node.is_some_and(|node| node.streams()[1..].iter().any(is_ours))
    };
    !output.iter().any(is_ours) && !began()
}

/// Whether its parent is the server's, or below it.
fn is_below(inspection: &Inspection<'_>, facts: &ProcessRow) -> bool {
    facts.parent.is_some_and(|above| inspection.has_row_of_server(above))
}

/// Whether it has left its parents and their session or input, and is open to others, or helps somebody above it who is so. Many
/// a daemon inherits the streams, and `sh -c "daemon &"` all but the input.
fn is_a_daemon(inspection: &Inspection<'_>, facts: &ProcessRow) -> bool {
    let (server, rows) = (inspection.server, inspection.rows);
    let is_one = |row: &ProcessRow| {
        (row.sid != server.session || !row.stdio[0].is_wire())
            && (!is_below(inspection, row) || is_adopted(inspection, row))
            && rows.listens(row.process)
            && !server.recognised().contains(&row.process)
    };
    let above = rows.parents(facts).take_while(|parent| server.processes().contains(parent));
    is_one(facts) || above.filter_map(|parent| rows.row(parent)).any(is_one)
}

/// Whether a descendant is tied to what belongs to the server: by its parents, or by one of the descriptors 0 to 2
/// that is joined with the server, or was until the other end was closed.
fn is_tied(
    inspection: &Inspection<'_>,
    members: &Members,
    held: &Sides,
    bonds: &Bonds<'_>,
    facts: &ProcessRow,
) -> bool {
    // If the main process exited by itself, a service that still listens is not a remainder of the server.
    if inspection.server.main_ended && inspection.rows.listens(facts.process) {
        return false;
    }
    let is_for_others = || {
        is_a_daemon(inspection, facts)
            && (bonds.serving.contains(&facts.process) || !is_a_browser(inspection, facts))
            && !was_tied(inspection, facts)
    };
    if is_opened(inspection, bonds.windows, facts) || is_for_others() {
        return false;
    }
    if is_a_browser(inspection, facts) {
        let wires = [inspection.server.stdin, inspection.server.stdout];
        return was_tied(inspection, facts)
            || inspection.rows.is_driven_by(facts.process, wires, held)
            || was_joined(inspection, members, bonds, facts)
            || is_of_a_browser(inspection, members, facts) && stays_below(inspection, members, bonds, facts);
    }
    stays_below(inspection, members, bonds, facts)
        || inspection.rows.is_joined(facts.process, held, binding(inspection, facts))
        || facts
            .stdio
            .iter()
            .take(binding(inspection, facts))
            .skip(usize::from(only_inherits_input(inspection, facts)))
            .any(|s| s.is_wire() && [inspection.server.stdin, inspection.server.stdout].contains(s))
        || was_joined(inspection, members, bonds, facts)
}

/// Whether the process was opened for a person: by `xdg-open` or the like below the server, or it has a window. Who opens
/// something hands its own streams on, or reads what it prints, and leaves it in its session. Browsers are looked at
/// apart: those that servers drive have windows, too.
fn is_opened(inspection: &Inspection<'_>, windows: &BTreeSet<ProcessId>, facts: &ProcessRow) -> bool {
    let openers = |process| inspection.node(process).map(|node| node.openers);
    // What opened an agent has opened all that is below it, its servers, too.
    let above = inspection.server.recognised().iter().filter_map(|process| openers(*process)).min();
    let by_an_opener = openers(facts.process) > Some(above.unwrap_or(0));
    (by_an_opener && !was_tied(inspection, facts)) || windows.contains(&facts.process)
}

/// Those of these processes that have windows, and all below them that help: the programs that draw pages have none
/// themselves. What a recognised process created is the server's own.
fn with_windows(inspection: &Inspection<'_>, all: &[&ProcessRow]) -> BTreeSet<ProcessId> {
    let (mut having, mut below) = (BTreeSet::new(), BTreeSet::new());
    for row in all.iter().filter(|row| row.has_display && !is_a_browser(inspection, row)) {
        having.insert(row.process);
        if !inspection.server.recognised().contains(&row.process) && !below.contains(&row.process) {
            below.extend(inspection.world.graph().descendants(row.process));
        }
    }
    having.extend(below);
    having
}

/// Whether the process is a browser: one that nothing of the server has a channel to was opened for a person, too. Electron
/// is none here, for it may be a link of the launch chain.
fn is_a_browser(inspection: &Inspection<'_>, facts: &ProcessRow) -> bool {
    let name = inspection.rules.title(&facts.image);
    [name.as_str(), base(&facts.image.exe)].into_iter().any(|name| name != "electron" && is_browser(name))
}

/// Whether its parent is a browser that belongs to the server.
fn is_of_a_browser(inspection: &Inspection<'_>, members: &Members, facts: &ProcessRow) -> bool {
    let parent = facts.parent.filter(|parent| members.contains(*parent));
    parent.and_then(|parent| inspection.rows.row(parent)).is_some_and(|row| is_a_browser(inspection, row))
}

/// Whether the process has left neither its parents nor the session, and serves nobody but the server. While the
/// server is being ended its parents may have ended, but what it had let go is no part of it any more.
fn stays_below(
    inspection: &Inspection<'_>,
    members: &Members,
    bonds: &Bonds<'_>,
    facts: &ProcessRow,
) -> bool {
    let begun = inspection.server.phase.is_terminating();
    let has_parent =
        || facts.parent.is_some_and(|parent| members.contains(parent)) && !is_adopted(inspection, facts);
    members.sessions.contains(&facts.sid)
        && (begun || (has_parent() && !bonds.serving.contains(&facts.process)))
        && !shall_outlive(inspection, bonds, facts)
        && !is_in_the_background(inspection, bonds, facts)
}

/// Whether its parent is a shell that waits for its next command instead of a program, or for another one: it was started by
/// `job &`, for which a shell without a terminal ignores SIGINT.
fn is_in_the_background(inspection: &Inspection<'_>, bonds: &Bonds<'_>, facts: &ProcessRow) -> bool {
    let parent = facts.parent.and_then(|parent| inspection.rows.row(parent)).filter(|row| row.full);
    let waits_for_another = |shell: &ProcessRow| {
        inspection.rules.role(&shell.image) == Role::Shell
            && (!shell.awaits_child
                || (facts.ignores_interrupt
                    && !shell.ignores_interrupt
                    && bonds.interruptible.contains(&shell.process)))
    };
    parent.is_some_and(waits_for_another) && !was_tied(inspection, facts)
}

/// Whether its creator has ended, and its parent adopted it: a server may be who adopts (prctl(2), `PR_SET_CHILD_SUBREAPER`,
/// or the first process of a PID namespace).
fn is_adopted(inspection: &Inspection<'_>, facts: &ProcessRow) -> bool {
    let creator = inspection.node(facts.process).filter(|node| node.witnessed).and_then(|node| node.creator);
    creator.is_some_and(|creator| facts.parent != Some(creator) && inspection.node(creator).is_none())
}

/// Whether the process ignores SIGHUP, and the server itself does not: somebody started it with `nohup` to outlive the
/// session. What was tied when the server began to be ended stays so.
fn shall_outlive(inspection: &Inspection<'_>, bonds: &Bonds<'_>, facts: &ProcessRow) -> bool {
    facts.ignores_hangup && !was_tied(inspection, facts) && !bonds.core_ignores_hangup
}

/// Whether it was tied when the server began to be ended.
fn was_tied(inspection: &Inspection<'_>, facts: &ProcessRow) -> bool {
    inspection.server.phase.orphan().is_some_and(|orphan| orphan.attempt.tied.contains(&facts.process))
}

/// How many of its standard streams may tie it. What was adopted and has a file for its output works for whoever reads that:
/// a shell that runs `job > log &` hands its own standard error on.
fn binding(inspection: &Inspection<'_>, facts: &ProcessRow) -> usize {
    let writes_a_file = facts.stdio[1] == Stdio::File && !is_below(inspection, facts);
    if writes_a_file && !was_tied(inspection, facts) { 2 } else { 3 }
}

/// Whether one of its standard streams is still the pipe or socket that a process of the server made for it. A shell makes
/// those of `job | tee log &` for the two alone.
fn was_joined(inspection: &Inspection<'_>, members: &Members, bonds: &Bonds<'_>, facts: &ProcessRow) -> bool {
    let Some(node) = inspection.node(facts.process) else { return false };
    // For a process found in /proc nobody knows who made its streams. It counts if it was seen joined with the
    // server that is being ended.
    let was_tied = was_tied(inspection, facts);
    let shell = facts.parent.filter(|_| is_in_the_background(inspection, bonds, facts));
    let made_here = |process: ProcessId| {
        (members.contains(process) && shell != Some(process)) || inspection.server.ended().contains(&process)
    };
    let then = node.streams();
    let streams = then.iter().zip(&facts.stdio).zip(&node.exec.makers);
    streams.take(binding(inspection, facts)).any(|((then, now), maker)| {
        let made = || maker.as_ref().is_some_and(|maker| made_here(maker.process));
        now.is_wire() && then == now && (was_tied || made())
    })
}
