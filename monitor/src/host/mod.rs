//! Reads the running host: /proc and the kernel's list of unix sockets. No other module reads files of
//! /proc.
//!
//! Invariant: nothing in this module changes the processes that it inspects. Everything that is read
//! through one [`ProcessDir`] belongs to one process: the directory is opened once, and the kernel binds
//! that descriptor to the process. After the pid is reused, reads return `ESRCH` instead of the facts of
//! another process.
//!
//! A process can delay some of these reads. Such a read runs on a thread with a deadline
//! ([`with_deadline`]). Parsers are pure functions over bytes.

mod cgroup;
mod condition;
mod diag;
mod environ;
mod fd;
mod fields;
pub mod identity;
mod lock_file;
mod maps;
mod mounts;
mod moved_wire;
mod named_file;
mod net;
mod process;
mod rights;
mod scope;
mod snapshot;
mod stat;
mod stuck;
mod system;
mod tasks;
mod unix;
mod usage;
mod watch;

use std::{
    fs::File,
    io::Read as _,
    mem::MaybeUninit,
    path::{Path, PathBuf},
    sync::Arc,
};

use rustix::{
    fd::{AsFd, OwnedFd},
    fs::{CWD, Mode, OFlags, RawDir, openat},
    io::Errno,
};

pub use cgroup::{Lodging, memory_of, owner_of_group, slices};
pub use condition::SystemCall;
pub use diag::user_of_far_end;
pub use fd::{Access, Fd, FdDir, FdTable, Target, character_device};
pub use lock_file::{Instance, lock_holder};
pub use maps::SharedMemory;
pub use named_file::is_for_debuggers;
pub use net::{Endpoint, InternetSocket, TcpState, UnixSocketLine, far_end_of, internet_socket, unix_socket};
use process::CGROUP_MAX;
pub use process::{ProcessDir, Running, is_as_started};
pub use rights::Rights;
pub use scope::{Place, Scope};
pub use snapshot::{COMMAND_LINE_MAX, CommandLine, Room};
use snapshot::{Seen, as_parent};
pub use stat::Stat;
pub use stuck::stuck;
pub use system::{
    boot_id, is_own_child, own_children, own_namespace, own_network, pid_namespace_of, process_limits,
};
pub use tasks::{PidNamespace, TaskRow};
pub use unix::{UnixSocket, UnixSockets, port_range};
pub use watch::{Alone, UNANSWERED, Visit, hastily, in_turn_of, with_deadline};

use crate::{
    helper::{self, Cost},
    os::descriptors::ran_out,
};
use orphand_core::model::ProcessId;

#[derive(Debug, thiserror::Error)]
#[error("cannot {what}")]
pub struct HostError {
    what: String,
    errno: Errno,
}

impl HostError {
    /// A file or directory of /proc could not be opened, listed or read.
    fn of_file(operation: &str, path: &Path, errno: Errno) -> Self {
        Self { what: format!("{operation} {}: {errno}; is /proc mounted?", path.display()), errno }
    }

    /// A process exists but cannot be read, because descriptors or memory have run out.
    fn of_process(pid: u32, errno: Errno) -> Self {
        Self { what: format!("read process {pid} in /proc: {errno}"), errno }
    }

    /// Whether the cause is a lack of descriptors.
    pub fn is_want(&self) -> bool {
        ran_out(self.errno)
    }
}

/// An open /proc, or a directory tree with the same layout.
#[derive(Clone, Debug)]
pub struct Proc {
    root: Arc<OwnedFd>,
    path: PathBuf,
}

impl Proc {
    pub fn system() -> Result<Self, HostError> {
        Self::at("/proc")
    }

    /// Opens a tree with the layout of /proc: for tests, and for a /proc that is mounted elsewhere.
    pub fn at(path: impl Into<PathBuf>) -> Result<Self, HostError> {
        let path = path.into();
        let root = openat(CWD, &path, DIRECTORY, Mode::empty());
        let root = root.map_err(|errno| HostError::of_file("open", &path, errno))?;
        Ok(Self { root: root.into(), path })
    }

    /// The pids of all processes, including zombies and kernel threads, in the kernel's order.
    pub fn pids(&self) -> Result<Vec<u32>, HostError> {
        numbers(&*self.root, ".").map_err(|errno| HostError::of_file("list", &self.path, errno))
    }

    /// Opens the directory of the process that has the pid `pid` now. The error [`UNANSWERED`] means that
    /// reads of this process do not return.
    pub fn process(&self, pid: u32) -> Result<ProcessDir, Errno> {
        watch::door(pid)?;
        let _at = watch::visit(pid)?;
        ProcessDir::open(&self.root, pid)
    }

    /// Opens the directory of exactly this process. `None` means that the process has ended; a zombie
    /// counts as ended. An error does not prove an end: this program may have run out of descriptors.
    pub fn identified(&self, id: ProcessId) -> Result<Option<ProcessDir>, Errno> {
        match self.process(id.pid) {
            Ok(dir) => Ok(Some(dir).filter(|dir| dir.id() == id && dir.stat().is_alive())),
            Err(Errno::NOENT | Errno::SRCH) => Ok(None),
            Err(errno) => Err(errno),
        }
    }

    /// The number in our PID namespace of the child that this process knows by `number`, or, where that is negative, of the process
    /// group; `None` if no child has it.
    pub fn child_known_as(&self, parent: &ProcessDir, number: i32) -> Result<Option<i32>, Errno> {
        let depth = parent.pids()?.len();
        if depth == 1 {
            return Ok(Some(number));
        }
        let name = if number < 0 { "NSpgid" } else { "NSpid" };
        let numbers = |pid| self.process(pid).and_then(|child| child.in_namespaces(name)).ok();
        let found = parent
            .children()?
            .into_iter()
            .filter_map(numbers)
            .find(|numbers| numbers.get(depth - 1) == Some(&number.unsigned_abs()));
        let ours = found.and_then(|numbers| i32::try_from(*numbers.first()?).ok());
        Ok(ours.map(|ours| ours * number.signum()))
    }

    /// The ancestors of this process, its present parent first. The sequence stops at the first one that
    /// cannot be read.
    pub fn ancestors(&self, dir: &ProcessDir) -> impl Iterator<Item = ProcessDir> {
        let above = |child: &ProcessDir| {
            let ppid = child.stat().ppid;
            let parent = self.process(ppid).ok()?;
            as_parent(parent.id(), child.id()).map(|_| parent)
        };
        let mut next = above(dir);
        // A chain of parents ends at pid 1. The bound covers a chain that changes during the walk.
        std::iter::from_fn(move || {
            let found = next.take()?;
            next = above(&found);
            Some(found)
        })
        .take(1024)
    }

    /// Our own network namespace, as the text of the link `ns/net`.
    pub fn our_network(&self) -> Result<Vec<u8>, Errno> {
        link(&*self.root, "thread-self/ns/net")
    }
}

const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// The entries of a directory whose names are decimal numbers. It is opened anew: the read position belongs to the open file.
fn numbers(dir: impl AsFd, path: &str) -> Result<Vec<u32>, Errno> {
    let dir = openat(dir, path, DIRECTORY, Mode::empty())?;
    let mut numbers = Vec::with_capacity(32);
    let mut buffer = [MaybeUninit::<u8>::uninit(); 16 * 1024];
    let mut entries = RawDir::new(dir, &mut buffer);
    while let Some(entry) = entries.next() {
        numbers.extend(entry?.file_name().to_str().ok().and_then(|name| name.parse::<u32>().ok()));
    }
    Ok(numbers)
}

/// The target of a symbolic link, at most [`LINK_MAX`] bytes of it.
fn link(dir: impl AsFd, path: &str) -> Result<Vec<u8>, Errno> {
    let mut buffer = [MaybeUninit::<u8>::uninit(); LINK_MAX];
    let (target, _) = rustix::fs::readlinkat_raw(dir, path, &mut buffer)?;
    Ok(target.to_vec())
}

/// `PATH_MAX`. `d_path()` fails with `ENAMETOOLONG` when a path is longer than a page.
const LINK_MAX: usize = 4096;

/// Reads up to `limit` bytes of a file, and whether it has more. Room for a page from the start: the kernel makes `stat`
/// and the like as one record, which then comes in one piece.
fn read(dir: impl AsFd, path: &str, limit: usize) -> Result<(Vec<u8>, bool), Errno> {
    let file = openat(dir, path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    let mut bytes = Vec::with_capacity(limit.min(4095) + 1);
    let got = File::from(file).take((limit as u64).saturating_add(1)).read_to_end(&mut bytes);
    got.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
    let more = bytes.len() > limit;
    bytes.truncate(limit);
    Ok((bytes, more))
}

/// The same of a file of a process that the kernel makes in one piece, however long: read by a helper.
fn read_apart(pid: u32, dir: impl AsFd, path: &str, limit: usize) -> Result<(Vec<u8>, bool), Errno> {
    let file = {
        let _at = watch::visit(pid)?;
        openat(dir, path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?
    };
    let mut text = next_apart(pid, &file, limit)?;
    let more = text.len() > limit;
    text.truncate(limit);
    Ok((text, more))
}

/// What comes next in such a file, or waits in a pipe or socket: up to `limit` bytes and, if there is more, one. Within a
/// [visit](watch::visit) its time would count twice.
fn next_apart(pid: u32, file: &OwnedFd, limit: usize) -> Result<Vec<u8>, Errno> {
    let mut cost = Cost::default();
    let read = helper::read(file, limit, || identity::real_user(pid), &mut cost);
    watch::charge(pid, cost);
    read
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_that_is_not_there_is_named() {
        let error = Proc::at("/nowhere/proc").unwrap_err().to_string();
        assert_eq!(
            error,
            "cannot open /nowhere/proc: No such file or directory (os error 2); is /proc mounted?"
        );
    }
}
