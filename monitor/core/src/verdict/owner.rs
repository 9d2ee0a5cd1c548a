//! Whose a server is, by who can talk to it: one notion of who may own a server, for those whose owner has exited and for
//! those that never had one that anybody knows.

use std::collections::BTreeSet;

use super::inspection::Inspection;
use crate::{
    lineage::Node,
    model::{ProcessId, UnitFacts, scene::ProcessRow},
    reach::Rows,
    recognise::{Role, is_spawn_server},
    world::Agent,
};

/// The process that a server works for from now on, although its owner has exited: the oldest of those that can talk to
/// it which may own it. It existed before the server, or is an agent itself.
pub(super) fn next(inspection: &Inspection<'_>, talkers: &BTreeSet<ProcessId>) -> Option<ProcessRow> {
    // The owner lives. Another process that can talk to the server is a doubt, and does not take over.
    if inspection.released_in_words().is_some() {
        return None;
    }
    let holders = holders(inspection.rows, talkers.iter().copied());
    holders.into_iter().find(|holder| takes_over(inspection, holder)).cloned()
}

fn takes_over(inspection: &Inspection<'_>, holder: &ProcessRow) -> bool {
    let (node, server) = (inspection.node(holder.process), inspection.server);
    // The case was opened although this owner lives. Neither it nor a copy of it is somebody else.
    if server.phase.released().is_some()
        && let Some(owner) = inspection.living_owner()
        && (owner.main() == holder.process || node.is_some_and(|node| node.origin() == owner.origin))
    {
        return false;
    }
    let role = inspection.rules.role(&holder.image);
    let passes_on = matches!(
        role,
        Role::Shell | Role::Launcher | Role::ServiceManager | Role::Multiplexer | Role::Exempt { .. }
    );
    let is_part = node.is_some_and(|node| node.wraps.is_some() || node.protected);
    // A copy of a killed owner did not take over. A copy that is not idle may use the server nevertheless.
    let is_copy = |owner: &&Agent| node.is_some_and(|node| node.origin() == owner.origin);
    let qualifies = match inspection.dead_owner().filter(is_copy) {
        Some(owner) => !owner.killed,
        None => {
            is_agent(inspection, holder)
                || (server.owner().is_some() && holder.process.start < server.id.start)
        }
    };
    // The last is dear.
    !passes_on && !is_part && qualifies && may_own(inspection, holder)
}

/// Seeks the owner of a server that had none when it was recognised: the oldest process that can talk to it, existed before
/// it, and may own it. And whether all who can talk to it are seen, or nobody can, or its unit went on without it. `is_new`:
/// its beginning was witnessed, and only the process that made its wire is not known.
pub fn seek(inspection: &Inspection<'_>, is_new: bool) -> (Option<ProcessRow>, bool) {
    let (server, rows) = (inspection.server, inspection.rows);
    let own: BTreeSet<ProcessId> = server.all().collect();
    let others = rows.others_at(server.stdin, true, &own);
    let talkers = || others.iter().filter_map(|holder| holder.process());
    // The inspection may be ahead of the records. A process born in the same moment and not known yet may be a child of
    // the server.
    let is_older = |process: ProcessId| {
        let known = !is_new || inspection.node(process).is_some();
        process.start < server.id.start || (known && process.start == server.id.start)
    };
    let mut makers = inspection.world.graph().ancestors(server.id).filter_map(Node::image);
    let is_handed = makers.any(is_spawn_server);
    // A service that a manager started itself (a socket's service) does not belong to its client, which runs in another
    // unit. And a program that feeds a person's pipeline is no agent.
    let is_near = |holder: &ProcessRow| {
        let name = |unit: Option<&UnitFacts>| unit.map(|unit| unit.unit.clone());
        let [theirs, ours] = [name(holder.unit.as_ref()), name(inspection.unit())];
        !is_new || is_handed || (theirs == ours && (theirs.is_some() || is_agent(inspection, holder)))
    };
    let may_be = |holder: &&ProcessRow| {
        let is_launcher = matches!(inspection.rules.role(&holder.image), Role::Launcher);
        !is_launcher && may_own(inspection, holder) && is_near(holder) && is_older(holder.process)
    };
    let left_behind = inspection.unit().is_some_and(UnitFacts::left_behind);
    let is_wire = server.stdin.is_wire();
    let owner = holders(rows, talkers()).into_iter().find(may_be).cloned();
    (owner, left_behind || (is_wire && (others.is_empty() || (!is_new && talkers().next().is_some()))))
}

/// Whether it is an agent, or a rule says that its program is one.
fn is_agent(inspection: &Inspection<'_>, holder: &ProcessRow) -> bool {
    inspection.world.agent_of(holder.process).is_some()
        || matches!(inspection.rules.role(&holder.image), Role::Agent { .. })
}

/// Whether this process may own a server: it is none itself (another server may have inherited a descriptor), and no
/// process of the server started it.
fn may_own(inspection: &Inspection<'_>, holder: &ProcessRow) -> bool {
    let mut above = inspection.world.graph().ancestors(holder.process);
    inspection.node(holder.process).is_none_or(|node| node.server.is_none())
        && above.all(|above| !inspection.server.contains(above.id))
}

/// Those of these processes that have a row, the oldest first.
fn holders<'a>(rows: &Rows<'a>, processes: impl Iterator<Item = ProcessId>) -> Vec<&'a ProcessRow> {
    let mut all: Vec<&ProcessRow> = processes.filter_map(|process| rows.row(process)).collect();
    all.sort_by_key(|holder| (holder.process.start, holder.process.pid));
    all
}
