//! The proof standard: what orphand may end without being asked by a person.
//!
//! This is the only place that concludes "orphan". Each condition is a function of its own. Anything that keeps a
//! condition from being proven is a doubt, and nothing is ended while there is a doubt. A proven orphan may still
//! stay because of a guard.

use std::time::Duration;

use super::{
    container,
    guards::guards,
    inspection::Inspection,
    membership::{Members, members},
    rest::{must_rest, somebody_uses_it},
    spawner::thread_has_ended,
    wires::{host, hung_up, is_hung_up, owner_is_leaving, somebody_listens, somebody_talks},
};
use crate::{
    case::Cause,
    lineage::Node,
    model::{ContainerId, Doubt, Evidence, Guard, Holder, UnitFacts, WireState},
    recognise::is_told_to_serve,
    world::Agent,
};

/// The result of an examination.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Finding {
    /// The processes of the server, by their relation to it.
    pub members: Members,
    /// A living process that the server works for. If there is one, the server is no orphan.
    pub host: Option<Holder>,
    /// The kernel is still closing the files of the dead owner. The server must be inspected again in a moment.
    pub too_early: bool,
    /// The evidence that it is an orphan.
    pub evidence: Vec<Evidence>,
    /// The doubts: what keeps that from being proven.
    pub doubts: Vec<Doubt>,
    /// The guards: what forbids ending it.
    pub guards: Vec<Guard>,
    /// For how long the server must still do nothing, if it was not used, and that alone is missing to show it.
    pub must_rest: Option<Duration>,
    /// The container that has to be stopped instead of the client that works for it.
    pub container: Option<ContainerId>,
}

/// Examines a server whose owner has exited or is unknown.
pub fn examine(inspection: &Inspection<'_>) -> Finding {
    let members = members(inspection);
    let host = host(inspection, &members).cloned();
    let mut doubts: Vec<Doubt> = [
        owner_is_unknown(inspection, &members),
        somebody_talks(inspection, &members),
        somebody_listens(inspection, &members),
        somebody_is_connected(inspection, &members),
        somebody_traces(inspection, &members),
        somebody_uses_it(inspection, &members),
        owner_may_come_back(inspection, &members),
    ]
    .into_iter()
    .flatten()
    .chain(container::doubts(inspection, &members))
    .collect();
    doubts.sort_unstable();
    doubts.dedup();
    Finding {
        host,
        too_early: owner_is_leaving(inspection),
        evidence: evidence(inspection, &members),
        doubts,
        guards: guards(inspection, &members),
        must_rest: must_rest(inspection, &members),
        container: container::to_stop(inspection, &members).map(|found| found.container.clone()),
        members,
    }
}

/// Conditions 1 and 3: the server had an owner, and the owner has exited. There is a doubt if it is not known who
/// made the wires, or that the makers have exited. Without a known owner there are two other proofs: the unit has
/// gone on without the server, or both wires have hung up and the server is a child of a service manager. In the
/// second case nobody can use the server, whoever made it.
fn owner_is_unknown(inspection: &Inspection<'_>, members: &Members) -> Option<Doubt> {
    let left_behind = inspection.facts.unit.as_ref().is_some_and(UnitFacts::left_behind);
    // Where the main process exited by itself, no wire is left that could show the owner.
    let has_wires = !members.core.is_empty() || inspection.server.phase.strongest_signal().is_some();
    let nobody_can_use_it = has_wires && hung_up(inspection, members);
    let known = match inspection.owner() {
        // The owner exited before its program could be asked for: neither program nor user is known.
        Some(owner) if owner.name.is_empty() => left_behind || nobody_can_use_it,
        // If another program made the standard output wire, the wire belongs to that program.
        Some(_) if inspection.server.made_apart => nobody_can_use_it,
        Some(_) => true,
        None => {
            left_behind
                || (nobody_can_use_it
                    && inspection.server.provenance.is_adopted()
                    && !listens(inspection, members))
        }
    };
    (!known).then_some(Doubt::OwnerUnknown)
}

/// Condition 5: a client is connected to a socket of the server, or was connected a moment ago. One that calls from
/// another host leaves no trace. So a server that listens because it was told to serve counts as one with clients.
fn somebody_is_connected(inspection: &Inspection<'_>, members: &Members) -> Option<Doubt> {
    let served = inspection.processes(members).any(|facts| {
        facts.sockets.clients || facts.sockets.inside.iter().any(|client| !members.contains(*client))
    });
    let is_told = |process| inspection.node(process).and_then(Node::image).is_some_and(is_told_to_serve);
    let is_service = || {
        listens(inspection, members) && members.core.iter().chain(&members.wrappers).any(|one| is_told(*one))
    };
    (served || is_service()).then_some(Doubt::Clients)
}

/// Condition 5: a debugger is attached to a process of the server.
fn somebody_traces(inspection: &Inspection<'_>, members: &Members) -> Option<Doubt> {
    let traced = inspection.processes(members).any(|facts| facts.traced);
    traced.then_some(Doubt::Traced)
}

/// The owner is alive, so it may come back in another way: it knows the sockets on which the server listens. And an
/// owner that abandoned the server let go of the wires, or a thread of it forgot them, so the server must still have
/// its own ends. One that closed them itself may be a service now.
fn owner_may_come_back(inspection: &Inspection<'_>, members: &Members) -> Option<Doubt> {
    let under_living_owner = |cause: &Cause| cause.reason.under_living_owner();
    if !inspection.owner().is_some_and(Agent::is_alive)
        || !inspection.server.phase.cause().is_some_and(under_living_owner)
    {
        return None;
    }
    // While it is being ended, its main process may have exited.
    let begun = inspection.server.phase.strongest_signal().is_some();
    let own_ends = inspection.facts.own_ends;
    let abandoned = inspection.is_abandoned() && own_ends != [true, true];
    let wires = [&inspection.facts.stdin, &inspection.facts.stdout];
    let closed = || wires.into_iter().zip(own_ends).any(|(wire, own)| *wire == WireState::HungUp && !own);
    if !begun && (abandoned || (thread_has_ended(inspection) && closed())) {
        return Some(Doubt::WireUnknown);
    }
    listens(inspection, members).then_some(Doubt::Clients)
}

fn listens(inspection: &Inspection<'_>, members: &Members) -> bool {
    inspection.processes(members).any(|facts| facts.sockets.listens)
}

fn evidence(inspection: &Inspection<'_>, members: &Members) -> Vec<Evidence> {
    let mut evidence = Vec::new();
    match inspection.server.owner().map(|_| inspection.owner()) {
        Some(owner) if owner.is_some_and(Agent::is_alive) => {
            // If a person asks to end the server, nothing speaks for an orphan.
            if inspection.is_abandoned() {
                evidence.push(Evidence::Abandoned);
            }
        }
        Some(_) => evidence.push(Evidence::OwnerExited),
        None => evidence.push(Evidence::NoOwner),
    }
    if inspection.is_about_session() {
        evidence.push(Evidence::SessionExpired);
    }
    if thread_has_ended(inspection) {
        evidence.push(Evidence::SpawnerThreadExited);
    }
    if is_hung_up(&inspection.facts.stdin, members) {
        evidence.push(Evidence::StdinHangup);
    }
    if let Some(unit) = &inspection.facts.unit {
        if unit.is_stale() {
            evidence.push(Evidence::StaleInvocation);
        }
        if unit.is_stopped() {
            evidence.push(Evidence::UnitStopped);
        }
    }
    evidence
}
