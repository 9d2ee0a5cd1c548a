//! What the tools of a server do: whether one of them goes on with its work while nobody uses the server any more.
//!
//! The engine looks when a case is opened and at each inspection, and compares the last two looks.

use std::collections::BTreeMap;

use crate::model::{BootTime, ProcessId, Work};

/// What the processes of a server had done at the last two looks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tools {
    before: Option<Accounts>,
    last: Accounts,
    /// Since when the end of the server waits for its tools.
    pub awaited: Option<BootTime>,
}

type Accounts = BTreeMap<ProcessId, Work>;

impl Tools {
    /// Takes in what the processes have done until now.
    pub fn look(&mut self, work: &[Work]) {
        let now = work.iter().map(|work| (work.process, *work)).collect();
        self.before = Some(std::mem::replace(&mut self.last, now));
    }

    /// Whether one of these has done something between the last two looks. One that could not be read may have, and one
    /// that is new has.
    pub fn worked(&self, mut tools: impl Iterator<Item = ProcessId>) -> bool {
        tools.any(|tool| {
            let last = self.last.get(&tool);
            last.is_none() || self.before.as_ref().is_none_or(|before| before.get(&tool) != last)
        })
    }
}
