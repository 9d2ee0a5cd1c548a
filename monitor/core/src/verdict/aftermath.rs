//! What a server, or a script around it, would do to others on its way to the end, if it were asked to end: handlers and traps
//! are code of its own. For `proof`.

use std::collections::BTreeSet;

use super::{inspection::Inspection, membership::Members, uses::named};
use crate::{
    lineage::Node,
    model::{
        ProcessId, ReachedBy, SHOWN,
        scene::{End, ProcessRow},
    },
    recognise::{After, Role, Rules, after, runs_itself},
    world::{Server, World},
};

/// Which processes of the server get SIGKILL where others get SIGTERM, because they do who knows what before they end, or when
/// another one has ended: a script around the main process (`trap 'kill 0' EXIT`, `finally`), which would go on without it. And
/// all of the server, if it has let something go and anybody in it may do something: such a script, who has a handler for SIGTERM,
/// and whoever is there beside the main process, which may see that end in many a way. Each may tell the others, so nobody is asked.
pub(super) fn not_to_be_asked(inspection: &Inspection<'_>, members: &Members) -> BTreeSet<ProcessId> {
    let rows = inspection.rows;
    let above = |processes: &mut dyn Iterator<Item = &ProcessId>| -> BTreeSet<ProcessId> {
        processes.filter_map(|process| rows.row(*process)).flat_map(|row| rows.parents(row)).collect()
    };
    let starting = above(&mut members.core.iter());
    // The main process and the links above it: no forked copy, and nothing that the server started for itself.
    let is_link = |process: &&ProcessId| {
        inspection
            .node(**process)
            .is_some_and(|node| node.stdin() == inspection.server.stdin && node.origin().process == node.id)
    };
    let launching = above(&mut members.core.iter().filter(is_link));
    let main = inspection.main_image();
    let is_script = |row: &ProcessRow| {
        let process = row.process;
        let would = (starting.contains(&process) && after(&row.image, main) != After::Nothing)
            || (launching.contains(&process) && works_itself(inspection, row));
        would && !(members.wrappers.contains(&process) && has_others_below(inspection, row))
    };
    let belongs = |row: &ProcessRow| is_its_own(inspection, members, row);
    let is_beside = |row: &ProcessRow| row.process != inspection.server.main_process();
    let would = |row: &ProcessRow| is_script(row) || belongs(row) && (row.catches_term || is_beside(row));
    let processes = || inspection.processes(members);
    let all = may_have_let_go(inspection, members) && processes().any(would);
    let is_one = |row: &&ProcessRow| is_script(row) || (all && belongs(row));
    processes().filter(is_one).map(|row| row.process).collect()
}

/// Whether a server has let something go, or may have: of one that was found nobody knows.
pub(super) fn may_have_let_go(inspection: &Inspection<'_>, members: &Members) -> bool {
    let may_have = |row: &ProcessRow| {
        let mut below = inspection.world.graph().children(row.process);
        let is_found = || inspection.node(row.process).is_none_or(|node| node.provenance.is_found());
        is_its_own(inspection, members, row) && (below.any(|node| is_let_go(members, node)) || is_found())
    };
    !members.let_go.is_empty() || inspection.processes(members).any(may_have)
}

/// What a server that has ended by itself let go is no part of it any more.
fn is_let_go(members: &Members, node: &Node) -> bool {
    node.server.is_none() || members.let_go.contains(&node.id)
}

/// Whether it is a process of the server itself, and no browser: that ends nothing of what others have let go.
fn is_its_own(inspection: &Inspection<'_>, members: &Members, row: &ProcessRow) -> bool {
    let mut below = inspection.world.graph().below(row.process);
    let is_harmless = inspection.is_a_browser(row) && !below.any(|node| is_let_go(members, node));
    !members.wrappers.contains(&row.process) && !is_harmless
}

/// Whether a script around the server has other programs below it, and cleans up when the server ends (`trap 'kill $(jobs -p)'
/// EXIT`): for that bash has a handler for SIGTERM, and other programs may do so anyway. It is not signalled itself, since it has
/// others below it. A launcher may end what it started beside the server (the bus of `dbus-run-session`, the display of
/// `xvfb-run`), which what the server let go may use, or somebody outside.
pub(super) fn cleaning_up<'a>(
    inspection: &'a Inspection<'_>,
    members: &'a Members,
) -> impl Iterator<Item = &'a ProcessRow> {
    let cleans_up = move |row: &ProcessRow| match after(&row.image, inspection.main_image()) {
        After::Nothing => false,
        After::Unknown => row.catches_term,
        After::Commands => true,
    };
    let would = move |row: &&ProcessRow| {
        members.wrappers.contains(&row.process)
            && (cleans_up(row)
                || works_itself(inspection, row)
                || is_needed_beside(inspection, members, row.process))
            && has_others_below(inspection, row)
    };
    inspection.processes(members).filter(would)
}

/// What these would end with the server ([`cleaning_up`]), and who needs that: steps of the path.
pub(super) fn path_to_what_is_cleaned_up(inspection: &Inspection<'_>, members: &Members) -> Vec<ReachedBy> {
    let above: Vec<&ProcessRow> = cleaning_up(inspection, members).take(SHOWN).collect();
    let step = |process, to, words: (&str, &str)| ReachedBy { to, ..named(inspection, process, words) };
    let mut path = Vec::new();
    for row in above {
        let launcher = row.process;
        let by = named(inspection, launcher, ("", "")).program.unwrap_or_default();
        let may_be_ended = format!("may be ended with it, by {by} (pid {})", launcher.pid);
        let started = started_beside(inspection.world, inspection.server, launcher);
        for beside in started.map(|node| node.id).take(SHOWN) {
            let to = Some(beside.pid);
            let callers = callers_beside(inspection, launcher, beside).filter_map(|end| end.holder.process());
            let callers: BTreeSet<ProcessId> = callers.take(SHOWN).collect();
            path.extend(
                callers.into_iter().map(|caller| step(caller, to, ("connection", "is connected with it"))),
            );
            let let_go = members.let_go.iter().take(SHOWN);
            let may_use = ("work", "was started by the server, goes on, and may use it");
            path.extend(let_go.map(|process| step(*process, to, may_use)));
            path.push(step(beside, None, ("launcher", &may_be_ended)));
            if path.len() >= SHOWN {
                return path;
            }
        }
    }
    path
}

/// Who is connected with what a launcher started beside the server, and is not below that launcher.
fn callers_beside<'a>(
    inspection: &'a Inspection<'_>,
    launcher: ProcessId,
    beside: ProcessId,
) -> impl Iterator<Item = &'a End> {
    let graph = inspection.world.graph();
    let is_below =
        move |process| process == launcher || graph.ancestors(process).any(|above| above.id == launcher);
    inspection.rows.other_callers(beside, is_below)
}

/// Whether it is a program with code of its own, which may do anything when the server has ended (`finally: site.terminate()`), or
/// an init or a supervisor, which ends the rest (dumb-init the process group).
fn works_itself(inspection: &Inspection<'_>, row: &ProcessRow) -> bool {
    let role = inspection.rules.role(&row.image);
    role == Role::ServiceManager || (role != Role::Shell && runs_itself(&row.image, &role))
}

/// What the launchers of a server started beside it, each with its launcher.
pub fn beside<'a>(
    world: &'a World,
    rules: &'a Rules,
    server: &'a Server,
) -> impl Iterator<Item = (ProcessId, &'a Node)> {
    let image = |process| world.node(process).and_then(Node::image);
    let is_launcher =
        move |process: &&ProcessId| image(**process).is_some_and(|image| rules.is_a_launcher_by_name(image));
    let started =
        move |launcher: &'a ProcessId| started_beside(world, server, *launcher).map(|node| (*launcher, node));
    server.wrappers().iter().filter(is_launcher).flat_map(started)
}

fn started_beside<'a>(
    world: &'a World,
    server: &'a Server,
    launcher: ProcessId,
) -> impl Iterator<Item = &'a Node> {
    world.graph().children(launcher).filter(|node| !server.contains(node.id))
}

/// Whether it is a launcher, and started something beside the server that what the server let go may use, or that somebody who is not
/// below it has called.
fn is_needed_beside(inspection: &Inspection<'_>, members: &Members, launcher: ProcessId) -> bool {
    let Inspection { world, rows, server, .. } = inspection;
    let is_needed = |process: ProcessId| {
        let is_unread = || rows.scene.blind(|one| one == process).is_some();
        !members.let_go.is_empty()
            || callers_beside(inspection, launcher, process).next().is_some()
            || is_unread()
    };
    let is_its_own = |process| members.contains(process) || members.let_go.contains(&process);
    let mut beside = beside(world, inspection.rules, server).filter(|(above, _)| *above == launcher);
    beside.any(|(_, node)| !is_its_own(node.id) && is_needed(node.id))
}

fn has_others_below(inspection: &Inspection<'_>, row: &ProcessRow) -> bool {
    let mut below = inspection.world.graph().below(row.process);
    below.any(|below| !inspection.server.contains(below.id))
}
