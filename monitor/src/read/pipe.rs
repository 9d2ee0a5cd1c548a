//! Asks a pipe whether its other end is open, through a duplicate of the descriptor of a process that has it
//! (`pidfd_getfd(2)`), without a side effect.
//!
//! `POLLHUP` at a read end is exact: no write end is open anywhere, nor in flight (`pipe_poll()`, fs/pipe.c). So is `POLLERR`
//! at a write end. A duplicate shares its flags with the target, so it is polled and never changed. Nothing is opened: that
//! would revive a pipe, and a new reader of a FIFO is not told about the past.
//!
//! Invariant: nothing is asked that takes the lock of the pipe, as open(2), `F_GETPIPE_SZ` and `FIONREAD` do. Who reads into a
//! page that a file system of his own provides keeps it for as long as he likes, and a thread that waits for it cannot be
//! killed: neither this program nor its successor would come to an end.

use std::sync::Once;

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fd::{AsFd, OwnedFd},
    fs::{AtFlags, FileType, Statx, StatxFlags, statx},
    io::{Errno, ioctl_fionread},
    net::{AddressFamily, sockopt::socket_domain},
    process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open},
};

use crate::host::{Access, Fd, FdTable, Proc, ProcessDir, Target, Visit};
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
        let has_path = match fds.target(number) {
            Some(Target::Pipe(n)) if n == inode => false,
            Some(Target::Path(_)) => true,
            _ => return Ok(None),
        };
        let Some(Duplicate { file, .. }) = duplicate_any(dir, number)? else { return Ok(None) };
        if !is_file(&file, FileType::Fifo, inode)? {
            return Ok(None);
        }
        if !has_hung_up(&file, side) {
            return Ok(Some(Said::Held));
        }
        let has_name = has_path && status(&file)?.stx_nlink > 0;
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

/// A duplicate of a pipe or socket of a process.
#[derive(Debug)]
pub(crate) struct Duplicate {
    pub(crate) file: OwnedFd,
    _at: Visit,
}

impl Duplicate {
    /// What waits there and stays, as far as `most` bytes. The visit ends before: somebody else looks.
    pub(crate) fn waiting(self, dir: &ProcessDir, most: usize) -> Result<Vec<u8>, Errno> {
        let Self { file, _at: visit } = self;
        drop(visit);
        dir.waiting_in(file, most)
    }
}

/// A duplicate of the pipe or socket that the target has open under this number; `None` if that is another file, or the
/// target has ended. Whatever was found there a moment ago, it may be a file of a file system of the user's own, which
/// answers neither what it is asked nor its close. So that file system is asked nothing, since whoever starts a program would
/// close it as well, and it is closed before the visit ends.
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
    let kind = FileType::from_raw_mode(status(&copy.file)?.stx_mode.into());
    Ok([FileType::Fifo, FileType::Socket].contains(&kind).then_some(copy))
}

/// Logs once what is lost: a sandbox that forbids the call does so for good.
fn tell_once() {
    static TOLD: Once = Once::new();
    TOLD.call_once(|| {
        tracing::warn!(
            "pidfd_getfd(2) is forbidden: servers whose wires are named pipes cannot be judged and stay unproven (wire_unknown), \
             no server is recognised by its protocol, and none whose living owner has closed its pipe is found; allow it to orphand, \
             in its unit by SystemCallFilter=pidfd_getfd"
        );
    });
}

pub(crate) fn is_file(file: impl AsFd, kind: FileType, inode: u64) -> Result<bool, Errno> {
    let status = status(file)?;
    Ok(status.stx_ino == inode && FileType::from_raw_mode(status.stx_mode.into()) == kind)
}

/// What the kernel knows of an open file. Its file system is asked nothing.
fn status(file: impl AsFd) -> Result<Statx, Errno> {
    let fields = StatxFlags::TYPE | StatxFlags::INO | StatxFlags::NLINK;
    statx(file, "", AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC, fields)
}

/// poll(2) reports both events without a request. A file that is open for reading and writing is both ends,
/// so it is its own reader and writer.
pub(crate) fn has_hung_up(file: &OwnedFd, side: Side) -> bool {
    let mark = match side {
        Side::Reads => PollFlags::HUP,
        _ => PollFlags::ERR,
    };
    let mut fds = [PollFd::new(file, PollFlags::empty())];
    poll(&mut fds, Some(&Timespec::default())).is_ok() && fds.iter().any(|fd| fd.revents().contains(mark))
}

/// Whether nothing waits to be read, as poll(2) tells.
pub(crate) fn is_empty(file: &OwnedFd) -> Result<bool, Errno> {
    let mut fds = [PollFd::new(file, PollFlags::IN)];
    poll(&mut fds, Some(&Timespec::default()))?;
    Ok(!fds.iter().any(|fd| fd.revents().contains(PollFlags::IN)))
}

/// The lowest descriptor by which this process reads this pipe or socket without a name.
pub(crate) fn reads_at(dir: &ProcessDir, wire: Stdio) -> Result<Option<u32>, Errno> {
    let (table, fds) = (dir.fd_table()?, dir.fd_dir()?);
    let reads =
        |fd: &&Fd| fd.target.wire() == Some(wire) && fds.access(fd.number).is_some_and(|access| access.read);
    Ok(table.fds.iter().find(reads).map(|fd| fd.number))
}

/// Whether something waits to be read in this pipe or unix socket, asked through a duplicate of a descriptor of the first of these
/// processes that has it. `None` if none of them has it, or it cannot be asked. A socket that is hung up is always ready: of one
/// the number of bytes tells, which takes no lock there (`unix_inq_len()`).
pub(crate) fn has_unread(proc: &Proc, processes: &[ProcessId], wire: Stdio) -> Option<bool> {
    let inode = wire.inode()?;
    processes.iter().find_map(|process| {
        let dir = proc.identified(*process).ok()??;
        let copy = duplicate_any(&dir, reads_at(&dir, wire).ok()??).ok()??;
        if is_file(&copy.file, FileType::Fifo, inode).ok()? {
            return Some(!is_empty(&copy.file).ok()?);
        }
        let is_it = is_file(&copy.file, FileType::Socket, inode).ok()?
            && socket_domain(&copy.file) == Ok(AddressFamily::UNIX);
        Some(is_it.then(|| ioctl_fionread(&copy.file).ok()).flatten()? > 0)
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

    fn unread(server: &Started) -> Option<bool> {
        has_unread(&Proc::system().unwrap(), &[server.id()], server.wire())
    }

    #[test]
    fn what_nobody_has_read_is_seen_and_stays_also_when_its_writer_has_gone() {
        for says in ["", "{\"id\":1}\n"] {
            let waits = Some(!says.is_empty());
            let mut server = Started::sleeper(Std::piped());
            let wire = server.wire();
            server.0.stdin.as_mut().unwrap().write_all(says.as_bytes()).unwrap();
            assert_eq!((unread(&server), unread(&server)), (waits, waits));
            drop(server.0.stdin.take());
            assert_eq!(has_unread(&Proc::system().unwrap(), &[server.id()], wire), waits);
            let (mut ours, theirs) = UnixStream::pair().unwrap();
            let server = Started::sleeper(OwnedFd::from(theirs));
            ours.write_all(says.as_bytes()).unwrap();
            assert_eq!((unread(&server), unread(&server)), (waits, waits));
            drop(ours);
            assert_eq!(unread(&server), waits);
        }
    }

    /// A server may have both ends of its pipe: what waits shows at the one that is read.
    #[test]
    fn of_both_ends_the_one_that_is_read_is_asked() {
        let script =
            "import os, time\nr, w = os.pipe(); os.dup2(r, 9); os.dup2(w, 0); os.close(r); os.close(w)
os.write(0, b'x'); print(flush=True); time.sleep(600)";
        let (server, _) = Started::python(script, Std::null());
        assert_eq!(unread(&server), Some(true));
    }

    #[test]
    fn what_is_not_there_is_not_known() {
        let server = Started::sleeper(Std::null());
        assert_eq!(unread(&server), None);
        let proc = Proc::system().unwrap();
        assert_eq!(has_unread(&proc, &[server.id()], Stdio::Pipe(1)), None);
        let other = ProcessId { start: server.id().start + 1, ..server.id() };
        let (reader, _writer) = std::io::pipe().unwrap();
        let wire = Stdio::Pipe(rustix::fs::fstat(&reader).unwrap().st_ino);
        let reads = Started::sleeper(reader);
        assert_eq!(has_unread(&proc, &[reads.id()], wire), Some(false));
        assert_eq!(has_unread(&proc, &[other], wire), None);
    }
}
