//! Whether somebody uses an agent that may have been left behind.

use std::collections::BTreeSet;

use crate::{
    model::{
        ProcessId,
        scene::{Began, Endpoint, Scene},
    },
    reach::{Party, Source, Way, mark},
};

/// Whether this process has clients, or a debugger. What is `below` it works for it. Its pipes lead to its servers and to
/// whoever reads its log.
pub fn is_used(scene: &Scene, process: ProcessId, below: &[ProcessId]) -> bool {
    let reach = mark(scene, &[Party { members: BTreeSet::from([process]), ..Party::default() }]);
    let is_outside = |from: Source| !matches!(from, Source::Root(process) if below.contains(&process));
    let mut edges = reach.edges_to(0).filter(|edge| is_outside(edge.from));
    edges.any(|edge| match scene.endpoint(edge.endpoint) {
        Some(Endpoint::Open { .. } | Endpoint::Pipe { named: true, .. }) => true,
        Some(Endpoint::Connection { began, .. }) => *began != Began::Pair,
        _ => edge.way == Way::Trace,
    })
}
