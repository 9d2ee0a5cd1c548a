//! Makes sure that one daemon runs per host, because two would judge and signal the same processes.
//!
//! Invariant: the process that holds an [`Instance`] holds the lock. The kernel releases the lock at any end
//! of the process, so a file that is left behind does no harm. The path must be the same for every daemon of
//! the host, whatever its state directory and socket: `/run/orphand/lock`. For `run`. `host::lock_holder`
//! tells which process holds the lock.

use std::{
    fs::{DirBuilder, File, OpenOptions},
    io::{self, Read, Seek, Write},
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt},
    path::Path,
};

use anyhow::{Result, anyhow, bail};
use rustix::{
    fs::{FlockOperation, OFlags, flock},
    io::Errno,
    process::{Pid, test_kill_process},
};

/// The right to be the only daemon of the host.
#[derive(Debug)]
pub struct Instance {
    lock: File,
}

impl Drop for Instance {
    /// What is just being started has the descriptor too, until its exec closes it: to close ours is not enough.
    fn drop(&mut self) {
        let _ = flock(&self.lock, FlockOperation::Unlock);
    }
}

impl Instance {
    /// Takes the lock at `path` and writes our process id into the file. Creates the directory if necessary.
    pub fn lock(path: &Path) -> Result<Self> {
        if let Some(dir) = path.parent() {
            DirBuilder::new().recursive(true).mode(0o755).create(dir).map_err(failed("make", dir))?;
        }
        loop {
            // Other users must not read the file: any process that can open a file can lock it, and so
            // prevent the daemon's start.
            let mut file = OpenOptions::new()
                .read(true)
                .write(true)
                .create(true)
                .truncate(false)
                .mode(0o600)
                .custom_flags(OFlags::NOFOLLOW.bits().cast_signed())
                .open(path)
                .map_err(failed("open", path))?;
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => {}
                Err(Errno::WOULDBLOCK) => {
                    let pid = holder(&mut file).map_or("unknown".to_owned(), |pid| pid.to_string());
                    bail!("another orphand is running on this host (pid {pid}); stop it first");
                }
                Err(errno) => return Err(failed("lock", path)(errno.into())),
            }
            // A lock on a file that was removed or replaced does not exclude another daemon.
            let ours = file.metadata().map_err(failed("read", path))?;
            if !std::fs::metadata(path).is_ok_and(|now| (now.dev(), now.ino()) == (ours.dev(), ours.ino())) {
                continue;
            }
            file.set_len(0)
                .and_then(|()| file.rewind())
                .and_then(|()| writeln!(file, "{}", std::process::id()))
                .map_err(failed("write", path))?;
            return Ok(Self { lock: file });
        }
    }
}

fn failed(operation: &str, path: &Path) -> impl FnOnce(io::Error) -> anyhow::Error {
    move |error| {
        let advice = "run orphand as root, or make the directory writable for its user";
        anyhow!("cannot {operation} {}: {error}; {advice}", path.display())
    }
}

/// The process id in the file. The holder writes it as soon as it has the lock.
fn holder(file: &mut File) -> Option<u32> {
    // The holder takes the lock a moment before it writes its id. The older id in the file belongs to a
    // daemon that has ended.
    for _ in 0..1000 {
        let mut content = String::new();
        file.rewind().ok()?;
        file.take(64).read_to_string(&mut content).ok()?;
        let pid = content.strip_suffix('\n').and_then(|pid| pid.parse().ok());
        if let Some(pid) = pid.filter(|pid| exists(*pid)) {
            return Some(pid);
        }
        std::thread::yield_now();
    }
    None
}

fn exists(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    pid.is_some_and(|pid| test_kill_process(pid) != Err(Errno::SRCH))
}

#[cfg(test)]
mod tests {
    use std::{
        io::{BufRead, BufReader},
        process::{Command, Stdio},
    };

    use super::*;

    #[test]
    fn the_second_is_told_who_the_first_is() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("run/orphand/lock");
        let first = Instance::lock(&path).unwrap();
        let error = Instance::lock(&path).unwrap_err();
        let ours = std::process::id();
        assert!(error.to_string().contains(&format!("(pid {ours})")), "{error}");
        assert_eq!(
            error.to_string(),
            format!("another orphand is running on this host (pid {ours}); stop it first")
        );
        drop(first);
        drop(Instance::lock(&path).unwrap());
    }

    #[test]
    fn what_a_killed_daemon_left_is_no_obstacle() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        std::fs::write(&path, "1\nand more than a pid\n").unwrap();
        drop(Instance::lock(&path).unwrap());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), format!("{}\n", std::process::id()));
    }

    #[test]
    fn another_process_holds_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        let script = "import fcntl, os, sys\nf = open(sys.argv[1], 'w'); fcntl.flock(f, fcntl.LOCK_EX)\n\
                      print(os.getpid(), file=f, flush=True); print(flush=True); sys.stdin.read()";
        let mut other = Command::new("python3")
            .args(["-c", script])
            .arg(&path)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        BufReader::new(other.stdout.take().unwrap()).read_line(&mut String::new()).unwrap();
        let error = Instance::lock(&path).unwrap_err();
        assert!(error.to_string().contains(&format!("(pid {})", other.id())), "{error}");
        other.kill().unwrap();
        other.wait().unwrap();
        drop(Instance::lock(&path).unwrap());
    }

    #[test]
    fn a_lock_on_a_removed_file_keeps_nobody_out_and_is_not_taken_for_one() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        let _first = Instance::lock(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let _second = Instance::lock(&path).unwrap();
        let error = Instance::lock(&path).unwrap_err().to_string();
        assert!(error.starts_with("another orphand is running"), "{error}");
    }

    #[test]
    fn a_link_is_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("precious");
        std::fs::write(&target, "precious").unwrap();
        std::os::unix::fs::symlink(&target, dir.path().join("lock")).unwrap();
        let error = Instance::lock(&dir.path().join("lock")).unwrap_err();
        assert!(error.to_string().starts_with("cannot open "), "{error}");
        assert_eq!(std::fs::read_to_string(&target).unwrap(), "precious");
    }
}
