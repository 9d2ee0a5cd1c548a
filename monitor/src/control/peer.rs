//! Who may use the control socket: root, the daemon's own user, and the members of one group.

use rustix::process::geteuid;

use super::ServerError;
use crate::os::users;

/// The allowed users.
#[derive(Clone, Copy, Debug)]
pub(super) struct Peers {
    ourselves: u32,
    group: Option<u32>,
}

impl Peers {
    /// Root, the daemon's user, and the members of `group`.
    pub(super) fn new(group: Option<&str>) -> Result<Self, ServerError> {
        let failed = |group: &str, why: String| ServerError::Group { group: group.to_owned(), why };
        let group = group.map(|name| match users::group(name) {
            Ok(Some(gid)) => Ok(gid),
            Ok(None) => Err(failed(name, "there is no such group".to_owned())),
            Err(error) => Err(failed(name, error.to_string())),
        });
        Ok(Self { ourselves: geteuid().as_raw(), group: group.transpose()? })
    }

    pub(super) fn group(self) -> Option<u32> {
        self.group
    }

    /// Whether a process with these credentials is allowed. May block while a group is looked up.
    pub(super) fn allows(self, uid: u32, gid: u32) -> bool {
        uid == 0
            || uid == self.ourselves
            || self.group.is_some_and(|group| group == gid || is_member(uid, group))
    }
}

/// Whether the user and group databases list the user in the group. A socket's credentials have the primary
/// group only.
fn is_member(uid: u32, group: u32) -> bool {
    let found = users::user_by_id(uid).and_then(|user| user.map(|user| users::groups(&user)).transpose());
    match found {
        Ok(groups) => groups.is_some_and(|groups| groups.contains(&group)),
        Err(error) => {
            tracing::warn!("cannot look up the groups of user {uid}, so the request is refused: {error}");
            false
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_and_ourselves_and_nobody_else() {
        let peers = Peers::new(None).unwrap();
        assert!(peers.allows(0, 0));
        assert!(peers.allows(geteuid().as_raw(), 12345));
        assert!(!peers.allows(65_534, 65_534));
    }

    #[test]
    fn members_of_the_group() {
        // Members by their primary group: on every Debian, `nobody` belongs to `nogroup` and `daemon` does
        // not.
        let (Ok(Some(nobody)), Ok(Some(nogroup))) = (users::user("nobody"), users::group("nogroup")) else {
            return;
        };
        let peers = Peers::new(Some("nogroup")).unwrap();
        assert_eq!((peers.group(), nobody.gid), (Some(nogroup), nogroup));
        assert!(peers.allows(nobody.uid, nogroup));
        // Not by the group it happens to run with, but by the database.
        assert!(peers.allows(nobody.uid, 4_000_000));
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
