//! The events that were told: kept in files and in memory, for many readers.
//!
//! Each event is a line of the stream (`sink::stream`). A thread of its own writes it into the files of the state
//! directory ([`Keeper`]) and then among the latest ones in memory ([`Latest`]). A [`Reader`] goes through the files and
//! continues in memory; both say where a line stands, so the seam has neither gap nor repetition. A reader that falls
//! behind what is in memory goes back to the files. What is not there any more either is told as a `lost` line.
//!
//! Invariants: readers cost the writer nothing but a short lock. What is kept is bounded: `segments::KEPT` files, and
//! `reader::BYTES` in memory, however many readers there are.

mod reader;
mod segments;

use std::{io, path::Path};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use self::segments::Writer;
use crate::sink::{event_writer::Output, wall_clock::WallClock};
use orphand_core::model::{BootTime, Notice};

pub use self::{
    reader::{Latest, Reader, Step},
    segments::stored,
};

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EventQuery {
    /// Only events from this time on. Absent: everything that is kept, or with `follow` nothing of it.
    pub since: Option<jiff::Timestamp>,
    pub follow: bool,
    /// Continues after this event instead.
    pub after: Option<Cursor>,
}

/// Where a line begins in the files: the number of a file, and bytes from its beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Position {
    pub file: u64,
    pub offset: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cursor {
    /// Where the events of that daemon began.
    pub life: Position,
    pub seq: u64,
}

/// Opens the files in `dir` and the memory of the latest events. Without files, the events are in memory only.
pub fn open(dir: &Path, wall: WallClock) -> (Keeper, Latest, io::Result<()>) {
    let (files, opened) = match segments::Writer::open(dir) {
        Ok(files) => (Some(files), Ok(())),
        Err(error) => (None, Err(error)),
    };
    let began = files.as_ref().map(|files| files.end).unwrap_or_default();
    let latest = Latest::new(dir, began, wall);
    (Keeper { files, latest: latest.clone(), is_reported: false }, latest, opened)
}

/// Writes lines into files and memory. A file system that is full costs the files only; the next line is tried again.
#[derive(Debug)]
pub struct Keeper {
    files: Option<Writer>,
    latest: Latest,
    /// The log has it that the last write failed.
    is_reported: bool,
}

impl Output for Keeper {
    const BATCH: usize = 64 * 1024;

    fn write(&mut self, text: &str) -> io::Result<()> {
        for line in text.split_inclusive('\n') {
            let mut end = self.latest.ring().end();
            if let Some(files) = &mut self.files {
                match files.append(line) {
                    Ok(()) => self.is_reported = false,
                    Err(error) if self.is_reported => drop(error),
                    Err(error) => {
                        self.is_reported = true;
                        tracing::warn!(
                            "cannot keep events in the state directory: {error}; the next one is tried again"
                        );
                    }
                }
                end = files.end;
            }
            self.latest.ring().push(line.trim_end_matches('\n'), end);
        }
        self.latest.tell();
        Ok(())
    }
}

/// The number of a line; nothing if it is none of the stream, for instance cut off.
pub fn seq(line: &str) -> Option<u64> {
    let (_, tail) = line.strip_suffix('}')?.split_once(r#","seq":"#)?;
    tail.split(',').next()?.parse().ok()
}

/// Whether a line has this time (of `time_text`, which sorts as times do) or a later one.
pub fn is_since(line: &str, since: &str) -> bool {
    let time = line.split_once(r#","time":""#).and_then(|(_, tail)| tail.split('"').next());
    time.is_none_or(|time| time >= since)
}

pub(super) fn time_text(at: Timestamp) -> String {
    format!("{at:.6}")
}

#[derive(Clone, Debug, PartialEq)]
pub struct EventLine {
    pub seq: u64,
    pub at: BootTime,
    pub wall: WallClock,
    pub notice: Notice,
}

#[derive(Deserialize)]
struct Head {
    seq: u64,
    time: Timestamp,
    boot_ns: u64,
}

impl EventLine {
    /// Reads a line. Nothing, if a newer orphand wrote it.
    pub fn read(line: &str) -> Option<Self> {
        let Head { seq, time, boot_ns } = serde_json::from_str(line).ok()?;
        let notice = serde_json::from_str(line).ok()?;
        let offset = time.as_nanosecond() - i128::from(boot_ns);
        let wall = WallClock { offset_ns: i64::try_from(offset).ok()? };
        Some(Self { seq, at: BootTime(boot_ns), wall, notice })
    }
}

#[cfg(test)]
mod tests;
