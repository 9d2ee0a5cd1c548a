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
//! [`BURST`] is left unread until the waits are forgotten, a [`SHARE`]th of the time that passes. What is left unread
//! counts as a process that does not answer. Only time in which the reader sleeps counts: a reader that works, or has no
//! processor, waits for nobody. Waits for processes of root do not count: they belong to many services, not to one user.

use std::{
    cell::RefCell,
    collections::BTreeMap,
    os::fd::OwnedFd,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use rustix::{
    buffer::spare_capacity,
    fs::{CWD, Mode, OFlags, openat},
    io::pread,
};

use super::{identity::real_user, watch::Post};
use orphand_core::model::Share;

/// The most threads that may wait in total; each costs some 20 KiB. The unit's `TasksMax` leaves room for
/// them.
const MOST: usize = 256;
/// A user may take a place as long as he has fewer than this part of the free ones, or none: alone 29.
const PART: usize = 8;
/// The same of root (user 0), whose processes belong to many services: alone 128.
const PART_OF_ROOT: usize = 1;

/// What a user's processes may cost before they are left unread.
const BURST: Duration = Duration::from_secs(1);
/// The most that is remembered of one user.
const MOST_COST: Duration = Duration::from_secs(2);
/// Of twenty seconds that pass, one is forgotten.
const SHARE: u32 = 20;
/// A shorter wait is none.
const SHORTEST: Duration = Duration::from_millis(1);
/// Between two lines in the log about the same user.
const BETWEEN_LINES: Duration = Duration::from_secs(60);
/// -1, which is no user.
const UNKNOWN: u32 = u32::MAX;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stuck {
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

#[derive(Clone, Copy, Debug)]
struct Account {
    cost: Duration,
    at: Instant,
    told: Option<Instant>,
    /// The process that was waited for last, and its user: one of those with this account.
    pid: u32,
    user: u32,
}

impl Account {
    const fn new(at: Instant) -> Self {
        Self { cost: Duration::ZERO, at, told: None, pid: 0, user: UNKNOWN }
    }

    /// Forgets some, and adds a wait. Returns whether the log should say that this user is left unread now.
    fn charge(&mut self, now: Instant, waited: Duration) -> bool {
        let cost = self.cost_at(now);
        self.cost = cost.saturating_add(waited).min(MOST_COST);
        self.at = now;
        let tells = self.may_tell(now) && cost <= BURST && self.cost > BURST;
        if tells {
            self.told = Some(now);
        }
        tells
    }

    fn cost_at(&self, now: Instant) -> Duration {
        self.cost.saturating_sub(now.duration_since(self.at) / SHARE)
    }

    fn may_tell(&self, now: Instant) -> bool {
        self.told.is_none_or(|told| now.duration_since(told) >= BETWEEN_LINES)
    }
}

#[derive(Debug)]
struct Ledger {
    stuck: BTreeMap<u32, Held>,
    accounts: BTreeMap<Share, Account>,
}

static LEDGER: Mutex<Ledger> = Mutex::new(Ledger { stuck: BTreeMap::new(), accounts: BTreeMap::new() });
/// Whether there is something in it, readable without the lock.
static IN_USE: AtomicBool = AtomicBool::new(false);

fn ledger<T>(work: impl FnOnce(&mut Ledger) -> T) -> T {
    // No code panics while it holds this lock.
    let mut ledger = LEDGER.lock().unwrap_or_else(PoisonError::into_inner);
    let found = work(&mut ledger);
    IN_USE.store(!(ledger.stuck.is_empty() && ledger.accounts.is_empty()), Ordering::Release);
    found
}

impl Ledger {
    /// The users whose processes must not be read now; `None` if this process must not be, whoever has it.
    fn refused(&mut self, pid: u32, now: Instant) -> Option<Vec<Option<Share>>> {
        self.accounts.retain(|_, one| !(one.cost_at(now).is_zero() && one.may_tell(now)));
        if self.stuck.contains_key(&pid) || self.stuck.len() >= MOST {
            return None;
        }
        let mut users = full(self.stuck.values().map(|one| one.user));
        users.extend(self.spent(now).map(|(user, _)| Some(*user)));
        Some(users)
    }

    fn spent(&self, now: Instant) -> impl Iterator<Item = (&Share, &Account)> {
        self.accounts.iter().filter(move |(_, one)| one.cost_at(now) > BURST)
    }
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

/// Whether this process must not be read now.
pub(super) fn refuses(pid: u32) -> bool {
    if !IN_USE.load(Ordering::Acquire) {
        return false;
    }
    let users = ledger(|ledger| ledger.refused(pid, Instant::now()));
    users.is_none_or(|users| !users.is_empty() && users.contains(&real_user(pid).map(Share::of)))
}

/// Adds the process to the list: a thread waits for it, and nobody any longer for that thread.
pub(super) fn enter(pid: u32, since: Instant, post: Arc<Post>) {
    let user = real_user(pid);
    _ = ledger(|ledger| ledger.stuck.insert(pid, Held { user, since, post }));
    charge(pid, user, since.elapsed());
}

/// Removes the process from the list: the thread waits no longer.
pub(super) fn answered(pid: u32, post: &Arc<Post>) {
    ledger(|ledger| {
        if ledger.stuck.get(&pid).is_some_and(|one| Arc::ptr_eq(&one.post, post)) {
            ledger.stuck.remove(&pid);
        }
    });
}

fn charge(pid: u32, user: Option<u32>, waited: Duration) {
    let (user, now) = (user.unwrap_or(UNKNOWN), Instant::now());
    if user == 0 || waited < SHORTEST {
        return;
    }
    let tells = ledger(|ledger| {
        let account = ledger.accounts.entry(Share::of(user)).or_insert_with(|| Account::new(now));
        (account.pid, account.user) = (pid, user);
        account.charge(now, waited)
    });
    if tells {
        tracing::warn!(
            "processes of user {user} keep readers of their files in /proc waiting (process {pid} for {waited:?}): they are left \
             unread until they cost less than a {SHARE}th of the time"
        );
    }
}

/// All processes that do not answer now, ordered by pid.
pub fn stuck() -> Vec<Stuck> {
    let one = |(pid, held): (&u32, &Held)| Stuck { pid: *pid, user: held.user, waited: held.since.elapsed() };
    ledger(|ledger| ledger.stuck.iter().map(one).collect())
}

/// One process of each user who is left unread now, and what that user's processes have cost.
pub fn left_unread() -> Vec<Stuck> {
    let now = Instant::now();
    let of = |one: &Account| Stuck { pid: one.pid, user: Some(one.user), waited: one.cost_at(now) };
    ledger(|ledger| ledger.spent(now).map(|(_, one)| one).filter(|one| one.user != UNKNOWN).map(of).collect())
}

/// A reading that may keep the reader waiting.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reading {
    since: Instant,
    busy: Option<Duration>,
    user: Option<u32>,
}

impl Reading {
    pub(super) fn begin(pid: u32) -> Self {
        // One that ends while it is read has no user afterwards. The first of these makes an account for all.
        let user = if IN_USE.load(Ordering::Acquire) { real_user(pid) } else { None };
        Self { since: Instant::now(), busy: busy(), user }
    }

    /// The reading of this process is over: the wait is charged to its user.
    pub(super) fn end(self, pid: u32) {
        let took = self.since.elapsed();
        if took >= SHORTEST {
            let worked = self.busy.zip(busy()).map_or(Duration::ZERO, |(then, now)| now.saturating_sub(then));
            charge(pid, self.user.or_else(|| real_user(pid)), took.saturating_sub(worked));
        }
    }
}

thread_local! {
    static ACCOUNT_OF_TIME: RefCell<Option<OwnedFd>> = const { RefCell::new(None) };
}

/// For how long this thread has run, or waited for a processor.
fn busy() -> Option<Duration> {
    ACCOUNT_OF_TIME.with_borrow_mut(|file| {
        if file.is_none() {
            let flags = OFlags::RDONLY | OFlags::CLOEXEC;
            *file = openat(CWD, "/proc/thread-self/schedstat", flags, Mode::empty()).ok();
        }
        let mut line = Vec::with_capacity(64);
        pread(file.as_ref()?, spare_capacity(&mut line), 0).ok()?;
        parse(&line)
    })
}

/// The first two numbers: nanoseconds on a processor, and in the queue of one.
fn parse(schedstat: &[u8]) -> Option<Duration> {
    let mut numbers = std::str::from_utf8(schedstat).ok()?.split_ascii_whitespace().map(str::parse::<u64>);
    let (ran, queued) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
    Some(Duration::from_nanos(ran.saturating_add(queued)))
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

    #[test]
    fn waits_add_up_and_are_forgotten() {
        let begin = Instant::now();
        let mut account = Account::new(begin);
        let wait = Duration::from_millis(200);
        let told: Vec<bool> = (0..7).map(|_| account.charge(begin, wait)).collect();
        assert_eq!(told, [false, false, false, false, false, true, false]);
        assert_eq!(account.cost_at(begin), wait * 7);
        assert_eq!(account.cost_at(begin + BURST * SHARE), Duration::from_millis(400));
        let later = begin + wait * 7 * SHARE;
        assert!(account.cost_at(later).is_zero() && !account.may_tell(later), "the log has a line about it");
        assert!(account.may_tell(begin + BETWEEN_LINES));
        assert!((0..100).all(|_| !account.charge(later, wait)), "a line a minute");
        assert_eq!(account.cost, MOST_COST);
    }

    #[test]
    fn work_is_no_wait() {
        let before = busy().unwrap();
        let begin = Instant::now();
        while begin.elapsed() < Duration::from_millis(30) {}
        let worked = busy().unwrap().saturating_sub(before);
        let begin = Instant::now();
        std::thread::sleep(Duration::from_millis(30));
        let slept = begin.elapsed();
        let after = busy().unwrap().saturating_sub(before + worked);
        assert!(worked > Duration::from_millis(15), "{worked:?}");
        assert!(after < slept, "{after:?} of {slept:?}");
    }
}
