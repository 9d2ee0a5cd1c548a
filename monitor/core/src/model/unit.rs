//! systemd units: which unit a process belongs to, and the state of the unit.
//!
//! Names of units that exist for one start only.
//!
//! `systemd-run` calls its unit `run-u123.service`, a desktop uses `app-gnome-terminal-4711.scope`, and a
//! socket unit has one instance per connection. Each such name occurs once. Their runs are numbered together,
//! because otherwise every start would be a unit of its own.

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

/// The user whose manager keeps its units below this path, or is this service: `user@1000.service`.
pub fn user_of_manager(path: &str) -> Option<u32> {
    path.rsplit('/').next()?.strip_prefix("user@")?.strip_suffix(".service")?.parse().ok()
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

/// Where a process runs, as exemptions name it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Placement {
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub unit: Option<Unit>,
    /// The slices above it, by name.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub slices: Vec<String>,
    pub uid: u32,
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
    /// Which invocation of which unit it is.
    pub const fn start(&self) -> (&Unit, Option<&String>) {
        (&self.unit, self.invocation_id.as_ref())
    }

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

/// The length of a random identifier in hexadecimal digits (128 bits).
const IDENTIFIER: usize = 32;

impl Unit {
    /// The unit whose runs this unit's runs are numbered with. For a name that is made for one start, its
    /// counter or random part becomes `*`; any other name stays. No real unit name has a `*`. The function is
    /// idempotent.
    #[must_use]
    pub fn family(&self) -> Self {
        let family = self.name.rsplit_once('.').and_then(|(stem, suffix)| {
            matches!(suffix, "service" | "scope").then_some(())?;
            Some(format!("{}.{suffix}", of_stem(stem)?))
        });
        Self { manager: self.manager.clone(), name: family.unwrap_or_else(|| self.name.clone()) }
    }
}

/// The family of a name without its suffix; `None` if the name is not made for one start.
fn of_stem(stem: &str) -> Option<String> {
    if stem.strip_prefix("run-").is_some_and(is_of_systemd_run) {
        return Some("run-*".to_owned());
    }
    if stem.strip_prefix("session-").is_some_and(|rest| digits(rest.strip_prefix('c').unwrap_or(rest))) {
        return Some("session-*".to_owned());
    }
    // dbus-broker: `dbus-:1.23-org.example.Name@0`.
    if let Some((_, name)) = stem.strip_prefix("dbus-:").and_then(|rest| rest.split_once('-')) {
        let name = name.split_once('@').map_or(name, |(name, _)| name);
        return (name != "*").then(|| format!("dbus-*-{name}@*"));
    }
    if let Some((template, instance)) = stem.split_once('@') {
        // `sshd@12-192.0.2.1:22-192.0.2.7:4711`: one per connection. `app-NAME@RANDOM`: one per start.
        let of_connection = instance.split_once('-').is_some_and(|(count, _)| digits(count));
        let drawn = is_identifier(instance) || (template.starts_with("app-") && hexadecimal(instance));
        return (of_connection || drawn).then(|| format!("{template}@*"));
    }
    let (head, tail) = stem.rsplit_once('-')?;
    if (stem.starts_with("app-") && hexadecimal(tail)) || is_identifier(tail) {
        return Some(format!("{head}-*"));
    }
    // A UUID contains dashes: `tmux-spawn-0c8a1b9e-0000-4000-8000-000000000001`.
    let at = stem.len().checked_sub(36)?;
    let (head, uuid) = (stem.get(..at)?, stem.get(at..)?);
    let lengths: Vec<usize> = uuid.split('-').filter(|part| hexadecimal(part)).map(str::len).collect();
    let head = head.strip_suffix(['-', '.'])?;
    (lengths == [8, 4, 4, 4, 12]).then(|| format!("{head}-*"))
}

/// `u123`, `r0c8a..`, `p123-i456`, `123`: what the versions of systemd-run(1) append to `run-`.
fn is_of_systemd_run(rest: &str) -> bool {
    let of_process = || {
        let (pid, inode) = rest.strip_prefix('p')?.split_once("-i")?;
        (digits(pid) && digits(inode)).then_some(())
    };
    digits(rest.strip_prefix('u').unwrap_or(rest))
        || rest.strip_prefix('r').is_some_and(is_identifier)
        || of_process().is_some()
}

fn digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

/// A hexadecimal number with at least one digit: `app-facade` is a name.
fn hexadecimal(text: &str) -> bool {
    text.bytes().any(|b| b.is_ascii_digit()) && text.bytes().all(|b| b.is_ascii_hexdigit())
}

fn is_identifier(text: &str) -> bool {
    text.len() >= IDENTIFIER && hexadecimal(text)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn family(name: &str) -> String {
        let unit = Unit { manager: "/m".to_owned(), name: name.to_owned() };
        let family = unit.family();
        assert_eq!(family.manager, unit.manager);
        family.name
    }

    #[test]
    fn what_is_made_for_one_start() {
        for (name, expected) in [
            ("run-u123.service", "run-*.service"),
            ("run-12.service", "run-*.service"),
            ("run-p3120-i99.service", "run-*.service"),
            ("run-r0c8a1b9e00004000800000000000000a.scope", "run-*.scope"),
            ("session-12.scope", "session-*.scope"),
            ("session-c2.scope", "session-*.scope"),
            ("app-gnome-org.gnome.Terminal-4711.scope", "app-gnome-org.gnome.Terminal-*.scope"),
            ("app-firefox@0c8a1b9e00004000.service", "app-firefox@*.service"),
            ("dbus-:1.23-org.gnome.Shell@0.service", "dbus-*-org.gnome.Shell@*.service"),
            ("sshd@12-192.0.2.1:22-192.0.2.7:4711.service", "sshd@*.service"),
            ("tmux-spawn-0c8a1b9e-0000-4000-8000-000000000001.scope", "tmux-spawn-*.scope"),
            (&format!("libpod-{}.scope", "0a".repeat(32)), "libpod-*.scope"),
        ] {
            assert_eq!(family(name), expected);
        }
    }

    #[test]
    fn what_somebody_has_named() {
        for name in [
            "bot.service",
            "bot@1.service",
            "bot@alice.service",
            "getty@tty1.service",
            "run-backup.service",
            "run-.service",
            "run-u.service",
            "session-keeper.service",
            "app-facade.service",
            "app-foo@autostart.service",
            "worker-3.service",
            "user@1000.service",
            "-0c8a1b9e.service",
            ".service",
            "x",
            "",
        ] {
            assert_eq!(family(name), name);
        }
    }

    proptest! {
        #[test]
        fn twice_is_once(name in "(run-|session-|app-|dbus-:1-|x@|x-)?[a-f0-9:@.*\u{e9}-]{0,80}\\.(service|scope)") {
            let once = family(&name);
            prop_assert_eq!(family(&once), once);
        }
    }
}
