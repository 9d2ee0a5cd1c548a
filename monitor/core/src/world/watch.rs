//! What the processes of a server have done since a moment: the answer to "has anybody used it since?".
//!
//! Where the owner of a server lives it usually still holds the wires, so the wires cannot show whether the server is
//! in use. What the server does can show it: a server that is used reads a request, and writes an answer. A watch
//! begins when the server is released (a thread has ended, a session has expired, a manager said so) and compares the accounts that the
//! kernel keeps of each process.

use std::{collections::BTreeMap, time::Duration};

use crate::{
    case::By,
    model::{BootTime, ProcessId, Stdio, Work},
};

/// The size of what an event counter (eventfd(2)) hands over. A program that wakes its own threads writes nothing but
/// pieces of this size, and reads exactly what it writes.
const WAKE_UP: u64 = 8;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Watch {
    since: BootTime,
    /// What each of them had done then.
    begun: Accounts,
    /// What each of them had done shortly later, when it was through with its last request.
    settled: Option<Accounts>,
    /// What each of them had done at the last look.
    last: Accounts,
    /// The last look that saw anything new: a process did something, began, ended, or could not be read.
    changed: BootTime,
    looked: BootTime,
}

/// What each of some processes has done.
pub type Accounts = BTreeMap<ProcessId, Work>;

/// Which look at a server it is, and who released the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Look {
    Begin(By),
    /// A moment later.
    Settled(By),
    Later,
}

impl Watch {
    pub fn begin(now: BootTime, work: &[Work]) -> Self {
        let begun = accounts(work);
        Self { since: now, last: begun.clone(), begun, settled: None, changed: now, looked: now }
    }

    /// Takes in what the server's processes have done until now. `settles`: it is the look shortly after the first.
    pub fn look(&mut self, now: BootTime, settles: bool, work: &[Work]) {
        let work = accounts(work);
        if work != self.last {
            (self.last, self.changed) = (work, now);
        }
        self.looked = now;
        if settles && self.settled.is_none() {
            self.settled = Some(self.last.clone());
        }
    }

    /// Counts no rest from before this time.
    pub const fn rests_from(&mut self, now: BootTime) {
        (self.since, self.changed) = (now, now);
    }

    /// For how long these processes have done nothing at all, if nobody has used them since the watch began. `None` if
    /// somebody may have.
    ///
    /// After an answer a process may be busy for a moment, and write a log line; but it reads no further request. Some
    /// runtimes tidy up a while after the last request: they use the CPU and wake their own threads. A process that
    /// began later, or could not be read at each of the looks that matter, may have been used.
    ///
    /// Requests and answers are in the accounts if they come through a pipe. What is sent and received through a socket
    /// may not be.
    pub fn unused(
        &self,
        mut processes: impl Iterator<Item = ProcessId>,
        wires: [Stdio; 2],
    ) -> Option<Duration> {
        let settled = self.settled.as_ref()?;
        let [counts_requests, counts_answers] = wires.map(|wire| matches!(wire, Stdio::Pipe(_)));
        let idle = |before: &Work, after: &Work| {
            before == after || (counts_answers && woke_itself_only(before, after))
        };
        let is_unused = |process: ProcessId| {
            let of = |accounts: &Accounts| accounts.get(&process).copied();
            let (Some(begun), Some(settled), Some(last)) = (of(&self.begun), of(settled), of(&self.last))
            else {
                return false;
            };
            let requested = !counts_requests || begun.read_bytes != settled.read_bytes;
            idle(&settled, &last) && (idle(&begun, &settled) || !requested)
        };
        processes.all(is_unused).then(|| self.looked.since(self.changed))
    }

    /// For how long these processes have been watched, if none of them has written anything since the moment that is
    /// left for the end of the last request, except what wakes its own threads. `None` if one of them has, or may have.
    /// What they compute and read does not count.
    pub fn silent(&self, mut processes: impl Iterator<Item = ProcessId>) -> Option<Duration> {
        let settled = self.settled.as_ref()?;
        let is_silent = |process: ProcessId| {
            let accounts = settled.get(&process).zip(self.last.get(&process));
            accounts.is_some_and(|(settled, last)| wrote_wake_ups_only(settled, last))
        };
        processes.all(is_silent).then(|| self.looked.since(self.since))
    }
}

/// Whether a process has read something and answered it between two looks: it read and wrote more than what wakes its own
/// threads.
pub const fn served(before: &Work, after: &Work) -> bool {
    before.read_bytes != after.read_bytes
        && before.written_bytes != after.written_bytes
        && !woke_itself_only(before, after)
}

pub fn accounts(work: &[Work]) -> Accounts {
    work.iter().map(|work| (work.process, *work)).collect()
}

/// Whether it wrote nothing but what wakes a thread, and read exactly that. A request or an answer is longer.
const fn woke_itself_only(before: &Work, after: &Work) -> bool {
    let read = after.read_bytes.wrapping_sub(before.read_bytes);
    let written = after.written_bytes.wrapping_sub(before.written_bytes);
    read == written && wrote_wake_ups_only(before, after)
}

/// Whether it wrote nothing but what wakes a thread, or nothing at all.
const fn wrote_wake_ups_only(before: &Work, after: &Work) -> bool {
    let written = after.written_bytes.wrapping_sub(before.written_bytes);
    let writes = after.writes.wrapping_sub(before.writes);
    written == writes.wrapping_mul(WAKE_UP)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SERVER: ProcessId = ProcessId::new(30, 7);
    const REST: Duration = Duration::from_secs(10);
    const PIPES: [Stdio; 2] = [Stdio::Pipe(1), Stdio::Pipe(2)];
    const SOCKETS: [Stdio; 2] = [Stdio::Socket(1), Stdio::Socket(2)];

    fn at(seconds: u64) -> BootTime {
        BootTime(seconds * 1_000_000_000)
    }

    fn work(cpu_ns: u64, read_bytes: u64, written_bytes: u64) -> Work {
        Work { process: SERVER, cpu_ns, read_bytes, written_bytes, writes: cpu_ns }
    }

    /// Whether it was not used, and has rested.
    fn rests(watch: &Watch, process: ProcessId, wires: [Stdio; 2]) -> bool {
        watch.unused([process].into_iter(), wires).is_some_and(|rested| rested >= REST)
    }

    /// The first is what it had done when the watch began and a moment later.
    fn after(looks: &[(u64, Work)]) -> Watch {
        let mut watch = Watch::begin(at(looks[0].0), &[looks[0].1]);
        for (seconds, work) in looks {
            watch.look(at(*seconds), true, &[*work]);
        }
        watch
    }

    /// What it did in the moment after the begin of the watch.
    fn settling(done: Work) -> Watch {
        let mut watch = Watch::begin(at(0), &[work(5, 100, 100)]);
        watch.look(at(1), true, &[done]);
        watch.look(at(100), false, &[done]);
        watch
    }

    #[test]
    fn a_server_that_did_nothing_rests() {
        let watch = after(&[(0, work(5, 100, 100)), (9, work(5, 100, 100))]);
        assert!(!rests(&watch, SERVER, PIPES), "not yet");
        assert_eq!(watch.unused([SERVER].into_iter(), PIPES), Some(Duration::from_secs(9)));
        let watch = after(&[(0, work(5, 100, 100)), (10, work(5, 100, 100))]);
        assert!(rests(&watch, SERVER, PIPES));
        assert!(rests(&watch, SERVER, SOCKETS));
    }

    #[test]
    fn sleep_of_the_host_is_no_rest() {
        let done = work(5, 100, 100);
        let mut watch = after(&[(0, done), (1, done)]);
        watch.rests_from(at(5000));
        watch.look(at(5001), false, &[done]);
        assert_eq!(watch.unused([SERVER].into_iter(), PIPES), Some(Duration::from_secs(1)));
        assert_eq!(watch.silent([SERVER].into_iter()), Some(Duration::from_secs(1)));
    }

    #[test]
    fn a_request_is_a_use_however_long_ago() {
        for used in [
            work(9, 148, 172),
            // As long as its answer, which is written at once.
            work(6, 180, 180),
            // Read, and not answered yet.
            work(9, 148, 100),
        ] {
            let watch = after(&[(0, work(5, 100, 100)), (1, used), (1000, used)]);
            assert_eq!(watch.unused([SERVER].into_iter(), PIPES), None, "{used:?}");
        }
    }

    #[test]
    fn tidying_up_is_no_use_where_uses_are_counted() {
        // Ten wake-ups.
        let tidied = work(15, 100 + 80, 100 + 80);
        let watch = after(&[(0, work(5, 100, 100)), (8, tidied), (18, tidied)]);
        assert!(rests(&watch, SERVER, PIPES));
        assert!(!rests(&watch, SERVER, SOCKETS), "a socket's messages are not in the account");
        let watch = after(&[(0, work(5, 100, 100)), (8, tidied), (17, tidied)]);
        assert!(!rests(&watch, SERVER, PIPES), "it rests since the look that saw it change");
    }

    #[test]
    fn whoever_was_not_seen_does_not_rest() {
        let mut watch = after(&[(0, work(5, 100, 100))]);
        watch.look(at(20), false, &[]);
        assert!(!rests(&watch, SERVER, PIPES), "unreadable at the last look");
        let child = Work { process: ProcessId::new(31, 8), ..Work::default() };
        watch.look(at(40), false, &[work(5, 100, 100), child]);
        watch.look(at(50), false, &[work(5, 100, 100), child]);
        assert!(rests(&watch, SERVER, PIPES));
        assert!(!rests(&watch, child.process, PIPES), "started after the watch began");
        watch.look(at(60), false, &[work(5, 100, 100)]);
        assert!(!rests(&watch, SERVER, PIPES), "the child did something, and ended");
    }

    #[test]
    fn who_writes_is_not_silent() {
        let silent = |done: Work| {
            let mut watch = Watch::begin(at(0), &[work(5, 100, 100)]);
            watch.look(at(1), true, &[work(6, 100, 250)]);
            watch.look(at(30), false, &[done]);
            watch.silent([SERVER].into_iter())
        };
        let settled = work(6, 100, 250);
        assert_eq!(silent(settled), Some(Duration::from_secs(30)), "a moment is left for its last words");
        assert_eq!(silent(Work { cpu_ns: 900, read_bytes: 900, ..settled }), Some(Duration::from_secs(30)));
        let wakes_its_threads = Work { cpu_ns: 9, writes: 8, written_bytes: 266, ..settled };
        assert_eq!(silent(wakes_its_threads), Some(Duration::from_secs(30)));
        assert_eq!(silent(Work { writes: 7, written_bytes: 300, ..settled }), None, "a result");
        assert_eq!(silent(Work { writes: 7, ..settled }), None, "a write that failed");
        assert_eq!(silent(Work { process: ProcessId::new(31, 8), ..settled }), None, "unreadable");
        let unsettled = Watch::begin(at(0), &[settled]);
        assert_eq!(unsettled.silent([SERVER].into_iter()), None);
    }

    #[test]
    fn a_moment_is_left_for_the_end_of_the_last_request() {
        let logs = settling(work(6, 100, 250));
        assert!(rests(&logs, SERVER, PIPES));
        assert!(!rests(&logs, SERVER, SOCKETS), "a request from a socket may not be in the account");
        assert!(!rests(&settling(work(6, 148, 250)), SERVER, PIPES), "a request is a use even then");
        let mut unseen = Watch::begin(at(0), &[work(5, 100, 100)]);
        unseen.look(at(100), false, &[work(5, 100, 100)]);
        assert!(!rests(&unseen, SERVER, PIPES), "nobody looked then");
    }
}
