//! The graph: one node for each living process that matters, linked to its nearest living creator.
//!
//! Invariants: at most one node per pid; every node is alive; the links form a forest. What a process inherits
//! (agent, server) is copied at birth, so no dead ancestor has to be kept. When a process exits, the processes it
//! created are linked to its own nearest living creator, and their `creator` still names the process that exited.

use std::num::NonZeroU32;

use rustc_hash::{FxHashMap, FxHashSet};

use super::{AgentKey, Node};
use crate::model::ProcessId;

/// The living processes that matter to orphand.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    nodes: FxHashMap<u32, Box<Node>>,
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
        let up = up.filter(|u| u.pid != pid && self.get(*u).is_some()).and_then(|u| NonZeroU32::new(u.pid));
        if let Some(pid) = NonZeroU32::new(pid) {
            self.link(pid, up);
        }
        old
    }

    /// Removes a process. The processes it created are linked to its own nearest living creator.
    pub fn remove(&mut self, id: ProcessId) -> Option<Node> {
        self.get(id)?;
        self.unlink(id.pid);
        let node = *self.nodes.remove(&id.pid)?;
        let mut next = node.first_child;
        while let Some(pid) = next {
            next = self.linked(pid).and_then(|n| n.next);
            if let Some(child) = self.nodes.get_mut(&pid.get()) {
                (child.prev, child.next, child.up) = (None, None, None);
            }
            self.link(pid, node.up);
        }
        Some(node)
    }

    /// The nearest living creator in the graph.
    pub fn up(&self, id: ProcessId) -> Option<&Node> {
        self.get(id)?.up.and_then(|pid| self.linked(pid))
    }

    fn linked(&self, pid: NonZeroU32) -> Option<&Node> {
        self.nodes.get(&pid.get()).map(|n| &**n)
    }

    /// The living creators of a process, nearest first. The process itself is not included.
    pub fn ancestors(&self, id: ProcessId) -> impl Iterator<Item = &Node> + '_ {
        let mut at = self.get(id).and_then(|n| n.up);
        std::iter::from_fn(move || {
            let node = self.linked(at?)?;
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
        let mut at = self.get(id).and_then(|n| n.first_child);
        std::iter::from_fn(move || {
            let node = self.linked(at?)?;
            at = node.next;
            Some(node)
        })
    }

    /// Broken invariants: each link has its counterpart, and creators are older than what they created, so there is
    /// no cycle.
    pub fn check(&self) -> Vec<String> {
        let mut broken = Vec::new();
        let mut with_parent = 0;
        for (pid, node) in &self.nodes {
            let is_child = |child: &Node| child.up == NonZeroU32::new(*pid) && child.order > node.order;
            let below = self.children(node.id).take(self.nodes.len());
            with_parent += below.filter(|child| is_child(child)).count();
            if *pid != node.id.pid {
                broken.push(format!("{} is entered as {pid}", node.id));
            }
        }
        if with_parent != self.nodes.values().filter(|node| node.up.is_some()).count() {
            broken.push("the links of the graph do not agree".to_owned());
        }
        broken
    }

    fn link(&mut self, pid: NonZeroU32, up: Option<NonZeroU32>) {
        let first = up.and_then(|u| self.linked(u)).and_then(|n| n.first_child);
        if let Some(node) = self.nodes.get_mut(&pid.get()) {
            (node.up, node.prev, node.next) = (up, None, first);
        }
        if let Some(sibling) = first.and_then(|f| self.nodes.get_mut(&f.get())) {
            sibling.prev = Some(pid);
        }
        if let Some(parent) = up.and_then(|u| self.nodes.get_mut(&u.get())) {
            parent.first_child = Some(pid);
        }
    }

    fn unlink(&mut self, pid: u32) {
        let Some((up, prev, next)) = self.nodes.get(&pid).map(|n| (n.up, n.prev, n.next)) else { return };
        if let Some(n) = next.and_then(|n| self.nodes.get_mut(&n.get())) {
            n.prev = prev;
        }
        match prev {
            Some(p) => {
                if let Some(p) = self.nodes.get_mut(&p.get()) {
                    p.next = next;
                }
            }
            None => {
                if let Some(parent) = up.and_then(|u| self.nodes.get_mut(&u.get())) {
                    parent.first_child = next;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn id(pid: u32) -> ProcessId {
        ProcessId::new(pid, u64::from(pid))
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
        assert_eq!(g.check(), Vec::<String>::new());
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
                assert_eq!(g.check(), Vec::<String>::new());
            }
        }
    }
}
