//! The input and the output of a case: events, facts about the world, and actions. "It" is the server or the agent of
//! the case.

use std::{collections::BTreeSet, time::Duration};

use super::{Failure, Pace, Reason};
use crate::model::{BootTime, ContainerId, Doubt, Evidence, Guard, ProcessId, Signal, SignalError};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// It may have been left behind since this time, and the grace period ends at the deadline.
    Suspected {
        reason: Reason,
        since: BootTime,
        deadline: BootTime,
    },
    OwnerFound,
    SessionLives,
    /// A person asked to end it: whatever speaks against it but a guard (`anyway`), or if it is an orphan.
    Asked {
        anyway: bool,
    },
    /// The time that was last set with [`Action::SetDeadline`] has come.
    DeadlineReached,
    /// The host was inspected, and everything that matters was seen.
    Inspected(Box<Finding>),
    /// The host was inspected, and nothing follows from it. The next inspection is due after this time.
    Inconclusive {
        again: Duration,
    },
    /// What the last inspection allowed is done now ([`Action::Proceed`]).
    Proceed,
    /// A signal was not sent. `last`: no other process of it remains that may be signalled and did not refuse a signal.
    SignalRefused {
        process: ProcessId,
        signal: Signal,
        error: SignalError,
        last: bool,
    },
    NewChild {
        process: ProcessId,
    },
    RulesChanged,
    /// Another process ended that may have been the reason why it stays.
    OtherEnded,
    Ended,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Finding {
    /// Whether it works for a living process. That process is its owner.
    pub has_owner: bool,
    /// Whether the kernel is still closing the files of the dead owner.
    pub too_early: bool,
    pub evidence: Vec<Evidence>,
    pub doubts: Vec<Doubt>,
    pub guards: Vec<Guard>,
    /// The container that has to be stopped instead of a signal to its client.
    pub container: Option<ContainerId>,
    pub rss_bytes: u64,
    pub pss_bytes: Option<u64>,
    /// The session ids of the main process and its launch chain.
    pub sessions: BTreeSet<u32>,
    pub tied: BTreeSet<ProcessId>,
    /// Those that get SIGKILL where others get SIGTERM.
    pub not_to_be_asked: BTreeSet<ProcessId>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Owner {
    #[default]
    Unknown,
    Alive,
    Exited(BootTime),
}

/// The facts that a step may use.
#[derive(Clone, Debug)]
pub struct Facts<'a> {
    pub now: BootTime,
    pub pace: Pace,
    pub owner: Owner,
    /// Whether the owner is still being sought.
    pub owner_wanted: bool,
    /// Whether records were lost and the lineage has not been repaired yet.
    pub doubtful: bool,
    /// Whether its main process exited by itself. In that case what it left is inspected in every phase.
    pub main_ended: bool,
    /// The process that identifies it. That process may have exited.
    pub known_by: ProcessId,
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
    Signal {
        process: ProcessId,
        signal: Signal,
    },
    StopContainer(ContainerId),
    /// Store what is known of it. The actions that follow rely on it being stored.
    Remember,
    /// Store that the first signal is about to be sent.
    RememberReaping,
    /// Store this and report it.
    Announce(Announcement),
    /// The case and its subject are over.
    Close(Outcome),
}

/// What is stored and reported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Announcement {
    /// The case, which was opened at this time, is closed: it has an owner, or its session has not expired.
    Cleared { since: BootTime, reason: &'static str },
    /// It is unproven, or its doubts have changed.
    Unproven,
    /// It is an orphan. `due`: the earliest time at which this could have been reported. `again`: this was announced
    /// before, and a doubt came up in between.
    Orphan { due: BootTime, again: bool },
    /// A guard forbids ending it. This is reported and not stored.
    Spared { guards: Vec<Guard> },
    /// It could not be ended: the first failure, and how many processes could not be ended.
    Failed { failure: Failure, failed: u64 },
}

/// How it ended, when its last process has exited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// There was no case.
    Exited,
    /// It ended by itself before anything was proven. The case was opened at this time.
    Cleared { since: BootTime },
    /// It ended by itself, as an orphan with this memory at the verdict.
    OrphanExited { rss_bytes: u64 },
    /// orphand ended it, at a person's request or by itself.
    Reaped {
        /// The strongest signal that was needed.
        signal: Signal,
        first_signal: BootTime,
        rss_bytes: u64,
        pss_bytes: Option<u64>,
        asked: bool,
    },
}
