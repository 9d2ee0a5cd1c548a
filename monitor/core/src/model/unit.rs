//! systemd units: which one a process belongs to and what its manager says of it.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A service of a service manager. Two managers on one host (the system's, a user's, a container's) may each have a unit of
/// the same name: the manager's cgroup tells them apart.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Unit {
    /// The cgroup path below which the manager keeps its units, as seen from the host: empty for the host's own, for a user's
    /// manager `/user.slice/user-1000.slice/user@1000.service`.
    pub manager: String,
    /// Its name, `untether.service`.
    pub name: String,
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// What the host says about the unit that a process lives in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnitFacts {
    /// The unit, from the process's cgroup.
    pub unit: Unit,
    /// The start of the unit that the process descends from: `INVOCATION_ID` of its environment (systemd.exec(5)). Absent
    /// where the environment has none.
    pub invocation_id: Option<String>,
    /// What the unit's manager says now.
    pub state: UnitState,
}

/// What a service manager says about a unit now.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", content = "invocation_id", rename_all = "snake_case")]
pub enum UnitState {
    /// It could not be found out: the manager is not systemd, or cannot be seen.
    #[default]
    Unknown,
    /// The manager is there and the unit is not active.
    Stopped,
    /// It is active under this invocation.
    Active(String),
}

impl UnitFacts {
    /// Whether the process belongs to an earlier invocation than its unit's present one.
    pub fn is_stale(&self) -> bool {
        matches!((&self.state, &self.invocation_id), (UnitState::Active(now), Some(then)) if now != then)
    }

    /// Whether the unit has gone on without the process: it was stopped, or started anew.
    pub fn left_behind(&self) -> bool {
        self.is_stale() || self.is_stopped()
    }

    /// Whether the unit is stopped.
    pub fn is_stopped(&self) -> bool {
        self.state == UnitState::Stopped
    }
}
