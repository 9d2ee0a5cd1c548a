//! The file of the control socket; and who may send every request: root, the daemon's own user, the members of one group.

use std::{
    collections::BTreeMap,
    fs::{self, DirBuilder, Permissions},
    io,
    os::unix::{
        fs::{DirBuilderExt, FileTypeExt, MetadataExt, PermissionsExt},
        net::{UnixListener, UnixStream},
    },
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use anyhow::{Result, anyhow, bail};
use rustix::process::geteuid;
use tokio::sync::Semaphore;

use crate::os::{beside, lock, users};

/// Every user may connect. What each may ask is decided by his credentials: [`Peers`].
const MODE: u32 = 0o666;

#[derive(Debug)]
pub(super) struct ControlSocket {
    pub(super) listener: UnixListener,
    pub(super) file: SocketFile,
}

/// The file of a bound socket. It is removed on drop, unless it has been replaced.
#[derive(Debug)]
pub(super) struct SocketFile {
    path: PathBuf,
    inode: (u64, u64),
}

impl ControlSocket {
    /// Binds `path`. Creates the directory, and replaces a socket that a killed daemon left behind.
    pub(super) fn bind(path: &Path) -> Result<Self> {
        if let Some(dir) = path.parent().filter(|dir| !dir.as_os_str().is_empty()) {
            DirBuilder::new().recursive(true).mode(0o755).create(dir).map_err(failed("make", dir))?;
        }
        let listener = match UnixListener::bind(path) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                remove_stale(path)?;
                UnixListener::bind(path)
            }
            bound => bound,
        };
        let listener = listener.map_err(failed("bind", path))?;
        listener.set_nonblocking(true).map_err(failed("bind", path))?;
        let meta = fs::symlink_metadata(path).map_err(failed("read", path))?;
        fs::set_permissions(path, Permissions::from_mode(MODE)).map_err(failed("set the mode of", path))?;
        let file = SocketFile { path: path.to_owned(), inode: (meta.dev(), meta.ino()) };
        Ok(Self { listener, file })
    }
}

fn failed(operation: &str, path: &Path) -> impl FnOnce(io::Error) -> anyhow::Error {
    move |error| {
        let advice = "run orphand as root, or give another path with --socket";
        anyhow!("cannot {operation} {}: {error}; {advice}", path.display())
    }
}

fn remove_stale(path: &Path) -> Result<()> {
    let shown = path.display();
    let meta = fs::symlink_metadata(path).map_err(failed("read", path))?;
    if !meta.file_type().is_socket() {
        bail!("{shown} exists and is not a socket; remove it, or give another path with --socket");
    }
    match UnixStream::connect(path) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            fs::remove_file(path).map_err(failed("remove the stale", path))
        }
        // A full backlog (EAGAIN) also means that somebody listens.
        _ => bail!("another daemon answers at {shown}; stop it, or give another path with --socket"),
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        let ours = fs::symlink_metadata(&self.path).is_ok_and(|now| (now.dev(), now.ino()) == self.inode);
        if ours {
            // The next daemon replaces a file that is left.
            let _ = fs::remove_file(&self.path);
        }
    }
}

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
        let (ourselves, look_ups) = (geteuid().as_raw(), Arc::new(Semaphore::new(LOOK_UPS)));
        Ok(Self { ourselves, group: group.transpose()?, members: Arc::default(), look_ups })
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
        let found = beside(move || is_member(uid, group)).await.unwrap_or(false);
        let mut known = known();
        if known.len() >= USERS {
            known.clear();
        }
        known.insert(uid, (Instant::now(), found));
        found
    }
}

/// By the databases of users and groups: a socket's credentials have the primary group only.
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
    fn a_stale_socket_is_replaced_a_live_one_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("run/control.sock");
        let first = ControlSocket::bind(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, MODE);
        let error = ControlSocket::bind(&path).unwrap_err();
        assert!(error.to_string().starts_with("another daemon answers"), "{error}");
        // As after SIGKILL: the listener is closed, the file stays.
        let ControlSocket { listener, file } = first;
        drop(listener);
        std::mem::forget(file);
        let next = ControlSocket::bind(&path).unwrap();
        drop(UnixStream::connect(&path).unwrap());
        drop(next);
        assert!(!path.exists());
    }

    #[test]
    fn nothing_else_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("precious");
        fs::write(&path, "precious").unwrap();
        let error = ControlSocket::bind(&path).unwrap_err();
        assert!(error.to_string().contains("is not a socket"), "{error}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "precious");
    }

    #[test]
    fn a_file_that_was_replaced_is_not_ours() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("control.sock");
        let socket = ControlSocket::bind(&path).unwrap();
        let other = dir.path().join("other");
        fs::write(&other, "").unwrap();
        fs::rename(&other, &path).unwrap();
        drop(socket);
        assert!(path.exists());
    }

    mod peer {
        use super::super::*;

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
            let (Ok(Some(nobody)), Ok(Some(nogroup))) = (users::user("nobody"), users::group("nogroup"))
            else {
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
}
