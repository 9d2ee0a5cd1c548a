//! How long a case waits for what.

use std::time::Duration;

/// After an inspection that failed or was not answered, and after a signal that was not sent because of a doubt.
pub const INSPECT_AGAIN: Duration = Duration::from_secs(1);
/// Until the files of an owner that has just exited are closed.
pub(super) const CLOSING: Duration = Duration::from_millis(100);
/// Until a deadline that came while the lineage was being repaired is looked at again.
pub(super) const WHILE_REPAIRED: Duration = Duration::from_millis(50);

/// A delay that doubles while nothing new is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// The first delay.
    pub first: Duration,
    /// The longest one.
    pub most: Duration,
}

impl Backoff {
    /// The delay after so many inspections in a row that found nothing new.
    pub fn after(self, inspections: u32) -> Duration {
        self.first.saturating_mul(1 << inspections.min(10)).min(self.most)
    }
}

/// How long the case of a server or an agent waits for what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// From the owner's exit to the first inspection.
    pub grace: Duration,
    /// Between inspections of one that is spared.
    pub spared: Backoff,
    /// Between inspections of one that is unproven: a doubt may go at any moment.
    pub unproven: Backoff,
    /// What the main process has for itself after SIGTERM: it closes its browser and unlinks its pid file.
    pub main_process: Duration,
    /// What the rest has after that, until it is killed. Absent for what is one process only.
    pub rest: Option<Duration>,
    /// Between two rounds of SIGKILL: what was forked meanwhile is in the next one.
    pub kill_every: Duration,
    /// Rounds after which what is left counts as one that cannot be killed. Absent: nobody gives up.
    pub kill_rounds: Option<u32>,
}

const MOST: Duration = Duration::from_secs(600);

impl Pace {
    /// The pace of a server.
    pub fn server(grace: Duration, term_timeout: Duration) -> Self {
        let main_process = Duration::from_secs(1).min(term_timeout / 5);
        Self {
            grace,
            spared: Backoff { first: Duration::from_secs(30), most: MOST },
            unproven: Backoff { first: Duration::from_secs(5), most: MOST },
            main_process,
            // Not counted from the first signal of all: a guard may have stopped an earlier try long ago.
            rest: Some(term_timeout.saturating_sub(main_process)),
            kill_every: Duration::from_millis(50),
            kill_rounds: Some(100),
        }
    }

    /// The pace of an agent: one process, whose unit may be stopped only later, or a guard go.
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
