//! The processes whose first message is awaited.
//!
//! Invariant: their number is bounded, for each user and in total. Used only by [`super::first_messages`].

use std::{collections::BTreeMap, time::Duration};

use crate::{
    lineage::{Node, Origin},
    model::{BootTime, ProcessId, Stdio},
};

/// The most processes of one user that are asked about at a time.
const MOST_OF_USER: usize = 128;
/// The most processes that are asked about at a time.
const MOST: usize = 1024;
/// The most command lines that are kept of a process.
const LINES: usize = 4;
/// How long a program below a shell that has not taken the message must live to be taken for the server.
const TRIAL: Duration = Duration::from_millis(250);

/// The processes that are asked about.
pub(super) type FirstMessages = BTreeMap<ProcessId, Awaited>;

pub(super) fn has_room_for(all: &FirstMessages, uid: u32) -> bool {
    all.len() < MOST && all.values().filter(|awaited| awaited.uid == uid).count() < MOST_OF_USER
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
        Self { origin: node.origin(), uid: node.uid, wires, looks: 0, said, trial: None, lines }
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
