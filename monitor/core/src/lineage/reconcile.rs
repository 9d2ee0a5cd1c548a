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
    let ids: Vec<ProcessId> = sorted.iter().map(|process| process.id).collect();
    let mut left: FxHashMap<_, _> = sorted.into_iter().map(|process| (process.id, process)).collect();
    let mut order = Vec::with_capacity(ids.len());
    for id in ids {
        let (mut line, mut at) = (Vec::new(), Some(id));
        while let Some(process) = at.and_then(|id| left.remove(&id)) {
            at = process.parent;
            line.push(process);
        }
        order.extend(line.into_iter().rev());
    }
    order
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
