//! The list of processes that do not answer, with the threads that wait for them.
//!
//! Invariant: a process is on the list exactly as long as a thread waits for it. So no second thread reads
//! it, and a process that answers again leaves the list at once. A process for which there is no place is not read at
//! all and counts as one that does not answer.
//!
//! The list is bounded in total, and each user may have a part of the places that are free: the more are taken, the
//! fewer one user may add. So eight users who take what they can leave half of them, and a hundred users still leave
//! some.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use super::{identity::real_user as user_of, watch::Post};
use orphand_core::model::Share;

/// The most threads that may wait in total; each costs some 20 KiB. The unit's `TasksMax` leaves room for
/// them.
pub(super) const MOST: usize = 256;
/// A user may take a place as long as he has fewer than this part of the free ones, or none: alone 29.
const PART: usize = 8;
/// The same of root (user 0), whose processes belong to many services: alone 128.
const PART_OF_ROOT: usize = 1;

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
    let full = full(held.values().map(|one| one.user));
    drop(held);
    !full.is_empty() && full.contains(&user_of(pid).map(Share::of))
}

/// The users who may take no further place, if these have the places that are taken. `None` is whoever cannot be told.
fn full(taken: impl Iterator<Item = Option<u32>>) -> Vec<Option<Share>> {
    let (mut users, mut free): (BTreeMap<_, usize>, _) = (BTreeMap::new(), MOST);
    for user in taken {
        *users.entry(user.map(Share::of)).or_default() += 1;
        free = free.saturating_sub(1);
    }
    let root = Some(Share::of(0));
    let part = |user: Option<Share>| if user == root { PART_OF_ROOT } else { PART };
    users.into_iter().filter(|(user, own)| own * part(*user) >= free).map(|(user, _)| user).collect()
}

/// All processes that do not answer now, ordered by pid.
pub fn stuck() -> Vec<Stuck> {
    if COUNT.load(Ordering::Acquire) == 0 {
        return Vec::new();
    }
    let one = |(pid, held): (&u32, &Held)| Stuck { pid: *pid, user: held.user, waited: held.since.elapsed() };
    held().iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// These users try to take a place, in turn, until none of them gets one.
    fn greedy(users: &[u32]) -> Vec<Option<u32>> {
        let mut taken = Vec::new();
        loop {
            let before = taken.len();
            for user in users {
                if taken.len() < MOST && !full(taken.iter().copied()).contains(&Some(Share::of(*user))) {
                    taken.push(Some(*user));
                }
            }
            if taken.len() == before {
                return taken;
            }
        }
    }

    fn has_room(taken: &[Option<u32>], user: u32) -> bool {
        taken.len() < MOST && !full(taken.iter().copied()).contains(&Some(Share::of(user)))
    }

    #[test]
    fn users_who_take_what_they_can_leave_room_for_others() {
        for (count, most) in [(1, 29), (8, 128), (64, 236)] {
            let users: Vec<u32> = (1000..1000 + count).collect();
            let taken = greedy(&users);
            assert!((most / 2..=most).contains(&taken.len()), "{count} users have {}", taken.len());
            assert!(has_room(&taken, 5000) && has_room(&taken, 0), "{count}");
            // An honest user with a process or two that hang.
            let own = [taken.clone(), vec![Some(5000)]].concat();
            assert!(has_room(&own, 5000) || count > 8, "{count}");
        }
        let taken = greedy(&[0]);
        assert_eq!(taken.len(), MOST / 2);
        assert!(has_room(&taken, 1000));
    }

    #[test]
    fn a_range_of_numbers_has_the_places_of_one_user() {
        let range: Vec<u32> = (100_000..101_000).collect();
        assert_eq!(greedy(&range).len(), greedy(&[1000]).len());
        let taken = greedy(&range);
        assert!(!has_room(&taken, 165_535) && has_room(&taken, 165_536));
    }

    #[test]
    fn who_has_none_has_room_until_all_are_taken() {
        let all: Vec<Option<u32>> = (1..=MOST).map(|user| u32::try_from(user).ok()).collect();
        assert!(!has_room(&all, 5000));
        assert!(has_room(&all[1..], 5000) && !has_room(&all[1..], 7));
    }
}
