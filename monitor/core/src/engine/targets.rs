//! Which processes may be signalled, and in which order. Every signal to a server goes through these checks.

use rustc_hash::FxHashSet;

use super::Engine;
use crate::{
    lineage::{Node, ServerKey},
    model::ProcessId,
    recognise::{Role, container_client},
};

impl Engine {
    /// The last check before every signal: the server is an orphan without a guard, and the process is a target.
    pub(super) fn may_signal(&self, key: ServerKey, process: ProcessId) -> bool {
        let orphan = self.world.server(key).and_then(|server| server.phase.orphan());
        orphan.is_some_and(|verdict| verdict.guards.is_empty()) && self.is_target(key, process)
    }

    /// Whether a process of a server may be signalled. The following never are, in any state of the case: a process
    /// that is not part of the server, a protected process, an agent and its ancestors, orphand itself, pid 1, a
    /// wrapper that has other children, and the client of a container.
    pub(super) fn is_target(&self, key: ServerKey, process: ProcessId) -> bool {
        let is_agent = |node: &Node| self.world.agent_of(node.id).is_some();
        self.is_target_but_for_agents(key, process)
            && self.world.agent_of(process).is_none()
            && !self.world.graph().any_below(process, is_agent)
    }

    fn is_target_but_for_agents(&self, key: ServerKey, process: ProcessId) -> bool {
        let Some(server) = self.world.server(key) else { return false };
        let Some(node) = self.world.node(process) else { return false };
        let is_wrapper = !server.processes().contains(&process);
        let launches = || {
            matches!(node.role(), Some(Role::Launcher | Role::Shell))
                && node.stdin() == server.stdin
                && !self.world.graph().any_below(process, |below| !server.contains(below.id))
        };
        process.pid > 1
            && server.contains(process)
            && !node.protected
            && !self.settings.ourselves.contains(&process)
            && (!is_wrapper || launches())
            && node.image().and_then(container_client).is_none()
    }

    /// The main process: follows the launch chain down from the process that was recognised last.
    pub(super) fn main_process(&self, key: ServerKey) -> Option<ProcessId> {
        let server = self.world.server(key)?;
        let mut at = self.world.node(server.main_process()).filter(|n| n.server == Some(key))?;
        loop {
            let mut next =
                self.world.graph().children(at.id).filter(|n| {
                    n.server == Some(key) && n.stdin() == server.stdin && n.origin().process == n.id
                });
            match (next.next(), next.next()) {
                (Some(only), None) => at = only,
                _ => return Some(at.id),
            }
        }
    }

    /// The agents among these processes and their descendants, and all ancestors of those agents.
    fn at_and_above_agents(&self, processes: impl Iterator<Item = ProcessId>) -> FxHashSet<ProcessId> {
        let mut seen = FxHashSet::default();
        let mut stack: Vec<ProcessId> = processes.collect();
        let mut found = FxHashSet::default();
        while let Some(process) = stack.pop() {
            if !seen.insert(process) {
                continue;
            }
            stack.extend(self.world.graph().children(process).map(|child| child.id));
            if self.world.agent_of(process).is_some() && found.insert(process) {
                let mut above = self.world.graph().ancestors(process);
                while above.next().is_some_and(|node| found.insert(node.id)) {}
            }
        }
        found
    }

    /// The living processes of the server that may be signalled, children before their parents.
    pub(super) fn targets(&self, key: ServerKey) -> Vec<ProcessId> {
        let Some(server) = self.world.server(key) else { return Vec::new() };
        let all = || server.processes().iter().chain(server.wrappers()).copied();
        // Computed once for all of them: there may be thousands of processes, each the child of the one before.
        let above_agents = self.at_and_above_agents(all());
        let mut living: Vec<_> = all()
            .filter(|p| !above_agents.contains(p) && self.is_target_but_for_agents(key, *p))
            .filter_map(|p| self.world.node(p).map(|n| (n.order, p)))
            .collect();
        living.sort_unstable_by(|a, b| b.cmp(a));
        living.into_iter().map(|(_, p)| p).collect()
    }
}
