//! A connection of anybody to the control socket.
//!
//! Whoever connects may send descriptors along. The kernel closes those that nobody takes in the thread that reads over
//! them, or that closes the connection; and the close of the last descriptor of a TCP connection waits for as long as its
//! owner said (`SO_LINGER`). Invariant: no close here is the last one of somebody else's descriptor, and none by a child that
//! is about to run a program.

use std::{
    io::{self, IoSliceMut},
    mem,
    sync::{Mutex, mpsc},
};

use rustix::net::{RecvAncillaryBuffer, RecvFlags, ReturnFlags, Shutdown, recv, recvmsg, shutdown};
use tokio::{
    io::Interest,
    net::{UnixStream, unix::UCred},
};

use crate::os::{between_launches, lock, start};

const CHUNK: usize = 1024;

#[derive(Debug)]
pub(super) struct Caller(Option<UnixStream>);

impl Caller {
    pub(super) const fn new(stream: UnixStream) -> Self {
        Self(Some(stream))
    }

    /// The connection. It is not read from, but by [`Caller::line`].
    pub(super) fn stream(&mut self) -> io::Result<&mut UnixStream> {
        self.0.as_mut().ok_or_else(closed)
    }

    pub(super) fn peer(&self) -> io::Result<UCred> {
        self.0.as_ref().ok_or_else(closed)?.peer_cred()
    }

    /// What comes up to the end of a line, or before the caller has closed his end; at most so many bytes.
    pub(super) async fn line(&self, most: usize) -> io::Result<Vec<u8>> {
        let stream = self.0.as_ref().ok_or_else(closed)?;
        let mut line = Vec::new();
        loop {
            let some = stream.async_io(Interest::READABLE, || some(stream)).await?;
            let some = some.ok_or_else(|| io::Error::other("no descriptors are taken"))?;
            line.extend_from_slice(&some);
            if let Some(end) = line.iter().position(|byte| *byte == b'\n') {
                line.truncate(end + 1);
            } else if !some.is_empty() && line.len() < most {
                continue;
            }
            line.truncate(most);
            return Ok(line);
        }
    }
}

/// What can be read now, nothing at the end; `None` if descriptors came with it, which stay where they are.
fn some(stream: &UnixStream) -> io::Result<Option<Vec<u8>>> {
    let mut some = [0; CHUNK];
    let (mut none, flags) = (RecvAncillaryBuffer::default(), RecvFlags::PEEK | RecvFlags::DONTWAIT);
    let seen = recvmsg(stream, &mut [IoSliceMut::new(&mut some)], &mut none, flags)?;
    if seen.flags.contains(ReturnFlags::CTRUNC) {
        return Ok(None);
    }
    // No more than was looked at: who sends may add something.
    let mut some = vec![0; seen.bytes];
    let (read, _) = recv(stream, some.as_mut_slice(), RecvFlags::DONTWAIT)?;
    some.truncate(read);
    Ok(Some(some))
}

fn closed() -> io::Error {
    io::ErrorKind::NotConnected.into()
}

impl Drop for Caller {
    fn drop(&mut self) {
        let Some(stream) = self.0.take() else { return };
        // From now on nothing more comes.
        let _ = shutdown(&stream, Shutdown::Both);
        loop {
            match some(&stream) {
                Ok(Some(some)) if !some.is_empty() => {}
                Ok(None) => break,
                _ => return,
            }
        }
        // Itself, and no copy of it: that could be closed before it.
        let Ok(stream) = stream.into_std() else { return };
        let mut left = lock(&LEFT);
        left.waiting.push(stream);
        if !left.is_seen_to {
            left.is_seen_to = start("last", see_to_them).is_ok();
        }
    }
}

/// Connections that have descriptors with them, and whether a thread sees to them.
struct Left {
    waiting: Vec<std::os::unix::net::UnixStream>,
    is_seen_to: bool,
}

static LEFT: Mutex<Left> = Mutex::new(Left { waiting: Vec::new(), is_seen_to: false });

fn see_to_them() {
    loop {
        let mut left = lock(&LEFT);
        let some = mem::take(&mut left.waiting);
        left.is_seen_to = !some.is_empty();
        drop(left);
        if some.is_empty() {
            return;
        }
        let ((tell, told), (over, wait)) = (mpsc::channel(), mpsc::channel::<()>());
        let last = start("last", move || {
            let _ = tell.send(has_own_descriptors());
            // Then it ends, and with it its descriptors: an exit waits for nobody (`PF_EXITING`, `inet_release()`).
            let _ = wait.recv();
        });
        if last.is_ok() {
            let _ = told.recv();
        }
        between_launches(|| drop(some));
        drop(over);
    }
}

/// Gives this thread a copy of the process's descriptors.
#[expect(
    deprecated,
    reason = "the successor is an unsafe function: this thread uses no descriptor from now on"
)]
fn has_own_descriptors() -> bool {
    rustix::thread::unshare(rustix::thread::UnshareFlags::FILES).is_ok()
}
