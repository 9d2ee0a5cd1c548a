//! Recordings of everything the engine was told: what a bug report is made of.
//!
//! The format is NDJSON. The first line is a [`TraceHeader`](orphand_core::model::TraceHeader), `{"orphand_trace":1,..}`: settings, rules and clock.
//! Every other line is an [`TraceEntry`](orphand_core::model::TraceEntry), `{"at":12345,"input":"process",..}`: an input and when it was handed in.
//! Arguments of processes have their secrets redacted like everywhere; still a trace tells what runs on a host:
//! the file is readable by its owner only.

mod outflow;
mod reader;
mod writer;

use std::{io, path::PathBuf};

pub use reader::TraceReader;
pub use writer::TraceWriter;

use orphand_core::model::TRACE_FORMAT;

/// Why a trace cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The file cannot be opened.
    #[error("cannot open the trace {}: {source}", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file cannot be read.
    #[error("cannot read the trace {} at line {line}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// Why.
        source: io::Error,
    },
    /// There is nothing in it.
    #[error("{} is empty: not a trace; record one with `orphand run --record FILE`", .0.display())]
    Empty(PathBuf),
    /// It is something else.
    #[error("{} is not a trace of orphand; record one with `orphand run --record FILE`", .0.display())]
    Foreign(PathBuf),
    /// It was recorded by another orphand.
    #[error(
        "{} has format {found}, this orphand reads {TRACE_FORMAT}: replay it with the version that recorded it",
        path.display()
    )]
    Format {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: u64,
    },
    /// A line is no input.
    #[error("{}, line {line}: {source}; the trace is damaged", path.display())]
    Broken {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// What is wrong with it.
        source: serde_json::Error,
    },
    /// The last line is cut off: the recording was interrupted or the file not copied whole.
    #[error("{} ends in the middle of line {line}: the recording was cut off there", path.display())]
    Truncated {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
    },
    /// The file cannot be made.
    #[error("cannot create the trace {}: {source}", path.display())]
    Create {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It is a link, and whoever made that would choose what is overwritten.
    #[error("{} is a link: a recording goes only into a file that is named itself; give the file that is meant to --record", .0.display())]
    Link(PathBuf),
    /// There is a file in the way.
    #[error("{} exists and is not a trace: it was left as it is; choose another file for --record", .0.display())]
    Occupied(PathBuf),
}

#[cfg(test)]
mod tests;
