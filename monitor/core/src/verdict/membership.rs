//! What belongs to a server: its main process, its launch chain, and the processes tied to them.
//!
//! A process belongs to a server while it shares standard input or output with it, or has left neither its parents nor its
//! session and serves nobody else. Anything else has been let go: for example a browser opened for a person, a daemon, the
//! job of a hook, or what a shell started with `&` or `nohup`. Such a process is reported and never ended.

use std::{
    collections::{BTreeMap, BTreeSet},
    iter,
    ops::Range,
};

use super::{inspection::Inspection, rows::Sides};
use crate::{
    lineage::{Maker, Node, Program, Provenance},
    model::{ProcessId, Stdio, scene::ProcessRow},
    recognise::{Role, fork_server_listener, is_in_a_shell},
    world::is_run_by,
};

/// How often the processes that are not tied yet are looked at again: as many links a line may have whose later processes tie
/// the earlier ones. Whoever is not tied by then has been let go. It bounds what the shape of one server costs others.
const PASSES: usize = 16;

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
    pub sessions: BTreeSet<u32>,
}

impl Members {
    pub fn contains(&self, process: ProcessId) -> bool {
        self.core.contains(&process) || self.wrappers.contains(&process) || self.tied.contains(&process)
    }

    pub fn all(&self) -> impl Iterator<Item = ProcessId> + '_ {
        self.core.iter().chain(&self.wrappers).chain(&self.tied).copied()
    }
}

pub fn members(inspection: &Inspection<'_>) -> Members {
    let server = inspection.server;
    let rows: Vec<&ProcessRow> = inspection.rows_of_server().collect();
    let mut bonds = Bonds::of(inspection, &rows);
    let mut others: Vec<&ProcessRow> = Vec::new();
    for facts in &rows {
        let process = facts.process;
        if server.wrappers().contains(&process) && !server.processes().contains(&process) {
            bonds.members.wrappers.insert(process);
        } else if bonds.is_core(facts) {
            bonds.members.core.insert(process);
            bonds.members.sessions.insert(facts.sid);
            bonds.core_ignores_hangup |= facts.ignores_hangup;
        } else {
            others.push(*facts);
        }
    }
    // Once orphand has begun to end the server, its main process may have exited. What shared its session then still
    // belongs to the server.
    let attempt = server.phase.orphan().map(|verdict| &verdict.attempt);
    if let Some(attempt) = attempt.filter(|attempt| attempt.first_signal.is_some()) {
        bonds.members.sessions.extend(&attempt.sessions);
    }
    // The more belongs to it, the more is tied to it. So the order does not matter, and a pass may use what it has found.
    bonds.held = inspection.rows.sides_of(bonds.members.all());
    for _ in 0..PASSES {
        let unsettled = others.len();
        bonds.find_serving(&rows);
        others.retain(|facts| {
            let tied = bonds.is_tied(facts);
            if tied {
                bonds.members.tied.insert(facts.process);
                bonds.held.extend(inspection.rows.sides(facts.process));
            }
            !tied
        });
        if others.len() == unsettled {
            break;
        }
    }
    bonds.members.let_go.extend(others.into_iter().map(|facts| facts.process));
    bonds.members
}

/// What ties the processes of a server to it.
pub(super) struct Bonds<'a> {
    pub(super) inspection: &'a Inspection<'a>,
    /// Those found so far.
    pub(super) members: Members,
    /// The ends that these have.
    pub(super) held: Sides,
    browsers: BTreeSet<ProcessId>,
    /// Those that have windows, and those below them.
    windows: BTreeSet<ProcessId>,
    /// Those that serve others, and those above them. Who runs a service (`npm run dev`, a reloader, a supervisor) ends it
    /// when he is ended.
    serving: BTreeSet<ProcessId>,
    pub(super) core_ignores_hangup: bool,
    /// The parents of those that do not ignore SIGINT.
    pub(super) interruptible: BTreeSet<ProcessId>,
    /// The youngest child of each: its start and number.
    pub(super) youngest: BTreeMap<ProcessId, (u64, u32)>,
}

impl<'a> Bonds<'a> {
    fn of(inspection: &'a Inspection<'a>, rows: &[&ProcessRow]) -> Self {
        let interruptible = rows.iter().filter(|row| !ignores_interrupt(inspection, row));
        let interruptible = interruptible.filter_map(|row| row.parent);
        let mut youngest = BTreeMap::new();
        for (parent, age) in rows.iter().filter_map(|row| Some((row.parent?, age(row)))) {
            let of_parent = youngest.entry(parent).or_insert(age);
            *of_parent = age.max(*of_parent);
        }
        let browsers = rows.iter().filter(|row| inspection.is_a_browser(row));
        Self {
            inspection,
            members: Members::default(),
            held: Sides::default(),
            browsers: browsers.map(|row| row.process).collect(),
            windows: inspection.with_windows(rows),
            serving: BTreeSet::new(),
            core_ignores_hangup: false,
            interruptible: interruptible.collect(),
            youngest,
        }
    }

    pub(super) fn is_a_browser(&self, facts: &ProcessRow) -> bool {
        self.browsers.contains(&facts.process)
    }

    fn find_serving(&mut self, all: &[&ProcessRow]) {
        let rows = self.inspection.rows;
        let serves = |row: &&&ProcessRow| {
            let process = row.process;
            !self.members.contains(process)
                && rows.listens(process)
                // Those who call it have its pipe.
                && fork_server_listener(&row.image).is_none()
                && !rows.is_called_by(process, &self.held)
        };
        let serving = all.iter().filter(serves);
        self.serving = serving.flat_map(|row| iter::once(row.process).chain(rows.parents(row))).collect();
    }

    /// Whether a process is the server's main process or a link of its launch chain: a rule recognised it, or the
    /// server's wire is its standard input. A process that was started on that wire and has moved it since also counts,
    /// unless it left the session, because a daemon is born with the wire as well. So is a job with output of its own that
    /// merely inherited the standard input. What the server itself runs on its wires is a tool.
    fn is_core(&self, facts: &ProcessRow) -> bool {
        let server = self.inspection.server;
        let was_started_on_it = || {
            let node = self.inspection.node(facts.process).filter(|node| node.origin().process == node.id);
            node.is_some_and(|node| node.stdin() == server.stdin)
        };
        if self.has_gone_on(facts) {
            return false;
        }
        (server.recognised().contains(&facts.process) && !self.is_a_daemon(facts))
            || (server.stdin.is_wire()
                && !self.is_opened(facts)
                && !self.is_a_browser(facts)
                && !self.only_inherits_input(facts)
                && !self.is_run(facts)
                && !self.was_left(facts)
                && !self.is_a_daemon(facts)
                && (facts.stdio.contains(&server.stdin)
                    || (facts.sid == server.session && was_started_on_it())))
    }

    /// Whether it was a tool of a bridge that has ended, and has put a wire away since, as a job with a log does: it is no server.
    fn has_gone_on(&self, facts: &ProcessRow) -> bool {
        let server = self.inspection.server;
        let is_one = server.heard.is_some() && server.main_process() == facts.process;
        let wires = self.inspection.node(facts.process).filter(|_| is_one).map(Node::wires);
        wires.is_some_and(|[stdin, stdout]| {
            let has = |wire, reads| self.inspection.rows.has_own_end(wire, reads, |one| one == facts.process);
            !(server.phase.is_signalled() || has(stdin, true) && has(stdout, false))
        })
    }

    /// Whether a descendant is tied to what belongs to the server: by its parents, or by one of the descriptors 0 to 2
    /// that is joined with the server, or was until the process at the other end ended.
    fn is_tied(&self, facts: &ProcessRow) -> bool {
        // If the main process exited by itself, a service that still listens is not a remainder of the server, nor is a job in a
        // session of its own.
        let server = self.inspection.server;
        let is_a_job = || facts.sid != server.session && !self.is_a_browser(facts) && !self.was_tied(facts);
        let has_ended = server.main_ended || (self.members.core.is_empty() && !server.phase.is_signalled());
        if has_ended && (self.inspection.rows.listens(facts.process) || is_a_job()) {
            return false;
        }
        let is_for_others = || {
            self.is_a_daemon(facts)
                && (self.serving.contains(&facts.process) || !self.is_a_browser(facts))
                && !self.was_tied(facts)
        };
        if self.is_opened(facts) || is_for_others() || self.shall_outlive(facts) {
            return false;
        }
        let wires = server.wires();
        if self.is_a_browser(facts) {
            return self.was_tied(facts)
                || self.inspection.rows.is_driven_by(facts.process, wires, &self.held)
                || self.was_joined(facts)
                || self.is_of_a_browser(facts) && self.stays_below(facts);
        }
        let binding = self.binding(facts);
        let ties = |stream: usize| binding.contains(&stream) && !self.is_handed_on(facts, stream);
        let mut streams =
            facts.stdio.iter().take(binding.end).skip(usize::from(self.only_inherits_input(facts)));
        self.stays_below(facts)
            || self.inspection.rows.is_joined(facts.process, &self.held, ties)
            || (!self.is_a_service(facts) && streams.any(|stream| stream.is_wire() && wires.contains(stream)))
            || self.was_joined(facts)
    }

    /// Whether the process was opened for a person: by `xdg-open` or the like below the server, or it has a window. Who opens
    /// something hands its own streams on, or reads what it prints, and leaves it in its session. Browsers are looked at
    /// apart: those that servers drive have windows, too.
    fn is_opened(&self, facts: &ProcessRow) -> bool {
        let openers = |process| self.inspection.node(process).map(|node| node.openers);
        // What opened an agent has opened all that is below it, its servers, too.
        let above = self.inspection.server.recognised().iter().filter_map(|process| openers(*process)).min();
        let by_an_opener = openers(facts.process) > Some(above.unwrap_or(0));
        (by_an_opener && !self.was_tied(facts)) || self.windows.contains(&facts.process)
    }

    /// Whether its parent is a browser that belongs to the server.
    pub(super) fn is_of_a_browser(&self, facts: &ProcessRow) -> bool {
        let parent = self.inspection.rows.parent(facts);
        parent.is_some_and(|row| self.members.contains(row.process) && self.is_a_browser(row))
    }

    /// Whether the process has left neither its parents nor the session, and serves nobody but the server. While the
    /// server is being ended its parents may have ended, but what it had let go is no part of it any more.
    fn stays_below(&self, facts: &ProcessRow) -> bool {
        let begun = self.inspection.server.phase.is_terminating();
        let has_parent =
            || facts.parent.is_some_and(|parent| self.members.contains(parent)) && !self.is_adopted(facts);
        self.members.sessions.contains(&facts.sid)
            && (begun || (has_parent() && !self.serving.contains(&facts.process)))
            && !self.works_apart(facts)
    }

    /// Which of its standard streams may tie it. Standard error may only of a browser, which says there where it can be called. What
    /// has only files, or nothing, for its output is not driven over its input, unless it waits for that alone: `spawn(job, {stdio:
    /// ["pipe", log, log]})`. Many a runtime makes that pipe unasked.
    fn binding(&self, facts: &ProcessRow) -> Range<usize> {
        let [_, output @ ..] = &facts.stdio;
        let is_apart = || {
            !output.iter().any(|stream| stream.is_wire())
                && !self.inspection.rows.is_joined(facts.process, &self.held, |stream| stream > 0)
                && !self.waits_for_input(facts)
        };
        let was_tied = self.was_tied(facts);
        let end = if was_tied || self.is_a_browser(facts) { 3 } else { 2 };
        usize::from(!was_tied && is_apart())..end
    }

    /// Whether this standard stream is that of the shell that it works apart from: `job | tee log &`, in a shell that a server keeps,
    /// has the output of that, as each command has there.
    fn is_handed_on(&self, facts: &ProcessRow, stream: usize) -> bool {
        let is_of = |parent: &ProcessRow| parent.stdio.get(stream) == facts.stdio.get(stream);
        let shell = self.inspection.rows.parent(facts).filter(|parent| parent.full && is_of(parent));
        shell.is_some_and(|parent| self.is_a_shell(parent)) && self.works_apart(facts)
    }

    /// Whether one of its standard streams is still the pipe or socket that a process of the server made for it, which has ended
    /// since. A shell makes those of `job | tee log &` for the two alone, and a standard input that has ended is of no use to
    /// anybody. Who lives and has closed the other end has let it go; a call that he handed on, as inetd does, is one of him.
    fn was_joined(&self, facts: &ProcessRow) -> bool {
        let Some(node) = self.inspection.node(facts.process) else { return false };
        // Where a server reports it drives nobody: that may be a connection, too (journald).
        let errors = self.inspection.rows.parent(facts).map(|row| row.stdio[2]);
        // For a process found in /proc nobody knows who made its streams. It counts if it was seen joined with the
        // server that is being ended.
        let was_tied = self.was_tied(facts);
        let is_shell = |program: &Program| program.role == Role::Shell || is_in_a_shell(&program.image);
        let made_here = |maker: &Maker, stream: Stdio| {
            (self.inspection.server.ended().contains(&maker.process) && !is_shell(&maker.program))
                || (self.members.contains(maker.process)
                    && Some(stream) != errors
                    && self.inspection.rows.was_called_on(facts.process, stream))
        };
        let then = node.streams();
        let streams = then.iter().zip(&facts.stdio).zip(&node.exec.makers).enumerate();
        let mut streams = streams.take(self.binding(facts).end).skip(usize::from(!was_tied));
        streams.any(|(number, ((then, now), maker))| {
            let made = || maker.as_ref().is_some_and(|maker| made_here(maker, *now));
            now.is_wire() && then == now && (was_tied || made()) && !self.is_handed_on(facts, number)
        })
    }

    /// Whether the process has nothing of the server's but its standard input, neither now nor when its program began: what a
    /// server starts with a log for its output inherits that.
    fn only_inherits_input(&self, facts: &ProcessRow) -> bool {
        let server = self.inspection.server;
        let is_ours = |stream: &Stdio| stream.is_wire() && server.wires().contains(stream);
        let [_, output @ ..] = &facts.stdio;
        let began = || {
            let node = self.inspection.node(facts.process).filter(|node| node.origin().process == node.id);
            node.is_some_and(|node| node.streams()[1..].iter().any(is_ours))
        };
        !output.iter().any(is_ours) && !began()
    }

    /// Whether the server itself ran it, and has not merely launched it.
    fn is_run(&self, facts: &ProcessRow) -> bool {
        is_run_by(self.inspection.world.graph(), self.inspection.server, facts.process)
    }

    /// Whether the server itself ran it, and it serves others, or runs who does. Those who call a fork server have its pipe.
    fn is_a_service(&self, facts: &ProcessRow) -> bool {
        self.serving.contains(&facts.process)
            && self.is_run(facts)
            && fork_server_listener(&facts.image).is_none()
            && !self.was_tied(facts)
    }

    /// Whether it has left its parents and their session or input, and is open to others, or helps somebody above it who is so. Many
    /// a daemon inherits the streams, and `sh -c "daemon &"` all but the input.
    fn is_a_daemon(&self, facts: &ProcessRow) -> bool {
        let (server, rows) = (self.inspection.server, self.inspection.rows);
        let is_of_server = |row: &ProcessRow| row.full && server.contains(row.process);
        let is_one = |row: &ProcessRow| {
            (row.sid != server.session || !row.stdio[0].is_wire())
                && (!rows.parent(row).is_some_and(is_of_server) || self.is_adopted(row))
                && rows.listens(row.process)
                && (!server.recognised().contains(&row.process) || self.is_left(row))
        };
        let above = rows.parents(facts).take_while(|parent| server.processes().contains(parent));
        is_one(facts) || above.filter_map(|parent| rows.row(parent)).any(is_one)
    }

    /// Whether its creator has ended, and its parent adopted it: a server may be who adopts (prctl(2), `PR_SET_CHILD_SUBREAPER`,
    /// or the first process of a PID namespace). What was there before the daemon, below such a first process, may have been.
    pub(super) fn is_adopted(&self, facts: &ProcessRow) -> bool {
        let (Some(node), Some(parent)) = (self.inspection.node(facts.process), facts.parent) else {
            return false;
        };
        match node.creator.filter(|creator| *creator != parent) {
            Some(creator) => self.inspection.node(creator).is_none(),
            None => {
                node.provenance != Provenance::Witnessed && self.inspection.rows.leads_a_namespace(parent)
            }
        }
    }

    /// Whether a process of the server that has ended made its standard input: it is no server that an agent talks to.
    fn is_left(&self, facts: &ProcessRow) -> bool {
        let maker = self.inspection.node(facts.process).and_then(|node| node.exec.makers[0].as_ref());
        maker.is_some_and(|maker| self.inspection.server.ended().contains(&maker.process))
    }

    /// Whether it was tied when the server began to be ended.
    pub(super) fn was_tied(&self, facts: &ProcessRow) -> bool {
        let orphan = self.inspection.server.phase.orphan();
        orphan.is_some_and(|orphan| orphan.attempt.tied.contains(&facts.process))
    }
}

/// Whether a process ignores SIGINT, or did when its program began: a shell without a terminal starts so what it runs in the
/// background.
pub(super) fn ignores_interrupt(inspection: &Inspection<'_>, row: &ProcessRow) -> bool {
    row.ignores_interrupt || inspection.node(row.process).is_some_and(|node| node.exec.ignored.interrupt)
}

/// The greater, the younger. Within a tick of the clock the numbers tell.
pub(super) const fn age(row: &ProcessRow) -> (u64, u32) {
    (row.process.start, row.process.pid)
}
