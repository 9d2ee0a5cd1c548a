//! Exits: of processes, and with the last one of servers.

use std::time::Duration;

use super::Engine;
use crate::{
    lineage::ServerKey,
    model::{BootTime, Class, End, ExitStatus, Fact, Notice, ProcessId},
    world::{Remains, Stage, State, agent_view},
};

/// From the exit of the main process of a server to the inspection of what it left: most of that exits with it.
const AFTER_ITS_END: Duration = Duration::from_millis(300);

impl Engine {
    /// A process exited. `status` is absent if the exit was not witnessed.
    pub(super) fn exit(&mut self, now: BootTime, at: BootTime, id: ProcessId, status: Option<ExitStatus>) {
        self.managers.remove(&id);
        if self.world.node(id).is_none() {
            return;
        }
        if let Some(agent) = self.world.agent_of(id) {
            self.agent_ended(now, at, agent, status);
        }
        let Some(exited) = self.world.exit(id) else { return };
        if let Some((key, remains)) = exited.server {
            if remains == Remains::Descendants {
                // It may have let them go: an inspection tells, unless they exit with it.
                self.world.set_timer(key, Some(at + AFTER_ITS_END));
            }
            self.end_if_done(at, key);
        }
        if let Some(key) = exited.wrapped {
            self.end_if_done(at, key);
        }
        if let Some(up) = exited.up {
            self.dismiss_if_idle(up);
        }
        if exited.protected {
            self.look_again_at_what_stays(now);
        }
    }

    /// A server has ended when all its processes have exited; while it is being ended, its wrappers must have exited, too.
    pub(super) fn end_if_done(&mut self, at: BootTime, key: ServerKey) {
        let Some(server) = self.world.server(key) else { return };
        if !server.processes().is_empty() {
            return;
        }
        let ending =
            server.case().is_some_and(|c| matches!(c.stage, Stage::Leaf | Stage::Rest | Stage::Kill));
        if ending && server.wrappers().iter().any(|w| self.may_signal(key, *w)) {
            return;
        }
        self.tell_failure(at, key);
        let Some(server) = self.world.end_server(key) else { return };
        let owner = server.owner().and_then(|a| self.world.agent(a)).map(agent_view);
        let strongest = server.strongest_signal();
        let let_go = server.let_go().to_vec();
        let somebodys = server.owner().is_some();
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
            State::Suspect { since, .. } if somebodys => Notice::OrphanCleared {
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
        self.world.forget_dead_agents();
    }
}

/// Milliseconds between two moments, rounded down.
pub(super) fn millis(later: BootTime, earlier: BootTime) -> u64 {
    u64::try_from(later.since(earlier).as_millis()).unwrap_or(u64::MAX)
}
