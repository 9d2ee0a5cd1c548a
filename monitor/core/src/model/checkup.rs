//! The findings of `orphand doctor`, with advice.

use serde::{Deserialize, Serialize};

use super::{Unit, text::quoted};

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checkup {
    /// Checks of the kernel, of orphand's rights, of the daemon and its store.
    pub checks: Vec<Check>,
    /// The units that contain agents, or what agents left behind.
    pub units: Vec<UnitCheckup>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// What was checked.
    pub name: String,
    /// The result.
    pub is: Health,
    /// What was found and, if something is wrong, what to do.
    pub found: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Health {
    /// As orphand needs it.
    Ok,
    /// Nothing is wrong, but the user should know.
    Note,
    /// orphand cannot work, or not fully.
    Wrong,
}

impl Check {
    pub fn ok(name: &str, found: impl Into<String>) -> Self {
        Self { name: name.to_owned(), is: Health::Ok, found: found.into() }
    }

    pub fn note(name: &str, found: impl Into<String>) -> Self {
        Self { is: Health::Note, ..Self::ok(name, found) }
    }

    pub fn wrong(name: &str, found: impl Into<String>) -> Self {
        Self { is: Health::Wrong, ..Self::ok(name, found) }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnitCheckup {
    /// The unit.
    pub unit: Unit,
    /// Where its manager runs. Not determined if `blind` says that the manager was not asked.
    pub place: Place,
    /// The agents in it: name and pid.
    pub agents: Vec<(String, u32)>,
    /// How many orphans are in it.
    pub orphans: usize,
    /// The properties of the unit; absent if the manager could not be asked.
    pub properties: Option<UnitProperties>,
    /// Why the manager could not be asked. Then nothing is known about the unit's health.
    pub blind: Option<String>,
    /// What is wrong with it; absent if nothing is.
    pub advice: Option<Advice>,
}

/// Where a service manager runs. Both fields are absent for the host's own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// The user of a user manager, by the user id inside of the container.
    pub user: Option<u32>,
    /// The first process of its container, by the host's process id.
    pub container: Option<u32>,
}

/// Properties of a service, as its manager reports them; see systemd.service(5) and systemd.kill(5).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnitProperties {
    /// The main process, by its process id inside of the container; 0 if there is none.
    pub main_pid: u32,
    /// `KillMode`: `control-group`, `mixed`, `process`, `none`.
    pub kill_mode: String,
    /// `Restart`: `no`, `always`, `on-failure`, ...
    pub restart: String,
    /// `TimeoutStopUSec`, in milliseconds; absent if it is infinite.
    pub timeout_stop_ms: Option<u64>,
    /// `Delegate`: whether the service manages control groups of its own.
    pub delegate: bool,
    /// `FragmentPath`, the unit file; empty if there is none.
    pub fragment: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Advice {
    /// Why processes stay when the unit stops.
    pub why: String,
    /// The command that opens the drop-in in an editor.
    pub command: String,
    /// Where to run the command; absent if on the host as root.
    pub place: Option<String>,
    /// The content of the drop-in.
    pub drop_in: String,
}

impl UnitProperties {
    /// What to change; absent if nothing. `conmon`: the monitor of a container is in the unit.
    pub fn advice(&self, unit: &Unit, place: Place, conmon: bool) -> Option<Advice> {
        let left = match self.kill_mode.as_str() {
            "process" => {
                "only the main process is ended: everything the agent started stays at every stop and restart"
            }
            "none" => "nothing is ended: every process stays at every stop and restart",
            _ => return None,
        };
        let mut drop_in = String::from("[Service]\n");
        drop_in.push_str(if conmon {
            "# The main process is asked to end, the rest is killed when it has. Start containers with `podman run --cgroups=split`\n\
             # or in a scope of their own (`systemd-run --scope podman run ..`), so that their conmon is not in this unit.\n\
             KillMode=mixed\n"
        } else {
            "# `mixed` instead, if the main process ends its children by itself and needs time for it.\nKillMode=control-group\n"
        });
        if self.timeout_stop_ms.is_none() {
            drop_in.push_str("# Without a limit a stop can wait forever.\n");
        }
        drop_in.push_str("TimeoutStopSec=30s\n");
        let user = if place.user.is_some() { "--user " } else { "" };
        let mut why = format!("KillMode={}: {left}", self.kill_mode);
        if self.fragment.contains("/systemd/transient/") {
            why.push_str(
                "; the unit is transient: change it where it is created, `systemd-run -p KillMode=control-group`",
            );
        }
        Some(Advice {
            why,
            command: format!("systemctl {user}edit {}", quoted(&unit.name)),
            place: place.told(),
            drop_in,
        })
    }
}

impl Place {
    /// Where to run the command. systemctl cannot edit units of a container or of another user from the host.
    fn told(self) -> Option<String> {
        let user = self.user.map(|uid| format!("as user {uid}"));
        let container = self
            .container
            .map(|pid| format!("inside of the container of process {pid}: nsenter --all --target {pid}"));
        match (user, container) {
            (Some(user), Some(container)) => Some(format!("{user}, {container}")),
            (user, container) => user.or(container),
        }
    }
}

impl Checkup {
    /// Whether something is known to be wrong. What could not be checked is not counted.
    pub fn is_wrong(&self) -> bool {
        self.checks.iter().any(|check| check.is == Health::Wrong)
            || self.units.iter().any(|unit| unit.advice.is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(kill_mode: &str) -> UnitProperties {
        UnitProperties {
            kill_mode: kill_mode.to_owned(),
            timeout_stop_ms: Some(90_000),
            ..UnitProperties::default()
        }
    }

    fn unit() -> Unit {
        Unit { manager: String::new(), name: "bot.service".to_owned() }
    }

    #[test]
    fn the_drop_in_that_mends_it() {
        let advice = shown("process").advice(&unit(), Place::default(), false).unwrap();
        assert_eq!((advice.command.as_str(), advice.place), ("systemctl edit bot.service", None));
        assert!(advice.why.contains("only the main process") && !advice.why.contains("transient"));
        assert!(
            advice.drop_in.starts_with("[Service]\n")
                && advice.drop_in.contains("\nKillMode=control-group\n")
        );
        assert!(!advice.drop_in.contains("forever"));
        let none = shown("none").advice(&unit(), Place::default(), false).unwrap();
        assert!(none.why.contains("nothing is ended"));
        for fine in ["control-group", "mixed", ""] {
            assert_eq!(shown(fine).advice(&unit(), Place::default(), false), None);
        }
    }

    #[test]
    fn what_else_matters_for_it() {
        let found = UnitProperties { timeout_stop_ms: None, ..shown("process") };
        let advice = found.advice(&unit(), Place::default(), true).unwrap();
        assert!(advice.drop_in.contains("\nKillMode=mixed\n") && advice.drop_in.contains("--cgroups=split"));
        assert!(advice.drop_in.contains("forever"));
        let fragment = "/run/user/1000/systemd/transient/run-1.service".to_owned();
        let transient = UnitProperties { fragment, ..shown("process") };
        assert!(transient.advice(&unit(), Place::default(), false).unwrap().why.contains("systemd-run -p"));
    }

    #[test]
    fn where_it_is_to_be_typed() {
        let told = |user, container| {
            let advice = shown("process").advice(&unit(), Place { user, container }, false).unwrap();
            (advice.command, advice.place.unwrap())
        };
        let (command, place) = told(Some(1000), None);
        assert_eq!((command.as_str(), place.as_str()), ("systemctl --user edit bot.service", "as user 1000"));
        let (command, place) = told(None, Some(42));
        assert_eq!(command, "systemctl edit bot.service");
        assert_eq!(place, "inside of the container of process 42: nsenter --all --target 42");
        let (command, place) = told(Some(0), Some(42));
        assert_eq!(command, "systemctl --user edit bot.service");
        assert!(place.starts_with("as user 0, inside of the container"));
    }

    #[test]
    fn only_what_is_known_to_be_wrong_is_wrong() {
        let blind = UnitCheckup {
            unit: unit(),
            place: Place::default(),
            agents: Vec::new(),
            orphans: 0,
            properties: None,
            blind: Some("nobody answers".to_owned()),
            advice: None,
        };
        let checks = vec![Check::ok("a", ""), Check::note("b", "")];
        let mut found = Checkup { checks, units: vec![blind] };
        assert!(!found.is_wrong());
        found.checks.push(Check::wrong("c", ""));
        assert!(found.is_wrong());
        found.checks.clear();
        found.units[0].advice = shown("none").advice(&unit(), Place::default(), false);
        assert!(found.is_wrong());
    }
}
