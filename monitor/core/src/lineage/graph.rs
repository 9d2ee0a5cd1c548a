//! The graph: one node for each living process that matters, linked to its nearest living creator.
//!
//! Invariants: at most one node per pid; every node is alive; the links form a forest. What a process inherits
//! (agent, server) is copied at birth, so no dead ancestor has to be kept. When a process exits, the processes it
//! created are linked to its own nearest living creator, and their `creator` still names the process that exited.

use std::collections::BTreeSet;

use rustc_hash::{FxHashMap, FxHashSet};

use super::{AgentKey, Node};
use crate::model::ProcessId;

/// The living processes that matter to orphand.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    nodes: FxHashMap<u32, Box<Node>>,
    /// Who is linked below whom: the numbers of the upper and of the lower process.
    links: BTreeSet<(u32, u32)>,
    order: u64,
}

impl Graph {
    /// The number of processes.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether nothing is tracked.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// The process with this identity, if it is alive and tracked.
    pub fn get(&self, id: ProcessId) -> Option<&Node> {
        self.nodes.get(&id.pid).map(|n| &**n).filter(|n| n.id == id)
    }

    /// The process with this identity, mutable. Only the graph may change links and identity.
    pub fn get_mut(&mut self, id: ProcessId) -> Option<&mut Node> {
        self.nodes.get_mut(&id.pid).map(|n| &mut **n).filter(|n| n.id == id)
    }

    /// All processes, mutable, in no particular order.
    pub fn all_mut(&mut self) -> impl Iterator<Item = &mut Node> {
        self.nodes.values_mut().map(|n| &mut **n)
    }

    /// The process that has this process number now.
    pub fn holder(&self, pid: u32) -> Option<ProcessId> {
        self.nodes.get(&pid).map(|n| n.id)
    }

    /// All processes, in no particular order.
    pub fn ids(&self) -> impl Iterator<Item = ProcessId> + '_ {
        self.nodes.values().map(|n| n.id)
    }

    /// The agents that at least one process descends from.
    pub fn agents(&self) -> FxHashSet<AgentKey> {
        self.nodes.values().filter_map(|n| n.agent).collect()
    }

    /// Enters a process below `up`, its nearest living creator. An older process with the same number must have been
    /// removed before. If there is one nevertheless, the newer process wins and the older one is returned.
    pub fn insert(&mut self, mut node: Node, up: Option<ProcessId>) -> Option<Node> {
        let old = self.holder(node.id.pid).and_then(|id| self.remove(id));
        self.order += 1;
        node.order = self.order;
        let pid = node.id.pid;
        self.nodes.insert(pid, Box::new(node));
        // No process is its own creator, whatever was read.
        let up = up.filter(|u| u.pid != pid && self.get(*u).is_some());
        self.link(pid, up.map(|up| up.pid));
        old
    }

    /// Removes a process. The processes it created are linked to its own nearest living creator.
    pub fn remove(&mut self, id: ProcessId) -> Option<Node> {
        let up = self.get(id)?.up;
        let below: Vec<u32> = self.below(id.pid).collect();
        for child in below {
            self.link(child, up);
        }
        self.link(id.pid, None);
        self.nodes.remove(&id.pid).map(|node| *node)
    }

    /// The nearest living creator in the graph.
    pub fn up(&self, id: ProcessId) -> Option<&Node> {
        self.get(id)?.up.and_then(|pid| self.holder_node(pid))
    }

    fn holder_node(&self, pid: u32) -> Option<&Node> {
        self.nodes.get(&pid).map(|n| &**n)
    }

    fn below(&self, pid: u32) -> impl Iterator<Item = u32> + '_ {
        self.links.range((pid, 0)..=(pid, u32::MAX)).map(|(_, child)| *child)
    }

    /// The living creators of a process, nearest first. The process itself is not included.
    pub fn ancestors(&self, id: ProcessId) -> impl Iterator<Item = &Node> + '_ {
        let mut at = self.get(id).and_then(|n| n.up);
        std::iter::from_fn(move || {
            let node = self.holder_node(at?)?;
            at = node.up;
            Some(node)
        })
    }

    /// The living processes that a process created, directly or indirectly, creators before what they created.
    pub fn descendants(&self, id: ProcessId) -> Vec<ProcessId> {
        let mut found = Vec::new();
        let mut stack: Vec<u32> = self.children(id).map(|n| n.id.pid).collect();
        while let Some(pid) = stack.pop() {
            let Some(node) = self.nodes.get(&pid) else { continue };
            found.push((node.order, node.id));
            stack.extend(self.children(node.id).map(|n| n.id.pid));
        }
        found.sort_unstable();
        found.into_iter().map(|(_, id)| id).collect()
    }

    /// Whether a living process that this process created, directly or indirectly, satisfies `is_such`.
    pub fn any_below(&self, id: ProcessId, is_such: impl Fn(&Node) -> bool) -> bool {
        let mut stack: Vec<u32> = self.children(id).map(|n| n.id.pid).collect();
        while let Some(pid) = stack.pop() {
            let Some(node) = self.nodes.get(&pid) else { continue };
            if is_such(node) {
                return true;
            }
            stack.extend(self.children(node.id).map(|n| n.id.pid));
        }
        false
    }

    /// The processes linked directly below a process.
    pub fn children(&self, id: ProcessId) -> impl Iterator<Item = &Node> + '_ {
        let found = self.get(id).into_iter().flat_map(move |node| self.below(node.id.pid));
        found.filter_map(move |pid| self.holder_node(pid))
    }

    /// Links a process below another one, or below none, in place of where it was.
    fn link(&mut self, pid: u32, up: Option<u32>) {
        let Some(node) = self.nodes.get_mut(&pid) else { return };
        if let Some(before) = std::mem::replace(&mut node.up, up) {
            self.links.remove(&(before, pid));
        }
        self.links.extend(up.map(|up| (up, pid)));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn id(pid: u32) -> ProcessId {
        ProcessId::new(pid, u64::from(pid))
    }

    /// Broken invariants: each link has its counterpart, and creators are older than what they created, so there is
    /// no cycle.
    fn check(graph: &Graph) -> Vec<String> {
        let mut broken = Vec::new();
        for (pid, node) in graph.nodes.iter().filter(|(pid, node)| **pid != node.id.pid) {
            broken.push(format!("{} is entered as {pid}", node.id));
        }
        let links: BTreeSet<(u32, u32)> =
            graph.nodes.iter().filter_map(|(pid, node)| Some((node.up?, *pid))).collect();
        let order = |pid: &u32| graph.nodes.get(pid).map(|node| node.order);
        let is_older = |(up, pid): &(u32, u32)| order(up).is_some_and(|up| Some(up) < order(pid));
        if links != graph.links || !links.iter().all(is_older) {
            broken.push("the links of the graph do not agree".to_owned());
        }
        broken
    }

    #[test]
    fn what_a_process_created_moves_up_when_it_exits() {
        let mut g = Graph::default();
        for pid in 1..=4 {
            g.insert(Node::bare(id(pid)), (pid > 1).then(|| id(pid - 1)));
        }
        g.remove(id(2));
        g.remove(id(3));
        assert_eq!(g.up(id(4)).map(|n| n.id), Some(id(1)));
        assert_eq!(g.descendants(id(1)), [id(4)]);
        assert_eq!(check(&g), Vec::<String>::new());
    }

    #[test]
    fn the_newer_holder_of_a_number_wins() {
        let mut g = Graph::default();
        g.insert(Node::bare(ProcessId::new(7, 1)), None);
        let old = g.insert(Node::bare(ProcessId::new(7, 2)), None);
        assert_eq!(old.map(|n| n.id.start), Some(1));
        assert!(g.get(ProcessId::new(7, 1)).is_none());
        assert_eq!(g.len(), 1);
    }

    proptest! {
        #[test]
        fn links_hold_under_any_history(steps in prop::collection::vec((0u8..2, 1u32..20, 1u32..20), 0..200)) {
            let mut g = Graph::default();
            for (what, a, b) in steps {
                match what {
                    0 => { let up = g.holder(b).filter(|_| a != b); g.insert(Node::bare(id(a)), up); }
                    _ => { g.remove(id(a)); }
                }
                assert_eq!(check(&g), Vec::<String>::new());
            }
        }
    }
}
