//! What belongs to a server: the server's main process, its launch chain, and what is tied to it.
//!
//! Lineage alone makes nobody part of a server: what left into a session of its own, joined with the server in none of its
//! standard streams, has been let go (a browser opened for a person, a daemon, a job of a hook). It is told and never ended.

use std::collections::BTreeSet;

use super::inspection::Inspection;
use crate::model::{ProcessFacts, ProcessId};

/// The processes of a server that live, by what they are to it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Members {
    /// The server's main process and its launch chain: what was recognised, and what has its wire for standard input.
    pub core: BTreeSet<ProcessId>,
    /// Shells and launchers around it.
    pub wrappers: BTreeSet<ProcessId>,
    /// Descendants that are tied to it.
    pub tied: BTreeSet<ProcessId>,
    /// Descendants that it has let go.
    pub let_go: BTreeSet<ProcessId>,
    /// The sessions of its core.
    pub sessions: BTreeSet<u32>,
}

impl Members {
    /// Whether the process belongs to the server.
    pub fn contains(&self, process: ProcessId) -> bool {
        self.core.contains(&process) || self.wrappers.contains(&process) || self.tied.contains(&process)
    }

    /// All that belongs to it.
    pub fn all(&self) -> impl Iterator<Item = ProcessId> + '_ {
        self.core.iter().chain(&self.wrappers).chain(&self.tied).copied()
    }
}

/// Sorts the living processes of a server.
pub fn members(inspection: &Inspection<'_>) -> Members {
    let server = inspection.server;
    let mut members = Members::default();
    let mut others: Vec<&ProcessFacts> = Vec::new();
    for facts in &inspection.facts.processes {
        let process = facts.process;
        if server.wrappers().contains(&process) && !server.processes().contains(&process) {
            members.wrappers.insert(process);
        } else if is_core(inspection, facts) {
            members.core.insert(process);
            members.sessions.insert(facts.sid);
        } else {
            others.push(facts);
        }
    }
    // Once its end has begun the server's main process may be gone: what shared its session then belongs to it still.
    let attempt = server.phase.orphan().map(|verdict| &verdict.attempt);
    if let Some(attempt) = attempt.filter(|attempt| attempt.first_signal.is_some()) {
        members.sessions.extend(&attempt.sessions);
    }
    loop {
        let (tied, rest): (Vec<_>, Vec<_>) =
            others.into_iter().partition(|facts| is_tied(inspection, &members, facts));
        others = rest;
        if tied.is_empty() {
            break;
        }
        members.tied.extend(tied.into_iter().map(|facts| facts.process));
    }
    members.let_go.extend(others.into_iter().map(|facts| facts.process));
    members
}

/// The server's main process, or a link of its launch chain: a rule recognised it, or it has the server's wire for standard input. One that
/// was born with that wire and has put it elsewhere since is one, too, unless it left the session: a daemon was born with it as well.
fn is_core(inspection: &Inspection<'_>, facts: &ProcessFacts) -> bool {
    let server = inspection.server;
    let was_born_with_it = || inspection.node(facts.process).is_some_and(|node| node.stdin() == server.stdin);
    server.recognised().contains(&facts.process)
        || (server.stdin.is_wire()
            && (facts.stdio.contains(&server.stdin) || (facts.sid == server.session && was_born_with_it())))
}

/// Whether a descendant is tied to what belongs to the server: by its session while the server's main process lives, or by a descriptor
/// 0 to 2 that is joined with it, or was until the other end was closed.
fn is_tied(inspection: &Inspection<'_>, members: &Members, facts: &ProcessFacts) -> bool {
    // A service that goes on listening after the server's main process ended by itself is not what is left of it.
    if inspection.server.main_ended && facts.sockets.listens {
        return false;
    }
    members.sessions.contains(&facts.sid)
        || facts.joined.iter().any(|other| members.contains(*other))
        || facts
            .stdio
            .iter()
            .any(|s| s.is_wire() && [inspection.server.stdin, inspection.server.stdout].contains(s))
        || was_joined(inspection, members, facts)
}

/// Whether one of its standard streams is still the pipe or socket that a process of the server made for it.
fn was_joined(inspection: &Inspection<'_>, members: &Members, facts: &ProcessFacts) -> bool {
    let Some(node) = inspection.node(facts.process) else { return false };
    // Of one that was found in /proc nobody knows who made its streams; it was seen to be joined with the server that is being ended.
    let orphan = inspection.server.phase.orphan();
    let was_tied = orphan.is_some_and(|verdict| verdict.attempt.tied.contains(&facts.process));
    let made_here =
        |process: ProcessId| members.contains(process) || inspection.server.ended().contains(&process);
    node.streams().iter().zip(&facts.stdio).zip(&node.exec.makers).any(|((then, now), maker)| {
        let made = || maker.as_ref().is_some_and(|maker| made_here(maker.process));
        now.is_wire() && then == now && (was_tied || made())
    })
}
