//! Whom a hook runs as.

use std::{ffi::CString, fs, os::unix::fs::MetadataExt as _, path::Path};

use nix::unistd::{Gid, Uid, User, getgrouplist, getgroups};
use rustix::thread::{CapabilitySet, capabilities};

use super::HookError;

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
        let unknown = |why: &str| HookError::User { user: name.to_owned(), why: why.to_owned() };
        let user = match User::from_name(name) {
            Ok(Some(user)) => user,
            Ok(None) => return Err(unknown("there is no such user")),
            Err(errno) => return Err(unknown(errno.desc())),
        };
        if user.uid == own {
            return Ok(Self::own(own));
        }
        if !may_switch() {
            return Err(HookError::Rights { user: name.to_owned() });
        }
        let listed = CString::new(name).map_err(|_| unknown("there is no such user"))?;
        let groups = getgrouplist(&listed, user.gid).map_err(|errno| unknown(errno.desc()))?;
        Ok(Self {
            uid: user.uid.as_raw(),
            gid: user.gid.as_raw(),
            groups: groups.into_iter().map(Gid::as_raw).collect(),
            name: name.to_owned(),
            own: false,
        })
    }

    fn own(uid: Uid) -> Self {
        let groups = getgroups().unwrap_or_default();
        Self {
            uid: uid.as_raw(),
            gid: Gid::effective().as_raw(),
            groups: groups.into_iter().map(Gid::as_raw).collect(),
            name: User::from_uid(uid).ok().flatten().map_or_else(|| uid.to_string(), |user| user.name),
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
