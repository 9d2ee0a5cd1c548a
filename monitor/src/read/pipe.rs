//! Asks a pipe whether its other end is open, through a descriptor of a process that has it, without a side
//! effect.
//!
//! The read end of an anonymous pipe is opened once more through the /proc link of a process that holds it,
//! polled and closed. `POLLHUP` is exact: no write end is open anywhere, nor in flight (`pipe_poll()`,
//! fs/pipe.c). The code never opens anything for writing, because that would revive the pipe. It asks a write
//! end through a duplicate of the descriptor (`pidfd_getfd(2)`). `POLLERR` is exact too: no read end is open
//! anywhere. A named FIFO is always asked through a duplicate, because a new reader is not told about the
//! past (`fifo_open()`). A duplicate shares its flags with the target, so it is polled and never changed.

use std::sync::Once;

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fd::{AsFd, OwnedFd},
    fs::{CWD, FileType, Mode, OFlags, fstat, openat},
    io::{Errno, ioctl_fionread},
    net::sockopt::socket_type,
    pipe::fcntl_getpipe_size,
    process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open},
};

use crate::{
    host::{Access, Fd, FdTable, Proc, ProcessDir, Target, Visit},
    os::own,
};
use orphand_core::model::{ProcessId, Stdio, scene::Side};

/// What one descriptor of the wire tells.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Said {
    HungUp,
    /// No process has the other end, but any process may open it: the FIFO still exists under its name.
    Waits,
    /// Another process has the other end open.
    Held,
}

/// The descriptors of a process that are open on this pipe or FIFO.
pub(crate) fn descriptors(dir: &ProcessDir, table: &FdTable, inode: u64) -> Vec<u32> {
    let numbers =
        |is_it: &dyn Fn(&Fd) -> bool| table.fds.iter().filter(|fd| is_it(fd)).map(|fd| fd.number).collect();
    let anonymous: Vec<u32> = numbers(&|fd| fd.target == Target::Pipe(inode));
    match dir.fd_dir() {
        // A FIFO has a path, so the link does not tell; its type and inode number do.
        Ok(fds) if anonymous.is_empty() => numbers(&|fd| {
            matches!(&fd.target, Target::Path(path) if path.starts_with(b"/"))
                && fds.stdio(fd.number) == Stdio::Pipe(inode)
        }),
        _ => anonymous,
    }
}

/// Asks the pipe through one descriptor; `None` if that is not, or no longer, the server's end.
pub(crate) fn ask(dir: &ProcessDir, number: u32, inode: u64, side: Side) -> Result<Option<Said>, Errno> {
    let ask = || -> Result<Option<Said>, Errno> {
        let _at = dir.at()?;
        let fds = dir.fd_dir()?;
        if !fds.access(number).is_some_and(|access| has(access, side)) {
            return Ok(None);
        }
        let target = fds.target(number);
        let file = match target {
            Some(Target::Pipe(n)) if n == inode && side == Side::Reads => {
                match reopen(&fds.pin(number)?, inode) {
                    Err(Errno::ACCESS) => duplicate(dir, number, inode)?,
                    file => file?,
                }
            }
            Some(Target::Pipe(n)) if n == inode => duplicate(dir, number, inode)?,
            Some(Target::Path(_)) => duplicate(dir, number, inode)?,
            _ => return Ok(None),
        };
        let Some(file) = file else { return Ok(None) };
        if !has_hung_up(&file, side) {
            return Ok(Some(Said::Held));
        }
        let has_name = matches!(target, Some(Target::Path(_))) && fstat(&file)?.st_nlink > 0;
        Ok(Some(if has_name { Said::Waits } else { Said::HungUp }))
    };
    match ask() {
        Err(Errno::NOENT | Errno::SRCH | Errno::BADF) => Ok(None),
        said => said,
    }
}

/// Whether a descriptor with this access is this end of a pipe.
pub(super) const fn has(access: Access, side: Side) -> bool {
    match side {
        Side::Reads => access.read,
        _ => access.write,
    }
}

/// Opens the read end once more. The identity of `pinned` is compared first, because opening another kind of
/// file might have effects.
fn reopen(pinned: &OwnedFd, inode: u64) -> Result<Option<OwnedFd>, Errno> {
    if !is_file(pinned, FileType::Fifo, inode)? {
        return Ok(None);
    }
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    openat(CWD, own::path_of(pinned), flags, Mode::empty()).map(Some)
}

/// A duplicate of the target's open file. Its flags are shared with the target, so it is only polled.
fn duplicate(dir: &ProcessDir, number: u32, inode: u64) -> Result<Option<OwnedFd>, Errno> {
    match duplicate_any(dir, number)? {
        Some(copy) if is_file(&copy.file, FileType::Fifo, inode)? => Ok(Some(copy.file)),
        _ => Ok(None),
    }
}

/// A duplicate of a pipe or socket of a process.
#[derive(Debug)]
pub(crate) struct Duplicate {
    pub(crate) file: OwnedFd,
    _at: Visit,
}

/// A duplicate of the pipe or socket that the target has open under this number; `None` if that is another file, or the
/// target has ended. Whatever was found there a moment ago, it may be a file of a file system of the user's own, which
/// answers neither what it is asked nor its close. So nothing is asked of it, since whoever starts a program would close it
/// as well, and it is closed before the visit ends.
pub(crate) fn duplicate_any(dir: &ProcessDir, number: u32) -> Result<Option<Duplicate>, Errno> {
    let at = dir.at()?;
    let pid = i32::try_from(dir.id().pid).ok().and_then(Pid::from_raw).ok_or(Errno::SRCH)?;
    let pidfd = pidfd_open(pid, PidfdFlags::empty())?;
    if !dir.still_alive() {
        return Ok(None);
    }
    let file = pidfd_getfd(&pidfd, number.cast_signed(), PidfdGetfdFlags::empty());
    if let Err(Errno::PERM | Errno::NOSYS) = file {
        tell_once();
    }
    let copy = Duplicate { file: file?, _at: at };
    let is_one = fcntl_getpipe_size(&copy.file).is_ok() || socket_type(&copy.file).is_ok();
    Ok(is_one.then_some(copy))
}

/// Logs once what is lost: a sandbox that forbids the call does so for good.
fn tell_once() {
    static TOLD: Once = Once::new();
    TOLD.call_once(|| {
        tracing::warn!(
            "pidfd_getfd(2) is forbidden: servers whose wires are named pipes cannot be judged and stay unproven (wire_unknown), and \
             no server is recognised by its protocol; allow it to orphand, in its unit by SystemCallFilter=pidfd_getfd"
        );
    });
}

pub(crate) fn is_file(file: impl AsFd, kind: FileType, inode: u64) -> Result<bool, Errno> {
    let stat = fstat(file)?;
    Ok(stat.st_ino == inode && FileType::from_raw_mode(stat.st_mode) == kind)
}

/// poll(2) reports both events without a request. A file that is open for reading and writing is both ends,
/// so it is its own reader and writer.
fn has_hung_up(file: &OwnedFd, side: Side) -> bool {
    let mark = match side {
        Side::Reads => PollFlags::HUP,
        _ => PollFlags::ERR,
    };
    let mut fds = [PollFd::new(file, PollFlags::empty())];
    poll(&mut fds, Some(&Timespec::default())).is_ok() && fds.iter().any(|fd| fd.revents().contains(mark))
}

/// How many bytes wait in this pipe or socket, asked through a duplicate of a descriptor of the first of these processes
/// that has it: ioctl(2) with `FIONREAD`, which takes nothing. `None` if none of them has it, or it cannot be asked.
pub(crate) fn waiting_bytes(proc: &Proc, processes: &[ProcessId], wire: Stdio) -> Option<u64> {
    let inode = wire.inode()?;
    processes.iter().find_map(|process| {
        let dir = proc.identified(*process).ok()??;
        let number = dir.fd_table().ok()?.fds.iter().find(|fd| fd.target.wire() == Some(wire))?.number;
        let copy = duplicate_any(&dir, number).ok()??;
        let is_same = fstat(&copy.file).is_ok_and(|stat| stat.st_ino == inode);
        ioctl_fionread(&copy.file).ok().filter(|_| is_same)
    })
}

#[cfg(test)]
mod tests {
    use std::{
        io::Write as _,
        os::{fd::OwnedFd, unix::net::UnixStream},
        process::Stdio as Std,
    };

    use super::*;
    use crate::probe::tests::Started;

    fn waiting(server: &Started) -> Option<u64> {
        waiting_bytes(&Proc::system().unwrap(), &[server.id()], server.wire())
    }

    #[test]
    fn what_nobody_has_read_is_counted_and_stays() {
        let mut server = Started::sleeper(Std::piped());
        assert_eq!(waiting(&server), Some(0));
        server.0.stdin.as_mut().unwrap().write_all(b"{}\n").unwrap();
        assert_eq!((waiting(&server), waiting(&server)), (Some(3), Some(3)));
        let (mut ours, theirs) = UnixStream::pair().unwrap();
        let server = Started::sleeper(OwnedFd::from(theirs));
        assert_eq!(waiting(&server), Some(0));
        ours.write_all(b"{\"id\":1}\n").unwrap();
        assert_eq!((waiting(&server), waiting(&server)), (Some(9), Some(9)));
    }

    #[test]
    fn what_is_not_there_is_not_known() {
        let server = Started::sleeper(Std::null());
        assert_eq!(waiting(&server), None);
        let proc = Proc::system().unwrap();
        assert_eq!(waiting_bytes(&proc, &[server.id()], Stdio::Pipe(1)), None);
        let other = ProcessId { start: server.id().start + 1, ..server.id() };
        let (reader, _writer) = std::io::pipe().unwrap();
        let wire = Stdio::Pipe(fstat(&reader).unwrap().st_ino);
        let reads = Started::sleeper(reader);
        assert_eq!(waiting_bytes(&proc, &[reads.id()], wire), Some(0));
        assert_eq!(waiting_bytes(&proc, &[other], wire), None);
    }
}
