//! All that a verdict rests on: what was witnessed, and what the host says now.

use crate::{
    lineage::{Graph, Node},
    model::{CopyFacts, Holder, ProcessFacts, ProcessId, ServerFacts, WireState},
    recognise::Rules,
    world::{Agent, Agents, Server},
};

use super::membership::Members;

/// All that a verdict on one server rests on.
#[derive(Clone, Copy, Debug)]
pub struct Inspection<'a> {
    /// The lineage.
    pub graph: &'a Graph,
    /// The rules.
    pub rules: &'a Rules,
    /// The agents.
    pub agents: &'a Agents,
    /// Whether this process made the wire of a server that is alive.
    pub makers: &'a dyn Makers,
    /// The server.
    pub server: &'a Server,
    /// What the host says.
    pub facts: &'a ServerFacts,
    /// Whether servers of another user than their owner's may be ended.
    pub other_uids: bool,
    /// Whether orphand only observes, and ends nothing.
    pub observe: bool,
}

/// Who started servers.
pub trait Makers: std::fmt::Debug {
    /// Whether this process made the wire of a server that is alive.
    fn made_a_server(&self, process: ProcessId) -> bool;
    /// Whether it is part of another server of the same owner: of its launch chain, or the server's main process.
    fn is_of_sibling(&self, process: ProcessId, server: &Server) -> bool;
}

impl<'a> Inspection<'a> {
    /// The owner, if one is known.
    pub fn owner(&self) -> Option<&'a Agent> {
        self.server.owner().and_then(|key| self.agents.get(key))
    }

    /// What the host says about the processes that belong to the server.
    pub fn processes(&self, members: &Members) -> impl Iterator<Item = &'a ProcessFacts> {
        self.facts.processes.iter().filter(|facts| members.contains(facts.process))
    }

    /// What the host says about a copy of the owner.
    pub fn copy(&self, process: ProcessId) -> Option<&'a CopyFacts> {
        self.facts.copies.iter().find(|copy| copy.process == process)
    }

    /// The node of a process.
    pub fn node(&self, process: ProcessId) -> Option<&'a Node> {
        self.graph.get(process)
    }
}

/// Who holds the other end of a wire, as far as that was seen.
pub fn holders(wire: &WireState) -> &[Holder] {
    match wire {
        WireState::Held { holders, .. } => holders,
        WireState::HungUp | WireState::Unknown => &[],
    }
}
