//! Condition 6 of the proof standard: the guards that forbid ending a server even if it is proven to be an orphan.

use std::collections::BTreeSet;

use super::{container, inspection::Inspection, membership::Members};
use crate::{
    lineage::Node,
    model::{Guard, Mode, scene::ProcessRow},
    recognise::Role,
};

pub fn guards(inspection: &Inspection<'_>, members: &Members) -> Vec<Guard> {
    let (server, rules, owner) = (inspection.server, inspection.rules, inspection.owner());
    let policy = inspection.policy;
    let by_person = server.phase.asked();
    let unit = inspection.unit();
    let stopped = container::to_stop(inspection, members);
    let is_contained =
        || container::has_client(inspection, members) || container::was_found_inside(inspection);
    let below = at_and_below(inspection);
    let is_stopped = |node: &Node| stopped.is_some_and(|found| container::is_part(found, node.id));
    let is_exempt = |node: &&Node| match node.role() {
        Some(Role::Multiplexer) => false,
        role => (node.protected || matches!(role, Some(Role::Exempt { .. }))) && !is_stopped(node),
    };
    let in_exempt_place =
        |row: &ProcessRow| rules.exempts_by(unit.map(|unit| &unit.unit), &row.slices, row.uid).is_some();
    let is_exempted = server.disowned
        || owner.is_some_and(|a| a.exempt)
        || inspection.processes(members).any(in_exempt_place)
        || below.iter().any(is_exempt);
    let opted_out = inspection.rows_of_server().any(|row| row.opted_out)
        || stopped.is_some_and(|found| found.rows().any(|row| row.opted_out));
    let is_foreign = |row: &ProcessRow| row.uid != server.user();
    // In the order of `Guard`.
    let guards = [
        (is_exempted, Guard::ExemptRule),
        (opted_out, Guard::OptedOut),
        (below.iter().any(|node| matches!(node.role(), Some(Role::Multiplexer))), Guard::Multiplexer),
        (!policy.other_uids && inspection.processes(members).any(is_foreign), Guard::OtherUid),
        (below.iter().any(|node| inspection.world.agent_of(node.id).is_some()), Guard::LiveAgentBelow),
        // The manager started the server itself or adopted it from what runs now. The two cases look the same from
        // outside.
        (server.owner().is_none() && unit.is_some_and(|unit| !unit.left_behind()), Guard::OwnUnit),
        (policy.mode == Mode::Observe && !by_person, Guard::Observe),
        (inspection.found && !by_person, Guard::Found),
        (stopped.is_none() && is_contained(), Guard::Container),
    ];
    guards.into_iter().filter(|(holds, _)| *holds).map(|(_, guard)| guard).collect()
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
