//! A line of the stream, read back: what it needs for its place and its time, and the event as a whole.

use jiff::Timestamp;
use serde::Deserialize;

use crate::sink::wall_clock::WallClock;
use orphand_core::model::{BootTime, Notice};

/// The number of a line; nothing if it is none of the stream, for instance cut off.
pub(super) fn seq(line: &str) -> Option<u64> {
    let (_, tail) = line.strip_suffix('}')?.split_once(r#","seq":"#)?;
    tail.split(',').next()?.parse().ok()
}

/// Whether a line has this time or a later one. `since` is as [`time_text`] writes it: such texts are in the order of
/// their times.
pub fn is_since(line: &str, since: &str) -> bool {
    let time = line.split_once(r#","time":""#).and_then(|(_, tail)| tail.split('"').next());
    time.is_none_or(|time| time >= since)
}

pub(super) fn time_text(at: Timestamp) -> String {
    format!("{at:.6}")
}

/// An event as it was told.
#[derive(Clone, Debug, PartialEq)]
pub struct EventLine {
    /// The number in the stream of its daemon.
    pub seq: u64,
    pub at: BootTime,
    /// The clock of that daemon.
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
    /// The number of a line, without reading all of it.
    pub fn number(line: &str) -> Option<u64> {
        seq(line)
    }

    /// Reads a line. Nothing, if a newer orphand wrote it.
    pub fn read(line: &str) -> Option<Self> {
        let Head { seq, time, boot_ns } = serde_json::from_str(line).ok()?;
        let notice = serde_json::from_str(line).ok()?;
        let offset = time.as_nanosecond() - i128::from(boot_ns);
        let wall = WallClock { offset_ns: i64::try_from(offset).ok()? };
        Some(Self { seq, at: BootTime(boot_ns), wall, notice })
    }
}
