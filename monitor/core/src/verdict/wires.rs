//! Who holds the other ends of a server's wires: whether any process can talk to the server, and whether any listens
//! to it.
//!
//! Every holder outside of the server may be a user of the server, whatever its age. Only three kinds of holder have
//! the wire by accident, and each must be proven: another server of the same dead owner, which inherited a
//! descriptor, an idle forked copy of the killed owner, and the living owner whose thread started the server and
//! ended ([`super::spawner`]). If the session of a server has expired, only the process that started the server for
//! that session counts as an accident.

use super::{
    inspection::Inspection, membership::Members, rest::stays_silent, spawner::holds_for_an_ended_thread,
};
use crate::{
    lineage::Node,
    model::{Doubt, Holder, Stdio, UnitFacts, WireState},
    recognise::Role,
    world::Agent,
};

/// The doubt that remains about "nobody can talk to the server"; `None` if that is proven.
pub fn somebody_talks(inspection: &Inspection<'_>, members: &Members) -> Option<Doubt> {
    doubt(inspection, members, &inspection.facts.stdin, Doubt::WireHeld)
}

/// The doubt that remains about "nobody listens to the server"; `None` if that is proven.
pub fn somebody_listens(inspection: &Inspection<'_>, members: &Members) -> Option<Doubt> {
    if answers_nobody_knows_where(inspection) {
        return Some(Doubt::WireUnknown);
    }
    if only_its_closer_listens(inspection, members) {
        return None;
    }
    doubt(inspection, members, &inspection.facts.stdout, Doubt::StdoutRead)
}

/// Whether the only outside process that could read the answers is the living owner, which has closed the server: it
/// hung up the standard input, and the head of the launch chain was ended by a signal. A client that closes a
/// server does so and keeps the standard output open until the last process of the server has exited. Who sent the
/// signal is not known: if it was somebody else, the owner may still wait for results. So the server must not have
/// written any since.
fn only_its_closer_listens(inspection: &Inspection<'_>, members: &Members) -> bool {
    let Some(owner) = inspection.owner().filter(|owner| owner.is_alive()) else { return false };
    let WireState::Held { holders, unseen: false } = &inspection.facts.stdout else { return false };
    inspection.is_abandoned()
        && inspection.server.head_killed
        && is_hung_up(&inspection.facts.stdin, members)
        && holders.iter().all(|holder| holder.process == owner.main() || members.contains(holder.process))
        && stays_silent(inspection, members)
}

/// Whether the wire that carries the answers is unknown. A pipe has one direction. If a server was found with the
/// same pipe as standard input and output, it had moved its wires away, and only the wire that it reads was found
/// again.
fn answers_nobody_knows_where(inspection: &Inspection<'_>) -> bool {
    matches!(inspection.server.stdin, Stdio::Pipe(_)) && inspection.server.stdin == inspection.server.stdout
}

fn doubt(inspection: &Inspection<'_>, members: &Members, wire: &WireState, held: Doubt) -> Option<Doubt> {
    match wire {
        WireState::HungUp => None,
        WireState::Unknown => Some(Doubt::WireUnknown),
        WireState::Held { holders, unseen } => {
            let used = holders.iter().any(|holder| !is_harmless(inspection, members, holder));
            (used || *unseen).then_some(held)
        }
    }
}

/// Whether no process but the server itself holds the other end of either wire.
pub fn hung_up(inspection: &Inspection<'_>, members: &Members) -> bool {
    !answers_nobody_knows_where(inspection) && both_hung_up(inspection, members)
}

fn both_hung_up(inspection: &Inspection<'_>, members: &Members) -> bool {
    [&inspection.facts.stdin, &inspection.facts.stdout].into_iter().all(|wire| is_hung_up(wire, members))
}

/// Whether no process outside of the server holds the other end of this wire.
pub fn is_hung_up(wire: &WireState, members: &Members) -> bool {
    match wire {
        WireState::HungUp => true,
        WireState::Unknown => false,
        WireState::Held { holders, unseen } => {
            !unseen && holders.iter().all(|holder| members.contains(holder.process))
        }
    }
}

/// Whether the owner, which has exited, still held a wire at the moment of the inspection and was about to close it.
pub fn owner_is_leaving(inspection: &Inspection<'_>) -> bool {
    let dead = inspection.owner().filter(|owner| !owner.is_alive()).map(Agent::main);
    let wires = [&inspection.facts.stdin, &inspection.facts.stdout];
    dead.is_some_and(|dead| {
        wires.iter().flat_map(|wire| super::inspection::holders(wire)).any(|holder| holder.process == dead)
    })
}

/// The process that the server works for from now on, although its owner has exited. It can talk to the server, it
/// existed before the server or is an agent itself, and it is not a process that only passes a wire on.
pub fn host<'a>(inspection: &Inspection<'a>, members: &Members) -> Option<&'a Holder> {
    // The owner lives. Another process that can talk to the server is a doubt, and does not take over.
    if inspection.is_about_session() {
        return None;
    }
    let talkers = super::inspection::holders(&inspection.facts.stdin);
    talkers.iter().find(|holder| !is_harmless(inspection, members, holder) && is_host(inspection, holder))
}

fn is_host(inspection: &Inspection<'_>, holder: &Holder) -> bool {
    let node = inspection.node(holder.process);
    // The case was opened although this owner lives. Neither it nor a copy of it is somebody else.
    let cause = inspection.server.phase.cause();
    if cause.is_some_and(|cause| cause.reason.under_living_owner())
        && let Some(owner) = inspection.owner().filter(|owner| owner.is_alive())
        && (owner.main() == holder.process || node.is_some_and(|node| node.origin() == owner.origin))
    {
        return false;
    }
    if node.is_some_and(|n| n.server.or(n.wraps).is_some() || n.protected) {
        return false;
    }
    // A process that the server started may have inherited a descriptor. The server does not work for it.
    if inspection.graph.ancestors(holder.process).any(|above| inspection.server.contains(above.id)) {
        return false;
    }
    let role = inspection.rules.role(&holder.image);
    if matches!(
        role,
        Role::Shell | Role::Launcher | Role::ServiceManager | Role::Multiplexer | Role::Exempt { .. }
    ) {
        return false;
    }
    // A copy of a killed owner did not take over. A copy that is not idle may use the server nevertheless.
    if let Some((owner, node)) = inspection.owner().zip(node)
        && is_copy(owner, node)
    {
        return !owner.killed;
    }
    let knows_what_it_does =
        inspection.agents.of(holder.process).is_some() || matches!(role, Role::Agent { .. });
    knows_what_it_does
        || (inspection.server.owner().is_some() && holder.process.start < inspection.server.id.start)
}

/// Whether this holder cannot be a user of the server: it is the server itself, or it holds the wire by accident.
fn is_harmless(inspection: &Inspection<'_>, members: &Members, holder: &Holder) -> bool {
    if inspection.is_about_session() {
        return members.contains(holder.process) || is_manager(inspection, holder);
    }
    members.contains(holder.process)
        || is_sibling(inspection, holder)
        || is_idle_copy(inspection, holder)
        || holds_for_an_ended_thread(inspection, members, holder.process)
}

/// Whether the holder is the process that started the server for a session, which has expired. It lives, and holds the
/// wires because it leaks them. A preforking manager's worker is that process, and not what forked the worker.
fn is_manager(inspection: &Inspection<'_>, holder: &Holder) -> bool {
    let owner = inspection.owner().filter(|owner| owner.is_alive()).map(Agent::main);
    let manager = owner.map(|owner| inspection.server.maker.unwrap_or(owner));
    manager == Some(holder.process)
}

/// Whether the holder is another server of the same dead owner, which inherited a descriptor. Nobody may use that
/// server; otherwise it could use the wire for its users.
fn is_sibling(inspection: &Inspection<'_>, holder: &Holder) -> bool {
    // A living owner may use the one server through the other.
    if holder.clients || inspection.owner().is_some_and(Agent::is_alive) {
        return false;
    }
    if inspection.makers.is_of_sibling(holder.process, inspection.server) {
        return true;
    }
    // For servers that existed before the daemon the owners are unknown. Servers of one past invocation of a unit
    // had the same owner.
    let ended = |unit: &Option<UnitFacts>| unit.as_ref().is_some_and(UnitFacts::left_behind);
    inspection.server.owner().is_none()
        && ended(&inspection.facts.unit)
        && ended(&holder.unit)
        && holder.unit.as_ref().map(|u| (&u.unit, &u.invocation_id))
            == inspection.facts.unit.as_ref().map(|u| (&u.unit, &u.invocation_id))
        && inspection.node(holder.process).is_some_and(|node| node.server.is_some())
}

/// Whether the holder is an idle forked copy of the killed owner: it has no server, session, listener or connection
/// of its own, and it did nothing since the owner exited. It is a pool worker that gets no more work.
fn is_idle_copy(inspection: &Inspection<'_>, holder: &Holder) -> bool {
    let (Some(owner), Some(node), Some(now)) =
        (inspection.owner(), inspection.node(holder.process), inspection.copy(holder.process))
    else {
        return false;
    };
    let Some(then) = owner.copies.iter().find(|copy| copy.process == holder.process) else { return false };
    owner.killed
        && is_copy(owner, node)
        && now.sid == owner.sid
        && !now.connected
        && !then.connected
        && now.work.is_some()
        && now.work == then.work
        && !inspection.makers.made_a_server(holder.process)
        && inspection.graph.children(holder.process).next().is_none()
}

/// Whether a process is a fork of the dead owner that never ran another program.
fn is_copy(owner: &Agent, node: &Node) -> bool {
    !owner.is_alive() && node.origin() == owner.origin
}
