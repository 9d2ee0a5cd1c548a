//! The operating system around the daemon: time, users, limits, capabilities, the log,
//! systemd.
//!
//! No module here knows of agents or servers. For the daemon's shell only.

pub mod budgets;
pub mod capabilities;
pub mod clock;
pub mod descriptors;
#[cfg(test)]
pub(crate) mod forks_of_tests;
pub mod journald;
pub mod own;
pub mod processor_time;
pub mod systemd_notify;
mod text_file;
pub mod trust;
pub mod users;

use std::{
    io,
    os::fd::OwnedFd,
    sync::{Mutex, MutexGuard, PoisonError},
    thread,
};

use tokio::{
    io::{Interest, unix::AsyncFd},
    sync::oneshot,
};

pub use text_file::text_file;

/// Locks. No code of ours panics while it holds a lock; if some did, what it guards would still be whole.
pub fn lock<T: ?Sized>(what: &Mutex<T>) -> MutexGuard<'_, T> {
    what.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Does what may take its time on a thread of its own. An error if none can be started: tokio's own pool would panic, and that
/// is the end of the daemon.
pub async fn beside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> io::Result<T> {
    let (tell, told) = oneshot::channel();
    thread::Builder::new().name("orphand-beside".to_owned()).spawn(move || drop(tell.send(work())))?;
    told.await.map_err(io::Error::other)
}

/// Makes `fd` available to a task that waits until it is readable. The caller must be inside a tokio runtime,
/// and `fd` should be non-blocking.
#[expect(
    deprecated,
    reason = "the successor is an unsafe function because of descriptors that change under it; an OwnedFd does not"
)]
pub fn readable(fd: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    AsyncFd::with_interest(fd, Interest::READABLE)
}
