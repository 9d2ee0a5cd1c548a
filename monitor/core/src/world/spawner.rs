//! The thread that started a server, and what the server has done since that thread ended.
//!
//! A program that runs each of its jobs in a thread leaves a server behind when a thread ends without closing it. The
//! process lives on and usually still holds the wires, so the wires cannot show whether another thread uses the
//! server. What the server does can show it: a server that is used reads a request, and writes an answer.

use std::{collections::BTreeMap, num::NonZeroU32, time::Duration};

use crate::{
    lineage::Node,
    model::{BootTime, ProcessId, Work},
};

/// The size of what an event counter (eventfd(2)) hands over. A program that wakes its own threads writes nothing but
/// pieces of this size, and reads exactly what it writes.
const WAKE_UP: u64 = 8;

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
    /// When the server was last looked at since.
    looked: Option<BootTime>,
    /// What each of its processes has done, as far as it existed at the first look.
    trails: BTreeMap<ProcessId, Trail>,
}

/// What a process has done since the thread ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Trail {
    first: Work,
    last: Work,
    /// The look that `last` was new at.
    since: BootTime,
    /// The last look that saw the process.
    seen: BootTime,
}

impl Spawner {
    /// The thread that created this process, if that was witnessed.
    pub(super) fn of(node: &Node) -> Option<Self> {
        Some(Self {
            process: node.creator?,
            thread: node.thread?,
            until: node.id.start,
            ended: None,
            looked: None,
            trails: BTreeMap::new(),
        })
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

    /// Takes in what the server's processes had done when the thread ended.
    pub fn look(&mut self, now: BootTime, work: &[Work]) {
        if self.looked.is_some() {
            return;
        }
        self.looked = Some(now);
        let trail = |work: &Work| Trail { first: *work, last: *work, since: now, seen: now };
        self.trails = work.iter().map(|work| (work.process, trail(work))).collect();
    }

    /// Takes in what they have done until now. What began after the first look is work.
    pub fn look_again(&mut self, now: BootTime, work: &[Work]) {
        if self.looked.is_none() {
            return;
        }
        self.looked = Some(now);
        for work in work {
            if let Some(trail) = self.trails.get_mut(&work.process) {
                trail.seen = now;
                if trail.last != *work {
                    (trail.last, trail.since) = (*work, now);
                }
            }
        }
    }

    /// Whether nobody has used this process since the thread ended, and it rests for this time at least.
    ///
    /// Some runtimes tidy up a while after the last request: they use the CPU and wake their own threads. That is no
    /// use of the process, but it can be told from one only if answers are written to a pipe (`countable`): what is
    /// sent to a socket is not in the process's account.
    pub fn rests(&self, process: ProcessId, time: Duration, countable: bool) -> bool {
        let Some((trail, looked)) = self.trails.get(&process).zip(self.looked) else { return false };
        trail.seen == looked
            && looked.since(trail.since) >= time
            && (trail.first == trail.last || (countable && trail.woke_itself_only()))
    }
}

impl Trail {
    /// Whether it wrote nothing but what wakes a thread, and read exactly that. A request or an answer is longer.
    fn woke_itself_only(&self) -> bool {
        let read = self.last.read_bytes.wrapping_sub(self.first.read_bytes);
        let written = self.last.written_bytes.wrapping_sub(self.first.written_bytes);
        let writes = self.last.writes.wrapping_sub(self.first.writes);
        read == written && written == writes.wrapping_mul(WAKE_UP)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SERVER: ProcessId = ProcessId::new(30, 7);
    const REST: Duration = Duration::from_secs(10);

    fn spawner() -> Spawner {
        let mut node = Node::bare(SERVER);
        (node.creator, node.thread) = (Some(ProcessId::new(20, 5)), NonZeroU32::new(21));
        Spawner::of(&node).unwrap()
    }

    fn at(seconds: u64) -> BootTime {
        BootTime(seconds * 1_000_000_000)
    }

    fn work(cpu_ns: u64, read_bytes: u64, written_bytes: u64) -> Work {
        Work { process: SERVER, cpu_ns, read_bytes, written_bytes, writes: cpu_ns }
    }

    fn after(looks: &[(u64, Work)]) -> Spawner {
        let mut spawner = spawner();
        for (seconds, work) in looks {
            spawner.look(at(*seconds), &[*work]);
            spawner.look_again(at(*seconds), &[*work]);
        }
        spawner
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

    #[test]
    fn a_server_that_did_nothing_rests() {
        let spawner = after(&[(0, work(5, 100, 100)), (9, work(5, 100, 100))]);
        assert!(!spawner.rests(SERVER, REST, true), "not yet");
        let spawner = after(&[(0, work(5, 100, 100)), (10, work(5, 100, 100))]);
        assert!(spawner.rests(SERVER, REST, true));
        assert!(spawner.rests(SERVER, REST, false));
    }

    #[test]
    fn a_request_is_a_use_however_long_ago() {
        let spawner = after(&[(0, work(5, 100, 100)), (1, work(9, 148, 172)), (1000, work(9, 148, 172))]);
        assert!(!spawner.rests(SERVER, REST, true));
        // As long as its answer, which is written at once.
        let spawner = after(&[(0, work(5, 100, 100)), (1, work(6, 180, 180)), (1000, work(6, 180, 180))]);
        assert!(!spawner.rests(SERVER, REST, true));
        // Read, and not answered yet.
        let spawner = after(&[(0, work(5, 100, 100)), (1, work(9, 148, 100)), (1000, work(9, 148, 100))]);
        assert!(!spawner.rests(SERVER, REST, true));
    }

    #[test]
    fn tidying_up_is_no_use_where_uses_are_counted() {
        // Ten wake-ups.
        let tidied = work(15, 100 + 80, 100 + 80);
        let spawner = after(&[(0, work(5, 100, 100)), (8, tidied), (18, tidied)]);
        assert!(spawner.rests(SERVER, REST, true));
        assert!(!spawner.rests(SERVER, REST, false), "a socket's messages are not in the account");
        let spawner = after(&[(0, work(5, 100, 100)), (8, tidied), (17, tidied)]);
        assert!(!spawner.rests(SERVER, REST, true), "it rests since the look that saw it change");
    }

    #[test]
    fn whoever_was_not_seen_does_not_rest() {
        let mut spawner = after(&[(0, work(5, 100, 100))]);
        spawner.look_again(at(20), &[]);
        assert!(!spawner.rests(SERVER, REST, true), "unreadable at the last look");
        let child = ProcessId::new(31, 8);
        spawner.look_again(at(40), &[work(5, 100, 100), Work { process: child, ..Work::default() }]);
        assert!(spawner.rests(SERVER, REST, true));
        assert!(!spawner.rests(child, REST, true), "started after the thread had ended");
    }
}
