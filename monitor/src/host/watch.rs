//! Looks at processes that may never answer, on threads that can be left behind.
//!
//! Any process can keep whoever reads about it in /proc waiting for as long as it likes: `stat`, `exe`, the links of `fd` and
//! others take `exec_update_lock` (`ptrace_may_access()`, kernel/ptrace.c), which a process in execve(2) keeps until its files
//! are closed, and a file system in user space need not answer the close. Likewise whoever keeps its memory locked, or has a path
//! that leads to a server that is away.
//!
//! Invariant: who looks through [`with_deadline`] never waits for one process longer than [`PATIENCE`]. What does not answer is an
//! error to the look ([`UNANSWERED`]), never an absence, and nobody asks it again before the thread that waits for it comes back.

use std::{
    cell::RefCell,
    collections::BTreeSet,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        mpsc::{self, Receiver, RecvTimeoutError, Sender},
    },
    thread,
    time::{Duration, Instant},
};

use rustix::{fs::CWD, io::Errno};

use super::{Stat, identity::real_user, read, stuck, sweep};

/// How long a look waits for one process. A read of /proc takes microseconds.
pub(super) const PATIENCE: Duration = Duration::from_millis(250);
/// Between two glances at a look that takes its time.
const GLANCE: Duration = Duration::from_millis(25);
/// What a process is read with that does not answer.
pub const UNANSWERED: Errno = Errno::TIMEDOUT;
/// Processes of one user that keep one look waiting before it does without all others of that user.
const PER_LOOK: usize = 2;
/// Threads that are kept for the next look.
const IDLE: usize = 2;
const STACK: usize = 512 << 10;

type Job = Box<dyn FnOnce() + Send>;

static CREW: Mutex<Vec<Sender<Job>>> = Mutex::new(Vec::new());

thread_local! {
    static POST: RefCell<Option<Arc<Post>>> = const { RefCell::new(None) };
}

/// Where a thread is that looks for somebody.
#[derive(Debug, Default)]
pub(super) struct Post {
    place: Mutex<Place>,
    over: Over,
}

#[derive(Debug, Default)]
struct Place {
    thread: Option<i32>,
    at: Option<(u32, Instant)>,
    left: bool,
}

/// Whom a look does without.
#[derive(Clone, Debug, Default)]
struct Over {
    all: bool,
    processes: BTreeSet<u32>,
    /// Users, one for each of their processes that kept it waiting.
    users: Vec<u32>,
}

impl Over {
    fn add(&mut self, pid: u32) {
        self.processes.insert(pid);
        // What the system runs is not one somebody's.
        self.users.extend(real_user(pid).filter(|user| *user != 0));
    }

    fn refuses(&self, pid: u32) -> bool {
        let is_one_of = |user: u32| self.users.iter().filter(|one| **one == user).count() >= PER_LOOK;
        self.all
            || self.processes.contains(&pid)
            || (self.users.len() >= PER_LOOK && real_user(pid).is_some_and(is_one_of))
    }
}

impl Post {
    fn place(&self) -> MutexGuard<'_, Place> {
        // Nothing panics while it is locked.
        self.place.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes this post with the present thread.
    pub(super) fn take(self: &Arc<Self>) {
        self.place().thread = Some(rustix::thread::gettid().as_raw_pid());
        POST.set(Some(Arc::clone(self)));
    }

    /// How long it has been at one process.
    pub(super) fn waits(&self) -> Option<Duration> {
        self.place().at.map(|(_, since)| since.elapsed())
    }

    pub(super) fn is_left(&self) -> bool {
        self.place().left
    }

    /// Leaves the thread where it is, if it waits for a process longer than there is patience. For which.
    pub(super) fn leave(self: &Arc<Self>) -> Option<u32> {
        let mut place = self.place();
        let (pid, since) = place.at.filter(|(_, since)| since.elapsed() > PATIENCE)?;
        // A host that is short of processors is no process that does not answer.
        if place.thread.is_some_and(is_running) {
            return None;
        }
        place.left = true;
        stuck::enter(pid, since, Arc::clone(self));
        Some(pid)
    }
}

/// Whether one of our own threads has work, or waits for a processor.
fn is_running(thread: i32) -> bool {
    let line = read(CWD, &format!("/proc/self/task/{thread}/stat"), 4096);
    line.is_ok_and(|(line, _)| Stat::parse(&line).is_some_and(|stat| stat.state == b'R'))
}

/// As long as it lives the thread is at this process.
#[derive(Debug)]
pub struct Visit {
    pid: u32,
    outer: Option<u32>,
    post: Option<Arc<Post>>,
}

/// From now on the process may keep us waiting. An error on a thread that was left behind: nobody wants to know any more.
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
    Ok(Visit { pid, outer, post })
}

impl Drop for Visit {
    fn drop(&mut self) {
        let Some(post) = &self.post else { return };
        let mut place = post.place();
        place.at = self.outer.map(|pid| (pid, Instant::now()));
        if place.left {
            stuck::answered(self.pid, post);
        }
    }
}

/// Whether this process may be looked at. An error: it did not answer.
pub(super) fn door(pid: u32) -> Result<(), Errno> {
    let over = POST.with_borrow(|post| post.as_ref().is_some_and(|post| post.over.refuses(pid)));
    if over || stuck::refuses(pid) { Err(UNANSWERED) } else { Ok(()) }
}

/// Looks, and where a process keeps it waiting, looks again without that process. What is looked at twice must not care.
pub fn with_deadline<T: Send + 'static>(look: impl Fn() -> T + Send + Sync + 'static) -> T {
    if POST.with_borrow(Option::is_some) {
        return look();
    }
    let look = Arc::new(look);
    let mut over = Over::default();
    loop {
        let post = Arc::new(Post { over: over.clone(), ..Post::default() });
        let answer = send(&post, &look);
        match answer.map(|answer| wait(&post, &answer)) {
            Some(Ok(found)) => return found,
            Some(Err(Some(pid))) => {
                // Whoever has one may have a hundred: found at once, they cost no time each.
                if over.processes.is_empty() {
                    sweep::sweep();
                }
                over.add(pid);
            }
            // No thread can be had: everything is unseen.
            Some(Err(None)) | None => return blindly(&*look),
        }
    }
}

/// What the look finds; else the process that it is stuck at, or nothing if its thread is gone.
fn wait<T>(post: &Arc<Post>, answer: &Receiver<T>) -> Result<T, Option<u32>> {
    loop {
        match answer.recv_timeout(GLANCE) {
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

/// Has a thread look. Nothing if there is none to be had.
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
        // Nobody waits for a thread that was left behind.
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

/// Starts one more thread with this as its first job.
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
