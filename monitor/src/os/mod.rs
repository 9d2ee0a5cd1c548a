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
mod readable;
pub mod systemd_notify;
pub mod trust;
pub mod users;

use std::sync::{Mutex, MutexGuard, PoisonError};

pub use readable::readable;

/// Locks. No code of ours panics while it holds a lock; if some did, what it guards would still be whole.
pub fn lock<T: ?Sized>(what: &Mutex<T>) -> MutexGuard<'_, T> {
    what.lock().unwrap_or_else(PoisonError::into_inner)
}
