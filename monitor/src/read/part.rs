//! The part of a scene that one of several questions is about: one moment is read for all servers that are due.
//!
//! Invariant: it has every row that a scene of this question alone would have, and of the others that are due at the same
//! moment only those through which somebody may use it.

use std::collections::{BTreeMap, BTreeSet};

use super::{Groups, due};
use orphand_core::model::{
    ProcessId,
    scene::{End, Endpoint, Holder, Scene, SceneQuestion, Side, Unread},
};

pub(super) fn of(scene: &Scene, question: &SceneQuestion) -> Scene {
    let groups = Groups::of(&[question]);
    let mut asked: BTreeSet<ProcessId> = due(question).collect();
    let (endpoints, wires) = loop {
        let wires = wires(scene, question, &asked);
        let near = near(scene, &wires, &asked);
        let mut next = groups.joined(scene.ends.iter().filter(|end| near.contains(&end.endpoint)), &asked);
        let is_below = |parent: ProcessId| asked.contains(&parent);
        let below = scene.processes.iter().filter(|row| row.full && row.parent.is_some_and(is_below));
        next.extend(below.map(|row| row.process).filter(|process| !asked.contains(process)));
        if next.is_empty() {
            break (near, wires);
        }
        asked.extend(next);
    };
    cut(scene, &endpoints, &asked, &wires)
}

/// Whether all that it asks for was read.
pub(super) fn is_whole(part: &Scene) -> bool {
    part.unread.is_empty() && part.ends.iter().all(|end| end.holder != Holder::Unreadable)
}

/// This part, if there is room for so many ends. Else without them: what is read so proves nothing.
pub(super) fn fitted(mut part: Scene, room: &mut usize) -> Scene {
    let left = room.checked_sub(part.ends.len());
    *room = left.unwrap_or_default();
    if left.is_some() {
        return part;
    }
    part.endpoints = Vec::new();
    part.ends = Vec::new();
    let why = "the servers that are due together have more open files in common than orphand looks at";
    part.unread.push(Unread { process: None, why: why.to_owned() });
    part
}

/// The endpoints that are wires of the servers that these processes belong to.
fn wires(scene: &Scene, question: &SceneQuestion, asked: &BTreeSet<ProcessId>) -> BTreeSet<u32> {
    let is_asked = |process: &ProcessId| asked.contains(process);
    let servers = question.servers.iter().filter(|server| server.processes.iter().any(is_asked));
    let wires: BTreeSet<_> = servers.flat_map(|server| [server.stdin, server.stdout]).collect();
    let is_wire = |endpoint: &Endpoint| wires.iter().any(|wire| endpoint.is(*wire));
    (0..).zip(&scene.endpoints).filter(|(_, endpoint)| is_wire(endpoint)).map(|(at, _)| at).collect()
}

/// What these processes have an end of, and the wires of their servers.
fn near(scene: &Scene, wires: &BTreeSet<u32>, asked: &BTreeSet<ProcessId>) -> BTreeSet<u32> {
    let held = scene.ends.iter().filter(|end| end.holder.process().is_some_and(|one| asked.contains(&one)));
    held.map(|end| end.endpoint).chain(wires.iter().copied()).collect()
}

/// These endpoints, who has an end of them, and these processes.
fn cut(
    scene: &Scene,
    endpoints: &BTreeSet<u32>,
    asked: &BTreeSet<ProcessId>,
    wires: &BTreeSet<u32>,
) -> Scene {
    let is_asked = |end: &End| end.holder.process().is_some_and(|one| asked.contains(&one));
    let mut own: BTreeMap<u32, BTreeSet<Side>> = BTreeMap::new();
    for end in scene.ends.iter().filter(|end| is_asked(end)) {
        own.entry(end.endpoint).or_default().insert(end.side);
    }
    let full: BTreeSet<ProcessId> =
        scene.processes.iter().filter(|row| row.full).map(|row| row.process).collect();
    // Hundreds of servers share the standard error of their agent: nobody can use a server through an end that both have.
    let is_shared = |end: &&End| {
        let is_stream =
            matches!(scene.endpoint(end.endpoint), Some(Endpoint::Pipe { .. } | Endpoint::Connection { .. }));
        is_stream
            && !wires.contains(&end.endpoint)
            && !is_asked(end)
            && end.holder.process().is_some_and(|one| full.contains(&one))
            && own.get(&end.endpoint).is_some_and(|own| own.iter().all(|side| *side == end.side))
    };
    let places: BTreeMap<u32, u32> = endpoints.iter().copied().zip(0..).collect();
    let renumbered = |end: &End| Some(End { endpoint: *places.get(&end.endpoint)?, ..end.clone() });
    let ends = scene.ends.iter().filter(|end| !is_shared(end));
    let ends: Vec<End> = ends.filter_map(renumbered).collect();
    let holders: BTreeSet<ProcessId> = ends.iter().filter_map(|end| end.holder.process()).collect();
    let is_told = |process: &ProcessId| asked.contains(process) || holders.contains(process);
    let unread = scene.unread.iter().filter(|unread| unread.process.is_none_or(|one| is_told(&one)));
    Scene {
        processes: scene.processes.iter().filter(|row| is_told(&row.process)).cloned().collect(),
        endpoints: endpoints.iter().filter_map(|at| scene.endpoint(*at).cloned()).collect(),
        ends,
        unread: unread.cloned().collect(),
    }
}
