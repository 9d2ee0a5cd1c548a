//! Servers that work in containers: which container is stopped in place of its client, and who may still use it.
//!
//! The client is never signalled. Its container may be stopped only if its engine told exactly one that fits, and if
//! the server is nothing but the client and the launchers around it. The conditions of the proof hold for the
//! container as for any server: nobody talks to it, nobody listens but the engine's own process, nobody is connected.

use super::{inspection::Inspection, membership::Members};
use crate::{
    lineage::Node,
    model::{Container, ContainerFacts, Doubt, Holder, OtherClient, ProcessId, WireState},
    recognise::{Role, container_client, started_container},
};

/// Clients that were started within this time of each other may have each other's containers, in clock ticks: 20 s,
/// twice the time in which a container is made.
const AT_ABOUT: u64 = 2000;

/// Whether a process of the server is the client of a container.
pub fn has_client(inspection: &Inspection<'_>, members: &Members) -> bool {
    members.all().any(|id| inspection.node(id).and_then(Node::image).and_then(container_client).is_some())
}

/// Whether the server was found in a container, and nobody knows who started it. Its engine may have started it, and a
/// signal would be an exit that the engine cannot explain: a restart policy starts it again.
pub fn was_found_inside(inspection: &Inspection<'_>) -> bool {
    let is_known = inspection.owner().is_some_and(|owner| !owner.name.is_empty());
    inspection.facts.enclosing.is_some() && !is_known
}

/// The container to stop; `None` if that is not certain, or if the server has no container.
pub fn to_stop<'a>(inspection: &Inspection<'a>, members: &Members) -> Option<&'a ContainerFacts> {
    let found = inspection.facts.container.as_deref()?;
    let only_launches = |id| {
        let node = inspection.node(id);
        node.and_then(Node::image).and_then(container_client).is_some()
            || node.and_then(Node::role).is_some_and(|role| matches!(role, Role::Launcher | Role::Shell))
    };
    let whole = members.tied.is_empty() && members.all().all(only_launches);
    let started = members.all().find_map(|id| {
        let image = inspection.node(id)?.image()?;
        started_container(image).filter(|_| id == found.client)
    });
    if !is_certain(&started?, found) {
        return None;
    }
    let seen = found.inside.blind.is_none() && !found.inside.processes.is_empty();
    (whole && seen).then_some(found)
}

/// Whether a process that the client created is only its container: the monitor and what works in it. The stop of the
/// container ends them.
pub fn is_part(found: &ContainerFacts, process: ProcessId) -> bool {
    let is_inside = || found.inside.processes.iter().any(|one| one.process == process);
    found.monitor.is_some_and(|monitor| monitor == process || is_inside())
}

/// Whether no other container may be the one that this client started.
pub fn is_certain(started: &Container, found: &ContainerFacts) -> bool {
    if started.id.as_ref().is_some_and(|id| *id != found.container.id) {
        return false;
    }
    // A connection to the container's own monitor belongs to no other container.
    if found.monitor.is_some() {
        return true;
    }
    // Without a name another container of this image, made at about the same time, may be the one.
    let alike = |other: &OtherClient| {
        let apart = other.process.start.abs_diff(found.client.start);
        apart <= AT_ABOUT && started_container(&other.image).is_some_and(|other| other.image == started.image)
    };
    started.id.is_some() || started.name.is_some() || !found.others.iter().any(alike)
}

/// The doubts that remain about "nobody can use the container".
pub fn doubts(inspection: &Inspection<'_>, members: &Members) -> Vec<Doubt> {
    let Some(found) = to_stop(inspection, members) else { return Vec::new() };
    let ContainerFacts { inside, shared, others, .. } = found;
    let mut doubts = Vec::new();
    // The client passes the end of its own input on. Until that has arrived, the engine's process holds the wire.
    match inside.stdin {
        WireState::HungUp => {}
        WireState::Unknown => doubts.push(Doubt::WireUnknown),
        WireState::Held { .. } => doubts.push(Doubt::WireHeld),
    }
    match &inside.stdout {
        WireState::HungUp => {}
        WireState::Unknown => doubts.push(Doubt::WireUnknown),
        WireState::Held { holders, unseen } => {
            let relays = |holder: &Holder| match found.monitor {
                Some(monitor) => holder.process == monitor,
                None => {
                    matches!(inspection.rules.role(&holder.image), Role::ServiceManager | Role::Exempt { .. })
                }
            };
            let relayed = holders.iter().all(|holder| {
                inside.processes.iter().any(|one| one.process == holder.process) || relays(holder)
            });
            if *unseen || !relayed {
                doubts.push(Doubt::StdoutRead);
            }
        }
    }
    let inner = |process| inside.processes.iter().any(|one| one.process == process);
    let connected = inside
        .processes
        .iter()
        .any(|one| one.sockets.clients || one.sockets.inside.iter().any(|client| !inner(*client)));
    // Somebody is attached to it, or runs a program in it.
    let is_named = |name: String| name == found.name || found.container.id.starts_with(&name);
    let visited = others.iter().any(|other| {
        let named = container_client(&other.image).and_then(|container| container.name.or(container.id));
        named.is_some_and(is_named)
    });
    if *shared || connected || visited {
        doubts.push(Doubt::Clients);
    }
    if inside.processes.iter().any(|one| one.traced) {
        doubts.push(Doubt::Traced);
    }
    doubts
}
