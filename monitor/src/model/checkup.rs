//! What `orphand doctor` found, and what to do about it.

use serde::{Deserialize, Serialize};

use super::Unit;

/// The answer of `orphand doctor`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checkup {
    /// Of the kernel and of our rights.
    pub checks: Vec<Check>,
    /// The units that host agents.
    pub units: Vec<UnitCheckup>,
}

/// One thing looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// What.
    pub name: String,
    /// Whether it is as orphand needs it.
    pub good: bool,
    /// What was found; what to do, if it is not good.
    pub found: String,
}

/// A unit that hosts agents.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnitCheckup {
    /// The unit.
    pub unit: Unit,
    /// The agents in it: name and pid.
    pub agents: Vec<(String, u32)>,
    /// What its manager says; absent where it cannot be asked.
    pub properties: Option<UnitProperties>,
    /// Why it cannot be asked.
    pub blind: Option<String>,
    /// What is wrong with it, if anything.
    pub advice: Option<Advice>,
}

/// Properties of a service, as its manager writes them (`systemctl show`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnitProperties {
    /// The main process; 0 for none.
    pub main_pid: u32,
    /// `control-group`, `mixed`, `process`, `none`.
    pub kill_mode: String,
    /// `no`, `always`, `on-failure`, ...
    pub restart: String,
    /// `1min 30s`, `infinity`.
    pub timeout_stop: String,
    /// Whether it makes control groups of its own.
    pub delegate: bool,
    /// The unit's file; empty for a transient one.
    pub fragment: String,
}

/// What is wrong with a unit and how it is mended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Advice {
    /// Why it leaks.
    pub why: String,
    /// The command that opens the drop-in.
    pub command: String,
    /// The drop-in.
    pub drop_in: String,
}

impl UnitProperties {
    /// Reads what `systemctl show -p ..` prints: `NAME=VALUE` a line.
    pub fn parse(text: &str) -> Self {
        let of = |name: &str| {
            let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
            value.unwrap_or_default().to_owned()
        };
        Self {
            main_pid: of("MainPID").parse().unwrap_or_default(),
            kill_mode: of("KillMode"),
            restart: of("Restart"),
            timeout_stop: of("TimeoutStopUSec"),
            delegate: of("Delegate") == "yes",
            fragment: of("FragmentPath"),
        }
    }

    /// What to change. `conmon`: a container's monitor lives in the unit; `user`: it is a user's.
    pub fn advice(&self, unit: &Unit, user: bool, conmon: bool) -> Option<Advice> {
        let left = match self.kill_mode.as_str() {
            "process" => {
                "only the main process is ended: whatever the agent started stays at every stop and restart"
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
        if self.timeout_stop.is_empty() || self.timeout_stop == "infinity" {
            drop_in.push_str("# Without a limit a stop can wait for ever.\n");
        }
        drop_in.push_str("TimeoutStopSec=30s\n");
        let user = if user { "--user " } else { "" };
        Some(Advice {
            why: format!("KillMode={}: {left}", self.kill_mode),
            command: format!("systemctl {user}edit {}", unit.name),
            drop_in,
        })
    }
}

impl Checkup {
    /// Whether something is wrong.
    pub fn is_wrong(&self) -> bool {
        self.checks.iter().any(|check| !check.good) || self.units.iter().any(|unit| unit.advice.is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHOWN: &str = "MainPID=42\nKillMode=process\nRestart=always\nTimeoutStopUSec=infinity\nDelegate=no\n\
                         FragmentPath=/etc/systemd/system/bot.service\n";

    #[test]
    fn what_a_manager_shows() {
        let found = UnitProperties::parse(SHOWN);
        assert_eq!((found.main_pid, found.kill_mode.as_str(), found.delegate), (42, "process", false));
        assert_eq!(UnitProperties::parse(""), UnitProperties::default());
    }

    #[test]
    fn the_drop_in_that_mends_it() {
        let unit = Unit { manager: String::new(), name: "bot.service".to_owned() };
        let shown = UnitProperties::parse(SHOWN);
        let advice = shown.advice(&unit, false, false).unwrap();
        assert_eq!(advice.command, "systemctl edit bot.service");
        assert!(advice.why.contains("only the main process"));
        assert!(
            advice.drop_in.starts_with("[Service]\n")
                && advice.drop_in.contains("\nKillMode=control-group\n")
        );
        let beside = shown.advice(&unit, true, true).unwrap();
        assert_eq!(beside.command, "systemctl --user edit bot.service");
        assert!(beside.drop_in.contains("\nKillMode=mixed\n") && beside.drop_in.contains("--cgroups=split"));
        let none = UnitProperties { kill_mode: "none".to_owned(), ..shown };
        assert!(none.advice(&unit, false, false).unwrap().why.contains("nothing is ended"));
        for fine in ["control-group", "mixed", ""] {
            let fine = UnitProperties { kill_mode: fine.to_owned(), ..none.clone() };
            assert_eq!(fine.advice(&unit, false, false), None);
        }
    }
}
