//! The state of the host: the answer of `orphand scan` and `orphand tree`. Plain data, filled from the
//! engine's state.

use serde::{Deserialize, Serialize};

use super::{AgentView, Doubt, Evidence, Guard, ProcessId, RunReport, ServerView, SessionState};

/// Agents, their servers, and servers without an agent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The agents in display order.
    pub agents: Vec<AgentReport>,
    /// Servers without a known owner.
    pub unowned: Vec<ServerReport>,
    /// The runs that are alive or have servers left, and the latest run of each agent; by number.
    #[serde(default)]
    pub runs: Vec<RunReport>,
    /// What could not be seen, one sentence each. If this is not empty, an absence of orphans proves nothing.
    #[serde(default)]
    pub blind: Vec<String>,
}

/// An agent and its servers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AgentReport {
    /// Set if the agent itself was left behind: its evidence, guards and state.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub left_behind: Option<Box<ServerReport>>,
    /// The agent.
    pub agent: AgentView,
    /// The servers that it owns.
    pub servers: Vec<ServerReport>,
}

/// A server with the reasons of its verdict.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ServerReport {
    /// The server.
    pub server: ServerView,
    /// The facts that speak for an orphan.
    pub evidence: Vec<Evidence>,
    /// What prevents the proof.
    #[serde(default)]
    pub doubts: Vec<Doubt>,
    /// What forbids ending it.
    pub guards: Vec<Guard>,
    /// Proportional memory (PSS) in bytes, if it was asked for or the server is an orphan.
    #[serde(default)]
    pub pss_bytes: Option<u64>,
    /// The verdict: `live`, `suspect`, `unproven`, `orphan`, `spared`, `terminating`.
    pub state: String,
    /// The state of the session that it was started for, if there is one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub session: Option<SessionState>,
    /// The newest server of the same owner with the same identity, if this is not it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub duplicate_of: Option<String>,
    /// All its processes, including those not listed. The field stays inside the daemon.
    #[serde(skip)]
    pub members: Vec<ProcessId>,
}

impl ServerReport {
    /// Whether it is an orphan, including one that stays because of a guard.
    pub fn is_orphan(&self) -> bool {
        matches!(self.state.as_str(), "orphan" | "spared" | "terminating")
    }

    /// Whether its owner is gone and somebody may still use it.
    pub fn is_unproven(&self) -> bool {
        self.state == "unproven"
    }

    /// Takes a guard away. What was spared only because of it is an orphan that can be ended.
    pub fn lift(&mut self, guard: Guard) {
        self.guards.retain(|one| *one != guard);
        if self.guards.is_empty() && self.state == "spared" {
            "orphan".clone_into(&mut self.state);
        }
    }

    /// Whether its living owner has a newer server with the same identity.
    pub const fn is_duplicate(&self) -> bool {
        self.duplicate_of.is_some()
    }

    /// Whether the executable of one of the processes shown was replaced or deleted on disk.
    pub fn has_stale_binary(&self) -> bool {
        self.server.processes.iter().any(|process| process.stale_binary)
    }

    /// Its resident memory in bytes; 0 if it was not measured.
    pub fn rss_bytes(&self) -> u64 {
        self.server.rss_bytes.unwrap_or_default()
    }
}

impl Report {
    /// All servers with their owners; servers without an owner come last.
    pub fn servers(&self) -> impl Iterator<Item = (Option<&AgentView>, &ServerReport)> {
        let owned = self.agents.iter().flat_map(|a| a.servers.iter().map(|server| (Some(&a.agent), server)));
        owned.chain(self.unowned.iter().map(|server| (None, server)))
    }

    /// Takes a guard away from every server and every agent that was left behind.
    pub fn lift(&mut self, guard: Guard) {
        for agent in &mut self.agents {
            let left_behind = agent.left_behind.as_deref_mut();
            left_behind.into_iter().chain(&mut agent.servers).for_each(|one| one.lift(guard));
        }
        self.unowned.iter_mut().for_each(|one| one.lift(guard));
    }

    /// All orphans.
    pub fn orphans(&self) -> impl Iterator<Item = &ServerReport> {
        self.servers().map(|(_, server)| server).filter(|server| server.is_orphan())
    }
}
