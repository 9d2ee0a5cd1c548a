//! Which unit a process lives in, and what that unit's own manager says of it.
//!
//! systemd tells all of it through files (systemd 240 and later): no bus is asked, so a manager that hangs holds nobody up, and that
//! of another user, or in a container, can be read like the host's own. Whatever is not plain to see is unknown, never "stopped".

use rustix::{
    fd::OwnedFd,
    fs::{Mode, OFlags, ResolveFlags, openat2, readlinkat},
    io::Errno,
};

use super::Probe;
use crate::{
    host::{ProcessDir, cgroup},
    model::{ProcessId, Unit, UnitFacts, UnitState},
};

/// Parents looked at on the way to the manager.
const CLIMB: usize = 256;

impl Probe {
    /// The unit a process lives in, if it is alive and in one.
    pub fn unit(&self, process: ProcessId) -> Option<UnitFacts> {
        self.unit_of(&self.proc.identified(process).ok()??)
    }

    pub(super) fn unit_of(&self, dir: &ProcessDir) -> Option<UnitFacts> {
        let unit = cgroup::service(cgroup::systemd_path(&dir.cgroup().ok()?)?)?;
        let invocation_id = dir.environment("INVOCATION_ID").ok().flatten().and_then(|id| invocation(&id));
        let state = self.state(dir, &unit);
        Some(UnitFacts { unit, invocation_id, state })
    }

    /// Of the processes of a server: the first that tells which start of the unit it descends from.
    pub(super) fn unit_of_any(&self, processes: &[ProcessId]) -> Option<UnitFacts> {
        let mut any = None;
        for process in processes {
            match self.unit(*process) {
                Some(facts) if facts.invocation_id.is_some() => return Some(facts),
                facts => any = any.or(facts),
            }
        }
        any
    }

    fn state(&self, dir: &ProcessDir, unit: &Unit) -> UnitState {
        let Some(manager) = self.manager(dir, unit) else { return UnitState::Unknown };
        let Ok(units) = units(&manager) else { return UnitState::Unknown };
        match readlinkat(&units, format!("invocation:{}", unit.name), Vec::new()) {
            Ok(id) => invocation(id.as_bytes()).map_or(UnitState::Unknown, UnitState::Active),
            // Only a living manager's silence says something.
            Err(Errno::NOENT) if manager.still_alive() => UnitState::Stopped,
            Err(_) => UnitState::Unknown,
        }
    }

    /// The manager of a process's unit. It is an ancestor: it started the unit's main process and, being a subreaper, adopts what is
    /// orphaned.
    fn manager(&self, dir: &ProcessDir, unit: &Unit) -> Option<ProcessDir> {
        let home = cgroup::manager_path(unit);
        let mut parent = dir.stat().ppid;
        for _ in 0..CLIMB {
            let at = self.proc.process(parent).ok()?;
            let path = at.cgroup().ok()?;
            if cgroup::systemd_path(&path) == Some(home.as_str()) {
                return Some(at);
            }
            parent = at.stat().ppid;
        }
        None
    }
}

/// The folder in which a manager says which invocation of its units is running (`unit_export_invocation_id()`, src/core/unit.c).
fn units(manager: &ProcessDir) -> Result<OwnedFd, Errno> {
    let of_user = manager.image().argv.iter().any(|arg| arg == "--user");
    let folder = if of_user {
        match manager.environment("XDG_RUNTIME_DIR")? {
            Some(dir) => String::from_utf8(dir).map_err(|_| Errno::INVAL)?,
            None => format!("/run/user/{}", manager.uid()?),
        }
    } else {
        "/run".to_owned()
    };
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    // Below the manager's own root, wherever links point.
    let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
    openat2(manager.root()?, format!("{folder}/systemd/units"), flags, Mode::empty(), resolve)
}

/// An invocation id, sd-id128(3): 32 hexadecimal digits.
fn invocation(text: &[u8]) -> Option<String> {
    let id = std::str::from_utf8(text).ok()?;
    (id.len() == 32 && id.bytes().all(|b| b.is_ascii_hexdigit())).then(|| id.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invocation_id_is_32_digits() {
        let id = "0123456789abcdef0123456789ABCDEF";
        assert_eq!(invocation(id.as_bytes()).as_deref(), Some("0123456789abcdef0123456789abcdef"));
        for other in ["", "0123", &id[1..], &format!("{id}0"), "0123456789abcdef0123456789abcdeg"] {
            assert_eq!(invocation(other.as_bytes()), None, "{other}");
        }
    }

    #[test]
    fn who_is_in_no_service_has_no_unit() {
        let probe = Probe::new().unwrap();
        let gone = ProcessId::new(u32::MAX, 0);
        assert_eq!(probe.unit(gone), None);
        assert_eq!(probe.unit_of_any(&[gone]), None);
    }
}
