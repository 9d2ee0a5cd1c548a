//! The identity of a process, and times since the host started. A process number is reused; number and start time together
//! are not.

use std::{
    fmt,
    ops::{Add, Sub},
    time::Duration,
};

use serde::{Deserialize, Serialize};

/// A process (thread group), unique for as long as the host is up.
///
/// `start` is the start time of the thread group leader in clock ticks since boot
/// (`task_struct::group_leader->start_boottime / 10 ms`), the same number as field 22 of `/proc/PID/stat`,
/// `proc_pid_stat(5)`. It survives an exec by any thread (`de_thread()` in fs/exec.c).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ProcessId {
    /// The thread group id in the initial PID namespace.
    pub pid: u32,
    /// Start time in clock ticks (1/100 s) since boot.
    pub start: u64,
}

impl ProcessId {
    pub const fn new(pid: u32, start: u64) -> Self {
        Self { pid, start }
    }

    /// Its start time, to the clock tick (10 ms).
    pub const fn born(self) -> BootTime {
        BootTime::of_ticks(self.start)
    }
}

impl fmt::Display for ProcessId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.pid, self.start)
    }
}

/// Nanoseconds of `CLOCK_BOOTTIME`, `clock_gettime(2)`: since boot, including suspend.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct BootTime(pub u64);

/// Nanoseconds per clock tick in /proc: `USER_HZ` is 100 on every architecture that orphand is built for
/// (include/asm-generic/param.h).
const NANOS_PER_TICK: u64 = 10_000_000;

impl BootTime {
    /// The clock tick that contains this time, rounded down like `nsec_to_clock_t()` (kernel/time/time.c).
    pub const fn ticks(self) -> u64 {
        self.0 / NANOS_PER_TICK
    }

    /// The time at which a clock tick begins.
    pub const fn of_ticks(ticks: u64) -> Self {
        Self(ticks.saturating_mul(NANOS_PER_TICK))
    }

    /// The time from `earlier` to this; zero if `earlier` is later.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for BootTime {
    type Output = Self;
    fn add(self, d: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(d.as_nanos()).unwrap_or(u64::MAX)))
    }
}

impl Sub<Duration> for BootTime {
    type Output = Self;
    fn sub(self, d: Duration) -> Self {
        Self(self.0.saturating_sub(u64::try_from(d.as_nanos()).unwrap_or(u64::MAX)))
    }
}
