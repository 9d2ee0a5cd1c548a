//! Evidence and guards: what a look at the host means for a server whose owner is gone.
//!
//! The one place where "orphan" is concluded. Every doubt becomes a guard.

use std::collections::BTreeSet;

use super::{Agent, Agents, Server};
use crate::{
    lineage::{Graph, Node},
    model::{Evidence, Guard, Holder, ProcessId, ServerFacts, UnitFacts, WireState},
    recognise::{Role, Rules},
};

/// All that an examination looks at.
#[derive(Clone, Copy, Debug)]
pub struct Looks<'a> {
    /// The lineage.
    pub graph: &'a Graph,
    /// The rules.
    pub rules: &'a Rules,
    /// The agents.
    pub agents: &'a Agents,
    /// The server.
    pub server: &'a Server,
    /// What the host says.
    pub facts: &'a ServerFacts,
    /// Whether servers of another user than their owner's may be ended.
    pub other_uids: bool,
    /// Whether orphand may only look.
    pub observe: bool,
}

/// What an examination found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Finding {
    /// A living process that talks to the server: it is no orphan.
    pub host: Option<Holder>,
    /// What speaks for "orphan".
    pub evidence: Vec<Evidence>,
    /// What forbids to end it.
    pub guards: Vec<Guard>,
    /// Copies of the dead owner (forked pool workers) that hold the wire open: left behind with the server.
    pub left_behind: Vec<ProcessId>,
}

/// Examines a server whose owner is gone.
pub fn examine(looks: &Looks<'_>) -> Finding {
    let holders = match &looks.facts.stdin {
        WireState::Held { holders, .. } => holders.as_slice(),
        _ => &[],
    };
    let outside: Vec<&Holder> = holders.iter().filter(|h| !looks.server.contains(h.process)).collect();
    // Who asks to end a server that is in use knows that it is.
    if let Some(host) = outside.iter().find(|h| !looks.server.asked && talks(looks, h)) {
        return Finding { host: Some((*host).clone()), ..Finding::default() };
    }
    let left_behind = outside.iter().filter(|h| is_copy_of_owner(looks, h)).map(|h| h.process).collect();
    let mut evidence = Vec::new();
    match looks.server.owner.map(|owner| looks.agents.get(owner)) {
        // The owner of a server that a person asks to end may live.
        Some(owner) if looks.server.asked && owner.is_some_and(Agent::is_alive) => {}
        Some(_) => evidence.push(Evidence::OwnerExited),
        None => evidence.push(Evidence::NoOwner),
    }
    if looks.facts.stdin == WireState::HungUp {
        evidence.push(Evidence::StdinHangup);
    }
    if let Some(unit) = &looks.facts.unit {
        if unit.is_stale() {
            evidence.push(Evidence::StaleInvocation);
        }
        if unit.is_stopped() {
            evidence.push(Evidence::UnitStopped);
        }
    }
    Finding { host: None, evidence, guards: guards(looks), left_behind }
}

/// Whether this holder of the wire's other end is who the server works for. Its host made the wire before
/// the server was born; whoever is younger merely inherited a descriptor, unless it is an agent in its own
/// right (a successor that was handed its predecessor's servers).
fn talks(looks: &Looks<'_>, holder: &Holder) -> bool {
    if is_copy_of_owner(looks, holder) {
        // An owner that ended of its own accord may have left its work to a copy; one that was killed did not.
        return !looks.server.owner.and_then(|k| looks.agents.get(k)).is_some_and(|a| a.killed);
    }
    if is_below(looks, holder) {
        // What the server created may have inherited a descriptor; it is not who the server works for.
        return false;
    }
    let node = looks.graph.get(holder.process);
    if node.is_some_and(|n| n.server.or(n.wraps).is_some()) {
        // Another server inherited it by accident. (A bridge to this server would be part of this server.)
        return false;
    }
    let older = holder.process.start <= looks.server.id.start;
    older
        || looks.agents.of(holder.process).is_some()
        || matches!(looks.rules.role(&holder.image), Role::Agent { .. })
}

fn is_below(looks: &Looks<'_>, holder: &Holder) -> bool {
    looks.graph.ancestors(holder.process).any(|n| looks.server.contains(n.id))
}

/// A fork of the dead owner that never ran another program.
fn is_copy_of_owner(looks: &Looks<'_>, holder: &Holder) -> bool {
    let owner = looks.server.owner.and_then(|k| looks.agents.get(k));
    let node = looks.graph.get(holder.process);
    owner
        .zip(node)
        .is_some_and(|(owner, node)| !owner.is_alive() && node.origin.process == owner.origin.process)
}

/// What forbids to end the server now.
fn guards(looks: &Looks<'_>) -> Vec<Guard> {
    let mut guards = BTreeSet::new();
    let Looks { server, facts, .. } = looks;
    if looks.observe {
        guards.insert(Guard::Observe);
    }
    // The manager started it, or adopted it from what runs now: which of the two cannot be told from outside.
    if server.owner.is_none() && facts.unit.as_ref().is_some_and(|unit| !unit.left_behind()) {
        guards.insert(Guard::OwnUnit);
    }
    if facts.opted_out {
        guards.insert(Guard::OptedOut);
    }
    if facts.processes.iter().any(|p| p.sockets.clients) {
        guards.insert(Guard::Listening);
    }
    let in_progress = server.strongest_signal().is_some();
    let left_behind = facts.unit.as_ref().is_some_and(UnitFacts::left_behind);
    let unowned = server.owner.is_none() && !left_behind && !nobody_can_talk(looks);
    let strangers = held_by_stranger(looks, left_behind);
    if unowned || strangers || (!in_progress && !wire_is_known(looks)) {
        guards.insert(Guard::WeakEvidence);
    }
    // Of an owner that ended before anybody could ask what it was neither program nor user is known.
    let owner = server.owner.and_then(|k| looks.agents.get(k));
    if !left_behind && owner.is_some_and(|a| a.name.is_empty()) {
        guards.insert(Guard::WeakEvidence);
    }
    if server.disowned || owner.is_some_and(|a| a.exempt) {
        guards.insert(Guard::ExemptRule);
    }
    if server.asked {
        guards.retain(|guard| !matches!(guard, Guard::Observe | Guard::WeakEvidence));
    }
    let owner_uid = owner.filter(|a| !a.name.is_empty()).map(|a| a.uid);
    if !looks.other_uids && facts.processes.iter().any(|p| owner_uid.is_some_and(|u| u != p.uid)) {
        guards.insert(Guard::OtherUid);
    }
    for node in at_and_below(looks) {
        if looks.agents.of(node.id).is_some() {
            guards.insert(Guard::LiveAgentBelow);
        }
        let role = node.image.as_ref().map(|image| looks.rules.role(image));
        match role {
            Some(Role::Exempt { .. }) => {
                guards.insert(Guard::ExemptRule);
            }
            Some(Role::Multiplexer) => {
                guards.insert(Guard::Multiplexer);
            }
            _ if node.protected => {
                guards.insert(Guard::ExemptRule);
            }
            _ => {}
        }
    }
    guards.into_iter().collect()
}

/// A server that was there before us and whose owner nobody knows: hung up, it can never be talked to again, if it talks through
/// that wire at all (both streams are wires, and it listens nowhere) and is nobody's child (a person's pipeline is).
fn nobody_can_talk(looks: &Looks<'_>) -> bool {
    let stdout_is_wire =
        looks.server.recognised.iter().filter_map(|p| looks.graph.get(*p)).all(|n| n.stdout.is_wire());
    looks.facts.stdin == WireState::HungUp
        && looks.server.adopted
        && stdout_is_wire
        && !looks.facts.processes.iter().any(|p| p.sockets.listens)
}

/// Whether somebody holds the other end whose history is not known: it may be the owner, gone into the
/// background before anybody followed it. Where the server's unit has gone on without it, those that it has gone on without, too,
/// are no such: but whoever is of the present may have been handed what was left.
fn held_by_stranger(looks: &Looks<'_>, left_behind: bool) -> bool {
    match &looks.facts.stdin {
        WireState::Held { holders, .. } => holders.iter().any(|h| {
            if looks.server.contains(h.process) || is_below(looks, h) {
                return false;
            }
            if left_behind && h.unit.as_ref().is_some_and(UnitFacts::left_behind) {
                return false;
            }
            looks.graph.get(h.process).is_none_or(|n| !n.witnessed)
        }),
        _ => false,
    }
}

/// The wire tells nothing only if nobody could look. Where the server proper has ended, its wire is gone
/// with it, and what is left belongs to nobody else.
fn wire_is_known(looks: &Looks<'_>) -> bool {
    let proper_lives = looks.facts.processes.iter().any(|p| looks.server.recognised.contains(&p.process));
    match &looks.facts.stdin {
        WireState::HungUp => true,
        WireState::Held { holders, .. } => !holders.is_empty(),
        WireState::Unknown => !proper_lives,
    }
}

/// The server's processes and all that they created and that is in the graph.
fn at_and_below<'a>(looks: &Looks<'a>) -> Vec<&'a Node> {
    let Looks { graph, server, .. } = *looks;
    let mut found = BTreeSet::new();
    for process in &server.processes {
        if found.insert(*process) {
            found.extend(graph.descendants(*process));
        }
    }
    found.into_iter().filter_map(|id| graph.get(id)).collect()
}
