//! Compares the graph with a snapshot of /proc, at the start and after records were lost.

use rustc_hash::FxHashMap;

use super::Graph;
use crate::model::{ProcessId, Snapshot, SnapshotProcess};

/// The differences between the graph and a snapshot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Difference {
    /// Processes that are in the graph and no longer on the host.
    pub gone: Vec<ProcessId>,
    /// Processes that are on the host and not in the graph, parents before children.
    pub unknown: Vec<SnapshotProcess>,
    /// Processes that are in both, parents before children.
    pub known: Vec<SnapshotProcess>,
}

/// Compares the graph with a snapshot. The snapshot says nothing about processes born at or after its horizon: their
/// records are still to be read, so nothing is concluded about them in either direction. The same holds for
/// processes that could not be read.
pub fn compare(graph: &Graph, snapshot: Snapshot) -> Difference {
    let horizon = snapshot.horizon.ticks();
    let mut gone: Vec<ProcessId> = graph.ids().filter(snapshot.gone()).collect();
    gone.sort_unstable();
    let mut unknown = Vec::new();
    let mut known = Vec::new();
    let mut processes: Vec<SnapshotProcess> =
        snapshot.processes.into_iter().filter(|p| p.id.start < horizon).collect();
    processes.sort_by_key(|p| (p.id.start, p.id.pid));
    for process in parents_first(processes) {
        if graph.get(process.id).is_some() { known.push(process) } else { unknown.push(process) }
    }
    Difference { gone, unknown, known }
}

/// Sorts parents before children. A parent is born before its child, but both may be born in one clock tick, and
/// process numbers wrap. (An adopter may be younger than what it adopted; such a child keeps its place.)
fn parents_first(sorted: Vec<SnapshotProcess>) -> Vec<SnapshotProcess> {
    let index: FxHashMap<ProcessId, usize> = sorted.iter().enumerate().map(|(i, p)| (p.id, i)).collect();
    let mut state = vec![false; sorted.len()];
    let mut order = Vec::with_capacity(sorted.len());
    for start in 0..sorted.len() {
        let mut path = Vec::new();
        let mut at = Some(start);
        while let Some(i) = at {
            if state.get(i).copied().unwrap_or(true) || path.contains(&i) {
                break;
            }
            path.push(i);
            at = sorted.get(i).and_then(|p| p.parent).and_then(|p| index.get(&p).copied());
        }
        for i in path.into_iter().rev() {
            if let Some(done) = state.get_mut(i) {
                *done = true;
            }
            order.push(i);
        }
    }
    let mut slots: Vec<Option<SnapshotProcess>> = sorted.into_iter().map(Some).collect();
    order.into_iter().filter_map(|i| slots.get_mut(i).and_then(Option::take)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{lineage::Node, model::BootTime};

    fn process(pid: u32, start: u64, parent: Option<(u32, u64)>) -> SnapshotProcess {
        SnapshotProcess {
            id: ProcessId::new(pid, start),
            parent: parent.map(|(p, s)| ProcessId::new(p, s)),
            ..SnapshotProcess::default()
        }
    }

    fn at_tick(t: u64) -> BootTime {
        BootTime(t * 10_000_000)
    }

    fn snapshot(processes: Vec<SnapshotProcess>) -> Snapshot {
        Snapshot { horizon: at_tick(100), processes, ..Snapshot::default() }
    }

    #[test]
    fn who_does_not_answer_is_not_gone() {
        let mut g = Graph::default();
        g.insert(Node::bare(ProcessId::new(10, 5)), None);
        g.insert(Node::bare(ProcessId::new(11, 5)), None);
        let d = compare(&g, Snapshot { unread: vec![11], ..snapshot(Vec::new()) });
        assert_eq!(d.gone, [ProcessId::new(10, 5)]);
    }

    #[test]
    fn says_nothing_about_what_was_born_after_the_horizon() {
        let mut g = Graph::default();
        g.insert(Node::bare(ProcessId::new(10, 5)), None);
        g.insert(Node::bare(ProcessId::new(11, 100)), None);
        let d = compare(&g, snapshot(vec![process(12, 100, None)]));
        assert_eq!(d.gone, [ProcessId::new(10, 5)]);
        assert!(d.unknown.is_empty() && d.known.is_empty());
    }

    #[test]
    fn a_reused_number_is_another_process() {
        let mut g = Graph::default();
        g.insert(Node::bare(ProcessId::new(10, 5)), None);
        let d = compare(&g, snapshot(vec![process(10, 7, None)]));
        assert_eq!(d.gone, [ProcessId::new(10, 5)]);
        assert_eq!(d.unknown.len(), 1);
    }

    #[test]
    fn parents_come_first_within_a_tick_and_across_a_wrap() {
        let snapshot = snapshot(vec![
            process(3, 9, Some((32000, 9))),
            process(32000, 9, Some((2, 9))),
            process(2, 9, None),
        ]);
        let pids: Vec<u32> = compare(&Graph::default(), snapshot).unknown.iter().map(|p| p.id.pid).collect();
        assert_eq!(pids, [2, 32000, 3]);
    }
}
