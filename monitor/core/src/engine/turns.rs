//! What is asked about servers now and then: about a bounded number of them at a time, each in its turn.

use std::time::Duration;

use crate::{lineage::ServerKey, model::BootTime};

/// When the next question is due, and about whom.
#[derive(Debug, Default)]
pub(super) struct Turns {
    due: Option<BootTime>,
    /// The last server that was asked about.
    last: Option<ServerKey>,
}

impl Turns {
    /// When the next question is due; `None` if nothing is asked.
    pub(super) const fn due(&self) -> Option<BootTime> {
        self.due
    }

    /// Asks every so often from now on, or as before; `None`: not at all.
    pub(super) fn go_on(&mut self, now: BootTime, every: Option<Duration>) {
        self.due = every.map(|every| self.due.unwrap_or(now + every));
    }

    /// Makes the next question due at once, if anything is asked.
    pub(super) fn hurry(&mut self) {
        self.due = self.due.map(|_| BootTime::default());
    }

    /// Whether the question is due. It is not any more then, until it [goes on](Self::go_on).
    pub(super) fn come(&mut self, now: BootTime) -> bool {
        self.due.take_if(|due| *due <= now).is_some()
    }

    /// The first `most` of these servers, in order, after the last one that was asked about.
    pub(super) fn next(&mut self, mut keys: Vec<ServerKey>, most: usize) -> Vec<ServerKey> {
        if keys.len() > most {
            let after = keys.iter().position(|key| self.last.is_none_or(|last| *key > last));
            keys.rotate_left(after.unwrap_or_default());
            keys.truncate(most);
        }
        self.last = keys.last().copied();
        keys
    }
}
