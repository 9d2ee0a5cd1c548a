//! Who may be signalled: the gate that every signal goes through, and the order of what is behind it.

use super::Engine;
use crate::{lineage::ServerKey, model::ProcessId, recognise::Role};

impl Engine {
    /// The last word before every signal. Whatever the case says, these are never signalled: what is not
    /// part of this orphan, what a guard holds, what is protected, an agent or somebody above one,
    /// ourselves, pid 1, and a wrapper that has other children.
    pub(super) fn may_signal(&self, key: ServerKey, process: ProcessId) -> bool {
        let Some(server) = self.servers.get(key) else { return false };
        let (Some(case), Some(node)) = (server.case(), self.graph.get(process)) else { return false };
        let below = self.graph.descendants(process);
        let is_wrapper = !server.processes.contains(&process);
        let launches = || {
            node.image.as_ref().is_some_and(|i| {
                matches!(self.settings.rules.role(i), Role::Launcher | Role::Shell)
                    && node.stdin == server.stdin
            }) && below.iter().all(|p| server.contains(*p))
        };
        process.pid > 1
            && case.guards.is_empty()
            && server.contains(process)
            && !node.protected
            && !self.settings.ourselves.contains(&process)
            && [process].iter().chain(&below).all(|p| self.agents.of(*p).is_none())
            && (!is_wrapper || launches())
    }

    /// The server proper: down the launch chain from the process that was recognised last.
    pub(super) fn leaf(&self, key: ServerKey) -> Option<ProcessId> {
        let server = self.servers.get(key)?;
        let mut at = self.graph.get(server.proper).filter(|n| n.server == Some(key))?;
        loop {
            let mut next = self
                .graph
                .children(at.id)
                .filter(|n| n.server == Some(key) && n.stdin == server.stdin && n.origin.process == n.id);
            match (next.next(), next.next()) {
                (Some(only), None) => at = only,
                _ => return Some(at.id),
            }
        }
    }

    /// What lives of the server and may be signalled, leaves first.
    pub(super) fn living(&self, key: ServerKey) -> Vec<ProcessId> {
        let Some(server) = self.servers.get(key) else { return Vec::new() };
        let mut living: Vec<_> = server
            .processes
            .iter()
            .chain(&server.wrappers)
            .filter(|p| self.may_signal(key, **p))
            .filter_map(|p| self.graph.get(*p).map(|n| (n.order, *p)))
            .collect();
        living.sort_unstable_by(|a, b| b.cmp(a));
        living.into_iter().map(|(_, p)| p).collect()
    }
}
