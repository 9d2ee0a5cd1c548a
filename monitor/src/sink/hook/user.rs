//! Whom a hook runs as.

use std::{fs, os::unix::fs::MetadataExt as _, path::Path};

use nix::unistd::{Gid, Uid, getgroups};
use rustix::thread::{CapabilitySet, capabilities};

use super::HookError;
use crate::names;

/// A user with the groups that the databases give it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Account {
    pub(super) uid: u32,
    pub(super) gid: u32,
    pub(super) groups: Vec<u32>,
    /// To be told.
    pub(super) name: String,
    /// Whether it is the one that we run as already.
    pub(super) own: bool,
}

impl Account {
    /// The user `name`, or our own. Blocks where the databases are slow.
    pub(super) fn find(name: Option<&str>) -> Result<Self, HookError> {
        let own = Uid::effective();
        let Some(name) = name else { return Ok(Self::own(own)) };
        let unknown = |why: String| HookError::User { user: name.to_owned(), why };
        let user = match names::user(name) {
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
        let groups = names::groups(&user).map_err(|error| unknown(error.to_string()))?;
        Ok(Self { uid: user.uid, gid: user.gid, groups, name: name.to_owned(), own: false })
    }

    fn own(uid: Uid) -> Self {
        let groups = getgroups().unwrap_or_default();
        Self {
            uid: uid.as_raw(),
            gid: Gid::effective().as_raw(),
            groups: groups.into_iter().map(Gid::as_raw).collect(),
            name: names::user_by_id(uid.as_raw())
                .ok()
                .flatten()
                .map_or_else(|| uid.to_string(), |user| user.name),
            own: true,
        }
    }

    /// Whether the mode of the file lets this user execute it. The way to it is left to the kernel.
    pub(super) fn may_execute(&self, path: &Path) -> Result<(), HookError> {
        let refused = |mode| HookError::Mode { path: path.into(), user: self.name.clone(), mode };
        let found = fs::metadata(path).map_err(|_| refused(0))?;
        let bit = if self.uid == 0 {
            0o111
        } else if self.uid == found.uid() {
            0o100
        } else if self.gid == found.gid() || self.groups.contains(&found.gid()) {
            0o010
        } else {
            0o001
        };
        if found.mode() & bit == 0 { Err(refused(found.mode() & 0o7777)) } else { Ok(()) }
    }
}

/// Whether we may become another user with its groups.
fn may_switch() -> bool {
    let needed = CapabilitySet::SETUID | CapabilitySet::SETGID;
    capabilities(None).is_ok_and(|sets| sets.effective.contains(needed))
}
