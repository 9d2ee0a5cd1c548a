//! Who may send every request to the control socket: root, the daemon's own user, and the members of one group.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use anyhow::{Result, anyhow};
use rustix::process::geteuid;
use tokio::sync::Semaphore;

use crate::os::{lock, users};

/// For how long it is remembered whether a user is a member: a look-up runs programs of the host.
const REMEMBERED: Duration = Duration::from_secs(10);
const USERS: usize = 1024;
/// The most look-ups at a time: a directory of users in the network may hang.
const LOOK_UPS: usize = 2;

#[derive(Clone, Debug)]
pub(super) struct Peers {
    ourselves: u32,
    group: Option<u32>,
    members: Arc<Mutex<BTreeMap<u32, (Instant, bool)>>>,
    look_ups: Arc<Semaphore>,
}

impl Peers {
    pub(super) fn new(group: Option<&str>) -> Result<Self> {
        let failed = |group: &str, why: String| {
            anyhow!("cannot give the control socket to group \"{group}\": {why}; correct --socket-group")
        };
        let group = group.map(|name| match users::group(name) {
            Ok(Some(gid)) => Ok(gid),
            Ok(None) => Err(failed(name, "there is no such group".to_owned())),
            Err(error) => Err(failed(name, error.to_string())),
        });
        let look_ups = Arc::new(Semaphore::new(LOOK_UPS));
        Ok(Self {
            ourselves: geteuid().as_raw(),
            group: group.transpose()?,
            members: Arc::default(),
            look_ups,
        })
    }

    pub(super) const fn are_ours(&self, uid: u32) -> bool {
        uid == 0 || uid == self.ourselves
    }

    /// Whether this user may be allowed, before any group is looked up.
    pub(super) const fn may_be_allowed(&self, uid: u32) -> bool {
        self.are_ours(uid) || self.group.is_some()
    }

    pub(super) async fn allows(&self, uid: u32, gid: u32) -> bool {
        match self.group {
            _ if self.are_ours(uid) => true,
            None => false,
            Some(group) => group == gid || self.is_member(uid, group).await,
        }
    }

    async fn is_member(&self, uid: u32, group: u32) -> bool {
        let known = || lock(&self.members);
        let fresh = known().get(&uid).copied().filter(|(at, _)| at.elapsed() < REMEMBERED);
        if let Some((_, is_member)) = fresh {
            return is_member;
        }
        let Ok(_permit) = self.look_ups.acquire().await else { return false };
        let found = tokio::task::spawn_blocking(move || is_member(uid, group)).await.unwrap_or(false);
        let mut known = known();
        if known.len() >= USERS {
            known.clear();
        }
        known.insert(uid, (Instant::now(), found));
        found
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

    #[tokio::test]
    async fn root_and_ourselves_and_nobody_else() {
        let peers = Peers::new(None).unwrap();
        assert!(peers.allows(0, 0).await);
        assert!(peers.allows(geteuid().as_raw(), 12345).await);
        assert!(!peers.allows(65_534, 65_534).await && !peers.may_be_allowed(65_534));
    }

    #[tokio::test]
    async fn members_of_the_group() {
        // Members by their primary group: on every Debian, `nobody` belongs to `nogroup` and `daemon` does
        // not.
        let (Ok(Some(nobody)), Ok(Some(nogroup))) = (users::user("nobody"), users::group("nogroup")) else {
            return;
        };
        let peers = Peers::new(Some("nogroup")).unwrap();
        assert_eq!((peers.group, nobody.gid), (Some(nogroup), nogroup));
        assert!(peers.allows(nobody.uid, nogroup).await);
        // Not by the group it happens to run with, but by the database.
        assert!(peers.allows(nobody.uid, 4_000_000).await);
        assert!(!peers.allows(4_000_000, 4_000_000).await);
        // Both answers are remembered.
        assert_eq!(peers.members.lock().unwrap().len(), 2);
    }

    #[test]
    fn a_group_that_is_not_there() {
        let error = Peers::new(Some("no-such-group")).unwrap_err().to_string();
        assert_eq!(
            error,
            "cannot give the control socket to group \"no-such-group\": there is no such group; correct --socket-group"
        );
    }
}
