//! What belongs to a server: the server proper, its launch chain, and what is tied to it.
//!
//! Lineage alone makes nobody part of a server: what left into a session of its own, joined with the server in none of its
//! standard streams, has been let go (a browser opened for a person, a daemon, a job of a hook). It is told and never ended.

use std::collections::BTreeSet;

use super::look::Look;
use crate::model::{ProcessFacts, ProcessId};

/// The processes of a server that live, by what they are to it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Members {
    /// The server proper and its launch chain: what was recognised, and what has its wire for standard input.
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
pub fn members(look: &Look<'_>) -> Members {
    let server = look.server;
    let mut members = Members::default();
    let mut others: Vec<&ProcessFacts> = Vec::new();
    for facts in &look.facts.processes {
        let process = facts.process;
        if server.wrappers().contains(&process) && !server.processes().contains(&process) {
            members.wrappers.insert(process);
        } else if is_core(look, facts) {
            members.core.insert(process);
            members.sessions.insert(facts.sid);
        } else {
            others.push(facts);
        }
    }
    // Once its end has begun the server proper may be gone: what shared its session then belongs to it still.
    let under_way = server.case().filter(|case| case.first_signal.is_some());
    if let Some(case) = under_way {
        members.sessions.extend(&case.sessions);
    }
    loop {
        let (tied, rest): (Vec<_>, Vec<_>) =
            others.into_iter().partition(|facts| is_tied(look, &members, facts));
        others = rest;
        if tied.is_empty() {
            break;
        }
        members.tied.extend(tied.into_iter().map(|facts| facts.process));
    }
    members.let_go.extend(others.into_iter().map(|facts| facts.process));
    members
}

/// The server proper, or a link of its launch chain: a rule recognised it, or it has the server's wire for standard input. One that
/// was born with that wire and has put it elsewhere since is one, too, unless it left the session: a daemon was born with it as well.
fn is_core(look: &Look<'_>, facts: &ProcessFacts) -> bool {
    let server = look.server;
    let was_born_with_it = || look.node(facts.process).is_some_and(|node| node.stdin() == server.stdin);
    server.recognised().contains(&facts.process)
        || (server.stdin.is_wire()
            && (facts.stdio.contains(&server.stdin) || (facts.sid == server.session && was_born_with_it())))
}

/// Whether a descendant is tied to what belongs to the server: by its session while the server proper lives, or by a descriptor
/// 0 to 2 that is joined with it, or was until the other end was closed.
fn is_tied(look: &Look<'_>, members: &Members, facts: &ProcessFacts) -> bool {
    // A service that goes on listening after the server proper ended by itself is not what is left of it.
    if look.server.proper_ended && facts.sockets.listens {
        return false;
    }
    members.sessions.contains(&facts.sid)
        || facts.joined.iter().any(|other| members.contains(*other))
        || facts.stdio.iter().any(|s| s.is_wire() && [look.server.stdin, look.server.stdout].contains(s))
        || was_joined(look, members, facts)
}

/// Whether one of its standard streams is still the pipe or socket that a process of the server made for it.
fn was_joined(look: &Look<'_>, members: &Members, facts: &ProcessFacts) -> bool {
    let Some(node) = look.node(facts.process) else { return false };
    // Of one that was found in /proc nobody knows who made its streams; it was seen to be joined with the server that is being ended.
    let was_tied = look.server.case().is_some_and(|case| case.tied.contains(&facts.process));
    let made_here = |process: ProcessId| members.contains(process) || look.server.ended().contains(&process);
    node.streams().iter().zip(&facts.stdio).zip(&node.exec.makers).any(|((then, now), maker)| {
        let made = || maker.as_ref().is_some_and(|maker| made_here(maker.process));
        now.is_wire() && then == now && (was_tied || made())
    })
}
