//! The time for which the processes of each user keep readers of /proc waiting.
//!
//! A process that answers just before a reader gives up ([`super::watch`]) is not stuck, and a user may have
//! thousands of them: one reading of all of /proc would take minutes. So the waits are added up for each
//! user (a range of numbers for containers is one user). A user whose processes cost more than [`BURST`] is left unread until the waits are forgotten, a
//! [`SHARE`]th of the time that passes. What is left unread counts as a process that does not answer.
//!
//! Only time in which the reader sleeps counts. A reader that works, or has no processor, waits for nobody. Waits
//! for processes of root do not count: they belong to many services, not to one user.

use std::{
    cell::RefCell,
    collections::BTreeMap,
    os::fd::OwnedFd,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use rustix::{
    buffer::spare_capacity,
    fs::{CWD, Mode, OFlags, openat},
    io::pread,
};

use super::{Stuck, identity::real_user, watch::PATIENCE};
use orphand_core::model::Share;

/// What a user's processes may cost before they are left unread.
const BURST: Duration = Duration::from_secs(1);
/// The most that is remembered of one user.
const MOST: Duration = Duration::from_secs(2);
/// Of twenty seconds that pass, one is forgotten.
const SHARE: u32 = 20;
/// A shorter wait is none.
const SHORTEST: Duration = Duration::from_millis(1);
/// Between two lines in the log about the same user.
const BETWEEN_LINES: Duration = Duration::from_secs(60);

/// -1, which is no user.
const UNKNOWN: u32 = u32::MAX;

static ACCOUNTS: Mutex<BTreeMap<Share, Account>> = Mutex::new(BTreeMap::new());
/// The number of accounts, readable without the lock.
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// What one user's processes have cost.
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
        self.cost = cost.saturating_add(waited.min(PATIENCE)).min(MOST);
        self.at = now;
        let is_news = self.told.is_none_or(|told| now.duration_since(told) >= BETWEEN_LINES);
        let tells = is_news && cost <= BURST && self.cost > BURST;
        if tells {
            self.told = Some(now);
        }
        tells
    }

    fn cost_at(&self, now: Instant) -> Duration {
        self.cost.saturating_sub(now.duration_since(self.at) / SHARE)
    }

    /// Whether it makes no difference any more.
    fn is_over(&self, now: Instant) -> bool {
        self.cost_at(now).is_zero() && self.told.is_none_or(|told| now.duration_since(told) >= BETWEEN_LINES)
    }
}

fn accounts() -> MutexGuard<'static, BTreeMap<Share, Account>> {
    // No code panics while it holds this lock.
    ACCOUNTS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether processes of this process's user have kept readers waiting for too long of late.
pub(super) fn refuses(pid: u32) -> bool {
    if COUNT.load(Ordering::Acquire) == 0 {
        return false;
    }
    let now = Instant::now();
    let mut accounts = accounts();
    accounts.retain(|_, account| !account.is_over(now));
    COUNT.store(accounts.len(), Ordering::Release);
    let over: Vec<Share> =
        accounts.iter().filter(|(_, one)| one.cost_at(now) > BURST).map(|(user, _)| *user).collect();
    drop(accounts);
    !over.is_empty() && real_user(pid).is_some_and(|user| over.contains(&Share::of(user)))
}

/// One process of each user who is left unread now, and what that user's processes have cost.
pub fn left_unread() -> Vec<Stuck> {
    if COUNT.load(Ordering::Acquire) == 0 {
        return Vec::new();
    }
    let now = Instant::now();
    let of = |one: &Account| Stuck { pid: one.pid, user: Some(one.user), waited: one.cost_at(now) };
    accounts().values().filter(|one| one.user != UNKNOWN && one.cost_at(now) > BURST).map(of).collect()
}

/// A reading that may keep the reader waiting.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reading {
    since: Instant,
    busy: Option<Duration>,
    user: Option<u32>,
}

impl Reading {
    /// The reading of this process begins.
    pub(super) fn begin(pid: u32) -> Self {
        // One that ends while it is read has no user afterwards. The first of these makes an account for all.
        let user = if COUNT.load(Ordering::Acquire) == 0 { None } else { real_user(pid) };
        Self { since: Instant::now(), busy: busy(), user }
    }

    /// The reading of this process is over: the wait is charged to its user.
    pub(super) fn end(self, pid: u32) {
        let now = Instant::now();
        let took = now.duration_since(self.since);
        if took < SHORTEST {
            return;
        }
        let worked = self.busy.zip(busy()).map_or(Duration::ZERO, |(then, now)| now.saturating_sub(then));
        let waited = took.saturating_sub(worked);
        let user = self.user.or_else(|| real_user(pid)).unwrap_or(UNKNOWN);
        if user == 0 || waited < SHORTEST {
            return;
        }
        let mut accounts = accounts();
        let account = accounts.entry(Share::of(user)).or_insert_with(|| Account::new(now));
        (account.pid, account.user) = (pid, user);
        let tells = account.charge(now, waited);
        COUNT.store(accounts.len(), Ordering::Release);
        drop(accounts);
        if tells {
            tracing::warn!(
                "processes of user {user} keep readers of their files in /proc waiting (process {pid} for {waited:?}): they are left \
                 unread until they cost less than a {SHARE}th of the time"
            );
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

    #[test]
    fn waits_add_up_and_are_forgotten() {
        let begin = Instant::now();
        let mut account = Account::new(begin);
        let wait = Duration::from_millis(200);
        let told: Vec<bool> = (0..7).map(|_| account.charge(begin, wait)).collect();
        assert_eq!(told, [false, false, false, false, false, true, false]);
        assert_eq!(account.cost_at(begin), wait * 7);
        assert_eq!(account.cost_at(begin + BURST * SHARE), Duration::from_millis(400));
        assert!(!account.is_over(begin + wait * 7 * SHARE), "the log has a line about it");
        assert!(account.is_over(begin + BETWEEN_LINES));
        assert!(
            !account.charge(begin + wait * 7 * SHARE, BURST * 9),
            "one wait counts as long as a reader waits"
        );
        assert_eq!(account.cost, PATIENCE);
        assert!((0..100).all(|_| !account.charge(begin + wait * 7 * SHARE, PATIENCE)), "a line a minute");
        assert_eq!(account.cost, MOST);
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

    #[test]
    fn the_kernels_account_is_read() {
        assert_eq!(parse(b"2000 300 7\n"), Some(Duration::from_nanos(2300)));
        assert_eq!((parse(b""), parse(b"5\n"), parse(b"a b c")), (None, None, None));
    }
}
