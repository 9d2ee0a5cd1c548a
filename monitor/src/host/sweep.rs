//! A glance at every process of the host, to find all that do not answer at once: fifty of them must not cost fifty times the
//! patience that one costs.

use std::{
    sync::{Arc, Mutex, PoisonError},
    thread::{self, sleep},
    time::Duration,
};

use super::{
    Proc,
    stuck::{self, MOST},
    watch::Post,
};

/// A scout that is at one process for so long is not waited for: another one goes on.
const LATE: Duration = Duration::from_millis(10);
/// Between two looks at the scouts.
const GLANCE: Duration = Duration::from_millis(5);
/// Scouts on their way at a time.
const SCOUTS: usize = 64;
const STACK: usize = 128 << 10;

type Places = Arc<Mutex<std::vec::IntoIter<u32>>>;

/// Sends scouts to every process. Those that do not come back within the patience are left where they are.
pub(super) fn sweep() {
    let Some(proc) = Proc::system().ok().map(Arc::new) else { return };
    let Ok(pids) = proc.pids() else { return };
    let places: Places = Arc::new(Mutex::new(pids.into_iter()));
    let mut scouts: Vec<Arc<Post>> = Vec::new();
    loop {
        let before = scouts.len();
        // Nobody else has one that is at home, or was left behind.
        scouts.retain(|scout| Arc::strong_count(scout) > 1 && !scout.is_left() && scout.leave().is_none());
        let late = scouts.iter().filter(|scout| scout.waits().is_some_and(|waits| waits > LATE)).count();
        let more = left(&places) > 0 && stuck::stuck().len() < MOST;
        if scouts.is_empty() && !more {
            return;
        }
        if more && late == scouts.len() {
            // Twice as many each time, so that many that do not answer are found in a few rounds.
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
            // What is seen is of no interest, only that it can be.
            if let Ok(dir) = proc.process(pid) {
                let _ = (dir.image(), dir.stdio());
            }
        }
    };
    let thread = thread::Builder::new().name("orphand-scout".to_owned()).stack_size(STACK);
    thread.spawn(scout).is_ok().then_some(post)
}
