//! What outlives the daemon: an SQLite file in the state directory. For the daemon and for `orphand history`.
//!
//! Two promises. What [`Store::commit`] has said yes to survives SIGKILL at any instant: it is in the write-ahead log, in the
//! kernel's hands. And no disk holds up a verdict: the daemon's own connection never calls fsync(2), never copies the log into
//! the file, never deletes; the keeper's thread does, and takes the gate for moments only. After a power failure the
//! last seconds may be missing; the file is whole.
//!
//! A file that is damaged is set aside and a new one begun; a disk that is full costs what does not fit into memory.

mod backlog;
mod column;
mod error;
mod facts;
pub mod history;
mod keeper;
mod knowledge;
mod opening;
mod place;
mod prune;
mod salvage;
mod schema;
mod surplus;
mod writer;

use std::{path::PathBuf, time::Duration};

use rusqlite::{Connection, TransactionBehavior};

pub use error::StoreError;
pub use opening::{Opening, SetAside};
pub use place::usable;
pub use prune::Limits;
pub use writer::Writer;

use crate::os::clock;
use backlog::Backlog;
use facts::{Keys, Scribe};
use keeper::Keeper;
use orphand_core::model::{BootTime, Fact, Knowledge};

/// Time between two tries to write after one has failed.
const RETRY: Duration = Duration::from_secs(1);

/// The store, open for writing. One per state directory: the daemon's lock sees to that.
#[derive(Debug)]
pub struct Store {
    file: PathBuf,
    /// Before the keeper: the last connection to be closed is the one that calls fsync(2).
    db: Connection,
    keeper: Keeper,
    /// This boot's row.
    boot: i64,
    /// This daemon's row.
    daemon: i64,
    offset_ns: i64,
    keys: Keys,
    knowledge: Knowledge,
    /// Facts that are not in the file yet.
    pending: Backlog,
    /// When it may be tried again to write.
    retry: Option<BootTime>,
}

impl Store {
    /// What earlier daemons knew, as read at the opening. It is handed over: a second call finds nothing.
    pub fn knowledge(&mut self) -> Knowledge {
        std::mem::take(&mut self.knowledge)
    }

    /// Takes note of what became known at `at`. Costs next to nothing; durable with the next [`Store::commit`].
    pub fn remember(&mut self, at: BootTime, fact: &Fact) {
        self.pending.push(at, fact.clone());
    }

    /// Writes what was remembered. After an `Ok` it survives the daemon, however that ends. After an error it is kept in
    /// memory, as far as there is room, and tried again with the next call that is at least a second later.
    pub fn commit(&mut self) -> Result<(), StoreError> {
        if self.pending.is_empty() {
            return Ok(());
        }
        let now = clock::now();
        if self.retry.is_some_and(|retry| now < retry) {
            return Err(StoreError::NotYet { path: self.file.clone(), pending: self.pending.len() });
        }
        self.keeper.gate().fit(&self.file)?;
        let written = self.write_pending();
        match written {
            Ok(()) => {
                self.retry = None;
                self.keeper.nudge(self.pending.len());
                self.pending.clear();
                Ok(())
            }
            Err(source) => {
                // Rows of `keys` may have been made in what is undone now.
                self.keys.clear();
                self.retry = Some(now + RETRY);
                let error = StoreError::of("write", &self.file, source);
                if let StoreError::Damaged { what, .. } = &error {
                    place::mark_suspect(&self.file, what);
                }
                Err(error)
            }
        }
    }

    /// Facts that are remembered and not durable yet.
    pub fn pending(&self) -> usize {
        self.pending.len()
    }

    /// The daemon stops in good order: `orphand history` then tells that from an end by SIGKILL.
    pub fn stopped(&mut self, at: BootTime) -> Result<(), StoreError> {
        self.retry = None;
        self.commit()?;
        let _turn = self.keeper.gate().turn();
        self.db
            .execute(
                "UPDATE daemons SET stopped = ?2 WHERE id = ?1",
                [self.daemon, column::wall_us(at, self.offset_ns)],
            )
            .map(drop)
            .map_err(|source| StoreError::of("write", &self.file, source))
    }

    fn write_pending(&mut self) -> rusqlite::Result<()> {
        let mut turn = self.keeper.gate().turn();
        let change = self.db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let mut scribe =
            Scribe { db: &change, boot: self.boot, offset_ns: self.offset_ns, keys: &mut self.keys };
        for (at, fact) in self.pending.iter() {
            scribe.write(*at, fact)?;
        }
        change.commit()?;
        turn.wrote();
        Ok(())
    }
}

#[cfg(test)]
mod tests;
