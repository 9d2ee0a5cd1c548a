//! Pipes and socket pairs of the model kernel: who holds which end, and who notices that the other one is gone.

use std::time::Duration;

use orphand_core::model::{ExitStatus, ProcessId};

use crate::{
    files::{End, Fd},
    kernel::{Kernel, Plan, Process},
};

impl Kernel {
    /// pipe(2): one inode number for both ends.
    pub fn pipe(&mut self, maker: ProcessId) -> (End, End) {
        self.next_inode += 1;
        self.makers.insert(self.next_inode, maker);
        (End::Read(self.next_inode), End::Write(self.next_inode))
    }

    /// socketpair(2).
    pub fn socketpair(&mut self, maker: ProcessId) -> (End, End) {
        self.next_inode += 2;
        let (one, two) = (self.next_inode - 1, self.next_inode);
        self.makers.extend([(one, maker), (two, maker)]);
        self.peers.insert(one, two);
        self.peers.insert(two, one);
        (End::Socket(one), End::Socket(two))
    }

    /// The other end of a wire.
    pub fn opposite(&self, end: End) -> Option<End> {
        match end {
            End::Read(n) => Some(End::Write(n)),
            End::Write(n) => Some(End::Read(n)),
            End::Socket(n) => self.peers.get(&n).map(|peer| End::Socket(*peer)),
            End::Null | End::Terminal | End::File => None,
        }
    }

    /// Who has `end` open.
    pub fn holders(&self, end: End) -> impl Iterator<Item = &Process> {
        self.living().filter(move |p| p.files.has(end))
    }

    /// Whether `end` is open anywhere.
    pub fn is_open(&self, end: End) -> bool {
        self.in_flight.contains(&end) || self.holders(end).next().is_some()
    }

    pub fn open(&mut self, id: ProcessId, number: u32, end: End, cloexec: bool) {
        if let Some(p) = self.get_mut(id) {
            p.files.open(number, Fd { end, cloexec });
        }
    }

    /// Closes every descriptor of `id` for `end`.
    pub fn close(&mut self, id: ProcessId, end: End) {
        if let Some(p) = self.get_mut(id) {
            p.files.close(end);
        }
        self.look_for_hang_ups();
    }

    /// Lets those who notice the end of their input plan their exit.
    pub fn look_for_hang_ups(&mut self) {
        let ends: Vec<(ProcessId, u32)> = self
            .living()
            .filter_map(|p| Some((p.id, p.conduct.exits_at_eof?, p.files.wire()?)))
            .filter(|(_, _, wire)| self.opposite(*wire).is_some_and(|end| !self.is_open(end)))
            .map(|(id, delay, _)| (id, delay))
            .collect();
        for (id, delay) in ends {
            if let Some(p) = self.get_mut(id) {
                p.conduct.exits_at_eof = None;
            }
            self.plan(Duration::from_millis(delay.into()), Plan::Exit(id, ExitStatus::Code(0)));
        }
    }
}
