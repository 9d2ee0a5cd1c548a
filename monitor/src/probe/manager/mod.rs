//! What a service manager says about its units, over D-Bus: for `orphand doctor`, and whether a unit is being stopped.
//!
//! The code asks a manager at the manager's own socket, without a bus in between. It reaches the path of the
//! socket through `/proc/PID/root`, so the mount and network namespaces of the manager do not matter. Where
//! there is no such socket, it asks the bus of the system or of the user. A manager answers its own user, and
//! only a process that it can see in its PID namespace (`getpeercred()` in systemd's basic/socket-util.c).
//! Therefore a [helper] asks that meets both conditions: so the reply is parsed with no more rights than its sender has.
//!
//! Invariant: a question changes nothing. Whatever the other side does, the answer or an error comes within
//! [`PATIENCE`] and a little more: then the helper is ended.

mod bus;

use std::{
    collections::BTreeMap,
    fmt,
    os::fd::OwnedFd,
    time::{Duration, Instant},
};

use rustix::{io::Errno, process::geteuid};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::{
    Probe,
    unit::{is_users, runtime},
};
use crate::{
    helper::{self, HelperError, Order, Task},
    host::{Lodging, ProcessDir, with_deadline},
};
use orphand_core::model::{Place, ProcessId, Unit, UnitProperties};

/// How long a manager may be silent before the code gives up.
const PATIENCE: Duration = Duration::from_secs(2);

/// Why a manager tells nothing about a unit. Each message is one line, because the helper passes it on as a
/// line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum ManagerError {
    #[error("its manager has not answered at {0} for {secs} s: does `systemctl status` hang, too?", secs = PATIENCE.as_secs())]
    Silent(String),
    #[error("its manager has no unit of that name any more")]
    NoUnit,
    /// The question could not be put to it.
    #[error("{0}")]
    Unasked(String),
    #[error("{0}")]
    Other(String),
}

impl ManagerError {
    /// The socket at this path, as the manager sees it, does not accept a connection.
    fn unreachable(path: &str, why: &impl fmt::Display) -> Self {
        Self::Other(format!("cannot reach its manager at {path} ({why}): run `orphand doctor` as root"))
    }

    /// The manager refuses, or its reply does not fit the question.
    fn refused(why: &impl fmt::Display) -> Self {
        let advice = "ask it with `systemctl show`, where it runs";
        Self::Other(format!("its manager does not tell ({why}): {advice}"))
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Question {
    /// The path of the socket as the manager sees it, for messages.
    path: String,
    /// The process id that the listener must have, in the PID namespace of the helper. `None` if the socket
    /// belongs to a bus.
    manager: Option<u32>,
    /// Our user id in the user namespace of the other side.
    uid: u32,
    /// What is asked: the properties of this unit, or which units it is stopping.
    unit: Option<String>,
}

/// The answer to a question, in the helper. The one file is the manager's socket, opened with `O_PATH`.
pub(super) fn help(question: &[u8], files: &[OwnedFd]) -> Option<Vec<u8>> {
    let [socket] = files else { return None };
    helper::answered(question, |question: Question| match &question.unit {
        Some(unit) => serde_json::to_value(bus::ask(socket, &question, unit)).ok(),
        None => serde_json::to_value(bus::stopping(socket, &question)).ok(),
    })
}

impl Probe {
    /// Where the manager is that runs the unit of this process, and what it says about the unit.
    pub fn service(&self, process: ProcessId) -> (Place, Result<UnitProperties, ManagerError>) {
        let this = self.clone();
        with_deadline(move || {
            let Some((manager, unit)) = this.managed(process) else {
                let why = "no systemd is seen that manages it: run `orphand doctor` as root, where its manager runs";
                return (Place::default(), Err(ManagerError::Other(why.to_owned())));
            };
            let place = this.place(&manager);
            (place, ask(&manager, place, Some(&unit)))
        })
    }

    /// Whether a unit that this process is in, of whatever kind and however far above it, is being stopped: then a manager is ending
    /// it. A manager that did not answer in time, or could not be asked, may be; one that refuses, and who has none, are not.
    pub(super) fn is_being_stopped(&self, process: ProcessId, asked: &mut Asked) -> bool {
        let Ok(Some(dir)) = self.proc.identified(process) else { return false };
        Lodging::all(&dir.cgroup().unwrap_or_default()).iter().any(|lodging| {
            asked.is_stopping(&lodging.unit, || match self.manager(&dir, lodging) {
                Some(manager) => ask(&manager, self.place(&manager), None),
                None => Ok(Vec::new()),
            })
        })
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

/// What the managers say that they are stopping: each is asked once, and none any more after [`PATIENCE`].
#[derive(Default)]
pub(super) struct Asked {
    /// By the root of the manager. Absent: not known.
    said: BTreeMap<String, Option<Vec<String>>>,
    since: Option<Instant>,
}

impl Asked {
    fn is_stopping(&mut self, unit: &Unit, ask: impl FnOnce() -> Result<Vec<String>, ManagerError>) -> bool {
        let is_over = self.since.get_or_insert_with(Instant::now).elapsed() >= PATIENCE;
        let said = self.said.entry(unit.manager.clone()).or_insert_with(|| {
            if is_over {
                return None;
            }
            ask().map_or_else(
                |why| {
                    tracing::debug!("whether {} is being stopped is not known: {why}", unit.name);
                    let is_known = !matches!(why, ManagerError::Silent(_) | ManagerError::Unasked(_));
                    is_known.then(Vec::new)
                },
                Some,
            )
        });
        said.as_ref().is_none_or(|names| names.contains(&unit.name))
    }
}

/// Tries the manager's sockets in turn until one answers. Gives up at the first that is silent.
fn ask<T: DeserializeOwned>(
    manager: &ProcessDir,
    place: Place,
    unit: Option<&str>,
) -> Result<T, ManagerError> {
    let pid = manager.id().pid;
    let unseen = |errno: Errno| {
        let what = format!("cannot look at its manager, process {pid} ({errno})");
        ManagerError::Other(format!("{what}: run `orphand doctor` as root"))
    };
    let (uid, us) = (manager.uid().map_err(unseen)?, geteuid());
    let other = us.is_root() && uid != us.as_raw();
    let user = if other { Some((uid, manager.gid().map_err(unseen)?)) } else { None };
    let as_uid = if other { uid } else { us.as_raw() };
    let inside = manager.uid_inside(as_uid).ok().flatten().unwrap_or(as_uid);
    let own_pid = manager.pid_inside().map_err(unseen)?;
    let mut failed = None;
    for (path, own) in sockets(manager, place) {
        let told = String::from_utf8_lossy(&path).into_owned();
        // A symbolic link at this path cannot lead out of the manager's root.
        let socket = match manager.file_inside(&path) {
            Ok(socket) => socket,
            Err(Errno::NOENT | Errno::NOTDIR) => continue,
            Err(errno) => {
                failed.get_or_insert(ManagerError::unreachable(&told, &errno));
                continue;
            }
        };
        // A bus answers from any PID namespace.
        let away = own && place.container.is_some();
        let namespace = if away { Some(manager.open_file("ns/pid").map_err(unseen)?) } else { None };
        let question = Question {
            path: told,
            manager: own.then_some(own_pid),
            uid: inside,
            unit: unit.map(str::to_owned),
        };
        let order = Order { task: Task::Manager, files: vec![socket], user, namespace, patience: PATIENCE };
        let said = helper::ask(order, &question).unwrap_or_else(|why| match why {
            HelperError::Silent(_) => Err(ManagerError::Silent(question.path)),
            why => {
                let what = format!("cannot ask its manager as user {as_uid} ({why})");
                Err(ManagerError::Unasked(format!("{what}: run `orphand doctor` as that user")))
            }
        });
        match said {
            Ok(_) | Err(ManagerError::Silent(_) | ManagerError::NoUnit) => return said,
            Err(error) => failed.get_or_insert(error),
        };
    }
    Err(failed.unwrap_or_else(|| {
        let what = format!("its manager, process {pid}, has neither a socket of its own nor a bus");
        ManagerError::Other(format!("{what}: ask it with `systemctl show`, where it runs"))
    }))
}

/// The paths where a manager may listen, as it sees them, and whether the socket is its own (else a bus has
/// it): `bus_init_private()` in systemd's core/dbus.c.
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
