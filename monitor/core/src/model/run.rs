//! Runs: numbered lives of top-most agents.

use serde::{Deserialize, Serialize};

use super::{BootTime, ProcessId, Unit};

/// What runs are numbered by.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunKey {
    /// A systemd service: a run is one invocation of it. Units that are made for one start share a key:
    /// [`Unit::family`].
    Unit(Unit),
    /// An agent outside of services: a run is one life of its process.
    Agent { name: String, uid: u32 },
}

/// One life of a top-most agent, or one invocation of a service with agents in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    pub key: RunKey,
    /// Its number: 1, 2, 3 ... for each key. It is never used twice while the key is remembered:
    /// [`super::Fact::Forgotten`].
    pub generation: u64,
    /// The name of the top-most agent; of the first one if a service has several.
    pub agent: String,
    /// That agent's real user id.
    pub uid: u32,
    pub main: ProcessId,
    pub invocation_id: Option<String>,
    /// Whether a top-most agent of it is alive.
    pub alive: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RunView {
    /// The name of the top-most agent; the name of the unit if no agent was seen.
    pub agent: String,
    /// The number of the run; null for an earlier run that was not counted.
    pub generation: Option<u64>,
    /// The real user id that the run is counted for; null for a unit.
    pub uid: Option<u32>,
    /// The systemd unit.
    pub unit: Option<String>,
    /// The cgroup path of the unit's manager, unless that is the host's own.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub manager: Option<String>,
    /// The invocation id of the unit.
    pub invocation_id: Option<String>,
}

impl RunView {
    /// Whether its agent, or its unit, has this name.
    pub fn is_called(&self, name: &str) -> bool {
        self.agent == name || self.unit.as_deref() == Some(name)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunReport {
    /// The run.
    pub run: RunView,
    /// The real user id of its first agent. The run uses this user's share.
    #[serde(default)]
    pub user: u32,
    /// Start time of its first agent, to the clock tick (10 ms).
    #[serde(rename = "started_boot_ns")]
    pub started: BootTime,
    /// Whether a top-most agent of it is alive.
    pub alive: bool,
}
