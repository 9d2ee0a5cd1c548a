//! The maintenance thread of the store. It does what may take long: copies the write-ahead log into the file, deletes
//! old rows, checks the file for damage.
//!
//! The thread sleeps until something was written, waits a little for more, works, and sleeps again. On an idle host it
//! never wakes up. It holds the write lock for a step at a time, and never while it waits for the disk but for what was
//! written since it began.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
        mpsc::{self, Receiver, SyncSender},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use rusqlite::Connection;

use super::{
    column::wall_us,
    error::StoreError,
    files,
    prune::{Limits, prune},
};
use crate::os::clock;

/// From the first write after a pause to the maintenance.
const DELAY: Duration = Duration::from_secs(5);
/// Between two steps, to let the daemon write: the lock is not fair.
const PAUSE: Duration = Duration::from_micros(200);

/// What the daemon's connection and the maintenance thread share.
#[derive(Debug, Default)]
pub(super) struct WriteGate {
    /// The write lock. SQLite's own one would make the loser sleep.
    writes: Mutex<()>,
    /// Whether the file was removed or replaced.
    gone: AtomicBool,
    /// The damage that was found.
    damage: Mutex<Option<String>>,
}

impl WriteGate {
    /// Waits for the write lock.
    pub fn lock(&self) -> MutexGuard<'_, ()> {
        self.writes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An error if the file is damaged or was replaced, so that writing is pointless.
    pub fn check_usable(&self, file: &Path) -> Result<(), StoreError> {
        if self.gone.load(Ordering::Relaxed) {
            let what = format!("the store {} was removed or replaced while orphand ran", file.display());
            return Err(StoreError::Other(format!("{what}: restart orphand to begin a new one")));
        }
        match self.damage.lock().unwrap_or_else(PoisonError::into_inner).clone() {
            Some(what) => Err(StoreError::Damaged { path: file.to_owned(), what }),
            None => Ok(()),
        }
    }
}

/// The handle of the thread. When it is dropped, the thread works a last time and ends.
#[derive(Debug)]
pub(super) struct Maintenance {
    gate: Arc<WriteGate>,
    /// Tells that something was written, and, when it is dropped like the other one, to stop.
    channels: Option<[SyncSender<()>; 2]>,
    #[cfg(test)]
    pub limits: Limits,
    thread: Option<JoinHandle<()>>,
}

impl Maintenance {
    /// Starts the thread for a file that is already open.
    pub fn start(file: &Path, limits: Limits) -> Result<Self, StoreError> {
        let gate: Arc<WriteGate> = Arc::default();
        let worker = Worker::open(file, limits, Arc::clone(&gate))?;
        // Room for one: what waits stands for all that follows.
        let (written, inbox) = mpsc::sync_channel(1);
        let (stop, stopped) = mpsc::sync_channel(1);
        let thread = thread::Builder::new()
            .name("orphand-store".to_owned())
            .spawn(move || worker.run(&inbox, &stopped));
        let thread =
            thread.map_err(|error| StoreError::file("start the maintenance thread of", file, &error))?;
        Ok(Self {
            gate,
            channels: Some([written, stop]),
            #[cfg(test)]
            limits,
            thread: Some(thread),
        })
    }

    pub fn gate(&self) -> &Arc<WriteGate> {
        &self.gate
    }

    /// Reports that facts were written.
    pub fn notify_written(&self) {
        // The thread lives as long as this handle.
        let _ = self.channels.as_ref().map(|[written, _]| written.try_send(()));
    }
}

impl Drop for Maintenance {
    fn drop(&mut self) {
        drop(self.channels.take());
        if let Some(thread) = self.thread.take() {
            // A panic of the thread was already reported.
            let _ = thread.join();
        }
    }
}

/// What the thread does, on a connection of its own.
pub(super) struct Worker {
    db: Connection,
    file: PathBuf,
    identity: Option<(u64, u64)>,
    limits: Limits,
    gate: Arc<WriteGate>,
    /// Whether the last attempt failed and was logged.
    failed: bool,
}

impl Worker {
    /// For a file that is already open.
    pub fn open(file: &Path, limits: Limits, gate: Arc<WriteGate>) -> Result<Self, StoreError> {
        let db = files::connect(file).map_err(|source| StoreError::of("open", file, &source))?;
        let identity = files::identity(file);
        Ok(Self { db, file: file.to_owned(), identity, limits, gate, failed: false })
    }

    fn run(mut self, written: &Receiver<()>, stop: &Receiver<()>) {
        self.check_file();
        self.work();
        while written.recv().is_ok() {
            // More may come.
            let _ = stop.recv_timeout(DELAY);
            self.work();
        }
    }

    /// Checks the whole file once, which would take too long at the start. The next start handles damage.
    pub fn check_file(&self) {
        if let Err(StoreError::Damaged { what, path }) = files::check_all(&self.db, &self.file) {
            files::mark_suspect(&self.file, &what);
            tracing::warn!(
                "the store {} is damaged ({what}): facts are kept in memory; restart orphand to begin a new store",
                path.display()
            );
            *self.gate.damage.lock().unwrap_or_else(PoisonError::into_inner) = Some(what);
        }
    }

    /// Does all that there is to do.
    pub fn work(&mut self) {
        if self.identity.is_some() && files::identity(&self.file) != self.identity {
            self.gate.gone.store(true, Ordering::Relaxed);
            return;
        }
        let now = wall_us(clock::now(), clock::realtime_offset());
        let mut locked = |step: &mut dyn FnMut() -> rusqlite::Result<usize>| {
            let guard = self.gate.lock();
            let done = step();
            drop(guard);
            thread::sleep(PAUSE);
            done
        };
        match prune(&self.db, self.limits, now, &mut locked).and_then(|()| self.copy_log()) {
            Ok(()) => self.failed = false,
            Err(_) if self.failed => {}
            Err(source) => {
                self.failed = true;
                tracing::warn!("{}", StoreError::of("tidy", &self.file, &source));
            }
        }
    }

    /// Copies the log into the file, and cuts it to nothing.
    fn copy_log(&self) -> rusqlite::Result<()> {
        // This may take long, and keeps nobody from writing.
        self.db.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))?;
        // What was written meanwhile. A reader of the history may hold the log; then a later attempt cuts it.
        let _guard = self.gate.lock();
        self.db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
    }
}
