//! systemd units: which unit a process belongs to, and the state of the unit.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A unit of a service manager. The managers of one host (system, user, container) may each have a unit of
/// the same name; the manager's cgroup tells them apart.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Unit {
    /// The cgroup path below which the manager keeps its units, as seen from the host: empty for the host's
    /// own manager, `/user.slice/user-1000.slice/user@1000.service` for a user's.
    pub manager: String,
    /// Its name, for example `untether.service`.
    pub name: String,
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnitFacts {
    pub unit: Unit,
    /// The invocation that the process descends from: `INVOCATION_ID` in its environment (systemd.exec(5)).
    /// Absent if the variable is not set.
    pub invocation_id: Option<String>,
    pub state: UnitState,
}

/// The state of a unit, according to its manager.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", content = "invocation_id", rename_all = "snake_case")]
pub enum UnitState {
    /// Not known: the manager is not systemd, or cannot be reached.
    #[default]
    Unknown,
    /// The manager runs, and the unit is not active.
    Stopped,
    /// The unit is active, with this invocation id.
    Active(String),
}

impl UnitFacts {
    /// Whether the process belongs to an earlier invocation of its unit.
    pub fn is_stale(&self) -> bool {
        matches!((&self.state, &self.invocation_id), (UnitState::Active(now), Some(then)) if now != then)
    }

    /// Whether the unit has left the process behind: the unit was stopped or restarted.
    pub fn left_behind(&self) -> bool {
        self.is_stale() || self.is_stopped()
    }

    pub fn is_stopped(&self) -> bool {
        self.state == UnitState::Stopped
    }
}
