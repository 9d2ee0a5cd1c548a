//! Who owns a server: found once, at its birth, from history and the wire.
//!
//! The process that made the wire talks to the server and is its owner. The records tell who that was ([`Maker`]), dead or alive; where
//! they do not, the processes that share the server's standard input are its launch chain, and the first creator with another
//! standard input made the wire. A shell that made the wire is its maker, whoever is above the shell: a shell's job is nobody's
//! server. An agent that is dead made nothing since.

use std::sync::Arc;

use super::Agents;
use crate::{
    lineage::{AgentKey, Graph, Maker, Node, Program, ServerKey},
    model::ProcessId,
    recognise::Role,
};

/// Whose a server is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Claim {
    /// It is part of a server that was there before: a deeper link of its launch chain.
    Joins(ServerKey),
    /// A process of that server made the wire: a bridge, and what it talks to is part of it.
    Inside(ServerKey, ProcessId),
    /// This agent's, which may have exited since it made the wire.
    Agent(AgentKey),
    /// This process made the wire, and no rule knows it: it becomes an agent.
    Implied(ProcessId),
    /// Such a process that has exited already.
    Gone(Arc<Maker>),
    /// It depends on what this process runs, which has to be asked for.
    Ask(ProcessId),
    /// Not known: it was adopted by init or by a service manager before it became what it is, or that started it.
    Adopted,
    /// It has no owner: a shell's job, or started on a terminal, by a service manager, or inside a multiplexer.
    Nobody,
}

/// The owner and what lies between.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ownership {
    /// Whose it is.
    pub claim: Claim,
    /// Launchers and shells with the same wire between it and its owner, nearest first.
    pub wrappers: Vec<ProcessId>,
}

/// All that the search looks at.
#[derive(Clone, Copy, Debug)]
struct Search<'a> {
    graph: &'a Graph,
    agents: &'a Agents,
    /// The process that was recognised.
    server: &'a Node,
}

/// Finds the owner of the server that `process` is.
pub fn trace(graph: &Graph, agents: &Agents, process: &Node) -> Ownership {
    let search = Search { graph, agents, server: process };
    let (wrappers, joined) = search.chain();
    let claim = match (joined, &process.exec.makers[0]) {
        (Some(key), _) => Claim::Joins(key),
        (None, Some(maker)) if maker.process == process.id => search.made_by_itself(maker, &wrappers),
        (None, Some(maker)) => search.made_by(maker),
        (None, None) => search.climb(&wrappers),
    };
    Ownership { claim, wrappers }
}

impl Search<'_> {
    /// The launchers and shells around the server that share its wire, nearest first; and the server whose launch chain that is.
    fn chain(&self) -> (Vec<ProcessId>, Option<ServerKey>) {
        let mut wrappers = Vec::new();
        for node in self.graph.ancestors(self.server.id) {
            let launches = matches!(node.role(), Some(Role::Launcher | Role::Shell));
            if !launches || node.protected || node.stdin() != self.server.stdin() {
                break;
            }
            // One launch chain on one wire is one server.
            if let Some(key) = node.wraps.or(node.server) {
                return (wrappers, Some(key));
            }
            wrappers.push(node.id);
        }
        (wrappers, None)
    }

    /// The records tell who made the wire.
    fn made_by(&self, maker: &Arc<Maker>) -> Claim {
        if let Some(node) = self.graph.get(maker.process) {
            return self.belongs_to(node, &maker.program);
        }
        // It has ended. A dead agent owns what it made itself, not what is started below it later.
        if let Some(key) = self.agent_of(maker) {
            return Claim::Agent(key);
        }
        match maker.program.role {
            Role::ServiceManager => Claim::Adopted,
            Role::Launcher | Role::Shell | Role::Multiplexer | Role::Exempt { .. } => Claim::Nobody,
            Role::Agent { .. } | Role::Server { .. } | Role::Other { .. } if self.server.protected => {
                Claim::Nobody
            }
            Role::Agent { .. } | Role::Server { .. } | Role::Other { .. } => {
                if self.server.stdout().is_wire() { Claim::Gone(Arc::clone(maker)) } else { Claim::Nobody }
            }
        }
    }

    /// The process seems to have made its own wire. One that was found in /proc between its fork and its exec only looks so: it ran
    /// what its creator runs. Any other is nobody's server: nobody can be its own owner.
    fn made_by_itself(&self, maker: &Maker, wrappers: &[ProcessId]) -> Claim {
        let creator = self.server.creator.and_then(|creator| self.graph.get(creator));
        match creator.and_then(Node::image) {
            Some(image) if *image == maker.program.image => self.climb(wrappers),
            _ => Claim::Nobody,
        }
    }

    /// The agent that ran as `maker`, or as what `maker` is a copy of.
    fn agent_of(&self, maker: &Maker) -> Option<AgentKey> {
        let key = self.server.agent?;
        let agent = self.agents.get(key)?;
        (agent.origin == maker.origin || agent.main() == maker.process).then_some(key)
    }

    /// The wire was made by this living process, which ran this program then.
    fn belongs_to(&self, node: &Node, program: &Program) -> Claim {
        if node.protected {
            return Claim::Nobody;
        }
        if node.id.pid == 1 {
            return Claim::Adopted;
        }
        if let Some(agent) = runs_agent(node, self.agents) {
            return Claim::Agent(agent);
        }
        match program.role {
            Role::ServiceManager => return Claim::Adopted,
            Role::Launcher | Role::Shell | Role::Multiplexer | Role::Exempt { .. } => return Claim::Nobody,
            Role::Server { .. } | Role::Agent { .. } | Role::Other { .. } => {}
        }
        match node.server {
            Some(server) => Claim::Inside(server, node.id),
            None if self.server.stdout().is_wire() => Claim::Implied(node.id),
            None => Claim::Nobody,
        }
    }

    /// No record tells who made the wire: the nearest creator with another standard input did.
    fn climb(&self, wrappers: &[ProcessId]) -> Claim {
        for node in self.graph.ancestors(self.server.id) {
            if node.protected {
                return Claim::Nobody;
            }
            if node.id.pid == 1 {
                return Claim::Adopted;
            }
            if let Some(agent) = runs_agent(node, self.agents) {
                return Claim::Agent(agent);
            }
            let Some(program) = &node.exec.program else { return Claim::Ask(node.id) };
            if node.stdin() == self.server.stdin() && program.role != Role::ServiceManager {
                // It hands its own standard input down, so it does not talk to the server.
                if let Some(server) = node.server {
                    return Claim::Joins(server);
                }
                continue;
            }
            return self.belongs_to(node, program);
        }
        // The creators that are left are not tracked, or dead: an agent that was killed while this process was on
        // its way to its exec is the owner still.
        let made = |key: &AgentKey| {
            let top = wrappers.last().and_then(|top| self.graph.get(*top)).unwrap_or(self.server);
            self.agents
                .get(*key)
                .is_some_and(|a| a.is_alive() || (top.witnessed && top.creator == Some(a.main())))
        };
        self.server.agent.filter(made).map_or(Claim::Nobody, Claim::Agent)
    }
}

/// The living agent that this process is, or is a copy of.
fn runs_agent(node: &Node, agents: &Agents) -> Option<AgentKey> {
    if let Some(key) = agents.of(node.id) {
        return Some(key);
    }
    let key = node.agent?;
    agents.get(key).filter(|a| a.is_alive() && a.origin == node.origin()).map(|_| key)
}
