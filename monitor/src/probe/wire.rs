//! The state of a wire, seen from outside.
//!
//! A pipe: its read end is opened once more through the magic link of a process that holds it, polled and closed.
//! `EPOLLHUP` is exact: no write end is open anywhere (`pipe_poll()`, fs/pipe.c). It is never opened for writing, which
//! would revive it. A FIFO with a name cannot be asked this way (a fresh reader is told nothing about the past,
//! `fifo_open()`): there a duplicate of the descriptor is polled, whose flags are never touched: they are the target's.
//! A unix socket: `sock_diag` tells whether its peer was closed. Neither has a side effect on the target.

use std::{collections::BTreeSet, os::fd::AsRawFd};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fd::{AsFd, OwnedFd},
    fs::{CWD, FileType, Mode, OFlags, fstat, openat},
    io::Errno,
    process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open},
};

use super::{Probe, holders};
use crate::{
    host::{Fd, FdTable, ProcessDir, Target, UnixSocket, UnixSockets},
    model::{Holder, ProcessId, Stdio, WireState},
};

/// What was seen of a wire.
#[derive(Debug, PartialEq)]
pub(super) struct Sight {
    pub state: WireState,
    /// Why that is not all, if it is not.
    pub blind: Option<String>,
}

impl Sight {
    const fn clear(state: WireState) -> Self {
        Self { state, blind: None }
    }

    fn blind(why: impl Into<String>) -> Self {
        Self { state: WireState::Unknown, blind: Some(why.into()) }
    }
}

/// Whether these are all, nobody can tell from /proc.
fn held(holders: Vec<Holder>) -> WireState {
    WireState::Held { holders, unseen: true }
}

/// What one descriptor of the wire says.
enum Said {
    HungUp,
    /// Somebody has the other end; the path, if it is a FIFO with a name.
    Held(Option<Vec<u8>>),
}

impl Probe {
    /// The state of the wire of a server whose open files are `server`.
    pub(super) fn wire(&self, wire: Stdio, server: &[(ProcessId, FdTable)]) -> Sight {
        match wire {
            Stdio::Pipe(inode) => self.pipe(inode, server),
            Stdio::Socket(inode) => self.socket(inode, server),
            // A server without a wire has none to hang up.
            _ => Sight::clear(WireState::Unknown),
        }
    }

    fn pipe(&self, inode: u64, server: &[(ProcessId, FdTable)]) -> Sight {
        let mut failure = None;
        for (process, table) in server {
            let Ok(Some(dir)) = self.proc.identified(*process) else { continue };
            for number in pipe_fds(&dir, table, inode) {
                match ask_pipe(&dir, number, inode) {
                    Ok(Some(Said::HungUp)) => return Sight::clear(WireState::HungUp),
                    Ok(Some(Said::Held(None))) => return self.held(Stdio::Pipe(inode)),
                    Ok(Some(Said::Held(Some(path)))) => {
                        return match holders::fifo_holders(&self.proc, inode, &path) {
                            Ok(holders) => Sight::clear(held(holders)),
                            Err(error) => Sight::blind(error.to_string()),
                        };
                    }
                    // Closed or ended meanwhile, or the write end of the same pipe.
                    Ok(None) => {}
                    Err(errno) => {
                        failure = Some(format!("cannot poll descriptor {number} of {process}: {errno}"));
                    }
                }
            }
        }
        match failure {
            Some(failure) => Sight::blind(failure),
            None => self.abandoned(Stdio::Pipe(inode)),
        }
    }

    /// No process of the server has the wire open. What others have of it, if anything.
    fn abandoned(&self, wire: Stdio) -> Sight {
        let ask = |index: &holders::Index| {
            let holders = index.holders(&self.proc, wire);
            if !holders.is_empty() {
                return Sight::clear(held(holders));
            }
            if let Stdio::Pipe(inode) = wire {
                for (pid, number) in index.on(wire) {
                    match self.proc.process(pid).and_then(|dir| ask_pipe(&dir, number, inode)) {
                        Ok(Some(Said::HungUp)) => return Sight::clear(WireState::HungUp),
                        Ok(Some(Said::Held(_))) => return Sight::clear(held(Vec::new())),
                        Ok(None) | Err(_) => {}
                    }
                }
            }
            // Nobody on the host has either end open: nothing can ever come through it again. Where a process hides its
            // files, it may have the other end. The look at the server is complete all the same: it has no wire.
            Sight::clear(if index.blind.is_none() { WireState::HungUp } else { WireState::Unknown })
        };
        self.with_index(Age::Fresh, ask).unwrap_or_else(Sight::blind)
    }

    fn socket(&self, inode: u64, server: &[(ProcessId, FdTable)]) -> Sight {
        match self.diag(inode, server) {
            Ok(Some(socket)) if socket.hung_up() => Sight::clear(WireState::HungUp),
            Ok(Some(UnixSocket { peer: Some(peer), .. })) if peer != 0 => self.held(Stdio::Socket(peer)),
            Ok(None) if !server.iter().any(|(_, table)| table.sockets().any(|s| s == inode)) => {
                // The server has closed it. Who else has it may have passed it on; the peer cannot be told.
                match self.abandoned(Stdio::Socket(inode)) {
                    Sight { state: WireState::Held { .. }, .. } => Sight::clear(WireState::Unknown),
                    sight => sight,
                }
            }
            // A peer that is not accepted yet; a datagram socket without one; not a unix socket; or one of a network
            // namespace that is neither ours nor the server's.
            Ok(_) => Sight::clear(WireState::Unknown),
            // Its network namespace is closed to us for good: looking again would not help.
            Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
                Sight::clear(WireState::Unknown)
            }
            Err(error) => Sight::blind(format!("cannot ask the kernel about socket {inode}: {error}")),
        }
    }

    /// The socket, in our network namespace or in one of the server's.
    fn diag(&self, inode: u64, server: &[(ProcessId, FdTable)]) -> std::io::Result<Option<UnixSocket>> {
        if let Some(found) = UnixSockets::here()?.find(inode)? {
            return Ok(Some(found));
        }
        let mut looked = BTreeSet::from([self.proc.our_network()?]);
        let mut failure = None;
        for (process, _) in server {
            let Ok(Some(dir)) = self.proc.identified(*process) else { continue };
            let (Ok(name), Ok(namespace)) = (dir.network(), dir.open_file("ns/net")) else { continue };
            if looked.insert(name) {
                match UnixSockets::inside(namespace).and_then(|mut sockets| sockets.find(inode)) {
                    Ok(None) => {}
                    Ok(found) => return Ok(found),
                    Err(error) => failure = Some(error),
                }
            }
        }
        failure.map_or(Ok(None), Err)
    }

    /// It is not hung up: who has this end of it open?
    fn held(&self, end: Stdio) -> Sight {
        for age in [Age::Fresh, Age::New] {
            match self.with_index(age, |index| (index.holders(&self.proc, end), index.blind.clone())) {
                Ok((holders, _)) if !holders.is_empty() => return Sight::clear(held(holders)),
                Err(why) => return Sight::blind(why),
                // Nobody found: look anew; then it may be with one that could not be read.
                Ok((_, blind)) if age == Age::New => {
                    return Sight { state: held(Vec::new()), blind };
                }
                Ok(_) => {}
            }
        }
        Sight::clear(held(Vec::new()))
    }

    /// Asks the index of all holders.
    fn with_index<T>(&self, age: Age, ask: impl FnOnce(&holders::Index) -> T) -> Result<T, String> {
        let mut kept = self.holders.borrow_mut();
        let index = match kept.take().filter(|index| age == Age::Fresh && index.is_fresh()) {
            Some(index) => index,
            None => holders::Index::take(&self.proc).map_err(|error| error.to_string())?,
        };
        Ok(ask(kept.insert(index)))
    }
}

/// How old an index of all holders may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Age {
    Fresh,
    New,
}

/// The descriptors of a process that are open on this pipe or FIFO.
fn pipe_fds(dir: &ProcessDir, table: &FdTable, inode: u64) -> Vec<u32> {
    let numbers =
        |is_it: &dyn Fn(&Fd) -> bool| table.fds.iter().filter(|fd| is_it(fd)).map(|fd| fd.number).collect();
    let anonymous: Vec<u32> = numbers(&|fd| fd.target == Target::Pipe(inode));
    match dir.fd_dir() {
        // A FIFO has a name; only its type and number tell.
        Ok(fds) if anonymous.is_empty() => numbers(&|fd| {
            matches!(&fd.target, Target::Path(path) if path.starts_with(b"/"))
                && fds.stdio(fd.number) == Stdio::Pipe(inode)
        }),
        _ => anonymous,
    }
}

/// Asks the pipe through one descriptor; nothing if that is no read end of it (any more).
fn ask_pipe(dir: &ProcessDir, number: u32, inode: u64) -> Result<Option<Said>, Errno> {
    let ask = || -> Result<Option<Said>, Errno> {
        let fds = dir.fd_dir()?;
        if !fds.access(number).is_some_and(|access| access.read) {
            return Ok(None);
        }
        let (file, held) = match fds.target(number) {
            Some(Target::Pipe(n)) if n == inode => (reopen(&fds.pin(number)?, inode), Said::Held(None)),
            Some(Target::Path(path)) => (duplicate(dir, number, inode), Said::Held(Some(path))),
            _ => return Ok(None),
        };
        Ok(match file {
            Err(Errno::ACCESS) => duplicate(dir, number, inode)?,
            file => file?,
        }
        .map(|file| if has_hung_up(&file) { Said::HungUp } else { held }))
    };
    match ask() {
        Err(Errno::NOENT | Errno::SRCH | Errno::BADF) => Ok(None),
        said => said,
    }
}

/// A read end of our own. `pinned` is compared before it is opened: opening another kind of file might have effects.
fn reopen(pinned: &OwnedFd, inode: u64) -> Result<Option<OwnedFd>, Errno> {
    if !is_pipe(pinned, inode)? {
        return Ok(None);
    }
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    openat(CWD, format!("/proc/self/fd/{}", pinned.as_raw_fd()), flags, Mode::empty()).map(Some)
}

/// The target's own open file. Its flags are shared with the target: only ever polled.
fn duplicate(dir: &ProcessDir, number: u32, inode: u64) -> Result<Option<OwnedFd>, Errno> {
    let pid = i32::try_from(dir.id().pid).ok().and_then(Pid::from_raw).ok_or(Errno::SRCH)?;
    let pidfd = pidfd_open(pid, PidfdFlags::empty())?;
    if !dir.still_alive() {
        return Ok(None);
    }
    let file = pidfd_getfd(&pidfd, number.cast_signed(), PidfdGetfdFlags::empty())?;
    Ok(is_pipe(&file, inode)?.then_some(file))
}

fn is_pipe(file: impl AsFd, inode: u64) -> Result<bool, Errno> {
    let stat = fstat(file)?;
    Ok(stat.st_ino == inode && FileType::from_raw_mode(stat.st_mode) == FileType::Fifo)
}

/// `POLLHUP` comes unasked.
fn has_hung_up(file: &OwnedFd) -> bool {
    let mut fds = [PollFd::new(file, PollFlags::IN)];
    poll(&mut fds, Some(&Timespec::default())).is_ok()
        && fds.iter().any(|fd| fd.revents().contains(PollFlags::HUP))
}

#[cfg(test)]
#[path = "wire_tests.rs"]
mod tests;
