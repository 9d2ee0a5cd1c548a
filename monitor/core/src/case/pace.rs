//! The delays of a case: how long it waits before each step.

use std::time::Duration;

/// After an inspection that failed or was not answered, and after a signal that was not sent because of a doubt.
pub const INSPECT_AGAIN: Duration = Duration::from_secs(1);
/// The time for the kernel to close the files of an owner that has just exited.
pub(super) const CLOSING: Duration = Duration::from_millis(100);
/// The delay after a deadline that came while the lineage was being repaired.
pub(super) const WHILE_REPAIRED: Duration = Duration::from_millis(50);

/// A delay that doubles with each inspection that finds nothing new.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    pub first: Duration,
    /// The longest delay.
    pub most: Duration,
}

impl Backoff {
    /// The delay after this number of inspections in a row that found nothing new.
    pub fn after(self, inspections: u32) -> Duration {
        self.first.saturating_mul(1 << inspections.min(10)).min(self.most)
    }
}

/// The delays of the case of a server or an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// From the owner's exit to the first inspection.
    pub grace: Duration,
    /// Between inspections of an orphan that is spared.
    pub spared: Backoff,
    /// Between inspections while it is unproven: a doubt may disappear at any moment.
    pub unproven: Backoff,
    /// From SIGTERM to the main process to the next step. In this time it closes its browser and unlinks its pid
    /// file.
    pub main_process: Duration,
    /// From SIGTERM to the rest to SIGKILL. Absent if there is only one process.
    pub rest: Option<Duration>,
    /// Between two rounds of SIGKILL. What was forked meanwhile is killed in the next round.
    pub kill_every: Duration,
    /// After this number of rounds, what is left counts as impossible to kill. Absent: there is no limit.
    pub kill_rounds: Option<u32>,
}

const MOST: Duration = Duration::from_secs(600);

impl Pace {
    /// The delays of the case of a server.
    pub fn server(grace: Duration, term_timeout: Duration) -> Self {
        let main_process = Duration::from_secs(1).min(term_timeout / 5);
        Self {
            grace,
            spared: Backoff { first: Duration::from_secs(30), most: MOST },
            unproven: Backoff { first: Duration::from_secs(5), most: MOST },
            main_process,
            // The time is not counted from the very first signal: a guard may have stopped an earlier attempt long
            // ago.
            rest: Some(term_timeout.saturating_sub(main_process)),
            kill_every: Duration::from_millis(50),
            kill_rounds: Some(100),
        }
    }

    /// The delays of the case of an agent. An agent is one process; its unit may be stopped later, and a guard may
    /// disappear later.
    pub fn agent(grace: Duration, term_timeout: Duration) -> Self {
        let minute = Duration::from_secs(60);
        Self {
            grace,
            spared: Backoff { first: minute, most: minute },
            unproven: Backoff { first: minute, most: minute },
            main_process: term_timeout,
            rest: None,
            kill_every: minute,
            kill_rounds: None,
        }
    }
}
