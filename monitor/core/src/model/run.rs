//! Runs: numbered lives of top-most agents, and how the room for remembered ones is divided among users.

use serde::{Deserialize, Serialize};

use super::{BootTime, ProcessId, Unit, text, user_of_manager};

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

/// The run that an agent or a server is accounted to.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
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

impl From<&Run> for RunView {
    fn from(run: &Run) -> Self {
        Self::new(run.key.clone(), Some(run.generation), run.agent.clone(), run.invocation_id.clone())
    }
}

impl RunView {
    pub fn new(key: RunKey, generation: Option<u64>, agent: String, invocation_id: Option<String>) -> Self {
        let (unit, uid) = match key {
            RunKey::Unit(unit) => (Some(unit), None),
            RunKey::Agent { uid, .. } => (None, Some(uid)),
        };
        let (unit, manager) = unit.map(|unit| (unit.name, unit.manager)).unzip();
        let manager = manager.filter(|manager| !manager.is_empty());
        Self { agent, generation, uid, unit, manager, invocation_id }
    }

    /// That of an agent for which it could not be found out whether it ran in a unit.
    pub fn unknown(agent: &str, uid: u32) -> Self {
        Self { agent: agent.to_owned(), uid: Some(uid), ..Self::default() }
    }

    pub fn key(&self) -> RunKey {
        match &self.unit {
            Some(name) => {
                let manager = self.manager.clone().unwrap_or_default();
                RunKey::Unit(Unit { manager, name: name.clone() })
            }
            None => RunKey::Agent { name: self.agent.clone(), uid: self.uid.unwrap_or_default() },
        }
    }

    /// The key and the number of the run, if it has a number.
    pub fn run(&self) -> Option<(RunKey, u64)> {
        self.generation.map(|generation| (self.key(), generation))
    }

    /// Whose it is: the user that it is counted for; of a unit that of its manager, and nobody's of the host's own.
    pub fn user(&self) -> Option<u32> {
        self.uid.or_else(|| user_of_manager(self.manager.as_deref()?))
    }

    /// What it is called everywhere: by its unit if it has one, else by its agent.
    pub fn name(&self) -> String {
        run_name(&self.agent, self.unit.as_deref())
    }

    /// The same with its number: `bot.service #3`, `claude #12`.
    pub fn title(&self) -> String {
        text::numbered(&self.name(), self.generation)
    }

    /// Whether its agent, or its unit, has this name, or it is shown so.
    pub fn is_called(&self, name: &str) -> bool {
        self.agent == name || self.unit.as_deref() == Some(name) || self.title() == name
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunReport {
    pub run: RunView,
    /// The real user id of its first agent. The run uses this user's share.
    pub user: u32,
    /// Start time of its first agent, to the clock tick (10 ms).
    #[serde(rename = "started_boot_ns")]
    pub started: BootTime,
    /// Whether a top-most agent of it is alive.
    pub alive: bool,
}

/// What a run is called, by the name of its agent and that of the unit that this runs in.
pub fn run_name(agent: &str, unit: Option<&str>) -> String {
    let unit = unit.map(|unit| Unit { manager: String::new(), name: unit.to_owned() }.family().name);
    unit.unwrap_or_else(|| agent.to_owned())
}

/// The first user id that is delegated to containers: subuid(5).
const FIRST_SUB: u32 = 100_000;
/// How many ids one user gets, by default in subuid(5) and in systemd-nspawn(1).
const BLOCK: u32 = 65_536;

/// The most finished runs that are remembered for each user, in addition to the last run of each key.
pub const RUNS_OF_USER: usize = 256;
/// The most keys without a live run that are remembered for each user.
pub const KEYS_OF_USER: usize = 64;
/// The most finished runs that are remembered for all users together.
pub const RUNS_OF_ALL: usize = 4096;

/// A user, or the whole range of ids that was delegated to one user: its 65,536 ids have one share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Share(u32);

impl Share {
    pub const fn of(uid: u32) -> Self {
        match uid.checked_sub(FIRST_SUB) {
            Some(above) => Self(FIRST_SUB + above / BLOCK),
            None => Self(uid),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_units_user_is_that_of_its_manager() {
        let of = |manager: &str| {
            let unit = Unit { manager: manager.to_owned(), name: "x.service".to_owned() };
            RunView::new(RunKey::Unit(unit), Some(1), "claude".to_owned(), None).user()
        };
        assert_eq!(of("/user.slice/user-1000.slice/user@1000.service"), Some(1000));
        assert_eq!(of("/docker/0a1b/user.slice/user-7.slice/user@7.service"), Some(7));
        for nobodys in ["", "/docker/0a1b", "/user@1000.service/box", "/user@x.service", "/xuser@1.service"] {
            assert_eq!(of(nobodys), None, "{nobodys}");
        }
        assert_eq!(RunView::unknown("claude", 1000).user(), Some(1000));
    }

    #[test]
    fn a_range_of_numbers_is_one_user() {
        assert_ne!(Share::of(1000), Share::of(1001));
        assert_ne!(Share::of(99_999), Share::of(100_000));
        assert_eq!(Share::of(100_000), Share::of(165_535));
        assert_ne!(Share::of(165_535), Share::of(165_536));
        assert_eq!(Share::of(u32::MAX), Share::of(u32::MAX - 1));
    }
}
