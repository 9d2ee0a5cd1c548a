//! The report of a runner to the daemon about one run, with its outcome and its log message. Without side
//! effects.

use std::fmt;

use rustix::process::WaitStatus;
use serde::{Deserialize, Serialize};

use orphand_core::model::text;

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum End {
    /// The hook could not be started.
    NotStarted { why: String },
    /// The hook called exit(2), and none of its processes was left.
    Exited { code: i32 },
    /// A signal that the runner did not send ended the hook.
    Signalled { signal: i32 },
    /// The time limit was reached. `exited`: the hook itself had exited, and only other processes of it were
    /// left.
    TimedOut { exited: bool },
    /// The daemon stops and could not wait longer.
    Stopped,
}

impl Default for End {
    fn default() -> Self {
        Self::NotStarted { why: "nobody saw its end".to_owned() }
    }
}

impl End {
    pub(super) fn of(status: WaitStatus) -> Self {
        match (status.exit_status(), status.terminating_signal()) {
            (Some(code), _) => Self::Exited { code },
            (None, Some(signal)) => Self::Signalled { signal },
            (None, None) => Self::default(),
        }
    }
}

/// The result of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Report {
    pub(super) end: End,
    /// The number of processes that had to be killed.
    pub(super) killed: u64,
    /// The number of processes that could not be killed.
    pub(super) left: u64,
    /// The beginning of the hook's standard error.
    pub(super) said: String,
}

impl Report {
    /// The outcome that the run is counted by.
    pub(super) const fn outcome(&self) -> &'static str {
        match &self.end {
            End::Exited { code: 0 } => "ok",
            End::NotStarted { .. } | End::Exited { .. } | End::Signalled { .. } => "failed",
            End::TimedOut { .. } => "timed_out",
            End::Stopped => "stopped",
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let killed = text::count(self.killed, "process", "processes");
        match &self.end {
            End::NotStarted { why } => write!(f, "it could not be started: {}", text::sanitise(why))?,
            End::Exited { code } => write!(f, "it ended with status {code}")?,
            End::Signalled { signal } => write!(f, "it was ended by signal {signal}")?,
            End::TimedOut { exited: false } => write!(f, "it took too long, killed ({killed})")?,
            End::TimedOut { exited: true } => {
                write!(
                    f,
                    "it ended, but what it had left in the background took too long, killed ({killed})"
                )?;
            }
            End::Stopped => write!(f, "the daemon stops, killed ({killed})")?,
        }
        if self.left > 0 {
            let left = text::count(self.left, "process", "processes");
            write!(f, "; {left} could not be killed")?;
        }
        match self.said.trim() {
            "" => Ok(()),
            said => write!(f, "; it said: {}", text::sanitise(said)),
        }
    }
}
