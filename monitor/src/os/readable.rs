//! Descriptors that a tokio task waits for: timers, pidfds, the ring.

use std::{io, os::fd::OwnedFd};

use tokio::io::{Interest, unix::AsyncFd};

/// Lets a task wait until `fd` can be read. Must be called inside a tokio runtime, `fd` should not block.
#[expect(
    deprecated,
    reason = "the successor is an unsafe function because of descriptors that change under it; an OwnedFd does not"
)]
pub fn readable(fd: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    AsyncFd::with_interest(fd, Interest::READABLE)
}
