//! The world: which processes, agents, servers and runs exist, and which belongs to which. Pure.
//!
//! [`World`] owns all of it, and nothing else changes it. Used by `verdict` and `engine` only.

mod agents;
mod membership;
mod owner;
mod processes;
mod runs;
mod servers;
#[cfg(test)]
mod tests;
mod tools;
mod view;
mod watch;

pub use agents::Agent;
pub use membership::Exited;
pub use owner::{Claim, feeder, trace};
pub use runs::{Held, Runs, TopMost};
pub use servers::{NewServer, Server, Spawner};
pub use tools::is_run_by;
pub use view::{agent_as_server, agent_view, process_view, short_view};
pub use watch::{Accounts, Look, Watch, accounts, served};

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use crate::{
    lineage::{AgentKey, Graph, Node, ServerKey},
    model::{ProcessId, SHOWN, ServerView},
};

#[derive(Debug, Default)]
pub struct World {
    graph: Graph,
    agents: BTreeMap<AgentKey, Agent>,
    /// The living agents.
    by_main: FxHashMap<ProcessId, AgentKey>,
    /// How many dead agents remained when some were last forgotten.
    dead_kept: usize,
    last_agent: Option<AgentKey>,
    servers: BTreeMap<ServerKey, Server>,
    /// How many servers there ever were.
    servers_ever: u32,
    runs: Runs,
}

impl World {
    pub const fn graph(&self) -> &Graph {
        &self.graph
    }

    pub const fn servers(&self) -> &BTreeMap<ServerKey, Server> {
        &self.servers
    }

    /// All servers, the oldest first: for what may change them.
    pub fn server_keys(&self) -> Vec<ServerKey> {
        self.servers.keys().copied().collect()
    }

    pub const fn runs(&self) -> &Runs {
        &self.runs
    }

    pub const fn runs_mut(&mut self) -> &mut Runs {
        &mut self.runs
    }

    pub fn node(&self, id: ProcessId) -> Option<&Node> {
        self.graph.get(id)
    }

    pub fn server(&self, key: ServerKey) -> Option<&Server> {
        self.servers.get(&key)
    }

    pub fn server_mut(&mut self, key: ServerKey) -> Option<&mut Server> {
        self.servers.get_mut(&key)
    }

    pub fn owner(&self, key: ServerKey) -> Option<&Agent> {
        self.owner_of(self.server(key)?)
    }

    pub fn owner_of(&self, server: &Server) -> Option<&Agent> {
        server.owner.and_then(|owner| self.agent(owner))
    }

    /// Whether this process made the wire of a server that is alive.
    pub fn made_a_server(&self, process: ProcessId) -> bool {
        self.servers.values().any(|server| server.maker == Some(process))
    }

    pub fn view(&self, key: ServerKey) -> Option<ServerView> {
        self.servers.get(&key).map(|server| short_view(server, &self.graph, SHOWN))
    }

    /// The server in the form that events show. This view is stored, and the end of the server is reported with it.
    pub fn show(&mut self, key: ServerKey) -> Option<ServerView> {
        let server = self.servers.get_mut(&key)?;
        let view = short_view(server, &self.graph, SHOWN);
        server.last_view = Some(view.clone());
        Some(view)
    }
}
