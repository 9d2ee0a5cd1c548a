//! The systemd unit of a process, and what the manager of the unit says about it.
//!
//! Invariant: a unit is reported as stopped only if its own manager is alive, keeps a list of invocations,
//! and has no entry for the unit. Every doubt (another kind of manager, no list, a link with an unexpected
//! target) gives `Unknown`.

use std::os::fd::OwnedFd;

use rustix::{fs::readlinkat, io::Errno};

use super::Probe;
use crate::host::{Lodging, ProcessDir, with_deadline};
use orphand_core::model::{ProcessId, Unit, UnitFacts, UnitState, text::base};

impl Probe {
    /// The unit of this process; `None` outside of services, and where it cannot be read.
    pub fn unit(&self, process: ProcessId) -> Option<UnitFacts> {
        let this = self.clone();
        with_deadline(move || {
            let dir = this.proc.identified(process).ok()??;
            let lodging = Lodging::parse(&dir.cgroup().ok()?)?;
            let invocation_id = dir.environment("INVOCATION_ID").ok().flatten();
            let invocation_id = invocation_id.and_then(|id| invocation(&id));
            let manager = this.manager(&dir, &lodging);
            let state = manager.map_or(UnitState::Unknown, |manager| state(&manager, &lodging.unit));
            Some(UnitFacts { unit: lodging.unit, invocation_id, state })
        })
    }

    /// The manager of the unit: the systemd among the ancestors of the process whose cgroup has the same root.
    /// A manager adopts the processes that it started, because it is pid 1 of its PID namespace or a
    /// subreaper.
    pub(super) fn manager(&self, dir: &ProcessDir, lodging: &Lodging) -> Option<ProcessDir> {
        self.proc.ancestors(dir).find(|above| {
            let here = above.cgroup().is_ok_and(|cgroup| lodging.is_managed_from(&cgroup));
            // The manager of the host may be in another cgroup (in the root before version 226).
            let hosts = above.id().pid == 1 && lodging.unit.manager.is_empty();
            (here || hosts) && is_systemd(above)
        })
    }
}

fn is_systemd(dir: &ProcessDir) -> bool {
    base(&dir.exe()) == "systemd"
}

/// The state of the unit. The link `invocation:UNIT` exists as long as the unit is not inactive
/// (`unit_export_invocation_id()` and `unit_unlink_state_files()` in systemd's core/unit.c).
fn state(manager: &ProcessDir, unit: &Unit) -> UnitState {
    let (Some(units), Ok(_at)) = (units(manager), manager.at()) else { return UnitState::Unknown };
    match readlinkat(&units, format!("invocation:{}", unit.name), Vec::new()) {
        Ok(target) => invocation(target.as_bytes()).map_or(UnitState::Unknown, UnitState::Active),
        // The list of a manager disappears when the manager ends, so only a living one counts.
        Err(Errno::NOENT) if manager.still_alive() => UnitState::Stopped,
        Err(_) => UnitState::Unknown,
    }
}

/// The directory where the manager keeps its list of invocations.
fn units(manager: &ProcessDir) -> Option<OwnedFd> {
    if !is_users(manager) {
        // The system manager is pid 1 of its namespace. A process that is neither kind of manager fails in
        // the read of its arguments.
        let is_system = manager.leads_namespace().is_ok_and(|leads| leads);
        return is_system.then(|| manager.directory_inside(b"run/systemd/units").ok()).flatten();
    }
    manager.directory_inside(&[runtime(manager)?.as_slice(), b"/systemd/units"].concat()).ok()
}

pub(super) fn is_users(manager: &ProcessDir) -> bool {
    manager.image().argv.iter().skip(1).any(|arg| arg == "--user")
}

pub(super) fn runtime(manager: &ProcessDir) -> Option<Vec<u8>> {
    Some(match manager.environment("XDG_RUNTIME_DIR").ok()? {
        Some(path) if path.starts_with(b"/") => path,
        _ => format!("/run/user/{}", manager.uid().ok()?).into_bytes(),
    })
}

/// Parses an invocation id: 128 bits in hexadecimal digits (sd-id128(3)).
fn invocation(text: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(text).ok()?;
    (text.len() == 32 && text.bytes().all(|b| b.is_ascii_hexdigit())).then(|| text.to_ascii_lowercase())
}

#[cfg(test)]
mod tests;
