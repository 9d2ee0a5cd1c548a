//! The input and the output of a case: events, facts about the world, and actions.

use std::{collections::BTreeSet, time::Duration};

use super::{Failure, Pace, Reason};
use crate::model::{BootTime, ContainerId, Doubt, Evidence, Guard, ProcessId, Signal, SignalError};

/// What happens to a case. "It" is the server or the agent of the case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// It may have been left behind.
    Suspected {
        /// What opened the case.
        reason: Reason,
        /// Since when.
        since: BootTime,
        /// The end of the grace period.
        deadline: BootTime,
    },
    /// It has an owner that is alive.
    OwnerFound,
    /// Its session has not expired after all.
    SessionLives,
    /// A person asked to end it.
    Asked,
    /// The time that was last set with [`Action::SetDeadline`] has come.
    DeadlineReached,
    /// The host was inspected, and everything that matters was seen.
    Inspected(Box<Finding>),
    /// The host was inspected, and nothing follows from it.
    Inconclusive {
        /// How long to wait before the next inspection.
        again: Duration,
    },
    /// What the last inspection allowed is done now ([`Action::Proceed`]).
    Proceed,
    /// A signal was not sent.
    SignalRefused {
        /// The process that did not get the signal.
        process: ProcessId,
        /// The signal that was not sent.
        signal: Signal,
        /// Why it was not sent.
        refusal: Refusal,
        /// Whether no other process of it remains that may be signalled and did not refuse a signal.
        last: bool,
    },
    /// A process of it forked.
    NewChild {
        /// The new process.
        process: ProcessId,
    },
    /// Another configuration is in effect.
    RulesChanged,
    /// Another process ended that may have been the reason why it stays.
    OtherEnded,
    /// All of its processes have ended.
    Ended,
}

/// Why a signal was not sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The process may not be the one that was judged, or file descriptors or memory ran out. Inspect, then try again.
    Retryable,
    /// The system refused. The signal is not tried again.
    Final {
        /// The error message.
        error: String,
        /// The errno(3) value.
        errno: i32,
    },
}

impl Refusal {
    /// Why a signal was not sent, from the error. `None` if the process has exited: its exit record, and the records
    /// of what it forked before, are still to be read.
    pub fn of(error: SignalError) -> Option<Self> {
        match error {
            SignalError::Gone => None,
            SignalError::Unsure { .. } | SignalError::NoRoom { .. } => Some(Self::Retryable),
            SignalError::System { errno, message } => Some(Self::Final { error: message, errno }),
        }
    }
}

/// What an inspection found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Finding {
    /// Whether it works for a living process. That process is its owner.
    pub has_owner: bool,
    /// Whether the kernel is still closing the files of the dead owner.
    pub too_early: bool,
    /// The evidence that it is an orphan.
    pub evidence: Vec<Evidence>,
    /// The doubts: what keeps that from being proven.
    pub doubts: Vec<Doubt>,
    /// The guards: what forbids ending it.
    pub guards: Vec<Guard>,
    /// The container that has to be stopped instead of a signal to its client.
    pub container: Option<ContainerId>,
    /// Resident memory in bytes.
    pub rss_bytes: u64,
    /// Proportional memory in bytes, where it could be read.
    pub pss_bytes: Option<u64>,
    /// The session ids of the main process and its launch chain.
    pub sessions: BTreeSet<u32>,
    /// The processes that are tied to them.
    pub tied: BTreeSet<ProcessId>,
}

/// What is known of the owner.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Owner {
    /// It has no owner, or its owner is unknown.
    #[default]
    Unknown,
    /// The owner is alive.
    Alive,
    /// The owner exited at this time.
    Exited(BootTime),
}

/// The facts that a step may use.
#[derive(Clone, Debug)]
pub struct Facts<'a> {
    /// The time of the step.
    pub now: BootTime,
    /// The delays between the steps.
    pub pace: Pace,
    /// What is known of the owner.
    pub owner: Owner,
    /// Whether the owner is still being sought.
    pub owner_wanted: bool,
    /// Whether records were lost and the lineage has not been repaired yet.
    pub doubtful: bool,
    /// Whether its main process exited by itself. In that case what it left is inspected in every phase.
    pub main_ended: bool,
    /// The process that identifies it. That process may have exited.
    pub known_by: ProcessId,
    /// The main process, if it is alive.
    pub main_process: Option<ProcessId>,
    /// The living processes that may be signalled, children before their parents. Given for [`Event::Proceed`] and
    /// [`Event::NewChild`]; empty for others.
    pub targets: Vec<ProcessId>,
    /// Processes that the inspection did not see in their present state. They get no signal for it.
    pub unseen: &'a BTreeSet<ProcessId>,
}

/// What the engine has to do. The order of actions matters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Inspect the host.
    Inspect,
    /// Send [`Event::DeadlineReached`] at this time. It replaces the time that was set before; `None` sets no time.
    SetDeadline(Option<BootTime>),
    /// Make the living process that the inspection found the owner. If the case is not over by that, send
    /// [`Event::OwnerFound`].
    AdoptOwner,
    /// Take its memory from this inspection.
    UpdateMemory,
    /// Keep its present view. It is shown when it has ended.
    KeepView,
    /// Remove from it the processes that the inspection found to be let go.
    Release,
    /// Send [`Event::Proceed`], with fresh facts.
    Proceed,
    /// Send [`Event::Ended`] if nothing is left of it after a release.
    EndIfGone,
    /// Send a signal.
    Signal {
        /// The process to signal.
        process: ProcessId,
        /// The signal to send.
        signal: Signal,
    },
    /// Have a container stopped by its engine.
    StopContainer(ContainerId),
    /// Store this. The actions that follow rely on it being stored.
    Persist(Record),
    /// Store this and report it.
    Announce(Announcement),
    /// The case and its subject are over.
    Close(Outcome),
}

/// What is stored without being reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Record {
    /// What is known of it.
    Subject,
    /// The first signal is about to be sent.
    Terminating,
}

/// What is stored and reported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Announcement {
    /// It has an owner, so the case is closed.
    Cleared {
        /// When the case was opened.
        since: BootTime,
    },
    /// Its session has not expired after all, so the case is closed.
    SessionLives {
        /// When the case was opened.
        since: BootTime,
    },
    /// It is unproven, or its doubts have changed.
    Unproven,
    /// It is an orphan.
    Orphan {
        /// The earliest time at which this could have been reported.
        due: BootTime,
        /// Whether this was announced before, and a doubt came up in between.
        again: bool,
    },
    /// A guard forbids ending it. This is reported and not stored.
    Spared {
        /// The guards.
        guards: Vec<Guard>,
    },
    /// It could not be ended.
    Failed {
        /// The first failure.
        failure: Failure,
        /// How many processes could not be ended.
        failed: u64,
    },
}

/// How it ended, when its last process has exited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// There was no case.
    Exited,
    /// It ended by itself before anything was proven.
    Cleared {
        /// When the case was opened.
        since: BootTime,
    },
    /// It ended by itself, as an orphan.
    OrphanExited {
        /// Resident memory at the verdict, in bytes.
        rss_bytes: u64,
    },
    /// orphand ended it.
    Reaped {
        /// The strongest signal that was needed.
        signal: Signal,
        /// When the first one was sent.
        first_signal: BootTime,
        /// Resident memory at the verdict, in bytes.
        rss_bytes: u64,
        /// Proportional memory at the verdict, in bytes.
        pss_bytes: Option<u64>,
        /// Whether a person asked to end it.
        asked: bool,
    },
}
