//! The alert hooks: programs that the daemon runs for events, one run of each at a time.
//!
//! Invariant: a hook can neither delay the caller nor outlive its run. Events wait in a short queue (`queue.rs`);
//! when it is full, the newest are dropped and counted. A thread passes one event after the other to a [`runner`],
//! a process of its own that ends everything that the hook starts. The hook's file is checked at the start,
//! and again before every run.

mod facts;
mod queue;
mod run;
pub mod runner;
mod user;

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    time::Duration,
};

pub use self::queue::{Hooks, WriteLine};
use crate::os::trust;

#[derive(Debug, thiserror::Error)]
pub enum HookError {
    /// The daemon may not become this user.
    #[error(
        "cannot run the hook as user {0}: orphand must be started as root, or with CAP_SETUID and CAP_SETGID, and with hook.user set \
         already: restart it so (the service: systemctl restart orphand)"
    )]
    Rights(String),
    /// Anything else, in a sentence that says what to do.
    #[error("{0}")]
    Other(String),
}

/// A hook that has passed the checks, and how it is run.
#[derive(Clone, Debug)]
pub struct Settings {
    path: PathBuf,
    user: user::Account,
    /// The names of the events that it is run for. None: all events.
    events: Option<BTreeSet<String>>,
    timeout: Duration,
}

impl Settings {
    /// Checks the hook at `path`. It is run for `events` (`None`: all) as `user` (a name; without one, our own
    /// user), for at most `timeout`.
    pub fn new(
        path: &Path,
        user: Option<&str>,
        events: Option<BTreeSet<String>>,
        timeout: Duration,
    ) -> Result<Self, HookError> {
        if !path.is_absolute() {
            let why = format!("the hook {} is no absolute path: write it from / on", path.display());
            return Err(HookError::Other(why));
        }
        let settings = Self { path: path.into(), user: user::Account::find(user)?, events, timeout };
        settings.check()?;
        Ok(settings)
    }

    pub const fn is_for_another_user(&self) -> bool {
        self.user.other.is_some()
    }

    /// Whether the file may be run now. Other users may have changed it since the last check.
    fn check(&self) -> Result<(), HookError> {
        trust::check(&self.path, rustix::process::geteuid().as_raw())
            .map_err(|distrust| HookError::Other(format!("the hook is refused: {distrust}")))?;
        self.user.may_execute(&self.path)
    }
}
