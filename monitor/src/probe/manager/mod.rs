//! What a service manager says about its units, over D-Bus. For `orphand doctor`: the daemon itself talks to nobody.
//!
//! A manager is asked at its own socket, with no bus in between: a socket with a path is reached through `/proc/PID/root`,
//! whatever mount and network namespaces its owner is in. Where there is none, the bus of its system or user is asked.
//! It answers its own user, and whom it can see in its PID namespace (`getpeercred()` in systemd's basic/socket-util.c); so a
//! [`child()`] asks, who is both.
//!
//! Invariant: asking changes nothing, and whatever the other side does, there is an answer or an error after [`PATIENCE`] and a bit.

mod bus;
mod child;

use std::time::Duration;

use rustix::{io::Errno, process::geteuid};
use serde::{Deserialize, Serialize};

pub use self::child::{CHILD_ARGUMENT, child};
use super::{
    Probe,
    unit::{is_users, runtime},
};
use crate::host::{Lodging, ProcessDir, with_deadline};
use orphand_core::model::{Place, ProcessId, UnitProperties};

/// How long a manager may be silent.
const PATIENCE: Duration = Duration::from_secs(2);

/// Why a manager does not tell about a unit. One line each; it goes from the child to its parent, too.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum ManagerError {
    /// No systemd above the process.
    #[error("no systemd is seen that manages it: run `orphand doctor` as root, where its manager runs")]
    NotFound,
    /// The manager ended, or cannot be looked at.
    #[error("cannot look at its manager, process {pid} ({why}): run `orphand doctor` as root")]
    Unseen {
        /// The manager.
        pid: u32,
        /// Why not.
        why: String,
    },
    /// There is no socket.
    #[error(
        "its manager, process {pid}, has neither a socket of its own nor a bus: ask it with `systemctl show`, where it runs"
    )]
    NoSocket {
        /// The manager.
        pid: u32,
    },
    /// A socket that does not take us.
    #[error("cannot reach its manager at {path} ({why}): run `orphand doctor` as root")]
    Unreachable {
        /// The socket, as the manager sees it.
        path: String,
        /// Why not.
        why: String,
    },
    /// Somebody else has the socket.
    #[error(
        "at {path} not its manager answers, but process {found}: ask it with `systemctl show`, where it runs"
    )]
    Stranger {
        /// The socket, as the manager sees it.
        path: String,
        /// Who has it; 0 if it is nobody seen here.
        found: i32,
    },
    /// No answer.
    #[error("its manager has not answered at {path} for {} s: does `systemctl status` hang, too?", PATIENCE.as_secs())]
    Silent {
        /// The socket, as the manager sees it.
        path: String,
    },
    /// The unit is not there.
    #[error("its manager has no unit of that name any more")]
    NoUnit,
    /// It refuses, or says something else than what it was asked.
    #[error("its manager does not tell ({why}): ask it with `systemctl show`, where it runs")]
    Refused {
        /// What it said.
        why: String,
    },
    /// Not as that user.
    #[error("cannot ask its manager as user {uid} ({why}): run `orphand doctor` as that user")]
    Child {
        /// The manager's user.
        uid: u32,
        /// Why not.
        why: String,
    },
}

/// What is asked, and how.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Question {
    /// The socket as the manager sees it, to be told.
    path: String,
    /// The manager, as it is numbered where it is asked, if the socket is to be its own; else a bus is behind it.
    manager: Option<u32>,
    /// Who we are, as the other side numbers users.
    uid: u32,
    /// The unit.
    unit: String,
}

impl Probe {
    /// Where the manager is of the unit that this process lives in, and what it says about the unit.
    pub fn service(&self, process: ProcessId) -> (Place, Result<UnitProperties, ManagerError>) {
        let this = self.clone();
        with_deadline(move || this.service_now(process))
    }

    fn service_now(&self, process: ProcessId) -> (Place, Result<UnitProperties, ManagerError>) {
        let Some((manager, unit)) = self.managed(process) else {
            return (Place::default(), Err(ManagerError::NotFound));
        };
        let place = self.place(&manager);
        (place, ask(&manager, place, &unit))
    }

    fn managed(&self, process: ProcessId) -> Option<(ProcessDir, String)> {
        let dir = self.proc.identified(process).ok()??;
        let lodging = Lodging::parse(&dir.cgroup().ok()?)?;
        Some((self.manager(&dir, &lodging)?, lodging.unit.name))
    }

    fn place(&self, manager: &ProcessDir) -> Place {
        let first = |dir: &ProcessDir| dir.leads_namespace().is_ok_and(|leads| leads);
        let init = if first(manager) {
            Some(manager.id().pid)
        } else {
            self.proc.ancestors(manager).find(first).map(|init| init.id().pid)
        };
        let uid = || manager.uid().ok().map(|uid| manager.uid_inside(uid).ok().flatten().unwrap_or(uid));
        Place { user: if is_users(manager) { uid() } else { None }, container: init.filter(|pid| *pid != 1) }
    }
}

/// Tries the manager's sockets in turn; whoever is silent once is not asked again.
fn ask(manager: &ProcessDir, place: Place, unit: &str) -> Result<UnitProperties, ManagerError> {
    let pid = manager.id().pid;
    let unseen = |errno: Errno| ManagerError::Unseen { pid, why: errno.to_string() };
    let (uid, us) = (manager.uid().map_err(unseen)?, geteuid());
    let other = us.is_root() && uid != us.as_raw();
    let user = if other { Some((uid, manager.gid().map_err(unseen)?)) } else { None };
    let as_uid = if other { uid } else { us.as_raw() };
    let inside = manager.uid_inside(as_uid).ok().flatten().unwrap_or(as_uid);
    let own_pid = manager.pid_inside().map_err(unseen)?;
    let mut failed = None;
    for (path, own) in sockets(manager, place) {
        let told = String::from_utf8_lossy(&path).into_owned();
        // A link that somebody lays there does not lead us out of the manager's root.
        let socket = match manager.file_inside(&path) {
            Ok(socket) => socket,
            Err(Errno::NOENT | Errno::NOTDIR) => continue,
            Err(errno) => {
                let why = errno.to_string();
                failed.get_or_insert(ManagerError::Unreachable { path: told, why });
                continue;
            }
        };
        // A bus does not mind where we are.
        let away = own && place.container.is_some();
        let namespace = if away { Some(manager.pid_namespace().map_err(unseen)?) } else { None };
        let question =
            Question { path: told, manager: own.then_some(own_pid), uid: inside, unit: unit.to_owned() };
        let said = child::ask(child::Asker { uid: as_uid, user, namespace }, socket, &question);
        match said {
            Ok(_) | Err(ManagerError::Silent { .. } | ManagerError::NoUnit) => return said,
            Err(error) => failed.get_or_insert(error),
        };
    }
    Err(failed.unwrap_or(ManagerError::NoSocket { pid }))
}

/// Where a manager listens, as it sees the paths, and whether it does so itself: `bus_init_private()` in systemd's core/dbus.c.
fn sockets(manager: &ProcessDir, place: Place) -> Vec<(Vec<u8>, bool)> {
    if place.user.is_none() {
        let sockets = [(&b"/run/systemd/private"[..], true), (b"/run/dbus/system_bus_socket", false)];
        return sockets.map(|(path, own)| (path.to_vec(), own)).into();
    }
    let Some(runtime) = runtime(manager) else { return Vec::new() };
    let below = |path: &[u8]| [runtime.as_slice(), path].concat();
    vec![(below(b"/systemd/private"), true), (below(b"/bus"), false)]
}

#[cfg(test)]
mod tests;
