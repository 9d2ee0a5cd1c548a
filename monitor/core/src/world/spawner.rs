//! The thread that started a server.
//!
//! A program that runs each of its jobs in a thread leaves a server behind when a thread ends without closing it.
//! Whether another thread uses the server since, its [`super::Watch`] tells.

use std::num::NonZeroU32;

use crate::{
    lineage::Node,
    model::{BootTime, ProcessId},
};

/// The thread that started a server. It is not the leading thread of its process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spawner {
    /// The process that the thread belongs to: the creator of the head of the launch chain.
    pub process: ProcessId,
    /// The thread's number.
    pub thread: NonZeroU32,
    /// When the head of the launch chain began, in clock ticks since boot: the thread began no later.
    pub until: u64,
    /// When the thread ended. Absent while it lives.
    ended: Option<BootTime>,
}

impl Spawner {
    /// The thread that created this process, if that was witnessed.
    pub(super) fn of(node: &Node) -> Option<Self> {
        Some(Self { process: node.creator?, thread: node.thread?, until: node.id.start, ended: None })
    }

    /// When the thread ended. `None` while it lives.
    pub const fn ended(&self) -> Option<BootTime> {
        self.ended
    }

    /// Records that this thread has ended, if it has: whatever had its number until `at` has ended. Returns whether
    /// that is news.
    pub fn end(&mut self, process: ProcessId, thread: NonZeroU32, at: BootTime) -> bool {
        let is_news = (self.process, self.thread) == (process, thread)
            && self.until <= at.ticks()
            && self.ended.is_none();
        if is_news {
            self.ended = Some(at);
        }
        is_news
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SERVER: ProcessId = ProcessId::new(30, 7);

    fn spawner() -> Spawner {
        let mut node = Node::bare(SERVER);
        (node.creator, node.thread) = (Some(ProcessId::new(20, 5)), NonZeroU32::new(21));
        Spawner::of(&node).unwrap()
    }

    fn at(seconds: u64) -> BootTime {
        BootTime(seconds * 1_000_000_000)
    }

    #[test]
    fn only_its_own_end_counts() {
        let (process, thread) = (ProcessId::new(20, 5), NonZeroU32::new(21).unwrap());
        let mut spawner = spawner();
        assert!(!spawner.end(ProcessId::new(20, 6), thread, at(1)), "another process with that number");
        assert!(!spawner.end(process, NonZeroU32::new(22).unwrap(), at(1)), "another thread");
        let before = BootTime::of_ticks(6);
        assert!(!spawner.end(process, thread, before), "an earlier thread with that number");
        assert_eq!(spawner.ended(), None);
        assert!(spawner.end(process, thread, at(1)));
        assert!(!spawner.end(process, thread, at(2)), "it ends once");
        assert_eq!(spawner.ended(), Some(at(1)));
    }
}
