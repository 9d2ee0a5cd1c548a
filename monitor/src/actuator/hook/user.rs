//! Whom a hook runs as.

use std::{fs, os::unix::fs::MetadataExt as _, path::Path};

use nix::unistd::{Gid, Uid, getgroups};
use rustix::thread::{CapabilitySet, capabilities};

use super::HookError;
use crate::os::users;

/// A user, with its primary group and no others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Account {
    /// To be told.
    name: String,
    uid: u32,
    gid: u32,
    /// Both again, if they are not those that we run as already.
    pub(super) other: Option<(u32, u32)>,
}

impl Account {
    /// The user `name`, or our own. Blocks where the databases are slow.
    pub(super) fn find(name: Option<&str>) -> Result<Self, HookError> {
        let own = Uid::effective();
        let Some(name) = name else { return Ok(Self::own(own)) };
        let unknown = |why: String| HookError::User { user: name.to_owned(), why };
        let user = match users::user(name) {
            Ok(Some(user)) => user,
            Ok(None) => return Err(unknown("there is no such user".to_owned())),
            Err(error) => return Err(unknown(error.to_string())),
        };
        if user.uid == own.as_raw() {
            return Ok(Self::own(own));
        }
        if !may_switch() {
            return Err(HookError::Rights { user: name.to_owned() });
        }
        let (uid, gid) = (user.uid, user.gid);
        Ok(Self { name: name.to_owned(), uid, gid, other: Some((uid, gid)) })
    }

    fn own(uid: Uid) -> Self {
        let uid = uid.as_raw();
        let name = users::user_by_id(uid).ok().flatten().map_or_else(|| uid.to_string(), |user| user.name);
        Self { name, uid, gid: Gid::effective().as_raw(), other: None }
    }

    /// Whether the mode of the file lets this user execute it. The way to it is left to the kernel.
    pub(super) fn may_execute(&self, path: &Path) -> Result<(), HookError> {
        let refused = |mode| HookError::Mode { path: path.into(), user: self.name.clone(), mode };
        let found = fs::metadata(path).map_err(|_| refused(0))?;
        // As the kernel asks who has no capability: an owner by the owner's bits alone.
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

/// Whether we may become another user and leave our groups.
fn may_switch() -> bool {
    let needed = CapabilitySet::SETUID | CapabilitySet::SETGID;
    capabilities(None).is_ok_and(|sets| sets.effective.contains(needed))
}
