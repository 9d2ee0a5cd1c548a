//! Which living processes an ended agent left, and which of them is the topmost of its branch.

use std::collections::{BTreeMap, BTreeSet};

use super::super::Engine;
use crate::{
    lineage::{AgentKey, Node},
    model::ProcessId,
    world::Agent,
};

impl Engine {
    /// Whether a living process was left by this agent, which has ended: it descends from it, and is no agent, no part
    /// of a server or of its launch chain, and not protected.
    pub(super) fn is_left(&self, key: AgentKey, process: ProcessId) -> bool {
        self.world.node(process).is_some_and(|node| self.is_left_node(key, node))
    }

    fn is_left_node(&self, key: AgentKey, node: &Node) -> bool {
        node.agent == Some(key)
            && node.server.is_none()
            && node.wraps.is_none()
            && !node.protected
            && !node.pending
            && self.world.agent_of(node.id).is_none()
            && !self.settings.ourselves.contains(&node.id)
            && self.world.agent(key).is_some_and(|agent| !Agent::is_alive(agent))
    }

    /// Whether another process that this agent left created it, and lives.
    pub(super) fn is_below_left(&self, key: AgentKey, process: ProcessId) -> bool {
        self.world.graph().up(process).is_some_and(|up| self.is_left_node(key, up))
    }

    /// The heads of the branches that these agents left, the oldest first.
    pub(super) fn heads_of(&self, agents: &BTreeSet<AgentKey>) -> BTreeMap<AgentKey, Vec<ProcessId>> {
        let mut found: BTreeMap<AgentKey, Vec<(u64, ProcessId)>> = BTreeMap::new();
        for id in self.world.graph().ids() {
            let Some(node) = self.world.node(id) else { continue };
            let Some(key) = node.agent.filter(|key| agents.contains(key)) else { continue };
            if self.is_left_node(key, node) && !self.is_below_left(key, id) {
                found.entry(key).or_default().push((node.order, id));
            }
        }
        let in_order = |mut heads: Vec<(u64, ProcessId)>| {
            heads.sort_unstable();
            heads.into_iter().map(|(_, id)| id).collect()
        };
        found.into_iter().map(|(key, heads)| (key, in_order(heads))).collect()
    }

    /// The head and what it left below it, creators before what they created.
    pub(super) fn branch(&self, key: AgentKey, head: ProcessId) -> Vec<ProcessId> {
        let mut found = Vec::new();
        let mut stack: Vec<&Node> = self.world.node(head).into_iter().collect();
        while let Some(node) = stack.pop() {
            found.push((node.order, node.id));
            stack.extend(self.world.graph().children(node.id).filter(|child| self.is_left_node(key, child)));
        }
        found.sort_unstable();
        found.into_iter().map(|(_, id)| id).collect()
    }
}
