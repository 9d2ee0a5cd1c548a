//! All the ways out of a daemon: the stream, the journal.
//!
//! Invariant: each has a queue of its own, so none of them holds up another.

use std::{collections::BTreeMap, time::Duration};

use super::outlet::Outlet;
use orphand_core::model::{BootTime, Notice};

/// The outlets of a daemon.
#[derive(Debug, Default)]
pub struct Outlets(Vec<Outlet>);

impl Outlets {
    /// One more.
    pub fn add(&mut self, outlet: Outlet) {
        self.0.push(outlet);
    }

    /// Hands a notice to each. Never blocks.
    pub fn push(&self, at: BootTime, notice: Box<Notice>) {
        let Some((last, others)) = self.0.split_last() else { return };
        for outlet in others {
            outlet.push(at, notice.clone());
        }
        last.push(at, notice);
    }

    /// Notices that did not reach their reader, by outlet.
    pub fn dropped(&self) -> BTreeMap<String, u64> {
        self.0.iter().map(|outlet| (outlet.name().to_owned(), outlet.dropped())).collect()
    }

    /// Writes what is left, each for at most `patience`.
    pub fn finish(self, patience: Duration) {
        for outlet in self.0 {
            outlet.finish(patience);
        }
    }
}
