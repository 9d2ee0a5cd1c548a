//! The proof standard: what may be ended without a person's word.
//!
//! The one place where "orphan" is concluded. Each condition is a function of its own; whatever keeps one from being proven is a
//! doubt, and with a doubt nothing is ended. An orphan that is proven may stay all the same, because of a guard.

use super::{
    guards::guards,
    inspection::Inspection,
    membership::{Members, members},
    wires::{host, hung_up, is_hung_up, owner_is_leaving, somebody_listens, somebody_talks},
};
use crate::{
    model::{Doubt, Evidence, Guard, Holder, UnitFacts},
    world::Agent,
};

/// What an examination found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Finding {
    /// What belongs to the server.
    pub members: Members,
    /// A living process that the server works for: it is no orphan.
    pub host: Option<Holder>,
    /// The dead owner's files are still being closed: inspect again in a moment.
    pub too_early: bool,
    /// What speaks for "orphan".
    pub evidence: Vec<Evidence>,
    /// What keeps that from being proven.
    pub doubts: Vec<Doubt>,
    /// What forbids to end it.
    pub guards: Vec<Guard>,
}

/// Examines a server whose owner is gone.
pub fn examine(inspection: &Inspection<'_>) -> Finding {
    let members = members(inspection);
    let host = host(inspection, &members).cloned();
    let mut doubts: Vec<Doubt> = [
        owner_is_unknown(inspection, &members),
        somebody_talks(inspection, &members),
        somebody_listens(inspection, &members),
        somebody_is_connected(inspection, &members),
        somebody_traces(inspection, &members),
    ]
    .into_iter()
    .flatten()
    .collect();
    doubts.sort_unstable();
    doubts.dedup();
    Finding {
        host,
        too_early: owner_is_leaving(inspection),
        evidence: evidence(inspection, &members),
        doubts,
        guards: guards(inspection, &members),
        members,
    }
}

/// Conditions 1 and 3, a server with an owner that is gone: whether it is not known who made its wires, or that those are gone.
/// Without a known owner, a unit that has gone on without the server tells, or both wires hung up below a service manager: nobody
/// can use such a one, whoever made it.
fn owner_is_unknown(inspection: &Inspection<'_>, members: &Members) -> Option<Doubt> {
    let left_behind = inspection.facts.unit.as_ref().is_some_and(UnitFacts::left_behind);
    // Where the server's main process ended by itself there is no wire left that could tell.
    let has_wires = !members.core.is_empty() || inspection.server.phase.strongest_signal().is_some();
    let nobody_can_use_it = has_wires && hung_up(inspection, members);
    let known = match inspection.owner() {
        // Ended before anybody could ask what it was: neither program nor user is known.
        Some(owner) if owner.name.is_empty() => left_behind || nobody_can_use_it,
        // A wire that another program made is another program's.
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

/// Condition 5: a client is connected to a socket of the server, or was a moment ago.
fn somebody_is_connected(inspection: &Inspection<'_>, members: &Members) -> Option<Doubt> {
    let served = inspection.processes(members).any(|facts| {
        facts.sockets.clients || facts.sockets.inside.iter().any(|client| !members.contains(*client))
    });
    served.then_some(Doubt::Clients)
}

/// Condition 5: somebody looks at the server with a debugger.
fn somebody_traces(inspection: &Inspection<'_>, members: &Members) -> Option<Doubt> {
    let traced = inspection.processes(members).any(|facts| facts.traced);
    traced.then_some(Doubt::Traced)
}

fn listens(inspection: &Inspection<'_>, members: &Members) -> bool {
    inspection.processes(members).any(|facts| facts.sockets.listens)
}

fn evidence(inspection: &Inspection<'_>, members: &Members) -> Vec<Evidence> {
    let mut evidence = Vec::new();
    match inspection.server.owner().map(|_| inspection.owner()) {
        // The owner of a server that a person asks to end may live.
        Some(owner) if owner.is_some_and(Agent::is_alive) => {}
        Some(_) => evidence.push(Evidence::OwnerExited),
        None => evidence.push(Evidence::NoOwner),
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
