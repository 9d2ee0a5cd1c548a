//! What waits in a pipe or socket, without taking it: tee(2), and recv(2) with `MSG_PEEK`.
//!
//! Both wait for the lock of that pipe or socket. A process that reads into a page of a file system in user space keeps it for
//! as long as somebody likes, and who waits for it cannot be killed. Invariant: this waits in a helper, which is abandoned.

use std::os::fd::OwnedFd;

use rustix::{
    buffer::spare_capacity,
    io::{Errno, read, retry_on_intr},
    net::{RecvFlags, recv},
    pipe::{PipeFlags, SpliceFlags, pipe_with, tee},
};

pub(super) fn in_pipe(file: OwnedFd, most: usize) -> Result<Vec<u8>, Errno> {
    let (copy, way) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
    let there = none_yet(retry_on_intr(|| tee(&file, &way, most, SpliceFlags::NONBLOCK)))?;
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
pub(super) fn in_socket(file: &OwnedFd, most: usize) -> Result<Vec<u8>, Errno> {
    let mut bytes = Vec::with_capacity(most);
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
