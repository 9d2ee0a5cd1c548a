//! Exits: a process exits, and a server ends with its last process.

use std::time::Duration;

use super::{Engine, agents::AgentExit, announcements::Reported, cases::CaseOf};
use crate::{
    case::{Event, Outcome},
    lineage::{Node, ServerKey, Strike},
    model::{BootTime, Class, Ending, ExitStatus, KilledBy, Killer, ProcessId},
    recognise::container_client,
    world::{Remains, agent_view},
};

/// The time from the exit of a server's main process to the inspection of what it left. Most of its descendants exit
/// within that time.
const AFTER_ITS_END: Duration = Duration::from_millis(300);

impl Engine {
    /// A signal was sent to a process that ends by it. Its exit follows.
    pub(super) fn struck(&mut self, id: ProcessId, signal: u8, mut killer: Killer) {
        // The first one is the daemon, the others are its ancestors.
        let daemon = self.settings.ourselves.first().map(|daemon| daemon.pid);
        if killer.pid.is_some() && killer.pid == daemon {
            killer.by = KilledBy::Orphand;
        }
        self.world.change(id, |node| node.strike = Some(Box::new(Strike { signal, killer })));
    }

    /// A process exited. `status` is absent if the exit was not witnessed.
    pub(super) fn exit(&mut self, now: BootTime, at: BootTime, id: ProcessId, status: Option<ExitStatus>) {
        self.managers.remove(&id);
        if self.world.node(id).is_none() {
            return;
        }
        self.stop_waiting(id);
        let ending = self.ending(id, status);
        if let Some(key) = self.world.agent_of(id) {
            if let Some(agent) = self.world.agent_mut(key) {
                agent.killed_by.clone_from(&ending.killed_by);
            }
            self.agent_ended(now, AgentExit { agent: key, at, status });
        }
        let closed = self.head_is_exiting(id, status);
        // The end of a server is reported with that of its main process.
        let key = self.world.node(id).and_then(|node| node.server);
        let server = key.and_then(|key| self.world.server_mut(key)).filter(|one| one.main_process() == id);
        let was_main = server.map(|server| server.ending = ending).is_some();
        // A copy of a client is none.
        let ran = self.world.node(id).filter(|node| node.origin().process == id);
        let was_client = ran.and_then(Node::image).and_then(container_client).is_some();
        self.leftover_exits(id);
        let Some(exited) = self.world.exit(id) else { return };
        if was_client {
            self.look_into_containers(now);
        }
        if let Some((key, remains)) = exited.server {
            if remains == Remains::Descendants {
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
        if let Some(up) = exited.up {
            self.dismiss_if_idle(up);
        }
        if exited.protected {
            self.other_ended(now);
        }
    }

    /// How a process ends. A signal is told of only if it is the one that ended it.
    fn ending(&self, id: ProcessId, status: Option<ExitStatus>) -> Ending {
        let strike = self.world.node(id).and_then(|node| node.strike.as_deref());
        let killer = |signal| strike.filter(|strike| strike.signal == signal).map(|s| s.killer.clone());
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
        let (id, let_go) = (server.id, server.let_go().to_vec());
        let Some(mut view) = server.last_view else { return };
        view.rss_bytes = view.rss_bytes.or(server.rss_bytes);
        view.cpu_ms = server.cpu_ms.or(view.cpu_ms);
        let ended = Reported { id, class: Class::Server, server: view, owner };
        self.announce_end(at, ended, outcome, server.ending, let_go);
        self.world.forget_dead_agents();
    }
}

/// Milliseconds between two moments, rounded down.
pub(super) fn millis(later: BootTime, earlier: BootTime) -> u64 {
    u64::try_from(later.since(earlier).as_millis()).unwrap_or(u64::MAX)
}
