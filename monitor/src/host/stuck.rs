//! What readers of /proc wait for: the processes that do not answer, and what each user's processes have cost.
//!
//! Invariant: a process is on the list exactly as long as a thread waits for it. So no second thread reads
//! it, and a process that answers again leaves the list at once. A process for which there is no place is not read at
//! all and counts as one that does not answer.
//!
//! The list is bounded in total, and each user may have a part of the places that are free: the more are taken, the
//! fewer one user may add. So eight users who take what they can leave half of them, and a hundred users still leave
//! some.
//!
//! A user may have thousands of processes that do not answer, or that answer just before a reader gives up. So the waits
//! are added up for each user (a range of numbers for containers is one user). A user whose processes cost more than
//! his [`BUDGET`] is left unread until the waits are forgotten. What is left unread counts as a process that does not
//! answer. Time counts in which the reader sleeps, and in which it works in another user's turn for one process longer
//! than for an honest one; not that in which it has no processor. Waits for processes of root do not count: they
//! belong to many services, not to one user.

use std::{
    cell::RefCell,
    collections::BTreeMap,
    os::fd::OwnedFd,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use rustix::{
    buffer::spare_capacity,
    fs::{CWD, Mode, OFlags, openat},
    io::pread,
    time::{ClockId, clock_gettime},
};

use super::{identity::real_user, watch::Post};
use crate::os::{
    budgets::{Account, Budget},
    lock,
};
use orphand_core::model::{Share, StuckProcess};

/// The most threads that may wait in total; each costs some 20 KiB. The unit's `TasksMax` leaves room for
/// them.
const MOST: usize = 256;
/// A user may take a place as long as he has fewer than this part of the free ones, or none: alone 29.
const PART: usize = 8;
/// The same of root (user 0), whose processes belong to many services: alone 128.
const PART_OF_ROOT: usize = 1;

/// What a user's processes may cost before they are left unread. Of twenty seconds that pass, one is forgotten.
const BUDGET: Budget = Budget { allowance: Duration::from_secs(1), part: 20 };
/// The most that is remembered of one user: he is read again at last twenty seconds after he was waited for.
const MOST_SPENT: Duration = Duration::from_secs(2);
/// -1, which is no user: of those who ended while they were read.
const UNKNOWN: u32 = u32::MAX;
/// A shorter wait is none.
const SHORTEST: Duration = Duration::from_millis(1);

#[derive(Debug)]
struct Held {
    user: Option<u32>,
    since: Instant,
    post: Arc<Post>,
}

#[derive(Debug)]
struct Ledger {
    stuck: BTreeMap<u32, Held>,
    /// The waits of each user, the process that was waited for last, and its user.
    waits: BTreeMap<Share, (Account, u32, u32)>,
}

impl Ledger {
    const fn new() -> Self {
        Self { stuck: BTreeMap::new(), waits: BTreeMap::new() }
    }

    /// Whether nothing of this user is read now, because his processes answer late.
    fn is_left_unread(&self, user: u32, now: Instant) -> bool {
        self.waits.get(&Share::of(user)).is_some_and(|(waits, ..)| !waits.waits(now, BUDGET).is_zero())
    }

    /// Whether this process of this user must not be read now.
    fn refuses(&self, pid: u32, user: Option<u32>, now: Instant) -> bool {
        let is_left_unread = user.is_some_and(|user| self.is_left_unread(user, now));
        self.stuck.contains_key(&pid) || self.is_full_for(user) || is_left_unread
    }

    /// Whether this user may take no further place. `None` is whoever cannot be told.
    fn is_full_for(&self, user: Option<u32>) -> bool {
        let (share, free) = (user.map(Share::of), MOST.saturating_sub(self.stuck.len()));
        let own = self.stuck.values().filter(|one| one.user.map(Share::of) == share).count();
        let part = if user == Some(0) { PART_OF_ROOT } else { PART };
        free == 0 || (own > 0 && own * part >= free)
    }

    /// What ended while it was read has no user any more, and nobody is left unread for it. But an account is kept of it,
    /// so that from then on the user is looked up before a process is read: who lets readers wait and then ends is
    /// charged from the second time on.
    fn charge(&mut self, pid: u32, user: Option<u32>, waited: Duration, now: Instant) {
        let user = user.unwrap_or(UNKNOWN);
        if user == 0 || waited < SHORTEST {
            return;
        }
        let one = self.waits.entry(Share::of(user)).or_insert((Account::new(now), pid, user));
        let most = MOST_SPENT.saturating_sub(one.0.left_at(now, BUDGET));
        one.0.charge(now, BUDGET, waited.min(most));
        (one.1, one.2) = (pid, user);
    }
}

static LEDGER: Mutex<Ledger> = Mutex::new(Ledger::new());
/// Whether it refuses anything, readable without the lock: to know whose a process is takes a read.
static REFUSES: AtomicBool = AtomicBool::new(false);
/// Whether somebody let readers wait and then ended.
static HAS_UNKNOWN: AtomicBool = AtomicBool::new(false);

fn ledger<T>(work: impl FnOnce(&mut Ledger, Instant) -> T) -> T {
    let mut ledger = lock(&LEDGER);
    let now = Instant::now();
    let found = work(&mut ledger, now);
    ledger.waits.retain(|_, (waits, ..)| !waits.left_at(now, BUDGET).is_zero());
    let leaves_unread = ledger.waits.values().any(|(waits, ..)| !waits.waits(now, BUDGET).is_zero());
    REFUSES.store(leaves_unread || !ledger.stuck.is_empty(), Ordering::Release);
    HAS_UNKNOWN.store(ledger.waits.contains_key(&Share::of(UNKNOWN)), Ordering::Release);
    found
}

pub(super) fn refuses(pid: u32) -> bool {
    REFUSES.load(Ordering::Acquire) && {
        let user = real_user(pid);
        ledger(|ledger, now| ledger.refuses(pid, user, now))
    }
}

/// Adds the process to the list: a thread waits for it, and nobody any longer for that thread.
pub(super) fn enter(pid: u32, since: Instant, post: Arc<Post>) {
    let user = real_user(pid);
    ledger(|ledger, now| {
        ledger.stuck.insert(pid, Held { user, since, post });
        ledger.charge(pid, user, now.saturating_duration_since(since), now);
    });
}

/// Charges the user of this process for work that is no wait, unless it was done in his own turn, which is bounded by what
/// it takes in all: who has leaked thousands of descriptors is not left unread for it.
pub(super) fn charge(pid: u32, worked: Duration, turn: Option<Share>) {
    let user = real_user(pid);
    if turn.is_some() && user.map(Share::of) == turn {
        return;
    }
    ledger(|ledger, now| ledger.charge(pid, user, worked, now));
}

/// Removes the process from the list: the thread waits no longer.
pub(super) fn answered(pid: u32, post: &Arc<Post>) {
    ledger(|ledger, _| {
        if ledger.stuck.get(&pid).is_some_and(|one| Arc::ptr_eq(&one.post, post)) {
            ledger.stuck.remove(&pid);
        }
    });
}

/// All processes that do not answer now, ordered by pid; then one of each user of whom nothing else is read because his
/// processes answer late, with what they have cost.
pub fn stuck() -> Vec<StuckProcess> {
    let row = |pid, uid, waited: Duration| StuckProcess {
        pid,
        uid,
        unanswered_ms: u64::try_from(waited.as_millis()).unwrap_or(u64::MAX),
    };
    ledger(|ledger, now| {
        let late = ledger.waits.values().filter(|(_, pid, user)| {
            *user != UNKNOWN && !ledger.stuck.contains_key(pid) && ledger.is_left_unread(*user, now)
        });
        let late = late.map(|(waits, pid, user)| row(*pid, Some(*user), waits.left_at(now, BUDGET)));
        let waited = |held: &Held| now.saturating_duration_since(held.since);
        ledger.stuck.iter().map(|(pid, held)| row(*pid, held.user, waited(held))).chain(late).collect()
    })
}

/// A reading that may keep the reader waiting.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reading {
    since: Instant,
    busy: Option<Busy>,
    user: Option<u32>,
}

impl Reading {
    pub(super) fn begin(pid: u32) -> Self {
        // One that ends while it is read has no user afterwards.
        let user = if HAS_UNKNOWN.load(Ordering::Acquire) { real_user(pid) } else { None };
        Self { since: Instant::now(), busy: busy(), user }
    }

    /// Charges the wait. Returns for how long the reader ran.
    pub(super) fn end(self, pid: u32) -> Duration {
        let took = self.since.elapsed();
        if took < SHORTEST {
            return took;
        }
        let Some((then, now)) = self.busy.zip(busy()) else { return Duration::ZERO };
        let (ran, queued) = (now.ran.saturating_sub(then.ran), now.queued.saturating_sub(then.queued));
        let user = self.user.or_else(|| real_user(pid));
        ledger(|ledger, now| ledger.charge(pid, user, took.saturating_sub(ran + queued), now));
        ran
    }
}

thread_local! {
    static ACCOUNT_OF_TIME: RefCell<Option<OwnedFd>> = const { RefCell::new(None) };
}

/// For how long a thread has run, and waited for a processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Busy {
    ran: Duration,
    queued: Duration,
}

/// The first of the file is as old as the last tick, which is longer ago than most readings take: the clock is asked.
fn busy() -> Option<Busy> {
    let ran = Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).ok()?;
    ACCOUNT_OF_TIME.with_borrow_mut(|file| {
        if file.is_none() {
            let flags = OFlags::RDONLY | OFlags::CLOEXEC;
            *file = openat(CWD, "/proc/thread-self/schedstat", flags, Mode::empty()).ok();
        }
        let mut line = Vec::with_capacity(64);
        pread(file.as_ref()?, spare_capacity(&mut line), 0).ok()?;
        Some(Busy { ran, queued: queued(&line)? })
    })
}

/// The second number: nanoseconds in the queue of a processor.
fn queued(schedstat: &[u8]) -> Option<Duration> {
    let number = std::str::from_utf8(schedstat).ok()?.split_ascii_whitespace().nth(1)?;
    number.parse().ok().map(Duration::from_nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(users: &[u32]) -> Ledger {
        let mut ledger = Ledger::new();
        for user in users {
            take(&mut ledger, *user);
        }
        ledger
    }

    fn take(ledger: &mut Ledger, user: u32) {
        let post = Post::new(None, SHORTEST);
        let pid = u32::try_from(ledger.stuck.len()).unwrap();
        ledger.stuck.insert(pid, Held { user: Some(user), since: Instant::now(), post });
    }

    /// These users try to take a place, in turn, until none of them gets one.
    fn greedy(users: &[u32]) -> Ledger {
        let mut ledger = Ledger::new();
        loop {
            let before = ledger.stuck.len();
            for user in users {
                if has_room(&ledger, *user) {
                    take(&mut ledger, *user);
                }
            }
            if ledger.stuck.len() == before {
                return ledger;
            }
        }
    }

    fn has_room(ledger: &Ledger, user: u32) -> bool {
        !ledger.is_full_for(Some(user))
    }

    #[test]
    fn users_who_take_what_they_can_leave_room_for_others() {
        for (count, most) in [(1, 29), (8, 128), (64, 236)] {
            let users: Vec<u32> = (1000..1000 + count).collect();
            let mut taken = greedy(&users);
            assert!(
                (most / 2..=most).contains(&taken.stuck.len()),
                "{count} users have {}",
                taken.stuck.len()
            );
            assert!(has_room(&taken, 5000) && has_room(&taken, 0), "{count}");
            // An honest user with a process or two that hang.
            take(&mut taken, 5000);
            assert!(has_room(&taken, 5000) || count > 8, "{count}");
        }
        let taken = greedy(&[0]);
        assert_eq!(taken.stuck.len(), MOST / 2);
        assert!(has_room(&taken, 1000));
    }

    #[test]
    fn a_range_of_numbers_has_the_places_of_one_user() {
        let range: Vec<u32> = (100_000..101_000).collect();
        let taken = greedy(&range);
        assert_eq!(taken.stuck.len(), greedy(&[1000]).stuck.len());
        assert!(!has_room(&taken, 165_535) && has_room(&taken, 165_536));
    }

    #[test]
    fn who_has_none_has_room_until_all_are_taken() {
        let all: Vec<u32> = (1..=256).collect();
        assert!(!has_room(&taken(&all), 5000));
        assert!(has_room(&taken(&all[1..]), 5000) && !has_room(&taken(&all[1..]), 7));
    }

    #[test]
    fn a_user_is_read_again_twenty_seconds_later_and_nobody_is_left_unread_for_what_has_ended() {
        let (mut ledger, now) = (Ledger::new(), Instant::now());
        for user in [Some(1000), None, Some(0)] {
            assert!((0..5).all(|_| !ledger.refuses(1, user, now)), "{user:?}");
            ledger.charge(1, user, Duration::from_secs(3600), now);
        }
        assert!(ledger.refuses(2, Some(1000), now) && !ledger.refuses(2, Some(1001), now));
        assert!(!ledger.refuses(2, None, now) && !ledger.refuses(2, Some(0), now));
        assert!(ledger.waits.contains_key(&Share::of(UNKNOWN)), "that some end while they are read");
        assert!(!ledger.refuses(2, Some(1000), now + Duration::from_secs(20)));
    }

    #[test]
    fn work_is_no_wait() {
        let all = || busy().map(|busy| busy.ran + busy.queued).unwrap();
        // Shorter than a tick of the kernel, too.
        for millis in [1, 30] {
            let before = all();
            let begin = Instant::now();
            while begin.elapsed() < Duration::from_millis(millis) {}
            let worked = all().saturating_sub(before);
            let begin = Instant::now();
            std::thread::sleep(Duration::from_millis(30));
            let slept = begin.elapsed();
            let after = all().saturating_sub(before + worked);
            assert!(worked > Duration::from_millis(millis) / 2, "{worked:?} of {millis} ms");
            assert!(after < slept, "{after:?} of {slept:?}");
        }
    }
}
