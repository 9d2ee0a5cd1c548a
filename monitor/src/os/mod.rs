//! The operating system around the daemon. No module here knows of agents or servers.

pub mod budgets;
pub mod capabilities;
pub mod clock;
pub mod descriptors;
#[cfg(test)]
pub(crate) mod forks_of_tests;
pub mod journald;
pub mod own;
pub mod processor_time;
pub mod systemd_notify;
pub mod trust;
pub mod users;
pub mod way;

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read as _, Seek as _, Write as _},
    os::{fd::OwnedFd, unix::fs::OpenOptionsExt as _},
    path::Path,
    process::{Child, Command},
    sync::{Mutex, MutexGuard, PoisonError, RwLock},
    thread,
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::{MemfdFlags, OFlags, SealFlags, fcntl_add_seals, memfd_create},
    io::Errno,
};
use tokio::{
    io::{Interest, unix::AsyncFd},
    sync::oneshot,
};

/// Locks. No code of ours panics while it holds a lock; if some did, what it guards would still be whole.
pub fn lock<T: ?Sized>(what: &Mutex<T>) -> MutexGuard<'_, T> {
    what.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Does what may take its time on a thread of its own. Where none can be started, tokio's own pool would panic.
pub async fn beside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> io::Result<T> {
    let (tell, told) = oneshot::channel();
    start("beside", move || drop(tell.send(work())))?;
    told.await.map_err(io::Error::other)
}

/// Starts a thread of this name. An error if there is no room for one, where `thread::spawn` panics.
pub fn start(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    thread::Builder::new().name(format!("orphand-{name}")).spawn(work).map(drop)
}

/// Programs that are being launched: a child has all our descriptors until its execve(2) closes them.
static LAUNCHES: RwLock<()> = RwLock::new(());

pub fn launch(command: &mut Command) -> io::Result<Child> {
    let _launches = LAUNCHES.read().unwrap_or_else(PoisonError::into_inner);
    command.spawn()
}

/// Does this when no program is being launched, and lets none be launched meanwhile.
pub fn between_launches(work: impl FnOnce()) {
    const PAUSE: Duration = Duration::from_millis(1);
    loop {
        // Whoever waits for the lock would keep others from launching for as long as one launch hangs.
        if let Ok(_none) = LAUNCHES.try_write() {
            return work();
        }
        thread::sleep(PAUSE);
    }
}

/// Does on a thread of its own what changes the thread for good: its groups, its namespaces.
pub fn apart<T: Send>(work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    thread::scope(|scope| {
        let thread = thread::Builder::new().spawn_scoped(scope, work)?;
        thread.join().unwrap_or_else(|_| Err(io::Error::other("a thread has panicked")))
    })
}

/// Whether the process of this descriptor has ended, or ends within this time. A pidfd is readable from the exit of the last
/// thread on, also for a zombie (`pidfd_poll()`, kernel/fork.c). The manual page lists no error; one counts as "no".
pub fn has_ended(pidfd: &OwnedFd, within: Duration) -> bool {
    let until = Instant::now() + within;
    loop {
        let left = Timespec::try_from(until.saturating_duration_since(Instant::now()));
        match poll(&mut [PollFd::new(pidfd, PollFlags::IN)], left.ok().as_ref()) {
            Err(Errno::INTR) => {}
            told => return told.is_ok_and(|ready| ready > 0),
        }
    }
}

/// What was tried with a file; nothing if it is not there.
pub fn if_there<T>(tried: io::Result<T>) -> io::Result<Option<T>> {
    match tried {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        tried => tried.map(Some),
    }
}

/// The one way to read a file that a person may have put there: the text of a regular file of a mebibyte at most. This neither
/// blocks nor takes much memory.
pub fn text_file(path: &Path) -> io::Result<String> {
    text_file_within(path, 1 << 20)
}

/// As [`text_file`], of so many bytes at most.
pub fn text_file_within(path: &Path, limit: u64) -> io::Result<String> {
    // A pipe without a writer would block.
    let flags = i32::try_from((OFlags::NONBLOCK | OFlags::NOCTTY).bits()).unwrap_or_default();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path).map_err(|error| {
        // What it leads to may be on a disk that is not mounted: it does not count as absent.
        let nearest = path.ancestors().find(|at| at.symlink_metadata().is_ok());
        let leads_nowhere = nearest.is_some_and(|at| at.is_symlink() && !at.exists());
        if leads_nowhere { io::Error::other("it is behind a link that leads nowhere") } else { error }
    })?;
    let found = file.metadata()?;
    let kind = found.file_type();
    if kind.is_dir() {
        return Err(Errno::ISDIR.into());
    }
    if !kind.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut bytes = Vec::new();
    if found.len() <= limit {
        File::take(file, limit + 1).read_to_end(&mut bytes)?;
    }
    if found.len().max(bytes.len() as u64) > limit {
        return Err(io::Error::other(format!("it is larger than {limit} bytes, more than it needs")));
    }
    String::from_utf8(bytes).map_err(|_| io::Error::other("it is not UTF-8 text"))
}

/// Puts these bytes in place of a file: the old one or the new one is there at any time.
pub fn replace_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let new = path.with_extension("new");
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o644).open(&new)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&new, path)
}

/// A text in a memory file that nobody can change any more.
pub fn sealed(name: &str, text: &str, flags: MemfdFlags) -> io::Result<File> {
    let mut file = File::from(memfd_create(name, flags | MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?);
    file.write_all(text.as_bytes())?;
    file.rewind()?;
    fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::WRITE | SealFlags::SEAL)?;
    Ok(file)
}

/// Lets a task wait until `fd`, which should be non-blocking, is readable. The caller must be inside a tokio runtime.
#[expect(
    deprecated,
    reason = "the successor is an unsafe function because of descriptors that change under it; an OwnedFd does not"
)]
pub fn readable(fd: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    AsyncFd::with_interest(fd, Interest::READABLE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_for_launches_stops_none() {
        let launches = LAUNCHES.read().unwrap();
        thread::scope(|scope| {
            let waits = scope.spawn(|| between_launches(|| {}));
            launch(&mut Command::new("true")).unwrap().wait().unwrap();
            assert!(!waits.is_finished());
            drop(launches);
        });
    }
}
