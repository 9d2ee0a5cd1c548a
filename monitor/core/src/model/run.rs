//! Runs: the lives of top-most agents, numbered.

use serde::{Deserialize, Serialize};

use super::{BootTime, ProcessId, Unit};

/// Whose runs are numbered together.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunKey {
    /// A systemd service: a run is one invocation of it. Those that are made for one start are one: [`Unit::family`].
    Unit(Unit),
    /// An agent outside of services: a run is one life of its process.
    Agent {
        /// The agent's name.
        name: String,
        /// Its real user id.
        uid: u32,
    },
}

/// One life of a top-most agent, or one invocation of a service with agents in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// Whose.
    pub key: RunKey,
    /// Its number: 1, 2, 3 ... for each key. Never used twice while the key is remembered: [`super::Fact::Forgotten`].
    pub generation: u64,
    /// The name of the top-most agent; of the first one, if a service has several.
    pub agent: String,
    /// That agent's real user id.
    pub uid: u32,
    /// That agent's process.
    pub main: ProcessId,
    /// The invocation of the service.
    pub invocation_id: Option<String>,
    /// Whether a top-most agent of it lives.
    pub alive: bool,
}

/// A run in events and answers: what a server or an agent is accounted to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RunView {
    /// The name of the top-most agent; the unit's name where none was seen.
    pub agent: String,
    /// The number of the run; none for an earlier run that nobody counted.
    pub generation: Option<u64>,
    /// The real user id that the run is counted for; none for a unit.
    pub uid: Option<u32>,
    /// The systemd unit.
    pub unit: Option<String>,
    /// The cgroup path of the unit's manager, unless that is the host's own.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub manager: Option<String>,
    /// The unit's invocation.
    pub invocation_id: Option<String>,
}

/// A run in a report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunReport {
    /// The run.
    pub run: RunView,
    /// The real user id of its first agent: whose share it counts for.
    #[serde(default)]
    pub user: u32,
    /// When its first agent was born, to the clock tick (10 ms).
    pub started: BootTime,
    /// Whether a top-most agent of it lives.
    pub alive: bool,
}
