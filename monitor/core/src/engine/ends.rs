//! Exits: of processes, and with the last one of servers.

use std::time::Duration;

use super::Engine;
use crate::{
    lineage::ServerKey,
    model::{BootTime, Class, End, ExitStatus, Fact, Notice, ProcessId, Stdio},
    world::{Stage, State, agent_view},
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
            self.look_again_at_what_stays(now);
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
            None => server.proper_ended |= server.strongest_signal().is_none(),
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
        let ending =
            server.case().is_some_and(|c| matches!(c.stage, Stage::Leaf | Stage::Rest | Stage::Kill));
        if ending && server.wrappers.iter().any(|w| self.may_signal(key, *w)) {
            return;
        }
        self.tell_failure(at, key);
        let Some(server) = self.world.remove_server(key) else { return };
        for wrapper in &server.wrappers {
            if let Some(node) = self.world.node_mut(*wrapper) {
                node.wraps = None;
            }
        }
        let owner = server.owner.and_then(|a| self.world.agent(a)).map(agent_view);
        let strongest = server.strongest_signal();
        if let Some(agent) = server.owner.and_then(|a| self.world.agent_mut(a)) {
            agent.servers.remove(&key);
        }
        let let_go = server.let_go.clone();
        let Some(mut view) = server.last_view else { return };
        view.rss_bytes = view.rss_bytes.or(server.rss_bytes);
        let end = match &server.state {
            State::Live | State::Suspect { .. } => End::Exited,
            State::Unproven(case) if case.signalled.is_empty() => End::Exited,
            State::Unproven(case) | State::Orphan(case) => {
                strongest.map_or(End::OrphanExited, |signal| End::Reaped {
                    signal: Some(signal),
                    took_ms: Some(millis(at, case.first_signal.unwrap_or(at))),
                    freed_bytes: case.rss_bytes,
                    freed_pss_bytes: case.pss_bytes,
                })
            }
        };
        self.persist(at, Fact::Ended { server: server.id, end });
        let notice = match server.state {
            State::Suspect { since, .. } if server.owner.is_some() => Notice::OrphanCleared {
                server: view,
                after_ms: millis(at, since),
                reason: "exited".to_owned(),
                owner: None,
                let_go,
            },
            State::Live | State::Suspect { .. } => Notice::ServerExited { server: view, owner, let_go },
            State::Unproven(case) if case.signalled.is_empty() => Notice::OrphanCleared {
                server: view,
                after_ms: millis(at, case.since),
                reason: "exited".to_owned(),
                owner: None,
                let_go,
            },
            State::Unproven(case) | State::Orphan(case) => match strongest {
                Some(signal) => Notice::OrphanReaped {
                    class: Class::Server,
                    recovered: false,
                    asked: server.asked,
                    server: view,
                    owner,
                    signal: Some(signal),
                    took_ms: Some(millis(at, case.first_signal.unwrap_or(at))),
                    freed_bytes: case.rss_bytes,
                    freed_pss_bytes: case.pss_bytes,
                    let_go,
                },
                None => Notice::OrphanExited { class: Class::Server, server: view, owner, let_go },
            },
        };
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
