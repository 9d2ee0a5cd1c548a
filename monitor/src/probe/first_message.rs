//! Reads the first message on the standard input of a young process without taking it.
//!
//! Invariant: the process finds its standard input as if nobody had looked. The message is copied by tee(2) from a
//! pipe, and by recv(2) with `MSG_PEEK` from a socket. Both go through a duplicate of the descriptor of the process
//! (`pidfd_getfd(2)`), which is closed at once: no file is opened, none of its flags are changed, and nothing is
//! written. A pipe does not count a duplicate as one more reader. (A socket for which somebody has set `SO_PEEK_OFF`
//! would notice; nobody does that to a standard input.)
//!
//! A process that reads while a page of its memory is withheld keeps the lock of its pipe or socket, and whoever
//! copies waits for that lock. It is taken only if no thread of the process moves bytes there now, and poll(2), which takes
//! none, says that something is there. A thread that waits all the same is abandoned like any other
//! ([`crate::host::with_deadline`]). Its duplicate then stays open as long as that read lasts: the process itself has the
//! same end open for as long.

use rustix::{
    buffer::spare_capacity,
    fd::OwnedFd,
    fs::FileType,
    io::{Errno, read, retry_on_intr},
    net::{
        AddressFamily, RecvFlags, SocketType, recv,
        sockopt::{socket_domain, socket_type},
    },
    pipe::{PipeFlags, SpliceFlags, pipe_with, tee},
};

use super::{
    Probe,
    pipe::{duplicate_any, is_empty, is_file},
};
use crate::read::waits;
use orphand_core::{
    model::{FirstMessage, OwnEnd, Stdio},
    recognise::first_message,
};

/// The most bytes of a message that are read: as many as a pipe holds.
const MOST: usize = 64 * 1024;

impl Probe {
    /// What the first message on this standard input says. This takes some ten microseconds.
    pub(super) fn first_message(&self, end: OwnEnd) -> FirstMessage {
        match self.waiting(end) {
            Ok(Some(bytes)) => first_message(&bytes, bytes.len() < MOST),
            Ok(None) => FirstMessage::Unknown,
            Err(errno) => {
                tracing::debug!("cannot read the first message to {}: {errno}", end.process);
                FirstMessage::Unknown
            }
        }
    }

    /// The bytes that wait there; `None` if the process has ended, or has another standard input or one that is
    /// no wire.
    fn waiting(&self, end: OwnEnd) -> Result<Option<Vec<u8>>, Errno> {
        let Some(dir) = self.proc.identified(end.process)? else { return Ok(None) };
        let _at = dir.at()?;
        let fds = dir.fd_dir()?;
        let is_it = || fds.stdio(0) == end.stdin;
        if !is_it() || !fds.access(0).is_some_and(|access| access.read) {
            return Ok(None);
        }
        // It takes what is there, or keeps the lock with it: there is nothing for us.
        if waits::moves_bytes(&dir, end.stdin)? {
            return Ok(Some(Vec::new()));
        }
        let Some(copy) = duplicate_any(&dir, 0)? else { return Ok(None) };
        let bytes = match end.stdin {
            Stdio::Pipe(inode) if is_file(&copy.file, FileType::Fifo, inode)? => in_pipe(copy.file)?,
            Stdio::Socket(inode)
                if is_file(&copy.file, FileType::Socket, inode)? && is_stream(&copy.file)? =>
            {
                in_socket(&copy.file)?
            }
            _ => return Ok(None),
        };
        Ok((is_it() && dir.still_alive()).then_some(bytes))
    }
}

/// Only such a socket is a wire: a connection over the network is not the parent's, and datagrams are no lines.
fn is_stream(file: &OwnedFd) -> Result<bool, Errno> {
    Ok(socket_domain(file)? == AddressFamily::UNIX && socket_type(file)? == SocketType::STREAM)
}

fn in_pipe(file: OwnedFd) -> Result<Vec<u8>, Errno> {
    if is_empty(&file)? {
        return Ok(Vec::new());
    }
    let (copy, way) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
    let there = none_yet(retry_on_intr(|| tee(&file, &way, MOST, SpliceFlags::NONBLOCK)))?;
    // A page that somebody has put into the pipe by splice(2) may take its time. Nothing of theirs is held then.
    drop((file, way));
    let mut bytes = Vec::with_capacity(there);
    while bytes.len() < there {
        let got = none_yet(retry_on_intr(|| read(&copy, spare_capacity(&mut bytes))))?;
        if got == 0 {
            break;
        }
    }
    Ok(bytes)
}

/// Descriptors that come with the bytes stay where they are: no room is offered for them.
fn in_socket(file: &OwnedFd) -> Result<Vec<u8>, Errno> {
    if is_empty(file)? {
        return Ok(Vec::new());
    }
    let mut bytes = Vec::with_capacity(MOST);
    let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
    let (_, got) = match recv(file, spare_capacity(&mut bytes), flags) {
        Err(Errno::AGAIN | Errno::INTR) => return Ok(Vec::new()),
        told => told?,
    };
    bytes.truncate(got);
    Ok(bytes)
}

fn none_yet(copied: Result<usize, Errno>) -> Result<usize, Errno> {
    match copied {
        Err(Errno::AGAIN) => Ok(0),
        copied => copied,
    }
}

#[cfg(test)]
mod tests;
