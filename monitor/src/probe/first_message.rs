//! Reads the first message on the standard input of a young process without taking it.
//!
//! Invariant: the process finds its standard input as if nobody had looked. The message is copied by tee(2) from a
//! pipe, and by recv(2) with `MSG_PEEK` from a socket. Both go through a duplicate of the descriptor of the process
//! (`pidfd_getfd(2)`), which is closed at once: no file is opened, none of its flags are changed, and nothing is
//! written. A pipe does not count a duplicate as one more reader. (A socket for which somebody has set `SO_PEEK_OFF`
//! would notice; nobody does that to a standard input.)
//!
//! A process that reads while a page of its memory is withheld keeps the lock of its pipe or socket, and whoever
//! copies waits for that lock. So a [helper](crate::host::ProcessDir::waiting_in) copies, after poll(2), which takes no lock, said that
//! something is there. Its duplicate stays open as long as that read lasts: the process itself has the same end open for as long.

use rustix::{
    fd::OwnedFd,
    fs::FileType,
    io::Errno,
    net::{
        AddressFamily, SocketType,
        sockopt::{socket_domain, socket_type},
    },
};

use super::{
    Probe,
    pipe::{duplicate_any, has_hung_up, is_empty, is_file, reads_at},
};
use crate::host::{Fd, FdTable, ProcessDir, Target};
use orphand_core::{
    model::{FirstMessage, ProcessId, Stdio, scene::Side},
    recognise::first_message,
};

/// The most bytes of a message that are read: as many as a pipe holds.
const MOST: usize = 64 * 1024;

impl Probe {
    /// What the first message on this standard input says. As long as nothing is there this takes some ten microseconds.
    /// The first of these processes that can be asked tells, as long as the very first lives. What has left the wire is nobody's
    /// message to one that has put its end away (the bus of `dbus-run-session`).
    pub(super) fn first_message(&self, processes: &[ProcessId], stdin: Stdio) -> FirstMessage {
        let Some((first, others)) = processes.split_first() else { return FirstMessage::Unknown };
        // When it has ended, the next program of a shell may have read the message.
        let lives = || self.proc.identified(*first).is_ok_and(|dir| dir.is_some());
        let waits = |message: &FirstMessage| matches!(message, FirstMessage::Mcp { .. } | FirstMessage::Hook);
        let said = match self.said(*first, stdin) {
            FirstMessage::Unknown => {
                let said = others.iter().map(|process| self.said(*process, stdin));
                let mut known = said.filter(|message| *message != FirstMessage::Unknown);
                known.next().filter(|message| waits(message) || !self.has_put_away(*first, stdin))
            }
            said => Some(said),
        };
        said.filter(|_| lives()).unwrap_or(FirstMessage::Unknown)
    }

    fn said(&self, process: ProcessId, stdin: Stdio) -> FirstMessage {
        match self.waiting(process, stdin) {
            Ok(Some(Waiting { bytes, over: true })) if bytes.is_empty() => FirstMessage::Over,
            Ok(Some(Waiting { bytes, .. })) => first_message(&bytes, bytes.len() < MOST),
            Ok(None) => FirstMessage::Unknown,
            Err(errno) => {
                tracing::debug!("cannot read the first message to {process}: {errno}");
                FirstMessage::Unknown
            }
        }
    }

    /// Whether it has descriptors, and none of them is this. Where the first thread has ended, nothing is told.
    fn has_put_away(&self, process: ProcessId, stdin: Stdio) -> bool {
        let dir = self.proc.identified(process).ok().flatten();
        let is_away = |dir: ProcessDir| {
            let FdTable { fds, cut } = dir.fd_table().ok()?;
            let has = |fd: &Fd| fd.target.wire() == Some(stdin);
            Some(!cut && !fds.is_empty() && !fds.iter().any(has) && dir.fd_dir().ok()?.stdio(0) != stdin)
        };
        dir.and_then(is_away) == Some(true)
    }

    /// What waits there; `None` if the process has ended, or does not have this input or one that is no wire.
    fn waiting(&self, process: ProcessId, stdin: Stdio) -> Result<Option<Waiting>, Errno> {
        let Some(dir) = self.proc.identified(process)? else { return Ok(None) };
        let fds = dir.fd_dir()?;
        let is_in_place = fds.stdio(0) == stdin && fds.access(0).is_some_and(|access| access.read);
        let Some(number) = (if is_in_place { Some(0) } else { reads_at(&dir, stdin)? }) else {
            return Ok(None);
        };
        let Some(copy) = duplicate_any(&dir, number)?.filter(|copy| is_wire(&copy.file, stdin)) else {
            return Ok(None);
        };
        // Any process may open a FIFO that has a name.
        let over =
            !matches!(fds.target(number), Some(Target::Path(_))) && has_hung_up(&copy.file, Side::Reads);
        let bytes = if is_empty(&copy.file)? { Vec::new() } else { copy.waiting(&dir, MOST)? };
        Ok(dir.still_alive().then_some(Waiting { bytes, over }))
    }
}

struct Waiting {
    bytes: Vec<u8>,
    /// Whether nobody can write any more.
    over: bool,
}

/// Whether it is this pipe, or this socket. Of sockets only a stream of the unix family is a wire: a connection over the network
/// is not the parent's, and datagrams are no lines.
fn is_wire(file: &OwnedFd, stdin: Stdio) -> bool {
    let is_stream =
        || socket_domain(file) == Ok(AddressFamily::UNIX) && socket_type(file) == Ok(SocketType::STREAM);
    match stdin {
        Stdio::Pipe(inode) => is_file(file, FileType::Fifo, inode) == Ok(true),
        Stdio::Socket(inode) => is_file(file, FileType::Socket, inode) == Ok(true) && is_stream(),
        _ => false,
    }
}

#[cfg(test)]
mod tests;
