//! The part of a scene that one of several questions is about: one moment is read for all servers that are due.
//!
//! Invariant: it has every row that a scene of this question alone would have.

use std::collections::{BTreeMap, BTreeSet};

use super::{Groups, due};
use orphand_core::model::{
    ProcessId,
    scene::{End, Endpoint, Scene, SceneQuestion},
};

pub(super) fn of(scene: &Scene, question: &SceneQuestion) -> Scene {
    let groups = Groups::of(&[question]);
    let mut asked: BTreeSet<ProcessId> = due(question).collect();
    let endpoints = loop {
        let near = near(scene, question, &asked);
        let mut next = groups.joined(scene.ends.iter().filter(|end| near.contains(&end.endpoint)), &asked);
        let is_below = |parent: ProcessId| asked.contains(&parent);
        let below = scene.processes.iter().filter(|row| row.full && row.parent.is_some_and(is_below));
        next.extend(below.map(|row| row.process).filter(|process| !asked.contains(process)));
        if next.is_empty() {
            break near;
        }
        asked.extend(next);
    };
    cut(scene, &endpoints, &asked)
}

/// What these processes have an end of, and the wires of their servers.
fn near(scene: &Scene, question: &SceneQuestion, asked: &BTreeSet<ProcessId>) -> BTreeSet<u32> {
    let is_asked = |process: &ProcessId| asked.contains(process);
    let servers = question.servers.iter().filter(|server| server.processes.iter().any(is_asked));
    let wires: BTreeSet<_> = servers.flat_map(|server| [server.stdin, server.stdout]).collect();
    let is_wire = |endpoint: &Endpoint| wires.iter().any(|wire| endpoint.is(*wire));
    let wires = (0..).zip(&scene.endpoints).filter(|(_, endpoint)| is_wire(endpoint)).map(|(at, _)| at);
    let held = scene.ends.iter().filter(|end| end.holder.process().as_ref().is_some_and(is_asked));
    wires.chain(held.map(|end| end.endpoint)).collect()
}

/// These endpoints, who has an end of them, and these processes.
fn cut(scene: &Scene, endpoints: &BTreeSet<u32>, asked: &BTreeSet<ProcessId>) -> Scene {
    let places: BTreeMap<u32, u32> = endpoints.iter().copied().zip(0..).collect();
    let renumbered = |end: &End| Some(End { endpoint: *places.get(&end.endpoint)?, ..end.clone() });
    let ends: Vec<End> = scene.ends.iter().filter_map(renumbered).collect();
    let holders: BTreeSet<ProcessId> = ends.iter().filter_map(|end| end.holder.process()).collect();
    let is_told = |process: &ProcessId| asked.contains(process) || holders.contains(process);
    Scene {
        processes: scene.processes.iter().filter(|row| is_told(&row.process)).cloned().collect(),
        endpoints: endpoints.iter().filter_map(|at| scene.endpoint(*at).cloned()).collect(),
        ends,
        unread: scene.unread.clone(),
    }
}
