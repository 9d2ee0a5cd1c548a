//! Reads processes that may never answer, on threads that can be abandoned.
//!
//! Any process can block a reader of its files in /proc for as long as it likes. `stat`, `exe`, the links
//! of `fd` and others take `exec_update_lock` (`ptrace_may_access()`, kernel/ptrace.c). A process in
//! execve(2) holds this lock until its files are closed, and a file system in user space can delay the
//! close. A process blocks a reader, too, if it keeps its memory locked, or has a path on a server that
//! does not respond.
//!
//! Invariant: a caller of [`with_deadline`] never waits for one process longer than [`PATIENCE`], and a caller of
//! [`hastily`], for whom everybody waits, no longer than [`HASTE`]. A process that does not answer yields the error
//! [`UNANSWERED`] and is never reported as absent. No thread reads it again before the thread that is blocked on it
//! returns, and what a user's processes cost in all is bounded ([`mod@super::stuck`]).
//!
//! A process may answer at once and still take long: the kernel writes each lock of a file and each mount into the text
//! that is read, once for each descriptor. So nobody works for one process longer than [`WORK`] times his patience either.

use std::{
    cell::{Cell, RefCell},
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
        mpsc::{self, Receiver, RecvTimeoutError, SendError, Sender},
    },
    thread,
    time::{Duration, Instant},
};

use rustix::{fs::CWD, io::Errno};

use super::{Stat, read, stuck};
use crate::{helper::Cost, os::lock};
use orphand_core::model::Share;

/// The longest wait for one process. A read of /proc normally takes microseconds.
const PATIENCE: Duration = Duration::from_millis(250);
/// The longest wait for one process of somebody for whom all users wait: the daemon's loop.
const HASTE: Duration = Duration::from_millis(25);
/// The longest work for one process in one look, in times of the patience. One with 32,768 descriptors, the most that are
/// read, takes a tenth of it.
const WORK: u32 = 8;
/// Work for one process in one look that its user is not charged for, as a part of the patience. The memory of one with
/// five gigabytes takes as long.
const FREE: u32 = 5;
/// The shortest interval at which a waiting caller checks whether the worker thread is blocked.
const GLANCE: Duration = Duration::from_millis(5);
/// The error for a process that does not answer.
pub const UNANSWERED: Errno = Errno::TIMEDOUT;
/// So many idle threads are kept, for the time when the host has no room for another one: whoever takes all numbers of
/// processes must not stop the inspections of others.
const IDLE: usize = 2;
const STACK: usize = 512 << 10;

type Job = Box<dyn FnOnce() + Send>;

static ALONE: AtomicBool = AtomicBool::new(false);

/// The ways to the idle threads.
static CREW: Mutex<Vec<Sender<Job>>> = Mutex::new(Vec::new());

thread_local! {
    static POST: RefCell<Option<Arc<Post>>> = const { RefCell::new(None) };
    /// In whose turn this thread asks.
    static TURN: Cell<Option<Share>> = const { Cell::new(None) };
}

/// The state of one worker thread: the process that it reads now, and the processes that it must skip.
#[derive(Debug)]
pub(super) struct Post {
    place: Mutex<Place>,
    /// `None`: all of them.
    skipped: Option<BTreeSet<u32>>,
    patience: Duration,
    /// In whose turn it reads.
    turn: Option<Share>,
}

#[derive(Debug, Default)]
struct Place {
    thread: Option<i32>,
    at: Option<(u32, Instant)>,
    left: bool,
    /// For how long this look worked for each process.
    work: BTreeMap<u32, Work>,
    /// The process that took more work than anybody has for it: what is found is not used.
    costly: Option<u32>,
}

#[derive(Debug, Default)]
struct Work {
    all: Duration,
    uncharged: Duration,
}

impl Post {
    pub(super) fn new(skipped: Option<BTreeSet<u32>>, patience: Duration) -> Arc<Self> {
        Arc::new(Self { place: Mutex::default(), skipped, patience, turn: TURN.get() })
    }

    fn take(self: &Arc<Self>) {
        lock(&self.place).thread = Some(rustix::thread::gettid().as_raw_pid());
        POST.set(Some(Arc::clone(self)));
    }

    /// Abandons the thread if it has waited for one process too long. Returns the pid of that process.
    fn leave(self: &Arc<Self>) -> Option<u32> {
        let mut place = lock(&self.place);
        let (pid, since) = place.at.filter(|(_, since)| since.elapsed() > self.patience)?;
        // The thread can run but has not got a processor: the host is overloaded, and the process is not at
        // fault.
        if place.thread.is_some_and(is_running) {
            return None;
        }
        place.left = true;
        stuck::enter(pid, since, Arc::clone(self));
        Some(pid)
    }

    /// Adds work for this process. Each time that it is more than is free, its user is charged, unless it is his own turn.
    fn worked(&self, pid: u32, took: Duration) {
        let mut place = lock(&self.place);
        let work = place.work.entry(pid).or_default();
        work.all += took;
        work.uncharged += took;
        if work.uncharged > self.patience / FREE {
            let due = std::mem::take(&mut work.uncharged);
            drop(place);
            stuck::charge(pid, due, self.turn);
        }
    }

    /// The process for which this look would have worked too long.
    fn costly(&self) -> Option<u32> {
        lock(&self.place).costly
    }
}

/// Whether one of our own threads runs or waits for a processor.
fn is_running(thread: i32) -> bool {
    let line = read(CWD, &format!("/proc/self/task/{thread}/stat"), 4096);
    line.is_ok_and(|(line, _)| Stat::parse(&line).is_some_and(|stat| stat.state == b'R'))
}

/// A guard: while it exists, the current thread is reading this process.
#[derive(Debug)]
pub struct Visit {
    pid: u32,
    outer: Option<u32>,
    post: Option<Arc<Post>>,
    reading: Option<stuck::Reading>,
}

/// Marks the start of reads that the process can block. Returns an error on a thread that was abandoned, and in a look
/// that works too long for this process, because the result is not used any more.
pub(super) fn visit(pid: u32) -> Result<Visit, Errno> {
    let post = POST.with_borrow(Clone::clone);
    let mut outer = None;
    if let Some(post) = &post {
        let mut place = lock(&post.place);
        if place.at.is_none() && place.work.get(&pid).is_some_and(|work| work.all > post.patience * WORK) {
            place.costly = Some(pid);
        }
        if place.left || place.costly.is_some() {
            return Err(UNANSWERED);
        }
        outer = place.at.replace((pid, Instant::now())).map(|(pid, _)| pid);
    }
    let reading = (post.is_some() && outer.is_none()).then(|| stuck::Reading::begin(pid));
    Ok(Visit { pid, outer, post, reading })
}

impl Drop for Visit {
    fn drop(&mut self) {
        let Some(post) = &self.post else { return };
        let mut place = lock(&post.place);
        place.at = self.outer.map(|pid| (pid, Instant::now()));
        if place.left {
            stuck::answered(self.pid, post);
            return;
        }
        drop(place);
        if let Some(reading) = self.reading {
            post.worked(self.pid, reading.end(self.pid));
        }
    }
}

/// What a helper spent on reading this process counts as if this thread had done it.
pub(super) fn charge(pid: u32, cost: Cost) {
    if let Some(post) = POST.with_borrow(Clone::clone) {
        post.worked(pid, cost.worked);
        stuck::charge(pid, cost.slept, None);
    }
}

/// Checks whether this process may be read. The error means that it did not answer before.
pub(super) fn door(pid: u32) -> Result<(), Errno> {
    let is_skipped = |post: &Arc<Post>| post.skipped.as_ref().is_none_or(|all| all.contains(&pid));
    let skipped = POST.with_borrow(|post| post.as_ref().is_some_and(is_skipped));
    if skipped || stuck::refuses(pid) { Err(UNANSWERED) } else { Ok(()) }
}

/// While it exists, no worker thread is started: each look is made by the thread that asks, without a time limit. For the
/// start of the daemon, which looks at its own processes only and then gives up rights: a further thread would keep them.
#[derive(Debug)]
pub struct Alone(());

impl Alone {
    pub fn begin() -> Self {
        ALONE.store(true, Ordering::Release);
        Self(())
    }
}

impl Drop for Alone {
    fn drop(&mut self) {
        ALONE.store(false, Ordering::Release);
    }
}

/// What `ask` looks at is looked at in this user's turn: who gives him the turn accounts for what it takes.
pub fn in_turn_of<T>(user: Share, ask: impl FnOnce() -> T) -> T {
    TURN.set(Some(user));
    let found = ask();
    TURN.set(None);
    found
}

/// Runs `look` on a worker thread. If a process blocks it, `look` runs again without that process. `look`
/// may run several times, so it must have no lasting effects.
pub fn with_deadline<T: Send + 'static>(look: impl Fn() -> T + Send + Sync + 'static) -> T {
    patiently(look, PATIENCE)
}

/// The same for a caller for whom all users wait: no process keeps it waiting longer than 25 ms.
pub fn hastily<T: Send + 'static>(look: impl Fn() -> T + Send + Sync + 'static) -> T {
    patiently(look, HASTE)
}

fn patiently<T: Send + 'static>(look: impl Fn() -> T + Send + Sync + 'static, patience: Duration) -> T {
    if ALONE.load(Ordering::Acquire) || POST.with_borrow(Option::is_some) {
        return look();
    }
    let look = Arc::new(look);
    let mut skipped = BTreeSet::new();
    loop {
        let post = Post::new(Some(skipped.clone()), patience);
        match send(&post, &look).and_then(|answer| wait(&post, &answer)) {
            Some(Ok(found)) => match post.costly() {
                Some(pid) => _ = skipped.insert(pid),
                None => return found,
            },
            Some(Err(pid)) => _ = skipped.insert(pid),
            None => break,
        }
    }
    // No thread is available: report every process as unread.
    POST.set(Some(Post::new(None, patience)));
    let found = look();
    POST.set(None);
    found
}

/// Waits for the result. The error is the pid of the process that blocks the thread. `None` if the thread is gone.
fn wait<T>(post: &Arc<Post>, answer: &Receiver<T>) -> Option<Result<T, u32>> {
    loop {
        match answer.recv_timeout((post.patience / 10).max(GLANCE)) {
            Ok(found) => return Some(Ok(found)),
            Err(RecvTimeoutError::Disconnected) => return None,
            Err(RecvTimeoutError::Timeout) => {
                if let Some(pid) = post.leave() {
                    return Some(Err(pid));
                }
            }
        }
    }
}

/// Runs `look` on a worker thread. Returns `None` if no thread is available.
fn send<T: Send + 'static>(
    post: &Arc<Post>,
    look: &Arc<impl Fn() -> T + Send + Sync + 'static>,
) -> Option<Receiver<T>> {
    let (tell, answer) = mpsc::channel();
    let (at, look) = (Arc::clone(post), Arc::clone(look));
    let job: Job = Box::new(move || {
        at.take();
        let found = look();
        POST.set(None);
        // The caller may have abandoned this thread. Then the channel is closed.
        let _ = tell.send(found);
    });
    let idle = lock(&CREW).pop();
    let job = match idle {
        Some(idle) => match idle.send(job) {
            Ok(()) => return Some(answer),
            Err(SendError(job)) => job,
        },
        None => job,
    };
    let thread = thread::Builder::new().name("orphand-look".to_owned()).stack_size(STACK);
    thread.spawn(move || work(job)).ok().map(|_| answer)
}

/// What a worker thread does: this job, then others as long as it is one of the idle ones.
fn work(mut job: Job) {
    loop {
        job();
        let (way, jobs) = mpsc::channel();
        {
            let mut crew = lock(&CREW);
            if crew.len() >= IDLE {
                return;
            }
            crew.push(way);
        }
        let Ok(next) = jobs.recv() else { return };
        job = next;
    }
}

#[cfg(test)]
mod tests {
    use std::{os::unix::process::CommandExt as _, process::Command};

    use super::*;
    use crate::{host::stuck, os::processor_time::Meter, probe::tests::Started};

    /// The processes among these that are read. To read one is to wait, as for one that does not answer.
    fn read(pids: Vec<u32>, wait: Duration) -> usize {
        let look = move |pid: &u32| {
            door(*pid)?;
            let _at = visit(*pid)?;
            thread::sleep(wait);
            Ok::<(), Errno>(())
        };
        with_deadline(move || pids.iter().filter(|pid| look(pid).is_ok()).count())
    }

    /// One that answers each time, and takes long each time, is left unread like one that does not answer.
    #[test]
    fn nobody_works_for_one_process_for_ever() {
        let [costly, other] = [(); 2].map(|()| Started::new(Command::new("sleep").arg("600")));
        let (costly, pids) = (costly.0.id(), [costly.0.id(), other.0.id()]);
        let work = move |pid: u32| {
            door(pid)?;
            let _at = visit(pid)?;
            let begun = Instant::now();
            while pid == costly && begun.elapsed() < HASTE / 4 {}
            Ok::<(), Errno>(())
        };
        let found = hastily(move || pids.map(|pid| (0..100).filter(|_| work(pid).is_ok()).count()));
        assert_eq!(found, [0, 100]);
    }

    /// What an honest server with very many open files takes is on his account of inspections, and leaves nobody unread.
    #[test]
    #[ignore = "needs root: cargo xtask test runs it"]
    fn work_is_free_in_the_own_turn_only() {
        const USER: u32 = 64_021;
        let costly = Started::new(Command::new("sleep").arg("600").uid(USER));
        let pid = costly.0.id();
        let work = move || {
            with_deadline(move || {
                let (_at, meter) = (visit(pid)?, Meter::begin());
                while meter.spent() < PATIENCE {}
                Ok::<(), Errno>(())
            })
        };
        for (turn, is_left_unread) in [(USER, false), (USER + 1, true)] {
            let looks = || (0..6).all(|_| work().is_ok());
            assert!(in_turn_of(Share::of(turn), looks));
            assert_eq!(stuck::refuses(pid), is_left_unread, "{turn}");
        }
    }

    /// However many do not answer: after a second of waiting their user is left unread, and nobody else.
    #[test]
    #[ignore = "needs root: cargo xtask test runs it"]
    fn a_user_costs_readers_a_second() {
        const USER: u32 = 64_011;
        let start = |user: u32| Started::new(Command::new("sleep").arg("600").uid(user));
        let [silent, other] = [USER, USER + 1].map(|user| (0..12).map(|_| start(user)).collect::<Vec<_>>());
        let pids = |of: &[Started]| of.iter().map(|one| one.0.id()).collect::<Vec<u32>>();
        let is_listed = || stuck().iter().filter(|one| one.uid == Some(USER)).count();
        assert_eq!(read(pids(&silent), Duration::from_secs(5)), 0);
        assert!((1..=5).contains(&is_listed()), "{:?}", stuck());
        assert_eq!(read(pids(&silent), Duration::ZERO), 0);
        assert_eq!(read(pids(&other), Duration::ZERO), 12);
        while is_listed() > 0 {
            thread::sleep(Duration::from_millis(10));
        }
    }
}
