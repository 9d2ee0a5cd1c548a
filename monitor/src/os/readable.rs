//! Descriptors that a tokio task waits for: timers, pidfds, the ring buffer.

use std::{io, os::fd::OwnedFd};

use tokio::io::{Interest, unix::AsyncFd};

/// Makes `fd` available to a task that waits until it is readable. The caller must be inside a tokio runtime,
/// and `fd` should be non-blocking.
#[expect(
    deprecated,
    reason = "the successor is an unsafe function because of descriptors that change under it; an OwnedFd does not"
)]
pub fn readable(fd: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    AsyncFd::with_interest(fd, Interest::READABLE)
}
