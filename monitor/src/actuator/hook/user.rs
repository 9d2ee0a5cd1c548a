//! The user that a hook runs as.

use std::{fs, os::unix::fs::MetadataExt as _, path::Path};

use nix::unistd::{Gid, Uid, getgroups};
use rustix::thread::{CapabilitySet, capabilities};

use super::HookError;
use crate::os::users;

/// A user with its primary group and no further groups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Account {
    name: String,
    uid: u32,
    gid: u32,
    /// The user and group id, if they differ from those that we run as.
    pub(super) other: Option<(u32, u32)>,
}

impl Account {
    /// Finds the user `name`, or our own without a name. Blocks if the user database is slow.
    pub(super) fn find(name: Option<&str>) -> Result<Self, HookError> {
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
        if !may_switch() {
            return Err(HookError::Rights(name.to_owned()));
        }
        let (uid, gid) = (user.uid, user.gid);
        Ok(Self { name: name.to_owned(), uid, gid, other: Some((uid, gid)) })
    }

    fn own(uid: Uid) -> Self {
        let uid = uid.as_raw();
        let name = users::user_by_id(uid).ok().flatten().map_or_else(|| uid.to_string(), |user| user.name);
        Self { name, uid, gid: Gid::effective().as_raw(), other: None }
    }

    /// Whether the mode of the file lets this user execute it. The directories above it are left for the
    /// kernel to check.
    pub(super) fn may_execute(&self, path: &Path) -> Result<(), HookError> {
        let refused = |mode: u32| {
            let (user, path) = (&self.name, path.display());
            let why = format!("user {user} may not execute the hook {path} (mode {mode:04o}): chmod +x it");
            HookError::Other(why)
        };
        let found = fs::metadata(path).map_err(|_| refused(0))?;
        // As the kernel decides for a process without capabilities: for the owner only the owner's bits
        // count.
        let bit = if self.uid == found.uid() {
            0o100
        } else if self.gid == found.gid() || (self.other.is_none() && in_our_groups(found.gid())) {
            0o010
        } else {
            0o001
        };
        if found.mode() & bit == 0 { Err(refused(found.mode() & 0o7777)) } else { Ok(()) }
    }
}

fn in_our_groups(gid: u32) -> bool {
    getgroups().is_ok_and(|groups| groups.contains(&Gid::from_raw(gid)))
}

fn may_switch() -> bool {
    let needed = CapabilitySet::SETUID | CapabilitySet::SETGID;
    capabilities(None).is_ok_and(|sets| sets.effective.contains(needed))
}
