//! The graph: one node for each living process that matters, linked to its nearest living creator.
//!
//! Invariants: at most one node per pid; every node is alive; the links form a forest. What a process inherits
//! (agent, server) is copied at birth, so no dead ancestor has to be kept. When a process exits, the processes it
//! created are linked to its own nearest living creator, and their `creator` still names the process that exited.

use std::{collections::BTreeSet, iter};

use rustc_hash::{FxHashMap, FxHashSet};

use super::{AgentKey, Node};
use crate::model::ProcessId;

/// How many levels above a process are near.
pub const NEAR: usize = 64;

#[derive(Clone, Debug, Default)]
pub struct Graph {
    nodes: FxHashMap<u32, Box<Node>>,
    /// Who is linked below whom, by a number that both sides have.
    broods: FxHashMap<u64, Brood>,
    order: u64,
}

#[derive(Clone, Debug, Default)]
struct Brood {
    up: u32,
    children: BTreeSet<u32>,
}

impl Graph {
    pub fn count(&self) -> usize {
        self.nodes.len()
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

    pub fn ids(&self) -> impl Iterator<Item = ProcessId> + '_ {
        self.nodes.values().map(|n| n.id)
    }

    /// The agents that at least one process descends from.
    pub fn agents(&self) -> FxHashSet<AgentKey> {
        self.nodes.values().filter_map(|n| n.agent).collect()
    }

    /// Enters a process below `up`, its nearest living creator, in place of an older process with the same number.
    pub fn insert(&mut self, mut node: Node, up: Option<ProcessId>) {
        if let Some(old) = self.holder(node.id.pid) {
            self.remove(old);
        }
        self.order += 1;
        node.order = self.order;
        let pid = node.id.pid;
        // No process is its own creator, whatever was read.
        let up = up.filter(|up| up.pid != pid).and_then(|up| self.get_mut(up));
        let up = up.map(|up| (*up.brood.get_or_insert(up.order), up.id.pid));
        (node.up, node.brood) = (up.map(|(brood, _)| brood), None);
        if let Some((brood, up)) = up {
            self.broods.entry(brood).or_insert_with(|| Brood { up, ..Brood::default() }).children.insert(pid);
        }
        self.nodes.insert(pid, Box::new(node));
    }

    /// Links a process whose creator was not known below that one, as younger than it, with all that is below it.
    pub fn link(&mut self, id: ProcessId, up: ProcessId) {
        let is_free = self.get(id).is_some_and(|node| node.up.is_none()) && self.get(up).is_some();
        if !is_free || up == id || self.ancestors(up).any(|above| above.id == id) {
            return;
        }
        let below = self.descendants(id).into_iter().map(|one| (one, self.up(one).map(|above| above.id)));
        let all: Vec<_> = [(id, Some(up))].into_iter().chain(below).collect();
        for (process, above) in all {
            if let Some(node) = self.remove(process) {
                self.insert(node, above);
            }
        }
    }

    /// Removes a process. The processes it created are linked to its own nearest living creator: those of the two that are
    /// fewer move to the others, so that a long line of processes with thousands below it may end from below.
    pub fn remove(&mut self, id: ProcessId) -> Option<Node> {
        self.get(id)?;
        let node = *self.nodes.remove(&id.pid)?;
        let mut above = node.up.and_then(|up| Some((up, self.broods.remove(&up)?)));
        if let Some((_, brood)) = &mut above {
            brood.children.remove(&id.pid);
        }
        let below = node.brood.and_then(|own| Some((own, self.broods.remove(&own)?)));
        let (kept, moved) = match (above, below) {
            (Some((_, one)), Some((below, other))) if other.children.len() > one.children.len() => {
                if let Some(up) = self.nodes.get_mut(&one.up) {
                    up.brood = Some(below);
                }
                (Some((below, Brood { up: one.up, ..other })), one.children)
            }
            (above, below) => (above, below.map(|(_, brood)| brood.children).unwrap_or_default()),
        };
        for child in &moved {
            if let Some(child) = self.nodes.get_mut(child) {
                child.up = kept.as_ref().map(|(number, _)| *number);
            }
        }
        if let Some((number, mut brood)) = kept {
            brood.children.extend(moved);
            self.broods.insert(number, brood);
        }
        Some(node)
    }

    /// The nearest living creator in the graph.
    pub fn up(&self, id: ProcessId) -> Option<&Node> {
        self.get(id).and_then(|node| self.above(node))
    }

    fn above(&self, node: &Node) -> Option<&Node> {
        self.nodes.get(&self.broods.get(&node.up?)?.up).map(|n| &**n)
    }

    /// The living creators of a process, nearest first. The process itself is not included.
    pub fn ancestors(&self, id: ProcessId) -> impl Iterator<Item = &Node> + '_ {
        iter::successors(self.up(id), |node| self.above(node))
    }

    /// The nearest of them: what keeps a container, or is a browser, is a few levels above what it started.
    pub fn near_ancestors(&self, id: ProcessId) -> impl Iterator<Item = &Node> + '_ {
        self.ancestors(id).take(NEAR)
    }

    /// The living processes that a process created, directly or indirectly, in no particular order.
    pub fn below(&self, id: ProcessId) -> impl Iterator<Item = &Node> + '_ {
        self.below_while(id, |_| true)
    }

    /// Those of which this holds, and of each one between them and the process.
    pub fn below_while<'a>(
        &'a self,
        id: ProcessId,
        holds: impl Fn(&&Node) -> bool + 'a,
    ) -> impl Iterator<Item = &'a Node> + 'a {
        let mut stack: Vec<&Node> = self.children(id).filter(&holds).collect();
        iter::from_fn(move || {
            let node = stack.pop()?;
            stack.extend(self.children(node.id).filter(&holds));
            Some(node)
        })
    }

    /// The same, creators before what they created.
    pub fn descendants(&self, id: ProcessId) -> Vec<ProcessId> {
        in_order(self.below(id))
    }

    pub fn children(&self, id: ProcessId) -> impl Iterator<Item = &Node> + '_ {
        let brood = self.get(id).and_then(|node| self.broods.get(&node.brood?));
        let children = brood.into_iter().flat_map(|brood| &brood.children);
        children.filter_map(|pid| self.nodes.get(pid).map(|n| &**n))
    }
}

/// Sorts processes in the order in which they entered the graph.
pub fn in_order<'a>(nodes: impl Iterator<Item = &'a Node>) -> Vec<ProcessId> {
    let mut found: Vec<(u64, ProcessId)> = nodes.map(|node| (node.order, node.id)).collect();
    found.sort_unstable();
    found.into_iter().map(|(_, id)| id).collect()
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
        let links = |(number, brood): (&u64, &Brood)| {
            let is_below = |pid: &u32| graph.nodes.get(pid).is_some_and(|node| node.up == Some(*number));
            let up = graph.nodes.get(&brood.up).filter(|up| up.brood == Some(*number));
            let is_older = |pid: &u32| up.is_some_and(|up| up.order < graph.nodes[pid].order);
            brood.children.iter().all(|pid| is_below(pid) && is_older(pid))
        };
        let below = graph.broods.values().map(|brood| brood.children.len()).sum::<usize>();
        let linked = graph.nodes.values().filter(|node| node.up.is_some()).count();
        if !graph.broods.iter().all(links) || below != linked {
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

    /// Without moving the fewer, each of the line would move all of the crowd.
    #[test]
    fn a_line_with_thousands_below_it_may_end_from_below() {
        let (line, crowd) = (2_000, 20_000);
        let mut g = Graph::default();
        for pid in 1..=line + crowd {
            g.insert(Node::bare(id(pid)), (pid > 1).then(|| id(line.min(pid - 1))));
        }
        let links = |g: &Graph| (line + 1..=line + crowd).map(|pid| g.nodes[&pid].up).collect::<Vec<_>>();
        let before = links(&g);
        for pid in (2..=line).rev() {
            g.remove(id(pid));
        }
        assert_eq!(links(&g), before, "none of the crowd was moved");
        assert_eq!(g.children(id(1)).count(), usize::try_from(crowd).unwrap());
        assert_eq!(check(&g), Vec::<String>::new());
    }

    #[test]
    fn the_newer_holder_of_a_number_wins() {
        let mut g = Graph::default();
        g.insert(Node::bare(ProcessId::new(7, 1)), None);
        g.insert(Node::bare(ProcessId::new(7, 2)), None);
        assert!(g.get(ProcessId::new(7, 1)).is_none());
        assert_eq!(g.count(), 1);
    }

    proptest! {
        #[test]
        fn links_hold_under_any_history(steps in prop::collection::vec((0u8..3, 1u32..20, 1u32..20), 0..200)) {
            let mut g = Graph::default();
            for (what, a, b) in steps {
                match what {
                    2 => g.link(id(a), id(b)),
                    0 => { let up = g.holder(b).filter(|_| a != b); g.insert(Node::bare(id(a)), up); }
                    _ => { g.remove(id(a)); }
                }
                assert_eq!(check(&g), Vec::<String>::new());
            }
        }
    }
}
