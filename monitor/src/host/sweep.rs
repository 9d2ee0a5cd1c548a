//! A quick check of every process of the host that finds all processes that block a reader. Without it,
//! fifty such processes would cost fifty times the full waiting time.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, sleep},
    time::Duration,
};

use super::{
    Proc,
    stuck::{self, MOST},
    watch::Post,
};

/// A scout (a thread of the sweep) that has been at one process for so long counts as late. When all scouts
/// are late, more are started.
const LATE: Duration = Duration::from_millis(10);
/// The interval between two checks of the scouts.
const GLANCE: Duration = Duration::from_millis(5);
/// The most scouts at a time.
const SCOUTS: usize = 64;
const STACK: usize = 128 << 10;

type Places = Arc<Mutex<std::vec::IntoIter<u32>>>;

/// Whether a sweep is under way that nobody waits for.
static BESIDE: AtomicBool = AtomicBool::new(false);

/// Sweeps on a thread of its own, unless such a sweep is under way.
pub(super) fn sweep_beside() {
    if BESIDE.swap(true, Ordering::AcqRel) {
        return;
    }
    let work = || {
        sweep();
        BESIDE.store(false, Ordering::Release);
    };
    let thread = thread::Builder::new().name("orphand-sweep".to_owned()).stack_size(STACK);
    if thread.spawn(work).is_err() {
        BESIDE.store(false, Ordering::Release);
    }
}

/// Reads every process with scouts. A scout that does not return within the patience is abandoned where it
/// is.
pub(super) fn sweep() {
    let Some(proc) = Proc::system().ok().map(Arc::new) else { return };
    let Ok(pids) = proc.pids() else { return };
    let places: Places = Arc::new(Mutex::new(pids.into_iter()));
    let mut scouts: Vec<Arc<Post>> = Vec::new();
    loop {
        let before = scouts.len();
        // Keep the scouts that still run: a finished scout has dropped its reference, and an abandoned one
        // is on the list of stuck processes.
        scouts.retain(|scout| Arc::strong_count(scout) > 1 && !scout.is_left() && scout.leave().is_none());
        let late = scouts.iter().filter(|scout| scout.waits().is_some_and(|waits| waits > LATE)).count();
        let more = left(&places) > 0 && stuck::stuck().len() < MOST;
        if scouts.is_empty() && !more {
            return;
        }
        if more && late == scouts.len() {
            // Double the number each time, so that a few rounds find many blocking processes.
            let wanted = before.max(1).min(SCOUTS.saturating_sub(scouts.len()));
            let sent = (0..wanted).filter_map(|_| send(&proc, &places)).collect::<Vec<_>>();
            if sent.is_empty() && scouts.is_empty() {
                return;
            }
            scouts.extend(sent);
        }
        sleep(GLANCE);
    }
}

fn left(places: &Places) -> usize {
    places.lock().unwrap_or_else(PoisonError::into_inner).len()
}

fn send(proc: &Arc<Proc>, places: &Places) -> Option<Arc<Post>> {
    let post = Arc::new(Post::default());
    let (at, proc, places) = (Arc::clone(&post), Arc::clone(proc), Arc::clone(places));
    let scout = move || {
        at.take();
        while !at.is_left() {
            let next = places.lock().unwrap_or_else(PoisonError::into_inner).next();
            let Some(pid) = next else { return };
            // The content is not used. Only whether the read returns is of interest.
            if let Ok(dir) = proc.process(pid) {
                let _ = (dir.image(), dir.stdio());
            }
        }
    };
    let thread = thread::Builder::new().name("orphand-scout".to_owned()).stack_size(STACK);
    thread.spawn(scout).is_ok().then_some(post)
}
