//! Reads a trace line by line. Whatever could be read is handed out before an error is.

use std::{
    fs::File,
    io::{BufRead, BufReader, Read},
    path::{Path, PathBuf},
};

use serde::Deserialize;

use super::TraceError;
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

impl std::fmt::Debug for TraceReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TraceReader")
            .field("path", &self.path)
            .field("line", &self.line)
            .finish_non_exhaustive()
    }
}

/// A beginning that every trace has, whatever its version.
#[derive(Deserialize)]
struct Mark {
    orphand_trace: u64,
}

impl TraceReader {
    /// Opens the trace at `path` and reads its header.
    pub fn open(path: &Path) -> Result<Self, TraceError> {
        let file = File::open(path).map_err(|source| TraceError::Open { path: path.to_owned(), source })?;
        Self::new(path, BufReader::with_capacity(256 * 1024, file))
    }

    /// Reads a trace from `file`; `path` is what errors call it.
    pub fn new(path: &Path, mut file: impl BufRead + 'static) -> Result<Self, TraceError> {
        let path = path.to_owned();
        let mut buffer = Vec::new();
        if let Err(source) = file.by_ref().take(LONGEST_HEADER).read_until(b'\n', &mut buffer) {
            return Err(TraceError::Read { path, line: 1, source });
        }
        if buffer.is_empty() {
            return Err(TraceError::Empty(path));
        }
        if !buffer.starts_with(super::writer::BEGINNING) {
            return Err(TraceError::Foreign(path));
        }
        if !buffer.ends_with(b"\n") {
            return Err(TraceError::Truncated { path, line: 1 });
        }
        let broken = |source| TraceError::Broken { path: path.clone(), line: 1, source };
        // A newer header may have other fields: its version is looked at before them.
        let Mark { orphand_trace: found } = serde_json::from_slice(&buffer).map_err(broken)?;
        if found != u64::from(TRACE_FORMAT) {
            return Err(TraceError::Format { path, found });
        }
        let header = serde_json::from_slice(&buffer).map_err(broken)?;
        Ok(Self { path, header, file: Box::new(file), line: 1, buffer, done: false })
    }

    /// The header.
    pub const fn header(&self) -> &TraceHeader {
        &self.header
    }

    fn read(&mut self) -> Result<Option<TraceEntry>, TraceError> {
        self.buffer.clear();
        self.line += 1;
        let (line, path) = (self.line, || self.path.clone());
        let read = self.file.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut self.buffer);
        if let Err(source) = read {
            return Err(TraceError::Read { path: path(), line, source });
        }
        if self.buffer.is_empty() {
            return Ok(None);
        }
        match serde_json::from_slice(&self.buffer) {
            Ok(entry) => Ok(Some(entry)),
            Err(_) if !self.buffer.ends_with(b"\n") => Err(TraceError::Truncated { path: path(), line }),
            Err(source) => Err(TraceError::Broken { path: path(), line, source }),
        }
    }
}

impl Iterator for TraceReader {
    type Item = Result<TraceEntry, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        let next = self.read().transpose();
        self.done = !matches!(next, Some(Ok(_)));
        next
    }
}
