//! Facts that wait in memory to be written.

use std::collections::VecDeque;

use orphand_core::model::{BootTime, Fact};

/// The most facts that wait. Beyond this the oldest are dropped; facts about runs are dropped last, because
/// run numbers depend on them.
pub(super) const PENDING: usize = 4096;

/// The waiting facts, oldest first.
#[derive(Debug, Default)]
pub(super) struct Backlog(VecDeque<(BootTime, Fact)>);

impl Backlog {
    /// Adds a fact that became known at `at`.
    pub fn push(&mut self, at: BootTime, fact: Fact) {
        if self.0.len() >= PENDING {
            let of_runs = |fact: &Fact| matches!(fact, Fact::Run { .. } | Fact::Forgotten { .. });
            let least = self.0.iter().position(|(_, fact)| !of_runs(fact));
            self.0.remove(least.unwrap_or(0));
        }
        self.0.push_back((at, fact));
    }

    pub fn iter(&self) -> impl Iterator<Item = &(BootTime, Fact)> {
        self.0.iter()
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn clear(&mut self) {
        self.0.clear();
    }
}

impl IntoIterator for Backlog {
    type Item = (BootTime, Fact);
    type IntoIter = std::collections::vec_deque::IntoIter<(BootTime, Fact)>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}
