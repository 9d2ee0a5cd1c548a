//! What one look at the host found: the answer of `orphand scan` and `orphand tree`. Plain data, filled from
//! the engine's state.

use serde::{Deserialize, Serialize};

use super::{AgentView, Doubt, Evidence, Guard, ProcessId, RunReport, ServerView};

/// Agents, their servers, and servers without an agent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The agents in the order they are to be shown.
    pub agents: Vec<AgentReport>,
    /// Servers that nobody owns, as far as could be seen.
    pub unowned: Vec<ServerReport>,
    /// The runs that matter: alive, with servers left, and the latest of each agent; in the order of their numbers.
    #[serde(default)]
    pub runs: Vec<RunReport>,
    /// What could not be seen, one sentence each. With something in here, an absence of orphans proves nothing.
    #[serde(default)]
    pub blind: Vec<String>,
}

/// An agent and its servers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AgentReport {
    /// What is known if it was left behind itself: evidence, guards, state.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub left_behind: Option<Box<ServerReport>>,
    /// The agent.
    pub agent: AgentView,
    /// The servers it owns.
    pub servers: Vec<ServerReport>,
}

/// A server and what is known for and against its being an orphan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ServerReport {
    /// The server.
    pub server: ServerView,
    /// What speaks for an orphan.
    pub evidence: Vec<Evidence>,
    /// What keeps it from being one.
    #[serde(default)]
    pub doubts: Vec<Doubt>,
    /// What forbids to end it.
    pub guards: Vec<Guard>,
    /// Proportional memory in bytes, where it was asked for or the server is an orphan.
    #[serde(default)]
    pub pss_bytes: Option<u64>,
    /// The verdict: `live`, `suspect`, `unproven`, `orphan`, `spared`, `terminating`.
    pub state: String,
    /// All its processes, those that are not shown included. It stays inside the daemon.
    #[serde(skip)]
    pub members: Vec<ProcessId>,
}

impl ServerReport {
    /// Whether it is an orphan, one that stays because of a guard included.
    pub fn is_orphan(&self) -> bool {
        matches!(self.state.as_str(), "orphan" | "spared" | "terminating")
    }

    /// Whether its owner is gone and it is not proven that nobody uses it.
    pub fn is_unproven(&self) -> bool {
        self.state == "unproven"
    }

    /// Its resident memory in bytes; 0 where it was not measured.
    pub fn rss_bytes(&self) -> u64 {
        self.server.rss_bytes.unwrap_or_default()
    }
}

impl Report {
    /// All servers with their owners, those without one last.
    pub fn servers(&self) -> impl Iterator<Item = (Option<&AgentView>, &ServerReport)> {
        let owned = self.agents.iter().flat_map(|a| a.servers.iter().map(|server| (Some(&a.agent), server)));
        owned.chain(self.unowned.iter().map(|server| (None, server)))
    }

    /// All orphans.
    pub fn orphans(&self) -> impl Iterator<Item = &ServerReport> {
        self.servers().map(|(_, server)| server).filter(|server| server.is_orphan())
    }
}
