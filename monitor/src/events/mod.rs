//! The events that were told: kept in files and in memory, for many readers.
//!
//! Each event is a line of the stream (`sink::stream`). A thread of its own writes it into the files of the state
//! directory ([`Keeper`]) and then among the latest ones in memory ([`Latest`]). A [`Reader`] goes through the files and
//! continues in memory; both say where a line stands, so the seam has neither gap nor repetition. A reader that falls
//! behind what is in memory goes back to the files. What is not there any more either is told as a `lost` line.
//!
//! Invariants: readers cost the writer nothing but a short lock. What is kept is bounded: `segments::KEPT` files, and
//! `latest::BYTES` in memory, however many readers there are.

mod keeper;
mod latest;
mod line;
mod position;
mod reader;
mod segments;

use std::{io, path::Path};

use serde::{Deserialize, Serialize};

pub use self::{
    keeper::Keeper,
    latest::Latest,
    line::EventLine,
    position::Position,
    reader::{Reader, Step},
    segments::stored,
};
use crate::sink::wall_clock::WallClock;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EventQuery {
    /// Only events from this time on. Absent: everything that is kept, or with `follow` nothing of it.
    pub since: Option<jiff::Timestamp>,
    /// Whether to go on with what happens from now on.
    pub follow: bool,
    /// Continues after this event instead.
    pub after: Option<Cursor>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cursor {
    /// Where the events of that daemon began.
    pub life: Position,
    /// The number of its last event that was read.
    pub seq: u64,
}

/// Opens the files in `dir` and the memory of the latest events. Without files, the events are in memory only.
pub fn open(dir: &Path, wall: WallClock) -> (Keeper, Latest, io::Result<()>) {
    let (files, opened) = match segments::Writer::open(dir) {
        Ok(files) => (Some(files), Ok(())),
        Err(error) => (None, Err(error)),
    };
    let began = files.as_ref().map(segments::Writer::end).unwrap_or_default();
    let latest = Latest::new(dir, began, wall);
    (Keeper::new(files, latest.clone()), latest, opened)
}

#[cfg(test)]
mod tests;
