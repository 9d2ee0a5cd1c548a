//! The store: an SQLite file in the state directory with everything that survives the daemon. For the daemon
//! and for `orphand history`.
//!
//! It keeps two promises. First, what [`Store::commit`] confirmed survives SIGKILL at any time, because it is
//! in the write-ahead log, and the kernel has it. Second, no disk delays a verdict: the store is on a thread of its own,
//! for which the daemon waits a quarter of a second at most ([`StoreWriter`]), and what takes long (copying the log,
//! deleting) is done on a second thread, which holds the write lock only for short times. After a power failure the
//! last seconds may be missing, but the file is consistent.
//!
//! A damaged file is renamed and a new one is begun. While the disk is full, facts wait in memory as far as
//! there is room.

mod column;
mod error;
mod fact_writer;
mod files;
pub mod history;
mod key_limits;
mod knowledge;
mod maintenance;
mod opening;
mod prune;
mod salvage;
mod schema;
pub mod standing;
pub mod timeline;
mod writer;

use std::{collections::VecDeque, path::PathBuf, time::Duration};

use rusqlite::{Connection, TransactionBehavior};

pub use error::StoreError;
pub use files::usable;
pub use opening::DamagedFile;
pub use prune::Limits;
pub use writer::StoreWriter;

use crate::os::clock;
use fact_writer::{FactWriter, Keys};
use maintenance::{Maintenance, Unusable};
use orphand_core::model::{BootTime, Fact, Knowledge};

/// The time between a failed write and the next attempt.
const RETRY: Duration = Duration::from_secs(1);

/// The most facts that wait in memory to be written.
const PENDING: usize = 4096;

/// Facts that wait to be written, oldest first.
type Backlog = VecDeque<(BootTime, Fact)>;

/// Adds a fact that became known at `at`. Where there is no room the oldest is dropped; facts about runs are dropped last,
/// because run numbers depend on them.
fn push(backlog: &mut Backlog, at: BootTime, fact: Fact) {
    if backlog.len() >= PENDING {
        let of_runs = |fact: &Fact| matches!(fact, Fact::Run { .. } | Fact::Forgotten { .. });
        let least = backlog.iter().position(|(_, fact)| !of_runs(fact));
        backlog.remove(least.unwrap_or(0));
    }
    backlog.push_back((at, fact));
}

/// The store, open for writing. The daemon's lock file makes sure that there is one per state directory.
#[derive(Debug)]
pub struct Store {
    file: PathBuf,
    /// Declared before the maintenance thread: the connection that is closed last calls fsync(2).
    db: Connection,
    maintenance: Maintenance,
    unusable: Unusable,
    /// The row id of this boot.
    boot: i64,
    /// The row id of this daemon.
    daemon: i64,
    offset_ns: i64,
    keys: Keys,
    knowledge: Knowledge,
    /// Facts that are not in the file yet.
    pending: Backlog,
    /// When the next write may be tried.
    retry: Option<BootTime>,
}

impl Store {
    /// What earlier daemons stored, as read when the store was opened. Later calls return nothing.
    pub fn take_knowledge(&mut self) -> Knowledge {
        std::mem::take(&mut self.knowledge)
    }

    /// Queues a fact that became known at `at`. Cheap; the fact is durable after the next [`Store::commit`].
    pub fn remember(&mut self, at: BootTime, fact: &Fact) {
        push(&mut self.pending, at, fact.clone());
    }

    /// Writes the queued facts. After `Ok` they survive any end of the daemon. After an error they stay in
    /// memory, as far as there is room, and a call at least a second later tries again.
    pub fn commit(&mut self) -> Result<(), StoreError> {
        if self.pending.is_empty() {
            return Ok(());
        }
        let now = clock::now();
        if self.retry.is_some_and(|retry| now < retry) {
            // So that a broken disk costs the daemon little.
            return Err(StoreError::Other(format!(
                "the last write to the store {} failed: {} facts wait in memory until the next attempt",
                self.file.display(),
                self.pending.len()
            )));
        }
        if let Some(error) = self.unusable.get() {
            return Err(error.clone());
        }
        let written = self.write_pending();
        match written {
            Ok(()) => {
                self.retry = None;
                self.maintenance.notify_written();
                self.pending.clear();
                Ok(())
            }
            Err(source) => {
                // Row ids may belong to inserts that were rolled back.
                self.keys.clear();
                self.retry = Some(now + RETRY);
                let error = StoreError::of("write", &self.file, &source);
                if let StoreError::Damaged { what, .. } = &error {
                    files::mark_suspect(&self.file, what);
                }
                Err(error)
            }
        }
    }

    /// How many facts are queued and not durable yet.
    pub fn pending(&self) -> usize {
        self.pending.len()
    }

    /// Records that the daemon stops in good order, so that `orphand history` can tell this from SIGKILL.
    pub fn record_stop(&mut self, at: BootTime) -> Result<(), StoreError> {
        self.retry = None;
        self.commit()?;
        self.db
            .execute(
                "UPDATE daemons SET stopped = ?2 WHERE id = ?1",
                [self.daemon, column::wall_us(at, self.offset_ns)],
            )
            .map(drop)
            .map_err(|source| StoreError::of("write", &self.file, &source))
    }

    fn write_pending(&mut self) -> rusqlite::Result<()> {
        let change = self.db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let mut writer =
            FactWriter { db: &change, boot: self.boot, offset_ns: self.offset_ns, keys: &mut self.keys };
        for (at, fact) in &self.pending {
            writer.write(*at, fact)?;
        }
        change.commit()
    }
}

#[cfg(test)]
mod tests;
