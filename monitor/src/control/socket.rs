//! The file of the control socket.

use std::{
    fs::{self, DirBuilder, Permissions},
    io,
    os::unix::{
        fs::{DirBuilderExt, FileTypeExt, MetadataExt, PermissionsExt},
        net::{UnixListener, UnixStream},
    },
    path::{Path, PathBuf},
};

use anyhow::{Result, anyhow, bail};

/// Every user may connect. What each may ask is decided by his credentials: [`super::peer::Peers`].
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
}
