//! Servers that work in containers: which container is stopped in place of its client, and who may still use it.
//!
//! The client is never signalled. Its container may be stopped only if its engine told exactly one that fits, and if
//! the server is nothing but the client and the launchers around it. The conditions of the proof hold for the
//! container as for any server: nobody talks to it, nobody listens but the engine's own process, nobody is connected.

use std::collections::BTreeSet;

use super::{inspection::Inspection, membership::Members, uses::doubt};
use crate::{
    lineage::Node,
    model::{
        Container, ContainerFacts, Doubt, ProcessId,
        scene::{End, Holder},
    },
    reach::{Edge, Party, Rows, Source, Way, mark},
    recognise::{Role, container_client, forwards_to_engine, own_container, started_container},
};

pub fn has_client(inspection: &Inspection<'_>, members: &Members) -> bool {
    members.all().any(|id| inspection.node(id).is_some_and(Node::is_client))
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
    let only_launches =
        |node: &Node| node.is_client() || matches!(node.role(), Some(Role::Launcher | Role::Shell));
    let whole =
        members.tied.is_empty() && members.all().all(|id| inspection.node(id).is_some_and(only_launches));
    let started = members.all().find_map(|id| {
        let image = inspection.node(id)?.image()?;
        started_container(image).filter(|_| id == found.client)
    });
    if !is_certain(&started?, found) {
        return None;
    }
    let seen = found.inside.unread.is_empty() && found.first().is_some();
    (whole && seen).then_some(found)
}

/// Whether a process that the client created is only its container: the monitor and what works in it. The stop of the
/// container ends them.
pub fn is_part(found: &ContainerFacts, process: ProcessId) -> bool {
    let is_inside = || found.rows().any(|row| row.process == process);
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
    // Without a name another container of this image may be the one.
    let is_own = |image: &String| {
        let own = own_container(found.client, image, &found.others, &found.made);
        own.is_some_and(|own| own.id == found.container.id)
    };
    started.id.is_some() || started.name.is_some() || started.image.as_ref().is_some_and(is_own)
}

/// The doubts that remain about "nobody can use the container".
pub fn doubts(inspection: &Inspection<'_>, members: &Members) -> Vec<Doubt> {
    let Some(found) = to_stop(inspection, members) else { return Vec::new() };
    let is_engine = |process: ProcessId| {
        let role = found.inside.row(process).map(|row| inspection.rules.role(&row.image));
        matches!(role, Some(Role::ServiceManager | Role::Exempt { .. }))
    };
    let relays =
        |process| found.monitor.map_or_else(|| is_engine(process), |monitor: ProcessId| process == monitor);
    // Who runs a program in a container uses it.
    let of = |edge: Edge| if edge.way == Way::Depend { Doubt::Clients } else { doubt(edge) };
    let mut doubts: BTreeSet<Doubt> = uses(found, relays).into_iter().map(of).collect();
    // Somebody is attached to it, or runs a program in it.
    let is_named = |name: String| name == found.name || found.container.id.starts_with(&name);
    let visited = found.others.iter().any(|other| {
        let named = container_client(&other.image).and_then(|container| container.name.or(container.id));
        named.is_some_and(is_named) || forwards_to_engine(&other.image)
    });
    if found.shared || visited {
        doubts.insert(Doubt::Clients);
    }
    doubts.into_iter().collect()
}

/// The edges over which somebody can use the container. The client passes the end of its own input on; until that has
/// arrived, the engine's process holds the wire. Who `relays` its output is the engine's own process.
fn uses(found: &ContainerFacts, relays: impl Fn(ProcessId) -> bool) -> Vec<Edge> {
    let scene = &*found.inside;
    let [stdin, stdout, _] = found.first().map(|first| first.stdio).unwrap_or_default();
    let party = Party {
        members: found.processes.iter().copied().collect(),
        wires: [stdin, stdout],
        ..Party::default()
    };
    let reach = mark(&Rows::new(scene), &[party]);
    // A monitor waits for its end in poll(2), which holds a reference as somebody would who shares it.
    let is_at = |end: &End, edge: &Edge| end.endpoint == edge.endpoint && end.holder == Holder::Anybody;
    let has_row = |edge: &Edge| scene.ends.iter().any(|end| is_at(end, edge));
    let is_relayed = |edge: &Edge| match edge.from {
        Source::Root(process) => relays(process),
        Source::Anybody => found.monitor.is_some() && !has_row(edge),
        Source::Party(..) | Source::Unreadable => false,
    };
    reach.edges_to(0).filter(|edge| edge.way != Way::Output || !is_relayed(edge)).copied().collect()
}

/// What has changed from `before` until `now`, if that may mean that somebody uses the container, or that it is another
/// one. It was found to be unused `before`.
pub fn change(before: &ContainerFacts, now: &ContainerFacts) -> Option<&'static str> {
    let first = |facts: &ContainerFacts| facts.first().map(|row| row.process);
    let opted_out = |facts: &ContainerFacts| facts.rows().any(|row| row.opted_out);
    let is_same = before.container == now.container
        && before.name == now.name
        && before.image == now.image
        && before.monitor == now.monitor;
    if !is_same || first(before).is_none() || first(before) != first(now) {
        return Some("it is another container");
    }
    if !now.inside.unread.is_empty() || opted_out(now) != opted_out(before) {
        return Some("its processes are not seen as before");
    }
    let readers: BTreeSet<Source> = uses(before, |_| false).iter().map(|edge| edge.from).collect();
    let relays = |process: ProcessId| readers.contains(&Source::Root(process));
    let other = uses(now, relays).into_iter().map(|edge| edge.way).min();
    match other {
        Some(Way::Input) => Some("its standard input is open again"),
        Some(Way::Output) => Some("another process reads its standard output"),
        Some(Way::Use | Way::Depend) => Some("somebody uses it"),
        Some(Way::Trace) => Some("a debugger is attached"),
        None if now.shared => Some("somebody uses it"),
        None if now.others.iter().any(|other| !before.others.contains(other)) => {
            Some("another client of a container engine was started")
        }
        None => None,
    }
}
