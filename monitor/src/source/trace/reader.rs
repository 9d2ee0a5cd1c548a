//! Reads a trace line by line. Whatever could be read is handed out before an error is.

use std::{
    fs::File,
    io::{self, BufRead, BufReader, Read},
    path::{Path, PathBuf},
};

use anyhow::{Result, anyhow, bail};
use serde::Deserialize;

use orphand_core::model::{TRACE_FORMAT, TraceEntry, TraceHeader};

/// The longest line that is read: a snapshot of some 100,000 processes. A foreign file may have no line feed.
const LONGEST_LINE: u64 = 256 * 1024 * 1024;
/// The longest header, which has a configuration in it.
const LONGEST_HEADER: u64 = 4 * 1024 * 1024;

/// The entries of a trace, in order. Nothing follows an error.
pub struct TraceReader {
    path: PathBuf,
    header: TraceHeader,
    file: Box<dyn BufRead>,
    /// The number of the line read last.
    line: u64,
    buffer: Vec<u8>,
    done: bool,
}

/// A beginning that every trace has, whatever its version.
#[derive(Deserialize)]
struct Mark {
    orphand_trace: u64,
}

impl TraceReader {
    pub fn open(path: &Path) -> Result<Self> {
        let advice = "record one with `orphand run --record FILE`";
        let file = File::open(path)
            .map_err(|error| anyhow!("cannot open the trace {}: {error}; {advice}", path.display()))?;
        Self::new(path, BufReader::with_capacity(256 * 1024, file))
    }

    /// Reads a trace from `file`; `path` is what errors call it.
    pub fn new(path: &Path, mut file: impl BufRead + 'static) -> Result<Self> {
        let shown = path.display();
        let mut buffer = Vec::new();
        let read = file.by_ref().take(LONGEST_HEADER).read_until(b'\n', &mut buffer);
        read.map_err(|error| unreadable(path, 1, &error))?;
        if buffer.is_empty() {
            bail!("{shown} is empty: not a trace; record one with `orphand run --record FILE`");
        }
        if !buffer.starts_with(super::writer::BEGINNING) {
            bail!("{shown} is not a trace of orphand; record one with `orphand run --record FILE`");
        }
        if !buffer.ends_with(b"\n") {
            return Err(truncated(path, 1));
        }
        let broken = |error| broken(path, 1, &error);
        // A newer header may have other fields: its version is looked at before them.
        let Mark { orphand_trace: found } = serde_json::from_slice(&buffer).map_err(broken)?;
        if found != u64::from(TRACE_FORMAT) {
            bail!(
                "{shown} has format {found}, this orphand reads {TRACE_FORMAT}: replay it with the version that recorded it"
            );
        }
        let header = serde_json::from_slice(&buffer).map_err(broken)?;
        Ok(Self { path: path.to_owned(), header, file: Box::new(file), line: 1, buffer, done: false })
    }

    pub const fn header(&self) -> &TraceHeader {
        &self.header
    }

    fn read(&mut self) -> Result<Option<TraceEntry>> {
        self.buffer.clear();
        self.line += 1;
        let (line, path) = (self.line, &self.path);
        let read = self.file.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut self.buffer);
        read.map_err(|error| unreadable(path, line, &error))?;
        if self.buffer.is_empty() {
            return Ok(None);
        }
        match serde_json::from_slice(&self.buffer) {
            Ok(entry) => Ok(Some(entry)),
            Err(_) if !self.buffer.ends_with(b"\n") => Err(truncated(path, line)),
            Err(error) => Err(broken(path, line, &error)),
        }
    }
}

fn unreadable(path: &Path, line: u64, error: &io::Error) -> anyhow::Error {
    anyhow!(
        "cannot read the trace {} at line {line}: {error}; record one with `orphand run --record FILE`",
        path.display()
    )
}

fn truncated(path: &Path, line: u64) -> anyhow::Error {
    anyhow!("{} ends in the middle of line {line}: the recording was cut off there", path.display())
}

fn broken(path: &Path, line: u64, error: &serde_json::Error) -> anyhow::Error {
    anyhow!("{}, line {line}: {error}; the trace is damaged", path.display())
}

impl Iterator for TraceReader {
    type Item = Result<TraceEntry>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        let next = self.read().transpose();
        self.done = !matches!(next, Some(Ok(_)));
        next
    }
}
