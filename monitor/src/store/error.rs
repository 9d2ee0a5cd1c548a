//! Errors of the store. Each message is one line that says what failed, why, and what to do.

use std::{
    io,
    path::{Path, PathBuf},
    time::Duration,
};

use rusqlite::ErrorCode;

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
