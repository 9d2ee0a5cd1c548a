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
//! returns.

use std::{
    cell::RefCell,
    collections::BTreeSet,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
        mpsc::{self, Receiver, RecvTimeoutError, Sender},
    },
    thread,
    time::{Duration, Instant},
};

use rustix::{fs::CWD, io::Errno};

use super::{Stat, identity::real_user, read, slow, stuck, sweep};
use orphand_core::model::Share;

/// The longest wait for one process. A read of /proc normally takes microseconds.
pub(super) const PATIENCE: Duration = Duration::from_millis(250);
/// The longest wait for one process of somebody for whom all users wait: the daemon's loop.
const HASTE: Duration = Duration::from_millis(25);
/// The interval at which a waiting caller checks whether the worker thread is blocked.
const GLANCE: Duration = Duration::from_millis(25);
/// The same interval of a caller in haste.
const HASTY_GLANCE: Duration = Duration::from_millis(5);
/// The error for a process that does not answer.
pub const UNANSWERED: Errno = Errno::TIMEDOUT;
/// The number of blocking processes of one user after which one inspection skips all other processes of
/// that user.
const PER_LOOK: usize = 2;
/// The number of idle threads that are kept for the next inspection.
const IDLE: usize = 2;
const STACK: usize = 512 << 10;

type Job = Box<dyn FnOnce() + Send>;

/// Whether an [`Alone`] exists.
static ALONE: AtomicBool = AtomicBool::new(false);

static CREW: Mutex<Vec<Sender<Job>>> = Mutex::new(Vec::new());

thread_local! {
    static POST: RefCell<Option<Arc<Post>>> = const { RefCell::new(None) };
}

/// The state of one worker thread: the process that it reads now, and the processes that it must skip.
#[derive(Debug, Default)]
pub(super) struct Post {
    place: Mutex<Place>,
    over: Over,
    hasty: bool,
}

#[derive(Debug, Default)]
struct Place {
    thread: Option<i32>,
    at: Option<(u32, Instant)>,
    left: bool,
}

/// The processes that an inspection skips.
#[derive(Clone, Debug, Default)]
struct Over {
    all: bool,
    processes: BTreeSet<u32>,
    /// The real users of the processes that blocked it, one entry for each process.
    users: Vec<Share>,
}

impl Over {
    fn add(&mut self, pid: u32) {
        self.processes.insert(pid);
        // Processes of root are not counted: they belong to many services, not to one user.
        self.users.extend(real_user(pid).filter(|user| *user != 0).map(Share::of));
    }

    fn refuses(&self, pid: u32) -> bool {
        let is_one_of =
            |user: u32| self.users.iter().filter(|one| **one == Share::of(user)).count() >= PER_LOOK;
        self.all
            || self.processes.contains(&pid)
            || (self.users.len() >= PER_LOOK && real_user(pid).is_some_and(is_one_of))
    }
}

impl Post {
    fn place(&self) -> MutexGuard<'_, Place> {
        // No code panics while it holds this lock.
        self.place.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Assigns this post to the calling thread.
    pub(super) fn take(self: &Arc<Self>) {
        self.place().thread = Some(rustix::thread::gettid().as_raw_pid());
        POST.set(Some(Arc::clone(self)));
    }

    /// How long the thread has been reading its present process.
    pub(super) fn waits(&self) -> Option<Duration> {
        self.place().at.map(|(_, since)| since.elapsed())
    }

    pub(super) fn is_left(&self) -> bool {
        self.place().left
    }

    /// Abandons the thread if it has waited for one process longer than [`PATIENCE`], or than [`HASTE`] if that is
    /// all that its caller has. Returns the pid of that process.
    pub(super) fn leave(self: &Arc<Self>) -> Option<u32> {
        let patience = if self.hasty { HASTE } else { PATIENCE };
        let mut place = self.place();
        let (pid, since) = place.at.filter(|(_, since)| since.elapsed() > patience)?;
        // The thread can run but has not got a processor: the host is overloaded, and the process is not at
        // fault.
        if place.thread.is_some_and(is_running) {
            return None;
        }
        place.left = true;
        stuck::enter(pid, since, Arc::clone(self));
        Some(pid)
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
    reading: Option<slow::Reading>,
}

/// Marks the start of reads that the process can block. Returns an error on a thread that was abandoned,
/// because its result is not used any more.
pub(super) fn visit(pid: u32) -> Result<Visit, Errno> {
    let post = POST.with_borrow(Clone::clone);
    let mut outer = None;
    if let Some(post) = &post {
        let mut place = post.place();
        if place.left {
            return Err(UNANSWERED);
        }
        outer = place.at.replace((pid, Instant::now())).map(|(pid, _)| pid);
    }
    let reading = (post.is_some() && outer.is_none()).then(|| slow::Reading::begin(pid));
    Ok(Visit { pid, outer, post, reading })
}

impl Drop for Visit {
    fn drop(&mut self) {
        let Some(post) = &self.post else { return };
        let mut place = post.place();
        place.at = self.outer.map(|pid| (pid, Instant::now()));
        if place.left {
            stuck::answered(self.pid, post);
        }
        drop(place);
        if let Some(reading) = self.reading {
            reading.end(self.pid);
        }
    }
}

/// Checks whether this process may be read. The error means that it did not answer before.
pub(super) fn door(pid: u32) -> Result<(), Errno> {
    let over = POST.with_borrow(|post| post.as_ref().is_some_and(|post| post.over.refuses(pid)));
    if over || stuck::refuses(pid) || slow::refuses(pid) { Err(UNANSWERED) } else { Ok(()) }
}

/// While it exists, no worker thread is started: each look is made by the thread that asks, without a time limit. For the
/// start of the daemon, which looks at its own processes only and then gives up rights: a further thread would keep them.
#[derive(Debug)]
pub struct Alone(());

impl Alone {
    /// From now on.
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

/// Runs `look` on a worker thread. If a process blocks it, `look` runs again without that process. `look`
/// may run several times, so it must have no lasting effects.
pub fn with_deadline<T: Send + 'static>(look: impl Fn() -> T + Send + Sync + 'static) -> T {
    patiently(look, false)
}

/// The same for a caller for whom all users wait: no process keeps it waiting longer than 25 ms.
pub fn hastily<T: Send + 'static>(look: impl Fn() -> T + Send + Sync + 'static) -> T {
    patiently(look, true)
}

fn patiently<T: Send + 'static>(look: impl Fn() -> T + Send + Sync + 'static, hasty: bool) -> T {
    if ALONE.load(Ordering::Acquire) || POST.with_borrow(Option::is_some) {
        return look();
    }
    let look = Arc::new(look);
    let mut over = Over::default();
    loop {
        let post = Arc::new(Post { over: over.clone(), hasty, ..Post::default() });
        let answer = send(&post, &look);
        match answer.map(|answer| wait(&post, &answer)) {
            Some(Ok(found)) => return found,
            Some(Err(Some(pid))) => {
                // A user with one blocking process may have hundreds. The sweep finds all of them at once,
                // so that the caller does not wait for each in turn.
                if over.processes.is_empty() {
                    if hasty { sweep::sweep_beside() } else { sweep::sweep() }
                }
                over.add(pid);
            }
            // No thread is available: report every process as unread.
            Some(Err(None)) | None => return blindly(&*look),
        }
    }
}

/// Waits for the result. The error is the pid of the process that blocks the thread, or `None` if the
/// thread is gone.
fn wait<T>(post: &Arc<Post>, answer: &Receiver<T>) -> Result<T, Option<u32>> {
    let glance = if post.hasty { HASTY_GLANCE } else { GLANCE };
    loop {
        match answer.recv_timeout(glance) {
            Ok(found) => return Ok(found),
            Err(RecvTimeoutError::Disconnected) => return Err(None),
            Err(RecvTimeoutError::Timeout) => {
                if let Some(pid) = post.leave() {
                    return Err(Some(pid));
                }
            }
        }
    }
}

fn blindly<T>(look: &impl Fn() -> T) -> T {
    let over = Over { all: true, ..Over::default() };
    POST.set(Some(Arc::new(Post { over, ..Post::default() })));
    let found = look();
    POST.set(None);
    found
}

/// Runs `look` on a worker thread. Returns `None` if no thread is available.
fn send<T: Send + 'static>(
    post: &Arc<Post>,
    look: &Arc<impl Fn() -> T + Send + Sync + 'static>,
) -> Option<Receiver<T>> {
    let (tell, answer) = mpsc::channel();
    let (at, look) = (Arc::clone(post), Arc::clone(look));
    let mut job: Job = Box::new(move || {
        at.take();
        let found = look();
        POST.set(None);
        // The caller may have abandoned this thread. Then the channel is closed.
        let _ = tell.send(found);
    });
    loop {
        let idle = crew().pop();
        match idle {
            Some(idle) => match idle.send(job) {
                Ok(()) => return Some(answer),
                Err(mpsc::SendError(back)) => job = back,
            },
            None => return hire(job).then_some(answer),
        }
    }
}

fn crew() -> MutexGuard<'static, Vec<Sender<Job>>> {
    CREW.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts another worker thread. `first` is its first job.
fn hire(first: Job) -> bool {
    let work = move || {
        first();
        loop {
            let (way, jobs) = mpsc::channel::<Job>();
            {
                let mut crew = crew();
                if crew.len() >= IDLE {
                    return;
                }
                crew.push(way);
            }
            let Ok(job) = jobs.recv() else { return };
            job();
        }
    };
    thread::Builder::new().name("orphand-look".to_owned()).stack_size(STACK).spawn(work).is_ok()
}
