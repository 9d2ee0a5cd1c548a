//! The maintenance thread of the store. It does what may take long: checkpoints the write-ahead log, calls
//! fsync(2), deletes old rows, checks the file for damage.
//!
//! The thread sleeps until something was written, waits a little for more, works, and sleeps again. On an
//! idle host it never wakes up.
//!
//! The log is truncated after a checkpoint instead of being reused. The first writer that reuses a log has to
//! fsync its header, because otherwise a power failure could leave old frames after a new header; that writer
//! would be the daemon. To prevent reuse, a read transaction (`pin`) is held during the checkpoint, which is
//! slow but blocks no writer. Then the log is truncated under the write lock, which is quick, and only if
//! nothing was written in between.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
        mpsc::{self, Receiver, RecvTimeoutError, Sender},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use rusqlite::Connection;

use super::{
    error::StoreError,
    files,
    prune::{Limits, Pruner},
};
use crate::os::clock;

/// From the first write after a pause to the maintenance.
const DELAY: Duration = Duration::from_secs(5);
/// From this number of facts on, maintenance starts without delay.
const MANY: usize = 500;
/// Between two steps of deleting, to let the daemon write.
const PAUSE: Duration = Duration::from_micros(200);
/// How often a checkpoint is tried while the daemon writes.
const TRIES: usize = 4;

/// The write lock between the daemon and the maintenance thread. SQLite's own lock would make the loser
/// sleep.
#[derive(Debug, Default)]
pub(super) struct WriteGate {
    /// How many transactions were committed under it.
    writes: Mutex<u64>,
    /// Whether maintenance is already requested.
    requested: AtomicBool,
    /// Whether the file was removed or replaced.
    gone: AtomicBool,
    /// The damage that was found.
    damage: Mutex<Option<String>>,
}

/// The held write lock.
pub(super) struct WriteGuard<'a>(MutexGuard<'a, u64>);

impl WriteGuard<'_> {
    /// Counts a committed transaction.
    pub fn count_commit(&mut self) {
        *self.0 = self.0.wrapping_add(1);
    }

    fn writes(&self) -> u64 {
        *self.0
    }
}

impl WriteGate {
    /// Waits for the write lock.
    pub fn lock(&self) -> WriteGuard<'_> {
        WriteGuard(self.writes.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// An error if the file is damaged or was replaced, so that writing is pointless.
    pub fn check_usable(&self, file: &Path) -> Result<(), StoreError> {
        if self.gone.load(Ordering::Relaxed) {
            return Err(StoreError::Gone { path: file.to_owned() });
        }
        match self.damage.lock().unwrap_or_else(PoisonError::into_inner).clone() {
            Some(what) => Err(StoreError::Damaged { path: file.to_owned(), what }),
            None => Ok(()),
        }
    }
}

/// Requests to the thread.
enum Request {
    Written,
    ManyWritten,
    /// Do all work now, and report its end.
    #[cfg(test)]
    Now(Sender<()>),
}

/// The handle of the thread. When it is dropped, the thread makes a last checkpoint and ends.
#[derive(Debug)]
pub(super) struct Maintenance {
    gate: Arc<WriteGate>,
    requests: Option<Sender<Request>>,
    thread: Option<JoinHandle<()>>,
}

impl Maintenance {
    /// Starts the thread for a file that is already open.
    pub fn start(file: &Path, limits: Limits) -> Result<Self, StoreError> {
        let failed = |source| StoreError::of("open", file, source);
        let worker = Worker {
            prune: files::connect(file, "OFF").map_err(failed)?,
            sync: files::connect(file, "NORMAL").map_err(failed)?,
            identity: files::identity(file),
            file: file.to_owned(),
            limits,
            pruner: Pruner::default(),
            gate: Arc::default(),
            failed: false,
        };
        let gate = Arc::clone(&worker.gate);
        let (requests, inbox) = mpsc::channel();
        let thread =
            thread::Builder::new().name("orphand-store".to_owned()).spawn(move || worker.run(&inbox));
        let thread = thread.map_err(|source| StoreError::File {
            operation: "start the maintenance thread of",
            path: file.to_owned(),
            source,
        })?;
        Ok(Self { gate, requests: Some(requests), thread: Some(thread) })
    }

    pub fn gate(&self) -> &Arc<WriteGate> {
        &self.gate
    }

    /// Reports that `facts` facts were written.
    pub fn notify_written(&self, facts: usize) {
        let requested = self.gate.requested.swap(true, Ordering::Relaxed);
        let request = match (requested, facts >= MANY) {
            (_, true) => Request::ManyWritten,
            (false, false) => Request::Written,
            (true, false) => return,
        };
        // The thread lives as long as this handle.
        let _ = self.requests.as_ref().map(|requests| requests.send(request));
    }

    /// Runs all maintenance now and waits for its end.
    #[cfg(test)]
    pub fn work(&self) {
        let (done, wait) = mpsc::channel();
        self.requests.as_ref().unwrap().send(Request::Now(done)).unwrap();
        wait.recv().unwrap();
    }
}

impl Drop for Maintenance {
    fn drop(&mut self) {
        drop(self.requests.take());
        if let Some(thread) = self.thread.take() {
            // A panic of the thread was already reported.
            let _ = thread.join();
        }
    }
}

struct Worker {
    /// Deletes rows and never calls fsync(2). Also holds the read transaction during a checkpoint.
    prune: Connection,
    /// Makes the checkpoints.
    sync: Connection,
    file: PathBuf,
    identity: Option<(u64, u64)>,
    limits: Limits,
    pruner: Pruner,
    gate: Arc<WriteGate>,
    /// Whether the last attempt failed and was logged.
    failed: bool,
}

impl Worker {
    fn run(mut self, inbox: &Receiver<Request>) {
        self.check_file();
        self.work();
        while let Ok(request) = inbox.recv() {
            #[cfg(test)]
            let mut answer = None;
            match request {
                Request::Written => match inbox.recv_timeout(DELAY) {
                    #[cfg(test)]
                    Ok(Request::Now(done)) => answer = Some(done),
                    Ok(_) | Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => break,
                },
                Request::ManyWritten => {}
                #[cfg(test)]
                Request::Now(done) => answer = Some(done),
            }
            self.gate.requested.store(false, Ordering::Relaxed);
            self.work();
            #[cfg(test)]
            if let Some(done) = answer {
                let _ = done.send(());
            }
        }
        self.work();
    }

    /// Checks the whole file once, which would take too long at the start. The next start handles damage.
    fn check_file(&self) {
        if let Err(StoreError::Damaged { what, path }) = files::check_all(&self.sync, &self.file) {
            files::mark_suspect(&self.file, &what);
            tracing::warn!(
                "the store {} is damaged ({what}): facts are kept in memory; restart orphand to begin a new store",
                path.display()
            );
            *self.gate.damage.lock().unwrap_or_else(PoisonError::into_inner) = Some(what);
        }
    }

    fn work(&mut self) {
        if self.identity.is_some() && files::identity(&self.file) != self.identity {
            self.gate.gone.store(true, Ordering::Relaxed);
            return;
        }
        match self.prune().and_then(|()| self.truncate_log()) {
            Ok(()) => self.failed = false,
            Err(_) if self.failed => {}
            Err(source) => {
                self.failed = true;
                tracing::warn!("{}", StoreError::of("tidy", &self.file, source));
            }
        }
    }

    fn prune(&mut self) -> rusqlite::Result<()> {
        let now = super::column::wall_us(clock::now(), clock::realtime_offset());
        // Rows to delete are selected without the lock, because that takes longer than deleting them.
        while let Some(work) = self.pruner.choose(&self.prune, self.limits, now)? {
            loop {
                let mut guard = self.gate.lock();
                let more = self.pruner.step(&self.prune, self.limits, &work)?;
                guard.count_commit();
                drop(guard);
                // The lock is not fair: the pause lets a waiting writer take it.
                thread::sleep(PAUSE);
                if !more {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Copies the log into the file, then truncates it.
    fn truncate_log(&self) -> rusqlite::Result<()> {
        for _ in 0..TRIES {
            let before = self.gate.lock().writes();
            let pin = self.prune.unchecked_transaction()?;
            pin.query_row("SELECT count(*) FROM boots", [], |_| Ok(()))?;
            let whole = self.checkpoint("PASSIVE")?;
            let guard = self.gate.lock();
            drop(pin);
            if whole && guard.writes() == before {
                // A reader of the history may hold it; then a later attempt truncates it.
                return self.checkpoint("TRUNCATE").map(drop);
            }
        }
        Ok(())
    }

    /// Makes a checkpoint. Returns whether all of the log is in the file.
    fn checkpoint(&self, mode: &str) -> rusqlite::Result<bool> {
        self.sync.query_row(&format!("PRAGMA wal_checkpoint({mode})"), [], |row| {
            let (busy, log, copied): (i64, i64, i64) = (row.get(0)?, row.get(1)?, row.get(2)?);
            Ok(busy == 0 && log == copied)
        })
    }
}
