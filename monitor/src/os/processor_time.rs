//! Processor time: what a piece of work costs, on whatever threads and in whatever processes it is done.
//!
//! Invariant: what was spent on behalf of a thread is counted once, by the [`Meter`] of that thread.

use std::{cell::Cell, fs, time::Duration};

use rustix::time::{ClockId, clock_gettime};

thread_local! {
    /// What other threads and processes spent on behalf of this one.
    static ELSEWHERE: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

/// Measures what the calling thread spends from now on.
#[derive(Debug)]
pub struct Meter(Duration);

impl Meter {
    pub fn begin() -> Self {
        Self(spent())
    }

    /// What was spent since, with what was [added](add).
    pub fn spent(&self) -> Duration {
        spent().saturating_sub(self.0)
    }
}

fn spent() -> Duration {
    let own = Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default();
    own.saturating_add(ELSEWHERE.get())
}

/// So much was spent elsewhere on behalf of the calling thread.
pub fn add(cost: Duration) {
    ELSEWHERE.set(ELSEWHERE.get().saturating_add(cost));
}

/// What a process with one thread has spent, until it is waited for; `None` if the kernel keeps no account.
pub fn of_process(pid: u32) -> Option<Duration> {
    let account = fs::read_to_string(format!("/proc/{pid}/schedstat")).ok()?;
    account.split(' ').next()?.parse().ok().map(Duration::from_nanos)
}

/// Whether it runs, or waits for a processor.
pub fn is_running(pid: u32) -> bool {
    let line = fs::read_to_string(format!("/proc/{pid}/stat"));
    line.is_ok_and(|line| line.rsplit(')').next().is_some_and(|rest| rest.starts_with(" R")))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn what_others_spend_counts() {
        let meter = Meter::begin();
        add(Duration::from_secs(5));
        assert!(meter.spent() >= Duration::from_secs(5));
        assert!(Meter::begin().spent() < Duration::from_secs(5));
    }

    #[test]
    fn a_process_that_has_ended_still_tells() {
        let mut child =
            Command::new("sh").args(["-c", "while [ $((n+=1)) -lt 50000 ]; do :; done"]).spawn().unwrap();
        let pid = rustix::process::Pid::from_raw(child.id().cast_signed()).unwrap();
        let ended = rustix::process::WaitIdOptions::EXITED | rustix::process::WaitIdOptions::NOWAIT;
        rustix::process::waitid(rustix::process::WaitId::Pid(pid), ended).unwrap();
        assert!(of_process(child.id()).unwrap() > Duration::from_millis(1));
        child.wait().unwrap();
        assert_eq!(of_process(u32::MAX), None);
    }
}
