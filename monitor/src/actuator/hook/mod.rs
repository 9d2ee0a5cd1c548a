//! The alert hooks: programs that the daemon runs for events, one run of each at a time.
//!
//! Invariant: a hook can neither delay the caller nor outlive its run. Events wait in a short queue (`queue.rs`);
//! when it is full, the newest are dropped and counted. A thread passes one event after the other to a [`runner`],
//! a process of its own that ends everything that the hook starts. The hook's file is checked at the start,
//! and again before every run.

mod queue;
mod run;
pub mod runner;

use std::{
    collections::BTreeSet,
    fs,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    time::Duration,
};

use nix::unistd::{Gid, Uid, getgroups};
use rustix::thread::capabilities;

pub use self::queue::{Hooks, WriteLine};
use crate::os::{capabilities::OTHER_USERS, trust, users};

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
    user: Account,
    /// The names of the events that it is run for. None: all events.
    events: Option<BTreeSet<String>>,
    timeout: Duration,
}

impl Settings {
    /// Checks the hook at this absolute path. `events`: `None` for all; `user`: `None` for our own; `timeout`: of one run.
    pub fn new(
        path: &Path,
        user: Option<&str>,
        events: Option<BTreeSet<String>>,
        timeout: Duration,
    ) -> Result<Self, HookError> {
        let settings = Self { path: path.into(), user: Account::find(user)?, events, timeout };
        settings.check()?;
        Ok(settings)
    }

    pub const fn is_for_another_user(&self) -> bool {
        self.user.is_another
    }

    /// Whether the file may be run now. Other users may have changed it since the last check.
    fn check(&self) -> Result<(), HookError> {
        trust::check(&self.path, rustix::process::geteuid().as_raw())
            .map_err(|distrust| HookError::Other(format!("the hook is refused: {distrust}")))?;
        self.user.may_execute(&self.path)
    }
}

/// A user with its primary group and no further groups.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Account {
    name: String,
    uid: u32,
    gid: u32,
    /// Whether it is not the one that we run as.
    is_another: bool,
}

impl Account {
    /// Finds the user `name`, or our own without a name. Blocks if the user database is slow.
    fn find(name: Option<&str>) -> Result<Self, HookError> {
        let own = Uid::effective();
        let Some(name) = name else { return Ok(Self::own(own)) };
        let found = users::user(name).map_err(|error| error.to_string());
        let user = found.and_then(|user| user.ok_or("there is no such user".to_owned())).map_err(|why| {
            let told = format!(
                "cannot run the hook as user \"{name}\": {why}; correct hook.user in the configuration"
            );
            HookError::Other(told)
        })?;
        if user.uid == own.as_raw() {
            return Ok(Self::own(own));
        }
        // To become another user, and to drop our groups.
        if !capabilities(None).is_ok_and(|sets| sets.effective.contains(OTHER_USERS)) {
            return Err(HookError::Rights(name.to_owned()));
        }
        Ok(Self { name: name.to_owned(), uid: user.uid, gid: user.gid, is_another: true })
    }

    fn own(uid: Uid) -> Self {
        let uid = uid.as_raw();
        let name = users::user_by_id(uid).ok().flatten().map_or_else(|| uid.to_string(), |user| user.name);
        Self { name, uid, gid: Gid::effective().as_raw(), is_another: false }
    }

    /// Whether the file lets this user execute it. The kernel checks the directories above it.
    fn may_execute(&self, path: &Path) -> Result<(), HookError> {
        let refused = |mode: u32| {
            let (user, path) = (&self.name, path.display());
            let why = format!("user {user} may not execute the hook {path} (mode {mode:04o}): chmod +x it");
            HookError::Other(why)
        };
        let found = fs::metadata(path).map_err(|_| refused(0))?;
        // As the kernel decides without capabilities: for the owner only the owner's bits count.
        let bit = if self.uid == found.uid() {
            0o100
        } else if self.gid == found.gid()
            || (!self.is_another
                && getgroups().is_ok_and(|groups| groups.contains(&Gid::from_raw(found.gid()))))
        {
            0o010
        } else {
            0o001
        };
        if found.mode() & bit == 0 { Err(refused(found.mode() & 0o7777)) } else { Ok(()) }
    }
}
