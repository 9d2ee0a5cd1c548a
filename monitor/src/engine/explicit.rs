//! Reaping because a person asked: which servers that means, and what forbids it whoever asks.

use super::Engine;
use crate::model::{Guard, Planned, ReapRequest};

impl Engine {
    /// The servers that a request means, with what forbids to end them.
    pub fn plan(&self, request: &ReapRequest) -> Vec<Planned> {
        let report = self.report();
        let means = |(owner, server): &(Option<&crate::model::AgentView>, &crate::model::ServerReport)| {
            let run = server.server.run.as_ref();
            let named = |name: &String| {
                owner.is_some_and(|o| o.name == *name || o.unit.as_ref() == Some(name))
                    || run.is_some_and(|r| r.agent == *name || r.unit.as_ref() == Some(name))
            };
            (request.include_active || server.is_orphan())
                && request.agent.as_ref().is_none_or(named)
                && request.generation.is_none_or(|g| run.and_then(|r| r.generation) == Some(g))
                && request.pid.is_none_or(|pid| server.server.processes.iter().any(|p| p.pid == pid))
                && request.servers.as_ref().is_none_or(|ids| ids.contains(&server.server.id))
        };
        let planned = report.servers().filter(means).map(|(_, server)| Planned {
            server: server.server.clone(),
            state: server.state.clone(),
            guards: server.guards.iter().copied().filter(|g| forbids_anybody(*g)).collect(),
        });
        planned.collect()
    }
}

/// A person who asks may overrule what orphand does not know or was told not to do by itself, and nothing else.
fn forbids_anybody(guard: Guard) -> bool {
    !matches!(guard, Guard::Observe | Guard::WeakEvidence)
}
