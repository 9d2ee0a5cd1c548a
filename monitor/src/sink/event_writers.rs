//! The event writers of the daemon: stream and journal.
//!
//! Invariant: each has a queue of its own, so none of them delays another.

use std::{collections::BTreeMap, time::Duration};

use super::event_writer::EventWriter;
use orphand_core::model::{BootTime, Notice};

#[derive(Debug, Default)]
pub struct EventWriters(Vec<EventWriter>);

impl EventWriters {
    pub fn add(&mut self, writer: EventWriter) {
        self.0.push(writer);
    }

    /// Queues a notice for each writer. Never blocks.
    pub fn push(&self, at: BootTime, notice: Box<Notice>) {
        let Some((last, others)) = self.0.split_last() else { return };
        for writer in others {
            writer.push(at, notice.clone());
        }
        last.push(at, notice);
    }

    pub fn dropped(&self) -> BTreeMap<String, u64> {
        self.0.iter().map(|writer| (writer.name().to_owned(), writer.dropped())).collect()
    }

    /// Writes what is queued, for at most `patience` each.
    pub fn finish(self, patience: Duration) {
        for writer in self.0 {
            writer.finish(patience);
        }
    }
}
