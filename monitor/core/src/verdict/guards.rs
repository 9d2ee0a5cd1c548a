//! Condition 6 of the proof standard: the guards that forbid ending a server even if it is proven to be an orphan.

use std::collections::BTreeSet;

use super::{container, inspection::Inspection, membership::Members};
use crate::{lineage::Node, model::Guard, recognise::Role};

/// The guards that forbid ending the server now.
pub fn guards(inspection: &Inspection<'_>, members: &Members) -> Vec<Guard> {
    let mut guards = BTreeSet::new();
    let server = inspection.server;
    if inspection.observe && !server.phase.asked() {
        guards.insert(Guard::Observe);
    }
    if inspection.found && !server.phase.asked() {
        guards.insert(Guard::Found);
    }
    // The manager started the server itself or adopted it from what runs now. The two cases look the same from
    // outside.
    if server.owner().is_none() && inspection.unit().is_some_and(|unit| !unit.left_behind()) {
        guards.insert(Guard::OwnUnit);
    }
    if inspection.rows.opted_out(server) {
        guards.insert(Guard::OptedOut);
    }
    let unit = inspection.unit().map(|unit| &unit.unit);
    if inspection.processes(members).any(|row| inspection.rules.exempts(unit, &row.slices, row.uid)) {
        guards.insert(Guard::ExemptRule);
    }
    let owner = inspection.owner();
    if server.disowned || owner.is_some_and(|a| a.exempt) {
        guards.insert(Guard::ExemptRule);
    }
    let owner_uid = owner.filter(|a| !a.name.is_empty()).map(|a| a.uid);
    let foreign = |uid: u32| owner_uid.is_some_and(|owner| owner != uid);
    let mut uids = inspection.processes(members).map(|facts| facts.uid);
    if !inspection.other_uids && uids.any(foreign) {
        guards.insert(Guard::OtherUid);
    }
    let stopped = container::to_stop(inspection, members);
    match stopped {
        Some(found) if found.rows().any(|row| row.opted_out) => {
            guards.insert(Guard::OptedOut);
        }
        None if container::has_client(inspection, members) || container::was_found_inside(inspection) => {
            guards.insert(Guard::Container);
        }
        _ => {}
    }
    for node in at_and_below(inspection) {
        if inspection.world.agents().of(node.id).is_some() {
            guards.insert(Guard::LiveAgentBelow);
        }
        let is_stopped = || stopped.is_some_and(|found| container::is_part(found, node.id));
        match node.role() {
            Some(Role::Exempt { .. }) if !is_stopped() => {
                guards.insert(Guard::ExemptRule);
            }
            Some(Role::Multiplexer) => {
                guards.insert(Guard::Multiplexer);
            }
            _ if node.protected && !is_stopped() => {
                guards.insert(Guard::ExemptRule);
            }
            _ => {}
        }
    }
    guards.into_iter().collect()
}

/// The server's processes, and everything they created that is in the graph.
fn at_and_below<'a>(inspection: &Inspection<'a>) -> Vec<&'a Node> {
    let (graph, server) = (inspection.world.graph(), inspection.server);
    let mut found = BTreeSet::new();
    for process in server.processes() {
        if found.insert(*process) {
            found.extend(graph.descendants(*process));
        }
    }
    found.into_iter().filter_map(|id| graph.get(id)).collect()
}
