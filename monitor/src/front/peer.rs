//! Who may use the control socket: root, the daemon's own user, and the members of one group.

use std::ffi::CString;

use nix::unistd::{Gid, Group, Uid, User, getgrouplist};

use super::FrontError;

/// Those who may.
#[derive(Clone, Copy, Debug)]
pub(super) struct Peers {
    ourselves: Uid,
    group: Option<Gid>,
}

impl Peers {
    /// Root, the user we run as, and the members of `group`.
    pub(super) fn new(group: Option<&str>) -> Result<Self, FrontError> {
        let failed = |group: &str, why: String| FrontError::Group { group: group.to_owned(), why };
        let group = group.map(|name| match Group::from_name(name) {
            Ok(Some(group)) => Ok(group.gid),
            Ok(None) => Err(failed(name, "there is no such group".to_owned())),
            Err(errno) => Err(failed(name, errno.desc().to_owned())),
        });
        Ok(Self { ourselves: Uid::effective(), group: group.transpose()? })
    }

    pub(super) fn group(self) -> Option<u32> {
        self.group.map(Gid::as_raw)
    }

    /// Whether a process with these credentials may ask. Blocks where the group database is slow.
    pub(super) fn allows(self, uid: u32, gid: u32) -> bool {
        let uid = Uid::from_raw(uid);
        uid.is_root()
            || uid == self.ourselves
            || self.group.is_some_and(|group| group.as_raw() == gid || is_member(uid, group))
    }
}

/// Whether the databases of users and groups say so. (The credentials of a socket have the primary group only.)
fn is_member(uid: Uid, group: Gid) -> bool {
    let Ok(Some(user)) = User::from_uid(uid) else { return false };
    let Ok(name) = CString::new(user.name) else { return false };
    getgrouplist(&name, user.gid).is_ok_and(|groups| groups.contains(&group))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_and_ourselves_and_nobody_else() {
        let peers = Peers::new(None).unwrap();
        assert!(peers.allows(0, 0));
        assert!(peers.allows(Uid::effective().as_raw(), 12345));
        assert!(!peers.allows(65_534, 65_534));
    }

    #[test]
    fn members_of_the_group() {
        // Members by their primary group: `nobody` of `nogroup` is on every Debian, `daemon` is no member of it.
        let Ok(Some(nobody)) = User::from_name("nobody") else { return };
        let Ok(Some(group)) = Group::from_gid(nobody.gid) else { return };
        let peers = Peers::new(Some(&group.name)).unwrap();
        assert_eq!(peers.group(), Some(nobody.gid.as_raw()));
        assert!(peers.allows(nobody.uid.as_raw(), nobody.gid.as_raw()));
        // Not by the group it happens to run with, but by the database.
        assert!(peers.allows(nobody.uid.as_raw(), 4_000_000));
        assert!(!peers.allows(4_000_000, 4_000_000));
    }

    #[test]
    fn a_group_that_is_not_there() {
        let error = Peers::new(Some("no-such-group")).unwrap_err().to_string();
        assert_eq!(
            error,
            "cannot give the control socket to group \"no-such-group\": there is no such group; correct socket_group \
             in the configuration"
        );
    }
}
