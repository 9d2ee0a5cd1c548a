//! The identity of a process. A process number is reused; number and start time together are not.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::BootTime;

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
