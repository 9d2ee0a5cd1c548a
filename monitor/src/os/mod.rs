//! The operating system around the daemon: time, users, limits, capabilities, the lock file, the log,
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
pub mod lock_file;
pub mod own;
pub mod processor_time;
mod readable;
pub mod systemd_notify;
pub mod trust;
pub mod users;

pub use readable::readable;
