//! The thread that does what may take long: copies the log into the file, calls fsync(2), deletes what is too old, reads the
//! file for damage.
//!
//! It sleeps until something was written, waits a little for more, works, and sleeps again: an idle host has no wake-ups of it.
//!
//! Why the log is cut to nothing instead of written over: who begins it anew in place has to fsync its head first, or a power
//! failure may leave old frames behind a new state; that would be the daemon's next commit. So nobody ever begins it anew:
//! `pin`, a reader, holds the log while it is copied (that part is slow, and hinders no writer), then it is cut within the gate
//! (that part is quick), only if nothing was written meanwhile.

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
    place,
    prune::{Limits, Pruner},
};
use crate::os::clock;

/// From the first write after a rest to the work on it.
const SETTLE: Duration = Duration::from_secs(5);
/// So many facts at once are worked on without delay.
const MANY: usize = 500;
/// Between two steps of deleting.
const PAUSE: Duration = Duration::from_micros(200);
/// Tries to copy the log while the daemon writes.
const TRIES: usize = 4;

/// Who may write: the daemon or the keeper. A lock of our own, because SQLite's lets the loser sleep.
#[derive(Debug, Default)]
pub(super) struct Gate {
    /// Transactions written through it.
    writes: Mutex<u64>,
    /// Work is ordered already.
    ordered: AtomicBool,
    /// The file is no more where it was.
    gone: AtomicBool,
    /// What was found to be wrong with it.
    damage: Mutex<Option<String>>,
}

/// The right to write, until it is dropped.
pub(super) struct Turn<'a>(MutexGuard<'a, u64>);

impl Turn<'_> {
    /// A transaction was committed.
    pub fn wrote(&mut self) {
        *self.0 = self.0.wrapping_add(1);
    }

    fn writes(&self) -> u64 {
        *self.0
    }
}

impl Gate {
    /// Waits for the right to write.
    pub fn turn(&self) -> Turn<'_> {
        Turn(self.writes.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether writing makes sense at all.
    pub fn fit(&self, file: &Path) -> Result<(), StoreError> {
        if self.gone.load(Ordering::Relaxed) {
            return Err(StoreError::Gone { path: file.to_owned() });
        }
        match self.damage.lock().unwrap_or_else(PoisonError::into_inner).clone() {
            Some(what) => Err(StoreError::Damaged { path: file.to_owned(), what }),
            None => Ok(()),
        }
    }
}

/// What the thread is told.
enum Word {
    Written,
    Much,
    /// Do all there is to do now, and say so.
    #[cfg(test)]
    Now(Sender<()>),
}

/// The thread. Ends when this is dropped, with the log copied.
#[derive(Debug)]
pub(super) struct Keeper {
    gate: Arc<Gate>,
    words: Option<Sender<Word>>,
    thread: Option<JoinHandle<()>>,
}

impl Keeper {
    /// Starts it on a file that is open already.
    pub fn start(file: &Path, limits: Limits) -> Result<Self, StoreError> {
        let failed = |source| StoreError::of("open", file, source);
        let work = Work {
            prune: place::connect(file, "OFF").map_err(failed)?,
            sync: place::connect(file, "NORMAL").map_err(failed)?,
            identity: place::identity(file),
            file: file.to_owned(),
            limits,
            pruner: Pruner::default(),
            gate: Arc::default(),
            troubled: false,
        };
        let gate = Arc::clone(&work.gate);
        let (words, inbox) = mpsc::channel();
        let thread = thread::Builder::new().name("orphand-store".to_owned()).spawn(move || work.run(&inbox));
        let thread = thread.map_err(|source| StoreError::File {
            operation: "start a thread for",
            path: file.to_owned(),
            source,
        })?;
        Ok(Self { gate, words: Some(words), thread: Some(thread) })
    }

    pub fn gate(&self) -> &Arc<Gate> {
        &self.gate
    }

    /// Something was written: `facts` of them.
    pub fn nudge(&self, facts: usize) {
        let ordered = self.gate.ordered.swap(true, Ordering::Relaxed);
        let word = match (ordered, facts >= MANY) {
            (_, true) => Word::Much,
            (false, false) => Word::Written,
            (true, false) => return,
        };
        // It lives as long as we do.
        let _ = self.words.as_ref().map(|words| words.send(word));
    }

    /// Has all work done now.
    #[cfg(test)]
    pub fn work(&self) {
        let (done, wait) = mpsc::channel();
        self.words.as_ref().unwrap().send(Word::Now(done)).unwrap();
        wait.recv().unwrap();
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        drop(self.words.take());
        if let Some(thread) = self.thread.take() {
            // It has said what there was to say.
            let _ = thread.join();
        }
    }
}

struct Work {
    /// Deletes, never calls fsync(2); is the reader that pins the log.
    prune: Connection,
    /// Copies the log into the file.
    sync: Connection,
    file: PathBuf,
    identity: Option<(u64, u64)>,
    limits: Limits,
    pruner: Pruner,
    gate: Arc<Gate>,
    /// The last work failed, and that was said.
    troubled: bool,
}

impl Work {
    fn run(mut self, inbox: &Receiver<Word>) {
        self.examine();
        self.work();
        while let Ok(word) = inbox.recv() {
            #[cfg(test)]
            let mut asked = None;
            match word {
                Word::Written => match inbox.recv_timeout(SETTLE) {
                    #[cfg(test)]
                    Ok(Word::Now(done)) => asked = Some(done),
                    Ok(_) | Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => break,
                },
                Word::Much => {}
                #[cfg(test)]
                Word::Now(done) => asked = Some(done),
            }
            self.gate.ordered.store(false, Ordering::Relaxed);
            self.work();
            #[cfg(test)]
            if let Some(done) = asked {
                let _ = done.send(());
            }
        }
        self.work();
    }

    /// Reads the whole file once, which the start had no time for. Damage is for the next start to mend.
    fn examine(&self) {
        if let Err(StoreError::Damaged { what, path }) = place::examine_all(&self.sync, &self.file) {
            place::mark_suspect(&self.file, &what);
            tracing::warn!(
                "the store {} is damaged ({what}): what happens is kept in memory; restart orphand to begin a new one",
                path.display()
            );
            *self.gate.damage.lock().unwrap_or_else(PoisonError::into_inner) = Some(what);
        }
    }

    fn work(&mut self) {
        if self.identity.is_some() && place::identity(&self.file) != self.identity {
            self.gate.gone.store(true, Ordering::Relaxed);
            return;
        }
        match self.prune().and_then(|()| self.copy()) {
            Ok(()) => self.troubled = false,
            Err(_) if self.troubled => {}
            Err(source) => {
                self.troubled = true;
                tracing::warn!("{}", StoreError::of("tidy", &self.file, source));
            }
        }
    }

    fn prune(&mut self) -> rusqlite::Result<()> {
        let now = super::column::wall_us(clock::now(), clock::realtime_offset());
        // What is to be deleted is found out without the gate: that takes longer than the deleting.
        while let Some(work) = self.pruner.choose(&self.prune, self.limits, now)? {
            loop {
                let mut turn = self.gate.turn();
                let more = self.pruner.step(&self.prune, self.limits, &work)?;
                turn.wrote();
                drop(turn);
                // Whoever waits for the gate has the next turn: the lock alone is not fair.
                thread::sleep(PAUSE);
                if !more {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Copies the log into the file, then cuts it.
    fn copy(&self) -> rusqlite::Result<()> {
        for _ in 0..TRIES {
            let before = self.gate.turn().writes();
            let pin = self.prune.unchecked_transaction()?;
            pin.query_row("SELECT count(*) FROM boots", [], |_| Ok(()))?;
            let whole = self.checkpoint("PASSIVE")?;
            let turn = self.gate.turn();
            drop(pin);
            if whole && turn.writes() == before {
                // A reader that looks back may hold it: then another time.
                return self.checkpoint("TRUNCATE").map(drop);
            }
        }
        Ok(())
    }

    /// Whether all of the log is in the file.
    fn checkpoint(&self, mode: &str) -> rusqlite::Result<bool> {
        self.sync.query_row(&format!("PRAGMA wal_checkpoint({mode})"), [], |row| {
            let (busy, log, copied): (i64, i64, i64) = (row.get(0)?, row.get(1)?, row.get(2)?);
            Ok(busy == 0 && log == copied)
        })
    }
}
