//! The unit that a process lives in, and what the unit's manager says about it.
//!
//! Invariant: a unit is said to be stopped only where its own manager is alive, keeps its list of invocations, and has no entry
//! for the unit. Every doubt (another kind of manager, no list, a link that says something odd) is `Unknown`.

use std::os::fd::OwnedFd;

use rustix::{fs::readlinkat, io::Errno};

use super::Probe;
use crate::host::{Lodging, ProcessDir, with_deadline};
use orphand_core::model::{ProcessId, Unit, UnitFacts, UnitState};

impl Probe {
    /// The unit of this process. None outside of services, and where it cannot be read.
    pub fn unit(&self, process: ProcessId) -> Option<UnitFacts> {
        let this = self.clone();
        with_deadline(move || this.unit_now(process))
    }

    fn unit_now(&self, process: ProcessId) -> Option<UnitFacts> {
        let dir = self.proc.identified(process).ok()??;
        let lodging = Lodging::parse(&dir.cgroup().ok()?)?;
        let invocation_id = dir.environment("INVOCATION_ID").ok().flatten().and_then(|id| invocation(&id));
        let state =
            self.manager(&dir, &lodging).map_or(UnitState::Unknown, |manager| state(&manager, &lodging.unit));
        Some(UnitFacts { unit: lodging.unit, invocation_id, state })
    }

    /// The unit of the first of these that tells its invocation, else of the first in any.
    pub(super) fn unit_of(&self, processes: impl Iterator<Item = ProcessId>) -> Option<UnitFacts> {
        let mut any = None;
        for facts in processes.filter_map(|process| self.unit(process)) {
            if facts.invocation_id.is_some() {
                return Some(facts);
            }
            any.get_or_insert(facts);
        }
        any
    }

    /// The manager of the unit: the systemd above the process that lives below the same root. It adopts what it started: it is
    /// pid 1 of its PID namespace, or a subreaper.
    pub(super) fn manager(&self, dir: &ProcessDir, lodging: &Lodging) -> Option<ProcessDir> {
        self.proc.ancestors(dir).find(|above| {
            let here = above.cgroup().is_ok_and(|cgroup| lodging.is_managed_from(&cgroup));
            // The host's own may live elsewhere (before version 226 in the root).
            let hosts = above.id().pid == 1 && lodging.unit.manager.is_empty();
            (here || hosts) && is_systemd(above)
        })
    }
}

fn is_systemd(dir: &ProcessDir) -> bool {
    dir.image().exe.rsplit('/').next() == Some("systemd")
}

/// What the manager says about the unit: the link `invocation:UNIT` is there as long as the unit is not inactive
/// (`unit_export_invocation_id()` and `unit_unlink_state_files()` in systemd's core/unit.c).
fn state(manager: &ProcessDir, unit: &Unit) -> UnitState {
    let (Some(units), Ok(_at)) = (units(manager), manager.at()) else { return UnitState::Unknown };
    match readlinkat(&units, format!("invocation:{}", unit.name), Vec::new()) {
        Ok(target) => invocation(target.as_bytes()).map_or(UnitState::Unknown, UnitState::Active),
        // A manager that ends takes its list along.
        Err(Errno::NOENT) if manager.still_alive() => UnitState::Stopped,
        Err(_) => UnitState::Unknown,
    }
}

/// The directory where the manager keeps its list of invocations.
fn units(manager: &ProcessDir) -> Option<OwnedFd> {
    if !is_users(manager) {
        // The system's is pid 1 of its namespace. Who is neither has arguments that cannot be read.
        let is_system = manager.leads_namespace().is_ok_and(|leads| leads);
        return is_system.then(|| manager.directory_inside(b"run/systemd/units").ok()).flatten();
    }
    manager.directory_inside(&[runtime(manager)?.as_slice(), b"/systemd/units"].concat()).ok()
}

/// Whether it is a user's manager.
pub(super) fn is_users(manager: &ProcessDir) -> bool {
    manager.image().argv.iter().skip(1).any(|arg| arg == "--user")
}

/// The directory where a user's manager keeps what it has at run time.
pub(super) fn runtime(manager: &ProcessDir) -> Option<Vec<u8>> {
    Some(match manager.environment("XDG_RUNTIME_DIR").ok()? {
        Some(path) if path.starts_with(b"/") => path,
        _ => format!("/run/user/{}", manager.uid().ok()?).into_bytes(),
    })
}

/// An invocation: 128 bits in hexadecimal digits (sd-id128(3)).
fn invocation(text: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(text).ok()?;
    (text.len() == 32 && text.bytes().all(|b| b.is_ascii_hexdigit())).then(|| text.to_ascii_lowercase())
}

#[cfg(test)]
mod tests;
