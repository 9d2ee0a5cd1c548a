//! The list of processes that do not answer, with the threads that wait for them.
//!
//! Invariant: a process is on the list exactly as long as a thread waits for it. So no second thread reads
//! it, and a process that answers again leaves the list at once. The list is bounded for each user and in
//! total. A process beyond these bounds is not read at all and counts as one that does not answer.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use super::{identity::real_user as user_of, watch::Post};

/// The most threads that may wait for processes of one user. Root (user 0) has no such limit, because its
/// processes belong to many services.
const PER_USER: usize = 32;
/// The most threads that may wait in total; each costs some 20 KiB. The unit's `TasksMax` leaves room for
/// them.
pub(super) const MOST: usize = 256;

/// A process that does not answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stuck {
    /// The pid.
    pub pid: u32,
    /// Its real user id, if that can be read.
    pub user: Option<u32>,
    /// How long a thread has been waiting for it.
    pub waited: Duration,
}

#[derive(Debug)]
struct Held {
    user: Option<u32>,
    since: Instant,
    post: Arc<Post>,
}

static HELD: Mutex<BTreeMap<u32, Held>> = Mutex::new(BTreeMap::new());
/// The number of entries, readable without the lock.
static COUNT: AtomicUsize = AtomicUsize::new(0);

fn held() -> MutexGuard<'static, BTreeMap<u32, Held>> {
    HELD.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Adds the process to the list: a thread waits for it.
pub(super) fn enter(pid: u32, since: Instant, post: Arc<Post>) {
    let user = user_of(pid);
    let mut held = held();
    held.insert(pid, Held { user, since, post });
    COUNT.store(held.len(), Ordering::Release);
}

/// Removes the process from the list: the thread waits no longer.
pub(super) fn answered(pid: u32, post: &Arc<Post>) {
    let mut held = held();
    if held.get(&pid).is_some_and(|one| Arc::ptr_eq(&one.post, post)) {
        held.remove(&pid);
    }
    COUNT.store(held.len(), Ordering::Release);
}

/// Whether this process must not be read now.
pub(super) fn refuses(pid: u32) -> bool {
    if COUNT.load(Ordering::Acquire) == 0 {
        return false;
    }
    let held = held();
    if held.contains_key(&pid) || held.len() >= MOST {
        return true;
    }
    if held.len() < PER_USER {
        return false;
    }
    let mut users: BTreeMap<u32, usize> = BTreeMap::new();
    for user in held.values().filter_map(|one| one.user).filter(|user| *user != 0) {
        *users.entry(user).or_default() += 1;
    }
    drop(held);
    users.retain(|_, count| *count >= PER_USER);
    !users.is_empty() && user_of(pid).is_some_and(|user| users.contains_key(&user))
}

/// All processes that do not answer now, ordered by pid.
pub fn stuck() -> Vec<Stuck> {
    if COUNT.load(Ordering::Acquire) == 0 {
        return Vec::new();
    }
    let one = |(pid, held): (&u32, &Held)| Stuck { pid: *pid, user: held.user, waited: held.since.elapsed() };
    held().iter().map(one).collect()
}
