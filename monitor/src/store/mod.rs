//! The store: an SQLite file in the state directory with everything that survives the daemon. For the daemon
//! and for `orphand history`.
//!
//! It keeps two promises. What [`Store::write`] confirmed survives SIGKILL at any time: it is in the write-ahead log, and the
//! kernel has it; after a power failure the last seconds may be missing. And no disk delays a verdict: one thread owns the one
//! connection, and the daemon waits for it a quarter of a second at most ([`StoreWriter`]).

pub mod calls;
mod facts;
mod files;
pub mod history;
mod knowledge;
mod opening;
mod prune;
mod schema;
pub mod standing;
mod unkept;
mod writer;

use std::{
    collections::VecDeque,
    io,
    path::{Path, PathBuf},
    time::Duration,
};

use rusqlite::{Connection, ErrorCode, TransactionBehavior};

use crate::os::clock;
use orphand_core::model::{BootTime, Fact};

pub use files::{create_directory, usable};
pub use opening::Opened;
pub use prune::Limits;
pub use unkept::Unkept;
pub use writer::StoreWriter;

/// Facts that wait to be written, with the times at which they became known, oldest first.
pub type Facts = VecDeque<(BootTime, Fact)>;

/// The store, open for writing. The daemon's lock file makes sure that there is one per state directory.
#[derive(Debug)]
pub struct Store {
    file: PathBuf,
    db: Connection,
    identity: Option<(u64, u64)>,
    limits: Limits,
    boot: i64,
    daemon: i64,
    offset_ns: i64,
    /// Whether the last attempt to tidy failed, which the log has then.
    tidying_failed: bool,
    /// Why writing is pointless until the next start: the file was removed or replaced.
    unusable: Option<StoreError>,
}

impl Store {
    /// Writes facts, all or none. After `Ok` they survive any end of the daemon.
    pub fn write(&mut self, facts: &Facts) -> Result<(), StoreError> {
        if let Some(error) = &self.unusable {
            return Err(error.clone());
        }
        let write = |change: &Connection| {
            facts.iter().try_for_each(|(at, fact)| {
                facts::write(change, self.boot, schema::wall_us(*at, self.offset_ns), fact)
            })
        };
        let written = self.db.transaction_with_behavior(TransactionBehavior::Immediate).and_then(|change| {
            write(&change)?;
            change.commit()
        });
        written.map_err(|source| {
            let error = StoreError::of("write", &self.file, &source);
            if let StoreError::Damaged { what, .. } = &error {
                files::mark_suspect(&self.file, what);
            }
            error
        })
    }

    /// For a daemon that began without the store: it has numbered runs without what is in here. That stays as the past.
    fn begin_anew(self) -> Result<Self, StoreError> {
        let now = schema::wall_us(clock::now(), self.offset_ns);
        let forgotten =
            self.db.execute("UPDATE keys SET forgotten = ?1 WHERE forgotten IS NULL", [now]).and_then(|_| {
                self.db.execute("UPDATE servers SET key = NULL, generation = NULL WHERE ended IS NULL", [])
            });
        forgotten.map_err(|source| StoreError::of("write", &self.file, &source))?;
        Ok(self)
    }

    /// The daemon stops in good order: the history tells that from SIGKILL, the next one knows until when this one watched.
    pub fn record_stop(&mut self, at: BootTime) -> Result<(), StoreError> {
        let stopped = [self.daemon, schema::wall_us(at, self.offset_ns)];
        let written = self.db.execute("UPDATE daemons SET stopped = ?2 WHERE id = ?1", stopped);
        written.map(drop).map_err(|source| StoreError::of("write", &self.file, &source))
    }

    /// Does some milliseconds of what nobody waits for: deletes what exceeds the limits, copies the log. Whether there is more.
    pub fn tidy(&mut self) -> bool {
        if self.unusable.is_some() {
            return false;
        }
        if self.identity.is_some() && files::identity(&self.file) != self.identity {
            let what = format!("the store {} was removed or replaced while orphand ran", self.file.display());
            self.unusable = Some(StoreError::Other(format!("{what}: restart orphand to begin a new one")));
            return false;
        }
        let now = schema::wall_us(clock::now(), clock::realtime_offset());
        let tidied = prune::step(&self.db, self.limits, now).and_then(|more| {
            if !more {
                // What a reader of the history still needs is copied another time.
                self.db.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))?;
            }
            Ok(more)
        });
        match tidied {
            Ok(_) => self.tidying_failed = false,
            Err(ref source) if !std::mem::replace(&mut self.tidying_failed, true) => {
                tracing::warn!("{}", StoreError::of("tidy", &self.file, source));
            }
            Err(_) => {}
        }
        tidied.unwrap_or(false)
    }
}

#[derive(Clone, Debug, thiserror::Error)]
pub enum StoreError {
    #[error("the store {} has version {version}, this orphand supports up to {known}: run the newer orphand, or move the file away", path.display())]
    Newer { path: PathBuf, version: u32, known: u32 },
    #[error("the store {} has version {version}, this orphand reads {known}: `orphand run` copies it into a new one", path.display())]
    Older { path: PathBuf, version: u32, known: u32 },
    #[error("there is no store at {}: `orphand run` creates it; --state-dir names its directory", .0.display())]
    Absent(PathBuf),
    #[error("the store {} is damaged ({what}): the next start of `orphand run` renames it and begins a new one", path.display())]
    Damaged { path: PathBuf, what: String },
    #[error("{0}")]
    Other(String),
}

impl StoreError {
    /// An operation (a verb) on the directory or a file in it failed.
    pub(super) fn file(operation: &str, path: &Path, error: &io::Error) -> Self {
        let advice = "make it writable for orphand, or choose another directory with --state-dir";
        Self::Other(format!("cannot {operation} {}: {error}; {advice}", path.display()))
    }

    pub(super) fn silent(path: &Path, waited: Duration) -> Self {
        let advice =
            "facts are kept in memory until it does, and lost if orphand ends before; check the disk";
        Self::Other(format!("the store {} has not answered for {waited:?}: {advice}", path.display()))
    }

    pub(super) fn of(operation: &str, path: &Path, source: &rusqlite::Error) -> Self {
        if is_damage(source) {
            return Self::Damaged { path: path.to_owned(), what: source.to_string() };
        }
        Self::refused(operation, path, source)
    }

    /// As [`Self::of`], where the content of the file is not in question.
    pub(super) fn refused(operation: &str, path: &Path, source: &rusqlite::Error) -> Self {
        let what = format!("cannot {operation} the store {}", path.display());
        Self::Other(match source.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => {
                format!("{what}: no space left; facts are kept in memory until there is space")
            }
            _ => format!("{what}: {source}; check the disk and the permissions of the file"),
        })
    }

    pub fn is_damage(&self) -> bool {
        matches!(self, Self::Damaged { .. })
    }
}

/// Whether the error is due to the content of the file: its structure, or a value in it.
fn is_damage(error: &rusqlite::Error) -> bool {
    use rusqlite::Error::{FromSqlConversionFailure, IntegralValueOutOfRange, InvalidColumnType, Utf8Error};
    let of_a_value =
        matches!(error, FromSqlConversionFailure(..) | IntegralValueOutOfRange(..) | InvalidColumnType(..))
            || matches!(error, Utf8Error(..));
    let text = error.to_string();
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase))
        || of_a_value
        || ["no such table", "no such column", "malformed JSON"].iter().any(|what| text.contains(what))
}

#[cfg(test)]
mod tests;
