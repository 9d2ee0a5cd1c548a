//! Fork, exec, setsid and exit: how processes enter and leave the graph, how the engine finds out what they are, and how a
//! server ends with its last process.

use std::{num::NonZeroU32, time::Duration};

use super::{
    Engine,
    agenda::Task,
    agents::AgentExit,
    awaited::Awaited,
    cases::{CaseOf, Reported},
    servers::Recognised,
};
use crate::{
    case::{Event, Outcome},
    lineage::{Left, Node, Provenance, ServerKey},
    model::{BootTime, Class, Ending, ExitStatus, Image, Notice, ProcessId, SnapshotProcess, Stdio},
    recognise::{Role, is_spawn_helper},
    world::agent_view,
};

impl Engine {
    /// A process was created. `thread`: the thread of the creator that did so, unless it was the leading one.
    pub(super) fn fork(
        &mut self,
        at: BootTime,
        creator: (ProcessId, Option<NonZeroU32>),
        child: ProcessId,
        uid: u32,
        sid: u32,
    ) {
        let (creator, thread) = creator;
        if self.world.node(child).is_some() {
            return;
        }
        let Some(parent) = self.world.node(creator) else {
            // The creator is unknown: the kernel side follows a process that the engine has dismissed meanwhile.
            self.untrack(child);
            self.untrack(creator);
            return;
        };
        let mut node = parent.fork(child, uid, sid);
        node.thread = thread;
        self.make_room(at, child);
        self.world.enter(node, Some(creator));
        self.kill_new_child(at, child);
    }

    /// Enters a process of which only this is known: a server is its own.
    pub(super) fn enter_host(&mut self, now: BootTime, id: ProcessId, known: impl FnOnce(&mut Node)) {
        if self.world.node(id).is_none() {
            self.make_room(now, id);
            let mut node = Node::bare(id);
            node.pending = false;
            known(&mut node);
            self.world.enter(node, None);
        }
    }

    /// Removes an older process with the same process number. It has exited, even if no record reported it.
    pub(super) fn make_room(&mut self, at: BootTime, newcomer: ProcessId) {
        if let Some(old) = self.world.graph().holder(newcomer.pid).filter(|old| *old != newcomer) {
            self.exit(at, at, old, None);
        }
    }

    pub(super) fn exec(&mut self, now: BootTime, at: BootTime, seen: &SnapshotProcess) {
        if is_spawn_helper(&seen.image) {
            return; // it goes on as a copy of its creator
        }
        if self.world.node(seen.id).is_none() {
            self.enter(at, seen);
        }
        self.ran(now, at, seen, Provenance::Witnessed);
        self.remember_left(at, seen.id);
    }

    pub(super) fn ran(&mut self, now: BootTime, at: BootTime, seen: &SnapshotProcess, how: Provenance) {
        let before = self.world.node(seen.id).and_then(|node| node.exec.program.clone());
        self.world.run(&self.rules, seen, how);
        if let Some(before) = before {
            self.server_ran(at, seen.id, &before.image);
        }
        self.classify(now, at, seen.id);
    }

    /// A server, or a link of its launch chain, ran another program in place. A shell or launcher that becomes the
    /// program it was to launch is the same launch chain. A server that starts itself anew (`bun --watch`) stays one. A
    /// server that becomes another program is no longer that server.
    fn server_ran(&mut self, at: BootTime, id: ProcessId, before: &Image) {
        let Some(node) = self.world.node(id) else { return };
        let Some((key, image)) = node.server.zip(node.image()) else { return };
        let Some(server) = self.world.server(key).filter(|s| s.recognised().contains(&id)) else { return };
        let rules = &self.rules;
        let same_wires = node.wires() == server.wires();
        // The path may be another one: the first may have been a link.
        let anew = before.argv.get(1..) == image.argv.get(1..)
            && (before.exe == image.exe || before.argv.first() == image.argv.first());
        let goes_on = match rules.role_but_for_exemption(image) {
            Role::Server { .. } => true,
            Role::Agent { .. } | Role::Multiplexer | Role::Exempt { .. } | Role::ServiceManager => false,
            Role::Launcher | Role::Shell | Role::Other { .. } => {
                same_wires && (anew || rules.only_launches(before))
            }
        };
        if goes_on {
            self.compare(at, key);
        } else {
            self.leave_server(at, id);
        }
    }

    /// Enters a candidate that was not tracked, with its parent. Both stay in the graph until it is known what the
    /// candidate is.
    fn enter(&mut self, at: BootTime, seen: &SnapshotProcess) {
        let id = seen.id;
        self.make_room(at, id);
        let parent = seen.parent.filter(|p| p.pid != id.pid);
        if let Some(parent) = parent.filter(|p| self.world.node(*p).is_none()) {
            self.make_room(at, parent);
            self.world.enter(Node::bare(parent), None);
        }
        let mut node = Node::bare(id);
        if let Some(creator) = parent.and_then(|p| self.world.node(p)).filter(|p| !p.protected) {
            // The kernel side reports the forks of a tracked creator. The record of this one was missed, so the fork
            // is inferred.
            node = creator.fork(id, seen.uid, seen.sid);
            node.witnessed = false;
        }
        node.creator = parent;
        self.world.enter(node, parent);
    }

    /// Classifies a process that runs a new program: as an agent, as a server, or as neither.
    pub(super) fn classify(&mut self, now: BootTime, at: BootTime, id: ProcessId) {
        let earlier = self.stop_waiting(id);
        let Some(node) = self.world.node(id) else { return };
        let Some(program) = node.exec.program.clone() else { return };
        let (role, rules) = (&program.role, &self.rules);
        if matches!(role, Role::Exempt { .. })
            && has_wires(node)
            && let Role::Server { name, rule } = rules.role_but_for_exemption(&program.image)
        {
            let recognised = Recognised::new(node, name, rule, None);
            self.server_recognised(now, at, recognised);
            return;
        }
        if let Some(agent) = self.world.agent_of(id) {
            self.agent_ran(now, at, agent, id);
            if self.world.agent_of(id).is_some() {
                return;
            }
        }
        let escapes = !matches!(role, Role::Multiplexer | Role::Exempt { .. });
        // A process that was part of a server stays in the graph. If it were forgotten, its next exec would make it
        // look like a child of its creator's server.
        let forgettable = self.world.graph().up(id).is_none_or(|up| up.protected || up.pending);
        if escapes && self.world.node(id).is_some_and(|node| node.protected) {
            // A child of a multiplexer runs a program of its own. The engine treats it like any unrelated process.
            self.world.change(id, |node| (node.protected, node.pending) = (false, forgettable));
        }
        if *role == Role::ServiceManager {
            self.manager_ran(id);
        }
        self.classify_by_role(now, at, id, earlier);
    }

    /// Classifies a process by its program. Its unit is known by now: it is not the main process of a unit that a
    /// rule names.
    /// `earlier`: what was asked about the program that it ran before.
    pub(super) fn classify_by_role(
        &mut self,
        now: BootTime,
        at: BootTime,
        id: ProcessId,
        earlier: Option<Awaited>,
    ) {
        let Some(node) = self.world.node(id) else { return };
        let Some(program) = node.exec.program.clone() else { return };
        let (has_wire, has_wires) = (node.stdin().is_wire(), has_wires(node));
        if self.is_main_of_unit(at, id, &program.role) {
            return;
        }
        let Some(node) = self.world.node(id) else { return };
        match &program.role {
            Role::Multiplexer | Role::Exempt { .. } => self.protect(at, id),
            Role::Agent { name, .. } => self.agent_started(at, id, name.clone()),
            Role::Server { name, rule } if has_wires => {
                let recognised = Recognised::new(node, name.clone(), rule.clone(), None);
                self.server_recognised(now, at, recognised);
            }
            Role::Launcher | Role::Shell if has_wire => {
                self.await_first_message(now, at, id, earlier);
            }
            Role::Other { .. } | Role::ServiceManager => {
                if !self.await_first_message(now, at, id, earlier) {
                    self.dismiss_if_pending(id);
                }
            }
            _ => self.dismiss_if_pending(id),
        }
    }

    /// Takes a process out of its agent and its server: what multiplexers and exempt programs start belongs to
    /// neither.
    fn protect(&mut self, at: BootTime, id: ProcessId) {
        let Some(node) = self.world.node(id) else { return };
        if node.pending {
            self.dismiss_if_pending(id);
            return;
        }
        // If the exec record was lost, what the process started since then seemed to be part of the server.
        let exec_was_lost = node.provenance.is_found();
        self.guards(at, id);
        if let Some(emptied) = self.world.protect(id, exec_was_lost) {
            self.end_if_done(at, emptied);
        }
    }

    pub(super) fn setsid(&mut self, at: BootTime, process: ProcessId, sid: u32) {
        let Some(node) = self.world.node(process).filter(|node| node.sid != sid) else { return };
        let key = node.server;
        self.world.change(process, |node| node.sid = sid);
        if let Some(agent) = self.world.agent_of(process).and_then(|key| self.world.agent_mut(key)) {
            agent.sid = sid;
        }
        let Some((key, server)) = key.and_then(|key| Some((key, self.world.server_mut(key)?))) else {
            return;
        };
        if server.main_process() == process {
            server.session = sid;
        }
        // A server that is not reported yet, because its owner is still being sought, will be reported in the state
        // it has then.
        // Of one whose processes do so without a pause, one a second is reported.
        if server.last_view.is_none() || at < server.detached_until {
            return;
        }
        server.detached_until = at + BETWEEN_DETACHED;
        let Some(view) = self.world.show(key) else { return };
        self.emit(at, Notice::ServerDetached { server: view, pid: process.pid, sid });
    }

    /// A process exited. `status` is absent if the exit was not witnessed.
    pub(super) fn exit(&mut self, now: BootTime, at: BootTime, id: ProcessId, status: Option<ExitStatus>) {
        self.managers.remove(&id);
        if self.world.node(id).is_none() {
            return;
        }
        self.stop_waiting(id);
        self.ends_unheard(at, id);
        let ending = self.ending(id, status);
        if let Some(key) = self.world.agent_of(id) {
            self.agent_ended(now, AgentExit { agent: key, at, ending: ending.clone() });
        }
        self.starter_ended(at, id);
        let closed = self.head_exits(at, id, status);
        // The end of a server is reported with that of its main process.
        let key = self.world.node(id).and_then(|node| node.server);
        let server = key.and_then(|key| self.world.server_mut(key)).filter(|one| one.main_process() == id);
        let was_main = server.map(|server| server.ending = ending).is_some();
        // A copy of a client is none.
        let ran = self.world.node(id).filter(|node| node.origin().process == id);
        let was_client = ran.is_some_and(Node::is_client);
        self.leftover_exits(id);
        let heirs = self.heirs_of(id);
        self.ran_unseen(id);
        let was_killed = matches!(status, Some(ExitStatus::Signal(_)));
        let how = if was_killed { Left::InBackground } else { Left::Whole };
        let Some(exited) = self.world.exit(id, how) else { return };
        if was_client {
            self.agenda.keep(Task::Containers, Some(now.max(self.containers_until)));
        }
        if let Some((key, only_started)) = exited.server {
            if only_started {
                // The server may have let its descendants go. The inspection finds out, unless they exit with it.
                self.set_deadline(CaseOf::Server(key), Some(at + AFTER_ITS_END));
            }
            if was_main {
                self.compare(now, key);
            }
            self.end_if_done(at, key);
        }
        if let Some(key) = exited.wrapped {
            self.end_if_done(at, key);
        }
        if let Some(key) = closed {
            self.head_has_exited(now, key);
        }
        for heir in heirs {
            self.guards(at, heir);
        }
        if let Some(up) = exited.up {
            self.dismiss_if_idle(up);
        }
        if self.reinspections.was_a_reason(id) || exited.protected {
            self.other_ended(now);
        }
    }

    /// How a process ends. A signal is told of only if it is the one that ended it.
    fn ending(&self, id: ProcessId, status: Option<ExitStatus>) -> Ending {
        let strike = self.world.node(id).and_then(|node| node.strike.as_deref());
        let killer = |signal| strike.filter(|(sent, _)| *sent == signal).map(|(_, killer)| killer.clone());
        match status {
            Some(ExitStatus::Code(code)) => Ending::code(code),
            Some(ExitStatus::Signal(signal)) => Ending::signal(signal, killer(signal)),
            None => Ending::default(),
        }
    }

    /// Closes a server when all its processes have exited. While the server is being ended, its wrappers must have
    /// exited, too.
    pub(super) fn end_if_done(&mut self, at: BootTime, key: ServerKey) {
        let Some(server) = self.world.server(key) else { return };
        // What has become of its container is known when the engine has answered.
        if !server.processes().is_empty() || self.is_being_stopped(key) {
            return;
        }
        if server.phase.is_terminating() && server.wrappers().iter().any(|w| self.is_target(key, *w)) {
            return;
        }
        self.server_event(at, key, Event::Ended);
    }

    /// A server has ended: reports it and removes it from the world.
    pub(super) fn close_server(&mut self, at: BootTime, key: ServerKey, outcome: Outcome) {
        self.duplicates.remove(&key);
        self.set_deadline(CaseOf::Server(key), None);
        self.agenda.under_way.remove(&key);
        self.containers.remove(&key);
        self.tools.remove(&key);
        let Some(server) = self.world.end_server(key) else { return };
        self.sessions.forget(key, server.session_id.as_deref());
        self.await_leftovers(at, server.owner());
        let owner = server.owner().and_then(|a| self.world.agent(a)).map(agent_view);
        let (id, let_go, ending, asked_by) =
            (server.id, server.let_go().to_vec(), server.ending, server.asked_by);
        let Some(mut view) = server.last_view else { return };
        view.rss_bytes = view.rss_bytes.or(server.rss_bytes);
        view.cpu_ms = server.cpu_ms.or(view.cpu_ms);
        let ended = Reported { id, class: Class::Server, server: view, owner, ending, let_go, asked_by };
        self.announce_end(at, ended, outcome);
        self.world.forget_dead_agents();
    }
}

/// Whether the process may be a stdio server.
pub(super) fn has_wires(node: &Node) -> bool {
    Stdio::are_wires(node.stdin(), node.stdout())
}

/// The time from the exit of a server's main process to the inspection of what it left. Most of its descendants exit
/// within that time.
const AFTER_ITS_END: Duration = Duration::from_millis(300);

/// The time between two reports that a process of a server has left its session: each shows the whole server.
const BETWEEN_DETACHED: Duration = Duration::from_secs(1);

/// Milliseconds between two moments, rounded down.
pub(super) fn millis(later: BootTime, earlier: BootTime) -> u64 {
    u64::try_from(later.since(earlier).as_millis()).unwrap_or(u64::MAX)
}
