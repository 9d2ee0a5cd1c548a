//! The maintenance thread of the store. It does what may take long: copies the write-ahead log into the file, deletes
//! old rows, checks the file for damage.
//!
//! The thread sleeps until something was written, waits a little for more, works, and sleeps again. On an idle host it
//! never wakes up. It has a connection of its own, and SQLite's write lock for a step at a time: never while it waits for
//! the disk but for what was written since it began.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc, OnceLock,
        mpsc::{self, Receiver, SyncSender},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
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
/// How long a reader of the history may keep the log from being cut; writes wait meanwhile.
const READERS: Duration = Duration::from_millis(50);

/// Why writing is pointless until the next start: the file is damaged, or it was removed or replaced.
pub(super) type Unusable = Arc<OnceLock<StoreError>>;

/// The handle of the thread. When it is dropped, the thread works a last time and ends.
#[derive(Debug)]
pub(super) struct Maintenance {
    /// Tells that something was written; without it the thread ends.
    written: Option<SyncSender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Maintenance {
    /// Starts the thread for a file that is already open.
    pub fn start(file: &Path, limits: Limits, unusable: Unusable) -> Result<Self, StoreError> {
        let worker = Worker::open(file, limits, unusable)?;
        // Room for one: what waits stands for all that follows.
        let (written, inbox) = mpsc::sync_channel(1);
        let thread = thread::Builder::new().name("orphand-store".to_owned());
        let thread = thread.spawn(move || worker.run(&inbox));
        let thread =
            thread.map_err(|error| StoreError::file("start the maintenance thread of", file, &error))?;
        Ok(Self { written: Some(written), thread: Some(thread) })
    }

    pub fn notify_written(&self) {
        // The thread lives as long as this handle.
        let _ = self.written.as_ref().map(|written| written.try_send(()));
    }
}

impl Drop for Maintenance {
    fn drop(&mut self) {
        drop(self.written.take());
        // A panic of the thread was already reported.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// What the thread does, on a connection of its own.
pub(super) struct Worker {
    db: Connection,
    file: PathBuf,
    identity: Option<(u64, u64)>,
    limits: Limits,
    unusable: Unusable,
    /// Whether the last attempt failed and was logged.
    failed: bool,
}

impl Worker {
    pub fn open(file: &Path, limits: Limits, unusable: Unusable) -> Result<Self, StoreError> {
        let db = files::connect(file).map_err(|source| StoreError::of("open", file, &source))?;
        let identity = files::identity(file);
        Ok(Self { db, file: file.to_owned(), identity, limits, unusable, failed: false })
    }

    fn run(mut self, written: &Receiver<()>) {
        self.check_file();
        self.work();
        while written.recv().is_ok() {
            // More may come.
            let until = Instant::now() + DELAY;
            while written.recv_timeout(until.saturating_duration_since(Instant::now())).is_ok() {}
            self.work();
        }
    }

    /// Checks the whole file once, which would take too long at the start. The next start handles damage.
    pub fn check_file(&self) {
        let Err(error @ StoreError::Damaged { .. }) = files::check_all(&self.db, &self.file) else { return };
        tracing::warn!("{error}; until then facts are kept in memory");
        if let StoreError::Damaged { what, .. } = &error {
            files::mark_suspect(&self.file, what);
        }
        let _ = self.unusable.set(error);
    }

    /// Does all that there is to do.
    pub fn work(&mut self) {
        if self.identity.is_some() && files::identity(&self.file) != self.identity {
            let what = format!("the store {} was removed or replaced while orphand ran", self.file.display());
            let _ =
                self.unusable.set(StoreError::Other(format!("{what}: restart orphand to begin a new one")));
            return;
        }
        let now = wall_us(clock::now(), clock::realtime_offset());
        match prune(&self.db, self.limits, now).and_then(|()| self.copy_log()) {
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
        self.db.busy_timeout(READERS)?;
        let cut = self.db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
        self.db.busy_timeout(files::WRITE_LOCK)?;
        cut
    }
}
