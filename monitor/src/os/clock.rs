//! Time: the clock that the kernel stamps its records with, and a timer on that clock.
//!
//! Invariant: every decision uses `CLOCK_BOOTTIME`. The wall clock only names times to users, through an
//! offset that is read once. For the daemon's shell; the core gets the time as an argument.

use std::{
    ffi::OsStr,
    io,
    os::{fd::OwnedFd, unix::ffi::OsStrExt as _},
    sync::OnceLock,
    time::Duration,
};

use anyhow::{Context as _, Result};
use jiff::tz::TimeZone;
use rustix::time::{
    ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, clock_gettime,
    timerfd_create, timerfd_settime,
};
use tokio::io::{Interest, unix::AsyncFd};

use crate::os::readable;
use orphand_core::model::BootTime;

const NANOS: u64 = 1_000_000_000;

pub fn now() -> BootTime {
    BootTime(nanos(clock_gettime(ClockId::Boottime)))
}

/// The present time of `CLOCK_MONOTONIC` in nanoseconds, in which the host's sleep does not count.
pub fn awake() -> u64 {
    nanos(clock_gettime(ClockId::Monotonic))
}

/// For how long the host has been asleep since it was booted.
pub fn asleep() -> Duration {
    // Read first, so that a pause between the two makes it less.
    let all = now().0;
    Duration::from_nanos(all.saturating_sub(awake()))
}

/// The present difference between the wall clock and `CLOCK_BOOTTIME` in nanoseconds: added to a [`BootTime`]
/// it gives nanoseconds since 1970. If the wall clock is set later, the order of events does not change.
pub fn realtime_offset() -> i64 {
    // The two readings that are closest together have the smallest error, some tens of nanoseconds.
    let best = (0..5).map(|_| {
        let before = now().0;
        let real = nanos(clock_gettime(ClockId::Realtime));
        let after = now().0;
        (
            after.saturating_sub(before),
            real.cast_signed() - (before + after.saturating_sub(before) / 2).cast_signed(),
        )
    });
    let offset = best.min_by_key(|(width, _)| *width).map_or(0, |(_, offset)| offset);
    FIRST.get_or_init(|| (now(), offset));
    offset
}

/// When this program first asked for the offset, and what it was.
static FIRST: OnceLock<(BootTime, i64)> = OnceLock::new();

/// What the wall clock showed at `then`, in nanoseconds since 1970, or later than that: it may have been set since. None of what
/// was before this program first looked: nobody knows how the clock was set until then.
pub fn wall_time_at_the_earliest(then: BootTime) -> Option<i64> {
    let offset = realtime_offset();
    at_the_earliest(*FIRST.get()?, offset, then)
}

fn at_the_earliest((asked, first): (BootTime, i64), offset: i64, then: BootTime) -> Option<i64> {
    (then >= asked).then(|| then.0.cast_signed().saturating_add(first.min(offset)))
}

/// The time zone of whoever asks. `TZ` may name any file, and all of it would be read: where that is no ordinary file, or a
/// large one, times are in UTC.
pub fn zone() -> TimeZone {
    const LARGEST: u64 = 1 << 20;
    let named = std::env::var_os("TZ").unwrap_or_default();
    let path = named.as_bytes().strip_prefix(b":").unwrap_or(named.as_bytes());
    match std::fs::metadata(OsStr::from_bytes(path)) {
        Ok(found) if !found.is_file() || found.len() > LARGEST => TimeZone::UTC,
        _ => TimeZone::system(),
    }
}

fn nanos(time: Timespec) -> u64 {
    // For the clocks above, neither field is ever negative.
    time.tv_sec.unsigned_abs().saturating_mul(NANOS).saturating_add(time.tv_nsec.unsigned_abs())
}

/// One deadline on `CLOCK_BOOTTIME` for a tokio task. The sleep of the host counts: what passed meanwhile expires at wake-up.
#[derive(Debug)]
pub struct Timer {
    fd: AsyncFd<OwnedFd>,
}

impl Timer {
    /// A timer without a deadline. The caller must be inside a tokio runtime.
    pub fn new() -> Result<Self> {
        timerfd_create(TimerfdClockId::Boottime, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)
            .map_err(io::Error::from)
            .and_then(readable)
            .map(|fd| Self { fd })
            .context("cannot create a timer on CLOCK_BOOTTIME")
    }

    /// Sets, replaces or removes the deadline. A deadline in the past expires at once.
    pub fn set(&self, deadline: Option<BootTime>) -> Result<()> {
        // The value zero means "disarm". A deadline of zero has passed, as has one of 1 ns.
        let nanos = deadline.map_or(0, |BootTime(nanos)| nanos.max(1));
        let it_value = Timespec {
            tv_sec: i64::try_from(nanos / NANOS).unwrap_or(i64::MAX),
            tv_nsec: i64::try_from(nanos % NANOS).unwrap_or_default(),
        };
        let spec = Itimerspec { it_interval: Timespec::default(), it_value };
        timerfd_settime(self.fd.get_ref(), TimerfdTimerFlags::ABSTIME, &spec)
            .map(drop)
            .context("cannot set a timer on CLOCK_BOOTTIME")
    }

    /// Returns when the deadline has come, once for each. Cancel-safe: the expiry is consumed in the poll that returns it.
    pub async fn expired(&self) -> Result<()> {
        let take = |fd: &OwnedFd| Ok(rustix::io::read(fd, &mut [0; 8])?);
        let taken = self.fd.async_io(Interest::READABLE, take).await;
        taken.map(drop).context("cannot wait for a timer on CLOCK_BOOTTIME")
    }
}

#[cfg(test)]
mod tests {
    use std::time::{SystemTime, UNIX_EPOCH};

    use super::*;

    const SHORT: Duration = Duration::from_millis(5);
    const LONG: Duration = Duration::from_secs(3600);

    #[test]
    fn the_offset_leads_to_the_wall_clock() {
        let ours = i128::from(now().0) + i128::from(realtime_offset());
        let wall = i128::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos()).unwrap();
        assert!((ours - wall).abs() < 1_000_000_000, "{ours} {wall}");
    }

    #[test]
    fn a_clock_that_was_set_makes_nothing_later_than_it_was() {
        let first = (BootTime(100), 1_000);
        assert_eq!(at_the_earliest(first, 1_000, BootTime(150)), Some(1_150));
        assert_eq!(at_the_earliest(first, 9_000, BootTime(150)), Some(1_150), "set forward");
        assert_eq!(at_the_earliest(first, 500, BootTime(150)), Some(650), "set back");
        assert_eq!(at_the_earliest(first, 1_000, BootTime(99)), None, "before the first look");
    }

    #[tokio::test]
    async fn a_deadline_expires_once_and_not_early() {
        let timer = Timer::new().unwrap();
        let deadline = now() + SHORT;
        timer.set(Some(deadline)).unwrap();
        timer.expired().await.unwrap();
        assert!(now() >= deadline);
        assert!(tokio::time::timeout(SHORT, timer.expired()).await.is_err());
    }

    #[tokio::test]
    async fn one_in_the_past_expires_at_once_even_at_boot() {
        let timer = Timer::new().unwrap();
        for past in [BootTime(0), BootTime(1), now() - SHORT] {
            timer.set(Some(past)).unwrap();
            timer.expired().await.unwrap();
        }
    }

    #[tokio::test]
    async fn a_deadline_that_came_is_forgotten_when_another_is_set() {
        let timer = Timer::new().unwrap();
        timer.set(Some(BootTime(1))).unwrap();
        // The runtime learns of the expiry, and the test does not consume it.
        drop(timer.fd.readable().await.unwrap());
        timer.set(Some(now() + LONG)).unwrap();
        assert!(tokio::time::timeout(SHORT, timer.expired()).await.is_err());
        timer.set(None).unwrap();
        assert!(tokio::time::timeout(SHORT, timer.expired()).await.is_err());
    }

    #[tokio::test]
    async fn a_cancelled_wait_loses_nothing() {
        let timer = Timer::new().unwrap();
        timer.set(Some(now() + 4 * SHORT)).unwrap();
        // The wait is cancelled repeatedly until the deadline. The expiry is still there to consume.
        while tokio::time::timeout(SHORT / 5, timer.expired()).await.is_err() {}
    }
}
