//! Who owns a server: found once, at its birth, from history and the wire.
//!
//! The processes that share the server's standard input are its launch chain. The first creator with
//! another standard input made the wire: it talks to the server, it is the owner.

use super::Agents;
use crate::{
    lineage::{AgentKey, Graph, Node, ServerKey},
    model::{Image, ProcessId},
    recognise::{Role, Rules},
};

/// Whose a server is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    /// It is part of a server that was there before: a bridge, or a deeper link of a launch chain.
    Joins(ServerKey),
    /// This agent's.
    Agent(AgentKey),
    /// This process made the wire, and no rule knows it: it becomes an agent.
    Implied(ProcessId),
    /// It cannot be told before it is known what this process runs.
    Ask(ProcessId),
    /// Not known: it was adopted by init or by a service manager before it became what it is, or that started it.
    Adopted,
    /// Nobody's: started on a terminal, by a service manager, inside a multiplexer.
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

/// Finds the owner of the server that `process` is.
pub fn trace(graph: &Graph, rules: &Rules, agents: &Agents, process: &Node) -> Ownership {
    let mut wrappers = Vec::new();
    let claim = climb(graph, rules, agents, process, &mut wrappers);
    Ownership { claim, wrappers }
}

fn climb(
    graph: &Graph,
    rules: &Rules,
    agents: &Agents,
    process: &Node,
    wrappers: &mut Vec<ProcessId>,
) -> Claim {
    let mut chain = true;
    for node in graph.ancestors(process.id) {
        if node.protected {
            return Claim::Nobody;
        }
        if node.id.pid == 1 {
            return Claim::Adopted;
        }
        if let Some(server) = node.server {
            return Claim::Joins(server);
        }
        if let Some(agent) = runs_agent(node, agents) {
            return Claim::Agent(agent);
        }
        let Some(image) = &node.image else { return Claim::Ask(node.id) };
        let shares = node.stdin == process.stdin;
        match rules.role(image) {
            Role::Steward => return Claim::Adopted,
            Role::Multiplexer | Role::Exempt { .. } => return Claim::Nobody,
            Role::Launcher | Role::Shell => {
                chain &= shares;
                if let (true, Some(server)) = (chain, node.wraps) {
                    // One launch chain on one wire is one server.
                    return Claim::Joins(server);
                }
                if chain {
                    wrappers.push(node.id);
                }
            }
            // Some unknown wrapper: it hands its own standard input down, so it is not who talks.
            Role::Other { .. } | Role::Server { .. } | Role::Agent { .. } if shares => chain = false,
            Role::Other { .. } | Role::Server { .. } | Role::Agent { .. } => {
                return if process.stdout.is_wire() { Claim::Implied(node.id) } else { Claim::Nobody };
            }
        }
    }
    // The creators that are left are not tracked, or dead: an agent that was killed while this process was on
    // its way to its exec is the owner still.
    process.agent.filter(|a| agents.get(*a).is_some()).map_or(Claim::Nobody, Claim::Agent)
}

/// The living agent that this process is, or is a copy of.
fn runs_agent(node: &Node, agents: &Agents) -> Option<AgentKey> {
    if let Some(key) = agents.of(node.id) {
        return Some(key);
    }
    let key = node.agent?;
    agents.get(key).filter(|a| a.is_alive() && a.origin == node.origin).map(|_| key)
}

/// The name of an agent that no rule knows.
pub fn program_name(rules: &Rules, image: &Image) -> String {
    match rules.role(image) {
        Role::Agent { name, .. } | Role::Server { name, .. } | Role::Other { name } => name,
        _ => image.exe.rsplit('/').next().unwrap_or_default().to_owned(),
    }
}
