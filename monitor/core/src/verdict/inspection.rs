//! The input of a verdict: what was witnessed, and what the host reports now.

use std::time::Duration;

use crate::{
    case::Reason,
    lineage::{Graph, Node},
    model::{CopyFacts, Holder, ProcessFacts, ProcessId, ServerFacts, WireState},
    recognise::Rules,
    world::{Agent, Agents, Server},
};

use super::membership::Members;

/// The input of a verdict on one server.
#[derive(Clone, Copy, Debug)]
pub struct Inspection<'a> {
    /// The lineage graph.
    pub graph: &'a Graph,
    /// The rules in effect.
    pub rules: &'a Rules,
    /// All agents.
    pub agents: &'a Agents,
    /// Which processes started a server, or are part of one.
    pub makers: &'a dyn Makers,
    /// The server to judge.
    pub server: &'a Server,
    /// What the host reports about it.
    pub facts: &'a ServerFacts,
    /// Whether servers of another user than their owner's may be ended.
    pub other_uids: bool,
    /// Whether orphand only observes and ends nothing.
    pub observe: bool,
    /// For how long a server must have done nothing whose living owner may still use it.
    pub rest: Duration,
}

/// Which processes started a server, and which are part of one.
pub trait Makers: std::fmt::Debug {
    /// Whether this process made the wire of a server that is alive.
    fn made_a_server(&self, process: ProcessId) -> bool;
    /// Whether the process is the main process of another server of the same owner, or part of its launch chain.
    fn is_of_sibling(&self, process: ProcessId, server: &Server) -> bool;
}

impl<'a> Inspection<'a> {
    /// The owner, if one is known.
    pub fn owner(&self) -> Option<&'a Agent> {
        self.server.owner().and_then(|key| self.agents.get(key))
    }

    /// Whether the case is that its session has expired, and the owner lives.
    pub fn is_about_session(&self) -> bool {
        let reason = self.server.phase.cause().map(|cause| cause.reason);
        reason == Some(Reason::SessionExpired) && self.owner().is_some_and(Agent::is_alive)
    }

    /// Whether the case was opened because the owner, which is alive, abandoned the server.
    pub fn is_abandoned(&self) -> bool {
        self.server.phase.cause().is_some_and(|cause| cause.reason == Reason::Abandoned)
    }

    /// What the host reports about the processes that belong to the server.
    pub fn processes(&self, members: &Members) -> impl Iterator<Item = &'a ProcessFacts> {
        self.facts.processes.iter().filter(|facts| members.contains(facts.process))
    }

    /// What the host reports about a forked copy of the owner.
    pub fn copy(&self, process: ProcessId) -> Option<&'a CopyFacts> {
        self.facts.copies.iter().find(|copy| copy.process == process)
    }

    /// The graph node of a process.
    pub fn node(&self, process: ProcessId) -> Option<&'a Node> {
        self.graph.get(process)
    }
}

/// The processes that hold the other end of a wire, as far as that was seen.
pub fn holders(wire: &WireState) -> &[Holder] {
    match wire {
        WireState::Held { holders, .. } => holders,
        WireState::HungUp | WireState::Unknown => &[],
    }
}
