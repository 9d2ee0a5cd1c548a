//! What can go wrong with the store: each a line that says what, why, and what to do.

use std::{io, path::PathBuf};

use rusqlite::ErrorCode;

/// Why the store cannot be opened, written or read.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The directory or a file in it.
    #[error("cannot {operation} {}: {source}; make it writable for orphand, or name another directory with --state-dir", path.display())]
    File {
        /// What was tried.
        operation: &'static str,
        /// With what.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// Somebody else could write into the directory.
    #[error("the state directory {} {why}: it must be orphand's alone (chown root, chmod 700)", path.display())]
    Open {
        /// The directory.
        path: PathBuf,
        /// What is wrong with it.
        why: &'static str,
    },
    /// It was written by a newer orphand.
    #[error("the store {} is of version {version}, this orphand knows up to {known}: run the newer orphand, or move the file away", path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its version.
        version: u32,
        /// The newest version known here.
        known: u32,
    },
    /// It was written by an older orphand, and only `orphand run` may change it.
    #[error("the store {} is of version {version}, this orphand reads {known}: `orphand run` brings it up to date", path.display())]
    Older {
        /// The file.
        path: PathBuf,
        /// Its version.
        version: u32,
        /// The version that is read here.
        known: u32,
    },
    /// There is none.
    #[error("there is no store at {}: `orphand run` keeps one; --state-dir says where it is", path.display())]
    Absent {
        /// Where it was looked for.
        path: PathBuf,
    },
    /// It is not a store any more.
    #[error("the store {} is damaged ({what}): `orphand run` sets it aside at its next start", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What was found.
        what: String,
    },
    /// The file is not where it was.
    #[error("the store {} was removed or replaced while orphand ran: restart orphand to begin a new one", path.display())]
    Gone {
        /// Where it was.
        path: PathBuf,
    },
    /// The file system is full.
    #[error("cannot {operation} the store {}: no space left; what happens is kept in memory until there is space", path.display())]
    Full {
        /// What was tried.
        operation: &'static str,
        /// The file.
        path: PathBuf,
    },
    /// SQLite refused.
    #[error("cannot {operation} the store {}: {source}; is the disk well, and may orphand write there?", path.display())]
    Sqlite {
        /// What was tried.
        operation: &'static str,
        /// The file.
        path: PathBuf,
        /// Why not.
        source: rusqlite::Error,
    },
    /// It is on its thread, and that has not come back.
    #[error("the store {} has not answered for {waited:?}: what happens is kept in memory until it does, and lost if orphand ends before; is the disk well?", path.display())]
    Silent {
        /// The file.
        path: PathBuf,
        /// How long was waited.
        waited: std::time::Duration,
    },
    /// The last write failed a moment ago; the next try comes later, so that a broken disk costs the daemon nothing.
    #[error("the store {} could not be written a moment ago: {pending} facts wait in memory", path.display())]
    NotYet {
        /// The file.
        path: PathBuf,
        /// Facts that wait.
        pending: usize,
    },
}

impl StoreError {
    /// What an error of SQLite means.
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

    /// Whether the file is not to be trusted any more.
    pub fn is_damage(&self) -> bool {
        matches!(self, Self::Damaged { .. })
    }
}

/// Whether the content of the file is at fault: its structure, or what is in it.
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
