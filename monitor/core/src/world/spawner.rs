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
    /// What it had done when the thread ended.
    at_end: Work,
    /// What it had done a moment later, when it was through with the last request of the thread.
    settled: Option<Work>,
    last: Work,
    /// The look that `last` was new at.
    since: BootTime,
    /// The last look that saw the process.
    seen: BootTime,
}

/// Which look at a server it is since its thread ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Look {
    /// At the end of the thread.
    AtEnd,
    /// A moment later.
    Settled,
    /// Any other.
    Later,
}

/// Which uses of a server are in the accounts of its processes. What is sent and received through a socket may not be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counted {
    /// Requests, because they come through a pipe.
    pub requests: bool,
    /// Answers, because they go into a pipe.
    pub answers: bool,
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

    /// Takes in what the server's processes have done until now. What began after the thread had ended is work.
    pub fn look(&mut self, now: BootTime, look: Look, work: &[Work]) {
        match (look, self.looked) {
            (Look::AtEnd, None) => {
                let trail =
                    |work: &Work| Trail { at_end: *work, settled: None, last: *work, since: now, seen: now };
                self.trails = work.iter().map(|work| (work.process, trail(work))).collect();
            }
            (Look::AtEnd, Some(_)) | (Look::Settled | Look::Later, None) => return,
            (Look::Settled | Look::Later, Some(_)) => {}
        }
        self.looked = Some(now);
        for work in work {
            let Some(trail) = self.trails.get_mut(&work.process) else { continue };
            trail.seen = now;
            if look == Look::Settled {
                trail.settled.get_or_insert(*work);
            }
            if trail.last != *work {
                (trail.last, trail.since) = (*work, now);
            }
        }
    }

    /// Whether nobody has used this process since the thread ended, and it rests for this time at least.
    ///
    /// After an answer a process may be busy for a moment, and write a log line; but it reads no further request. Some
    /// runtimes tidy up a while after the last request: they use the CPU and wake their own threads.
    pub fn rests(&self, process: ProcessId, time: Duration, counted: Counted) -> bool {
        let Some((trail, looked)) = self.trails.get(&process).zip(self.looked) else { return false };
        let Some(settled) = trail.settled else { return false };
        let idle = |before: &Work, after: &Work| {
            before == after || (counted.answers && woke_itself_only(before, after))
        };
        let settles = || {
            idle(&trail.at_end, &settled)
                || (counted.requests && trail.at_end.read_bytes == settled.read_bytes)
        };
        trail.seen == looked && looked.since(trail.since) >= time && idle(&settled, &trail.last) && settles()
    }
}

/// Whether it wrote nothing but what wakes a thread, and read exactly that. A request or an answer is longer.
fn woke_itself_only(before: &Work, after: &Work) -> bool {
    let read = after.read_bytes.wrapping_sub(before.read_bytes);
    let written = after.written_bytes.wrapping_sub(before.written_bytes);
    let writes = after.writes.wrapping_sub(before.writes);
    read == written && written == writes.wrapping_mul(WAKE_UP)
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

    const PIPES: Counted = Counted { requests: true, answers: true };
    const SOCKETS: Counted = Counted { requests: false, answers: false };

    /// The first is what it had done at the end of the thread and a moment later.
    fn after(looks: &[(u64, Work)]) -> Spawner {
        let mut spawner = spawner();
        for (seconds, work) in looks {
            for look in [Look::AtEnd, Look::Settled, Look::Later] {
                spawner.look(at(*seconds), look, &[*work]);
            }
        }
        spawner
    }

    /// What it did in the moment after the end of the thread.
    fn settling(done: Work) -> Spawner {
        let mut spawner = spawner();
        spawner.look(at(0), Look::AtEnd, &[work(5, 100, 100)]);
        spawner.look(at(1), Look::Settled, &[done]);
        spawner.look(at(100), Look::Later, &[done]);
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
        assert!(!spawner.rests(SERVER, REST, PIPES), "not yet");
        let spawner = after(&[(0, work(5, 100, 100)), (10, work(5, 100, 100))]);
        assert!(spawner.rests(SERVER, REST, PIPES));
        assert!(spawner.rests(SERVER, REST, SOCKETS));
    }

    #[test]
    fn a_request_is_a_use_however_long_ago() {
        let spawner = after(&[(0, work(5, 100, 100)), (1, work(9, 148, 172)), (1000, work(9, 148, 172))]);
        assert!(!spawner.rests(SERVER, REST, PIPES));
        // As long as its answer, which is written at once.
        let spawner = after(&[(0, work(5, 100, 100)), (1, work(6, 180, 180)), (1000, work(6, 180, 180))]);
        assert!(!spawner.rests(SERVER, REST, PIPES));
        // Read, and not answered yet.
        let spawner = after(&[(0, work(5, 100, 100)), (1, work(9, 148, 100)), (1000, work(9, 148, 100))]);
        assert!(!spawner.rests(SERVER, REST, PIPES));
    }

    #[test]
    fn tidying_up_is_no_use_where_uses_are_counted() {
        // Ten wake-ups.
        let tidied = work(15, 100 + 80, 100 + 80);
        let spawner = after(&[(0, work(5, 100, 100)), (8, tidied), (18, tidied)]);
        assert!(spawner.rests(SERVER, REST, PIPES));
        assert!(!spawner.rests(SERVER, REST, SOCKETS), "a socket's messages are not in the account");
        let spawner = after(&[(0, work(5, 100, 100)), (8, tidied), (17, tidied)]);
        assert!(!spawner.rests(SERVER, REST, PIPES), "it rests since the look that saw it change");
    }

    #[test]
    fn whoever_was_not_seen_does_not_rest() {
        let mut spawner = after(&[(0, work(5, 100, 100))]);
        spawner.look(at(20), Look::Later, &[]);
        assert!(!spawner.rests(SERVER, REST, PIPES), "unreadable at the last look");
        let child = ProcessId::new(31, 8);
        spawner.look(at(40), Look::Later, &[work(5, 100, 100), Work { process: child, ..Work::default() }]);
        assert!(spawner.rests(SERVER, REST, PIPES));
        assert!(!spawner.rests(child, REST, PIPES), "started after the thread had ended");
    }

    #[test]
    fn a_moment_is_left_for_the_end_of_the_last_request() {
        let logs = settling(work(6, 100, 250));
        assert!(logs.rests(SERVER, REST, PIPES));
        assert!(!logs.rests(SERVER, REST, SOCKETS), "a request from a socket may not be in the account");
        assert!(!settling(work(6, 148, 250)).rests(SERVER, REST, PIPES), "a request is a use even then");
        let mut unseen = spawner();
        unseen.look(at(0), Look::AtEnd, &[work(5, 100, 100)]);
        unseen.look(at(100), Look::Later, &[work(5, 100, 100)]);
        assert!(!unseen.rests(SERVER, REST, PIPES), "nobody looked then");
    }
}
