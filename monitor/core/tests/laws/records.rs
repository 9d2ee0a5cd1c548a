//! The kernel side of orphand in the model: the membership map and the ring.
//!
//! Invariant: what is reported, and what is not, is what the eBPF programs would report. Records leave in the
//! order of their causes; faults drop them (and count them), nothing reorders them.

use std::collections::{BTreeMap, VecDeque};

use orphand_core::{
    model::{Losses, ProcessEvent, Tracking},
    recognise::Candidate,
};

/// How the map holds a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Reported, not yet confirmed.
    Pending,
    Member,
    /// A member whose exit wakes the reader.
    Agent,
    /// The parent of a reported candidate: only its exit is told.
    Watched,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    anchor: u32,
    state: State,
}

/// The map and the ring.
#[derive(Clone, Debug, Default)]
pub struct Records {
    /// Nothing is reported before the hooks are attached.
    pub attached: bool,
    map: BTreeMap<u32, Entry>,
    candidates: BTreeMap<String, bool>,
    ring: VecDeque<ProcessEvent>,
    lost: Losses,
    /// Whether something happened that wakes the reader at once.
    pub wake: bool,
    /// For each of the next records, whether the ring is full.
    pub faults: VecDeque<bool>,
    /// Everything that happened, reported or not.
    pub produced: u64,
}

/// Forks below one unconfirmed process before they are no longer entered.
const PENDING_BUDGET: usize = 64;

impl Records {
    pub fn new(candidates: impl IntoIterator<Item = Candidate>) -> Self {
        Self {
            candidates: candidates.into_iter().map(|c| (c.comm, c.needs_wire)).collect(),
            ..Self::default()
        }
    }

    /// The daemon ended, and with it the map and the ring.
    pub fn forget(&mut self) {
        self.map.clear();
        self.ring.clear();
        (self.lost, self.wake) = (Losses::default(), false);
    }

    pub fn is_empty(&self) -> bool {
        self.ring.is_empty() && self.lost == Losses::default()
    }

    /// Takes everything out, with what was lost meanwhile.
    pub fn drain(&mut self) -> (Vec<ProcessEvent>, Losses) {
        self.wake = false;
        (self.ring.drain(..).collect(), std::mem::take(&mut self.lost))
    }

    fn push(&mut self, event: ProcessEvent) {
        self.produced += 1;
        if !self.faults.pop_front().unwrap_or(false) {
            self.ring.push_back(event);
            return;
        }
        match event {
            ProcessEvent::Fork { .. } => self.lost.fork += 1,
            ProcessEvent::Exec { .. } => self.lost.exec += 1,
            ProcessEvent::Exit { .. } | ProcessEvent::ThreadExit { .. } => self.lost.exit += 1,
            ProcessEvent::Setsid { .. } => self.lost.setsid += 1,
            ProcessEvent::Signal { .. } => {}
        }
    }

    fn reported(&self, pid: u32) -> Option<Entry> {
        self.map.get(&pid).copied().filter(|e| e.state != State::Watched)
    }

    pub fn fork(&mut self, event: ProcessEvent, creator: u32, child: u32) {
        let Some(entry) = self.reported(creator).filter(|_| self.attached) else { return };
        let state = if entry.state == State::Pending { State::Pending } else { State::Member };
        let below =
            self.map.values().filter(|e| e.state == State::Pending && e.anchor == entry.anchor).count();
        if state == State::Pending && below > PENDING_BUDGET {
            self.lost.member += 1;
            return;
        }
        self.map.insert(child, Entry { anchor: entry.anchor, state });
        self.push(event);
    }

    pub fn exec(&mut self, event: ProcessEvent, comm: &str, pid: u32, parent: u32) {
        if !self.attached {
            return;
        }
        let ProcessEvent::Exec { stdio, .. } = &event else { return };
        if self.reported(pid).is_none() {
            let comm: String = comm.chars().take(15).collect();
            let wanted = comm.contains("mcp")
                || self.candidates.get(&comm).is_some_and(|needs_wire| !needs_wire || stdio[0].is_wire());
            if !wanted {
                return;
            }
            self.map.insert(pid, Entry { anchor: pid, state: State::Pending });
            self.map.entry(parent).or_insert(Entry { anchor: parent, state: State::Watched });
        }
        self.push(event);
    }

    pub fn exit(&mut self, event: ProcessEvent, pid: u32) {
        let Some(entry) = self.map.remove(&pid).filter(|_| self.attached) else { return };
        self.wake |= matches!(entry.state, State::Agent | State::Watched);
        self.push(event);
    }

    pub fn setsid(&mut self, event: ProcessEvent, pid: u32) {
        if self.attached && self.reported(pid).is_some() {
            self.push(event);
        }
    }

    /// User space confirms a process. The caller has made sure that the number still names it.
    pub fn track(&mut self, pid: u32, tracking: Tracking) {
        let state = match tracking {
            Tracking::Member => State::Member,
            Tracking::Agent => State::Agent,
            Tracking::Manager => State::Watched,
        };
        let anchor = self.map.get(&pid).map_or(pid, |e| e.anchor);
        self.map.insert(pid, Entry { anchor, state });
    }

    /// User space is not interested.
    pub fn untrack(&mut self, pid: u32) {
        self.map.remove(&pid);
    }
}
