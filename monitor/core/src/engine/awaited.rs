//! The processes whose first message is awaited, and when each of them is looked at again.
//!
//! Invariant: their number is bounded, for each user and in total. Used only by [`super::first_messages`].

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use crate::{
    lineage::{Node, Origin},
    model::{BootTime, ProcessId, Stdio},
};

/// The most processes of one user that are asked about at a time.
const MOST_OF_USER: usize = 128;
/// The most processes that are asked about at a time.
const MOST: usize = 1024;
/// The most looks in one pass, which take some microseconds each. The next pass continues.
const AT_ONCE: usize = 64;
/// The most command lines that are kept of a process.
const LINES: usize = 4;
/// How long a program below a shell that has not taken the message must live to be taken for the server.
const TRIAL: Duration = Duration::from_millis(250);

/// The processes that are asked about.
#[derive(Debug, Default)]
pub(super) struct FirstMessages {
    awaited: BTreeMap<ProcessId, Awaited>,
    due: BTreeSet<(BootTime, ProcessId)>,
}

/// A process whose first message is awaited.
#[derive(Debug)]
pub(super) struct Awaited {
    /// The exec since which it is asked about.
    pub(super) origin: Origin,
    pub(super) uid: u32,
    /// Its standard input and output.
    pub(super) wires: [Stdio; 2],
    /// How often nothing was there.
    pub(super) looks: u32,
    due: Option<BootTime>,
    /// What was said on these wires, to it or to a launcher or shell above: it is for the server.
    pub(super) said: Option<Said>,
    /// Until when it is on trial: a shell's start-up file runs programs on the shell's own wires, and none of them is
    /// the server. It is one if it takes the message, or if it still lives then.
    pub(super) trial: Option<BootTime>,
    /// The command lines that the process had on these wires, the oldest first.
    pub(super) lines: Vec<Vec<String>>,
}

impl Awaited {
    /// What this process runs now; `earlier` is what it ran before, if that was asked about.
    pub(super) fn of(node: &Node, earlier: Option<Self>) -> Self {
        let wires = [node.stdin(), node.stdout()];
        let (said, mut lines) = earlier
            .filter(|earlier| earlier.wires == wires)
            .map_or_else(Default::default, |earlier| (earlier.said, earlier.lines));
        lines.extend(node.image().filter(|image| !image.argv_truncated).map(|image| image.argv.clone()));
        if lines.len() > LINES {
            lines.remove(0);
        }
        Self { origin: node.origin(), uid: node.uid, wires, looks: 0, due: None, said, trial: None, lines }
    }

    /// Puts it on trial for what was said. Returns until when.
    pub(super) fn try_out(&mut self, now: BootTime, said: Said) -> BootTime {
        let until = now + TRIAL;
        (self.said, self.trial, self.looks) = (Some(said), Some(until), 0);
        until
    }
}

/// What shows that a server is expected on these wires.
#[derive(Clone, Debug)]
pub(super) enum Said {
    /// A first message of the protocol, and the client's name.
    Message(Option<String>),
    /// Settings declare the launcher under this name. Nobody saw a message.
    Declared(String),
}

impl FirstMessages {
    /// When the next process is due.
    pub(super) fn due(&self) -> Option<BootTime> {
        self.due.first().map(|(at, _)| *at)
    }

    /// The process has ended, or runs another program, or is no server.
    pub(super) fn forget(&mut self, id: ProcessId) -> Option<Awaited> {
        let awaited = self.awaited.remove(&id)?;
        if let Some(due) = awaited.due {
            self.due.remove(&(due, id));
        }
        Some(awaited)
    }

    pub(super) fn get(&self, id: ProcessId) -> Option<&Awaited> {
        self.awaited.get(&id)
    }

    pub(super) fn get_mut(&mut self, id: ProcessId) -> Option<&mut Awaited> {
        self.awaited.get_mut(&id)
    }

    /// Adds a process; nothing is due for it yet.
    pub(super) fn insert(&mut self, id: ProcessId, awaited: Awaited) {
        self.forget(id);
        self.awaited.insert(id, awaited);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.awaited.is_empty()
    }

    pub(super) fn ids(&self) -> Vec<ProcessId> {
        self.awaited.keys().copied().collect()
    }

    pub(super) fn has_room_for(&self, uid: u32) -> bool {
        self.awaited.len() < MOST
            && self.awaited.values().filter(|awaited| awaited.uid == uid).count() < MOST_OF_USER
    }

    pub(super) fn set_due(&mut self, id: ProcessId, due: Option<BootTime>) {
        let Some(awaited) = self.awaited.get_mut(&id) else { return };
        if let Some(before) = std::mem::replace(&mut awaited.due, due) {
            self.due.remove(&(before, id));
        }
        if let Some(due) = due {
            self.due.insert((due, id));
        }
    }

    /// Takes out those that are due.
    pub(super) fn take_due(&mut self, now: BootTime) -> Vec<ProcessId> {
        let due: Vec<ProcessId> =
            self.due.iter().take_while(|(at, _)| *at <= now).take(AT_ONCE).map(|(_, id)| *id).collect();
        for id in &due {
            self.set_due(*id, None);
        }
        due
    }

    /// The number of processes that are asked about.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.awaited.len()
    }
}
