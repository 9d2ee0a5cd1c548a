//! Exits: of processes, and with the last one of servers.

use std::time::Duration;

use super::Engine;
use crate::{
    case::{Event, Outcome},
    lineage::ServerKey,
    model::{BootTime, Class, End, ExitStatus, Fact, Notice, ProcessId, Stdio},
    world::agent_view,
};

/// After the end of a server proper, until what it left is looked at: most of that ends with it.
const AFTER_ITS_END: Duration = Duration::from_millis(300);

impl Engine {
    /// A process ended. `status` is absent where nobody witnessed it.
    pub(super) fn exit(&mut self, now: BootTime, at: BootTime, id: ProcessId, status: Option<ExitStatus>) {
        self.managers.remove(&id);
        let Some(node) = self.world.node(id) else { return };
        let (server, wraps, protected, stdin) = (node.server, node.wraps, node.protected, node.stdin);
        let up = self.world.graph().up(id).map(|n| n.id);
        if let Some(agent) = self.world.agent_of(id) {
            self.agent_ended(now, at, agent, status);
        }
        self.world.remove(id);
        if let Some(key) = server {
            self.server_lost(at, key, id, stdin);
        }
        if let Some(key) = wraps {
            self.wrapper_lost(at, key, id);
        }
        if let Some(up) = up {
            self.dismiss_if_idle(up);
        }
        if protected {
            self.other_ended(now);
        }
    }

    fn server_lost(&mut self, at: BootTime, key: ServerKey, id: ProcessId, stdin: Stdio) {
        let Some(server) = self.world.server_mut(key) else { return };
        server.processes.remove(&id);
        let has_wire = server.stdin.is_wire() && server.stdin == stdin;
        let was_core = server.recognised.remove(&id) || has_wire;
        if was_core {
            server.ended.insert(id);
        }
        let Some(server) = self.world.server(key) else { return };
        // A wrapper may have been all that a rule knew: what has the wire is the server proper still.
        let order = |p: &&ProcessId| self.world.node(**p).map(|n| n.order);
        let on_wire = |p: &&ProcessId| {
            // A fork that never ran a program on it is a copy of the server proper, not the server; a daemon left its session.
            self.world.node(**p).is_some_and(|n| {
                server.stdin.is_wire()
                    && n.stdin == server.stdin
                    && n.sid == server.session
                    && n.origin.process == n.id
            })
        };
        let next = server.recognised.iter().max_by_key(order).copied();
        let next = next.or_else(|| server.processes.iter().filter(on_wire).max_by_key(order).copied());
        let Some(server) = self.world.server_mut(key) else { return };
        match next {
            Some(next) if server.proper == id => server.proper = next,
            Some(_) => {}
            None => server.proper_ended |= server.phase.strongest_signal().is_none(),
        }
        let left = was_core && server.proper_ended && !server.processes.is_empty();
        if left {
            // What it started may have been let go: seen at a look, unless it ends with it.
            self.world.set_timer(key, Some(at + AFTER_ITS_END));
        }
        self.end_if_done(at, key);
    }

    fn wrapper_lost(&mut self, at: BootTime, key: ServerKey, id: ProcessId) {
        if let Some(server) = self.world.server_mut(key) {
            server.wrappers.retain(|w| *w != id);
            self.end_if_done(at, key);
        }
    }

    /// A server has ended when its processes have; one that is being ended, when its wrappers have, too.
    pub(super) fn end_if_done(&mut self, at: BootTime, key: ServerKey) {
        let Some(server) = self.world.server(key) else { return };
        if !server.processes.is_empty() {
            return;
        }
        if server.phase.is_terminating() && server.wrappers.iter().any(|w| self.is_target(key, *w)) {
            return;
        }
        self.server_event(at, key, Event::Ended);
    }

    /// A server has ended.
    pub(super) fn close_server(&mut self, at: BootTime, key: ServerKey, outcome: Outcome) {
        let Some(server) = self.world.remove_server(key) else { return };
        for wrapper in &server.wrappers {
            if let Some(node) = self.world.node_mut(*wrapper) {
                node.wraps = None;
            }
        }
        let owner = server.owner.and_then(|a| self.world.agent(a)).map(agent_view);
        if let Some(agent) = server.owner.and_then(|a| self.world.agent_mut(a)) {
            agent.servers.remove(&key);
        }
        let (id, let_go) = (server.id, server.let_go);
        let Some(mut view) = server.last_view else { return };
        view.rss_bytes = view.rss_bytes.or(server.rss_bytes);
        let class = Class::Server;
        let (end, notice) = match outcome {
            Outcome::Exited => (End::Exited, Notice::ServerExited { server: view, owner, let_go }),
            Outcome::Cleared { since } => {
                let (after_ms, reason) = (millis(at, since), "exited".to_owned());
                (End::Exited, Notice::OrphanCleared { server: view, after_ms, reason, owner: None, let_go })
            }
            Outcome::OrphanExited { .. } => {
                (End::OrphanExited, Notice::OrphanExited { class, server: view, owner, let_go })
            }
            Outcome::Reaped { signal, first_signal, rss_bytes, pss_bytes, asked } => {
                let (signal, took_ms) = (Some(signal), Some(millis(at, first_signal)));
                let (freed_bytes, freed_pss_bytes) = (rss_bytes, pss_bytes);
                let end = End::Reaped { signal, took_ms, freed_bytes, freed_pss_bytes };
                let notice = Notice::OrphanReaped {
                    class,
                    recovered: false,
                    asked,
                    server: view,
                    owner,
                    signal,
                    took_ms,
                    freed_bytes,
                    freed_pss_bytes,
                    let_go,
                };
                (end, notice)
            }
        };
        self.persist(at, Fact::Ended { server: id, end });
        self.emit(at, notice);
        self.forget_dead_agents();
    }

    /// Dead agents are remembered as long as a server or a process of theirs is alive: a child on its way to
    /// its exec may still turn out to be a server.
    pub(super) fn forget_dead_agents(&mut self) {
        // The whole graph is looked through for it: not for each of thousands.
        if !self.world.agents().has_many_dead() {
            return;
        }
        let referenced = self.world.graph().agents();
        self.world.forget_dead(|key| referenced.contains(&key));
    }
}

/// Milliseconds between two moments, rounded down.
pub(super) fn millis(later: BootTime, earlier: BootTime) -> u64 {
    u64::try_from(later.since(earlier).as_millis()).unwrap_or(u64::MAX)
}
