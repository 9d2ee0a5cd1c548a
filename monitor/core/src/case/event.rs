//! What happens to a case, what the world says, and what is to be done.

use std::{collections::BTreeSet, time::Duration};

use super::{Failure, Pace, Reason};
use crate::model::{BootTime, Doubt, Evidence, Guard, ProcessId, Signal, SignalError};

/// What happens to a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// It may have been left behind.
    Suspected {
        /// Why.
        reason: Reason,
        /// Since when.
        since: BootTime,
        /// When the grace ends.
        deadline: BootTime,
    },
    /// It has an owner that is alive.
    OwnerFound,
    /// A person asked to end it.
    Asked,
    /// The time has come that was set last ([`Action::SetDeadline`]).
    DeadlineReached,
    /// The host was inspected, and everything was seen that matters.
    Inspected(Box<Finding>),
    /// The host was inspected, and nothing follows from it: inspect again after this time.
    Inconclusive {
        /// The time.
        again: Duration,
    },
    /// What the last inspection allowed is done now ([`Action::Proceed`]).
    Proceed,
    /// A signal was not sent.
    SignalRefused {
        /// The process.
        process: ProcessId,
        /// The signal.
        signal: Signal,
        /// Why.
        refusal: Refusal,
        /// Whether there is no other process of it that may be signalled and was not refused.
        last: bool,
    },
    /// A process of it forked.
    NewChild {
        /// The child.
        process: ProcessId,
    },
    /// Another configuration is in effect.
    RulesChanged,
    /// Another process ended, for whose sake it may have stayed.
    OtherEnded,
    /// All of its processes have ended.
    Ended,
}

/// Why a signal was not sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The process may not be what was judged, or there was no room: inspect, then try again.
    Retryable,
    /// The system refused; it is not tried again.
    Final {
        /// The message.
        error: String,
        /// errno(3).
        errno: i32,
    },
}

impl Refusal {
    /// What became of a signal, if it was not sent. Nothing, if the process is gone: its exit record, and those of what it forked
    /// before, are still to be read.
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
    /// Whether it works for a living process: that is its owner.
    pub has_owner: bool,
    /// Whether the files of the dead owner are still being closed.
    pub too_early: bool,
    /// What speaks for an orphan.
    pub evidence: Vec<Evidence>,
    /// What keeps that from being proven.
    pub doubts: Vec<Doubt>,
    /// What forbids to end it.
    pub guards: Vec<Guard>,
    /// Resident memory in bytes.
    pub rss_bytes: u64,
    /// Proportional memory in bytes, where it could be read.
    pub pss_bytes: Option<u64>,
    /// The sessions of the main process and its launch chain.
    pub sessions: BTreeSet<u32>,
    /// The processes that are tied to them.
    pub tied: BTreeSet<ProcessId>,
}

/// What is known of the owner.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Owner {
    /// Nobody, or it is not known who.
    #[default]
    Unknown,
    /// It is alive.
    Alive,
    /// It exited then.
    Exited(BootTime),
}

/// What the world says while a step is made.
#[derive(Clone, Debug)]
pub struct Facts<'a> {
    /// The time.
    pub now: BootTime,
    /// How long to wait for what.
    pub pace: Pace,
    /// The owner.
    pub owner: Owner,
    /// Whether the owner is still being searched for.
    pub owner_wanted: bool,
    /// Whether records were lost and the lineage has not been repaired yet.
    pub doubtful: bool,
    /// Whether its main process ended by itself: what it left is inspected in every phase.
    pub main_ended: bool,
    /// The process by which it is known. It may have ended.
    pub known_by: ProcessId,
    /// The main process, if it lives.
    pub main_process: Option<ProcessId>,
    /// The living processes that may be signalled, children before their parents. Given for [`Event::Proceed`] and
    /// [`Event::NewChild`]; empty for others.
    pub targets: Vec<ProcessId>,
    /// Processes that the inspection did not see as they are now: they get no signal for it.
    pub unseen: &'a BTreeSet<ProcessId>,
}

/// What is to be done. The order matters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Inspect the host.
    Inspect,
    /// Say [`Event::DeadlineReached`] then, and at no time that was set before.
    SetDeadline(Option<BootTime>),
    /// The living process that the inspection found becomes the owner; if the case is not over by that, say
    /// [`Event::OwnerFound`].
    AdoptOwner,
    /// What it holds now counts.
    UpdateMemory,
    /// How it looks now is shown when it has ended.
    KeepView,
    /// What the inspection found to be let go is no part of it any more.
    Release,
    /// Say [`Event::Proceed`], with fresh facts.
    Proceed,
    /// Nothing may be left of it after a release: say [`Event::Ended`] then.
    EndIfGone,
    /// Send a signal.
    Signal {
        /// The process.
        process: ProcessId,
        /// The signal.
        signal: Signal,
    },
    /// Remember this; what follows rests on it.
    Persist(Record),
    /// Remember this and tell it.
    Announce(Announcement),
    /// It is over.
    Close(Outcome),
}

/// What is remembered without being told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Record {
    /// What is known of it.
    Subject,
    /// The first signal is about to be sent.
    Terminating,
}

/// What is remembered and told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Announcement {
    /// It has an owner; the case was open since then.
    Cleared {
        /// Since when.
        since: BootTime,
    },
    /// It is unproven, or for other doubts than before.
    Unproven,
    /// It is an orphan.
    Orphan {
        /// When that could be told at the earliest.
        due: BootTime,
    },
    /// A guard forbids to end it. Nothing is remembered.
    Spared {
        /// The guards.
        guards: Vec<Guard>,
    },
    /// It could not be ended.
    Failed {
        /// What happened first.
        failure: Failure,
        /// How many processes could not be ended.
        failed: u64,
    },
}

/// How a case ended, with the last process of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// There was no case.
    Exited,
    /// It ended by itself before anything was proven; the case was open since then.
    Cleared {
        /// Since when.
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
