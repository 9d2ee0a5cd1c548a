//! Errors of the store. Each message is one line that says what failed, why, and what to do.

use std::{io, path::PathBuf};

use rusqlite::ErrorCode;

/// Why the store cannot be opened, written or read.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// An operation on the directory or a file in it failed.
    #[error("cannot {operation} {}: {source}; make it writable for orphand, or choose another directory with --state-dir", path.display())]
    File {
        /// What was tried, as a verb.
        operation: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
    /// Other users could write into the directory.
    #[error("the state directory {} {why}: only orphand may write to it (chown root, chmod 700)", path.display())]
    Open {
        /// The directory.
        path: PathBuf,
        /// What is wrong with it.
        why: &'static str,
    },
    /// It was written by a newer orphand.
    #[error("the store {} has version {version}, this orphand supports up to {known}: run the newer orphand, or move the file away", path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its version.
        version: u32,
        /// The newest version that is supported.
        known: u32,
    },
    /// It was written by an older orphand, and only `orphand run` may change it.
    #[error("the store {} has version {version}, this orphand reads {known}: `orphand run` upgrades it", path.display())]
    Older {
        /// The file.
        path: PathBuf,
        /// Its version.
        version: u32,
        /// The version that is supported.
        known: u32,
    },
    /// The file does not exist.
    #[error("there is no store at {}: `orphand run` creates it; --state-dir names its directory", path.display())]
    Absent {
        /// The path.
        path: PathBuf,
    },
    /// The file is damaged.
    #[error("the store {} is damaged ({what}): the next start of `orphand run` renames it and begins a new one", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What was found.
        what: String,
    },
    /// The file was removed or replaced.
    #[error("the store {} was removed or replaced while orphand ran: restart orphand to begin a new one", path.display())]
    Gone {
        /// The path.
        path: PathBuf,
    },
    /// The file system is full.
    #[error("cannot {operation} the store {}: no space left; facts are kept in memory until there is space", path.display())]
    Full {
        /// What was tried, as a verb.
        operation: &'static str,
        /// The file.
        path: PathBuf,
    },
    /// SQLite reported an error.
    #[error("cannot {operation} the store {}: {source}; check the disk and the permissions of the file", path.display())]
    Sqlite {
        /// What was tried, as a verb.
        operation: &'static str,
        /// The file.
        path: PathBuf,
        /// The error.
        source: rusqlite::Error,
    },
    /// The thread that writes has not answered.
    #[error("the store {} has not answered for {waited:?}: facts are kept in memory until it does, and lost if orphand ends before; check the disk", path.display())]
    Silent {
        /// The file.
        path: PathBuf,
        /// How long the daemon waited.
        waited: std::time::Duration,
    },
    /// The last write failed a short time ago. The next attempt comes later, so that a broken disk costs the
    /// daemon little.
    #[error("the last write to the store {} failed: {pending} facts wait in memory until the next attempt", path.display())]
    NotYet {
        /// The file.
        path: PathBuf,
        /// How many facts wait.
        pending: usize,
    },
}

impl StoreError {
    /// Classifies an error of SQLite.
    pub(super) fn of(operation: &'static str, path: &std::path::Path, source: rusqlite::Error) -> Self {
        let path = path.to_owned();
        if is_damage(&source) {
            return Self::Damaged { path, what: source.to_string() };
        }
        match source.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => Self::Full { operation, path },
            _ => Self::Sqlite { operation, path, source },
        }
    }

    /// Whether the file is damaged.
    pub fn is_damage(&self) -> bool {
        matches!(self, Self::Damaged { .. })
    }
}

/// Whether the error is due to the content of the file: its structure, or a value in it.
fn is_damage(error: &rusqlite::Error) -> bool {
    use rusqlite::Error::{FromSqlConversionFailure, IntegralValueOutOfRange, InvalidColumnType, Utf8Error};
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase))
        || matches!(
            error,
            FromSqlConversionFailure(..)
                | IntegralValueOutOfRange(..)
                | InvalidColumnType(..)
                | Utf8Error(..)
        )
        || error.to_string().contains("no such table")
        || error.to_string().contains("no such column")
}
