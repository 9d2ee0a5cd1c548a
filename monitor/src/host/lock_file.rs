//! Makes sure that one daemon runs per host, because two would judge and signal the same processes.
//!
//! Invariant: the process that holds an [`Instance`] holds the lock. The kernel releases the lock at any end
//! of the process, so a file that is left behind does no harm. The path must be the same for every daemon of
//! the host, whatever its state directory and socket: `/run/orphand/lock`. For `run`. The kernel tells which process
//! holds the lock. Its text is what one daemon leaves to the next (`store::Unkept`), and means nothing here.

use std::{
    fs::{self, DirBuilder, File, OpenOptions, TryLockError},
    io::{self, Read as _},
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt},
    path::Path,
    time::{Duration, Instant},
};

use anyhow::{Result, anyhow, bail};
use rustix::fs::OFlags;

/// For how long the kernel's list of locks is read.
const PATIENCE: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub struct Instance {
    lock: File,
}

impl Drop for Instance {
    /// What is just being started has the descriptor too, until its exec closes it: to close ours is not enough.
    fn drop(&mut self) {
        let _ = self.lock.unlock();
    }
}

impl Instance {
    /// The file with the lock.
    pub fn file(&self) -> io::Result<File> {
        self.lock.try_clone()
    }

    /// Takes the lock at `path`. Creates the directory if necessary.
    pub fn lock(path: &Path) -> Result<Self> {
        if let Some(dir) = path.parent() {
            DirBuilder::new().recursive(true).mode(0o755).create(dir).map_err(failed("make", dir))?;
        }
        loop {
            // Other users must not read the file: any process that can open a file can lock it, and so
            // prevent the daemon's start.
            let file = OpenOptions::new()
                .read(true)
                .write(true)
                .create(true)
                .truncate(false)
                .mode(0o600)
                .custom_flags(OFlags::NOFOLLOW.bits().cast_signed())
                .open(path)
                .map_err(failed("open", path))?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => {
                    let pid = lock_holder(path).map_or("unknown".to_owned(), |pid| pid.to_string());
                    bail!("another orphand is running on this host (pid {pid}); stop it first");
                }
                Err(TryLockError::Error(error)) => return Err(failed("lock", path)(error)),
            }
            // A lock on a file that was removed or replaced does not exclude another daemon.
            let ours = file.metadata().map_err(failed("read", path))?;
            if fs::metadata(path).is_ok_and(|now| (now.dev(), now.ino()) == (ours.dev(), ours.ino())) {
                return Ok(Self { lock: file });
            }
        }
    }
}

fn failed(operation: &str, path: &Path) -> impl FnOnce(io::Error) -> anyhow::Error {
    move |error| {
        let advice = "run orphand as root, or make the directory writable for its user";
        anyhow!("cannot {operation} {}: {error}; {advice}", path.display())
    }
}

/// The pid of the process that holds an exclusive flock(2) on the file at `path`, from the kernel's own list. An attempt
/// to take the lock could keep out a daemon that starts at the same time.
pub fn lock_holder(path: &Path) -> Option<u32> {
    let file = fs::metadata(path).ok()?;
    let locks = read_within(File::open("/proc/locks").ok()?, PATIENCE);
    let (major, minor) = (rustix::fs::major(file.dev()), rustix::fs::minor(file.dev()));
    holder(&locks, &format!("{major:02x}:{minor:02x}:{}", file.ino()))
}

/// What can be read in so much time. Any user may hold as many locks as he likes, and for each page the kernel counts from the
/// first of them: a million takes minutes.
fn read_within(mut file: File, patience: Duration) -> String {
    let (began, mut text, mut page) = (Instant::now(), Vec::new(), [0; 4096]);
    while began.elapsed() < patience
        && let Ok(read @ 1..) = file.read(&mut page)
    {
        text.extend(page.iter().take(read));
    }
    String::from_utf8_lossy(&text).into_owned()
}

/// Finds the holder in lines `1: FLOCK ADVISORY WRITE PID MAJOR:MINOR:INODE 0 EOF`. A line of a waiting
/// process has `->` in front: `proc_locks(5)`.
fn holder(locks: &str, file: &str) -> Option<u32> {
    locks.lines().find_map(|line| match *line.split_ascii_whitespace().collect::<Vec<_>>() {
        [_, "FLOCK", _, "WRITE", pid, at, ..] if at == file => pid.parse().ok(),
        _ => None,
    })
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
    fn the_kernel_lists_who_holds_a_lock() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        assert_eq!(lock_holder(&path), None);
        let file = fs::File::create(&path).unwrap();
        assert_eq!(lock_holder(&path), None, "there is a file, and nobody holds it");
        file.lock().unwrap();
        assert_eq!(lock_holder(&path), Some(std::process::id()));
        let locks = "1: FLOCK  ADVISORY  WRITE 708 00:13:422 0 EOF\n\
                     2: -> FLOCK  ADVISORY  WRITE 709 00:13:423 0 EOF\n3: POSIX  ADVISORY  WRITE 710 00:13:424 0 EOF\n";
        assert_eq!(holder(locks, "00:13:422"), Some(708));
        assert_eq!(
            (holder(locks, "00:13:423"), holder(locks, "00:13:424"), holder(locks, "00:13:42")),
            (None, None, None)
        );
    }

    #[test]
    fn a_list_without_an_end_is_left() {
        assert!(!read_within(File::open("/dev/zero").unwrap(), Duration::from_millis(20)).is_empty());
    }

    #[test]
    fn another_process_holds_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        let script = "import fcntl, sys\nf = open(sys.argv[1], 'w'); fcntl.flock(f, fcntl.LOCK_EX)\n\
                      print(flush=True); sys.stdin.read()";
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
