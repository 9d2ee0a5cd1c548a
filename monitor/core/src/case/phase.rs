//! The phases of a case, and the data of each.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::{BootTime, ContainerId, Doubt, Evidence, Guard, ProcessId, Signal, State};

/// The phase of the case of a server or an agent. "It" is that server or agent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Phase {
    /// There is no case: the owner is alive, or there never was one.
    #[default]
    Clear,
    /// It may have been left behind. It has some time to end by itself, and nothing is concluded before the
    /// deadline.
    Grace {
        /// Why there is a case.
        cause: Cause,
        /// When the first inspection is due.
        deadline: BootTime,
    },
    /// Its owner is gone, but it is not proven that nobody can use it. Nothing is done to it.
    Unproven {
        /// What is known so far.
        verdict: Box<Verdict>,
        /// How many inspections in a row found nothing new.
        inspections: u32,
    },
    /// It is an orphan and is not being ended: a guard forbids it, or the first step is about to begin.
    Spared {
        /// What is known so far.
        verdict: Box<Verdict>,
        /// How many inspections in a row found nothing new.
        inspections: u32,
    },
    /// It is an orphan and is being ended.
    Terminating {
        /// What is known so far.
        verdict: Box<Verdict>,
        /// Which step was taken last.
        step: Step,
    },
    /// It is an orphan that could not be ended. Nothing more is tried.
    Failed {
        /// What is known so far.
        verdict: Box<Verdict>,
    },
}

/// The steps of ending an orphan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// SIGTERM was sent to its main process.
    MainProcess,
    /// SIGTERM was sent to all of its processes.
    Rest,
    /// SIGKILL is being sent to what is left.
    Kill {
        /// How many rounds of SIGKILL there were so far.
        rounds: u32,
    },
}

/// Why there is a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cause {
    /// What opened it.
    pub reason: Reason,
    /// The time at which that happened.
    pub since: BootTime,
    /// Whether a person asked to end it. In that case doubts do not count, and guards still do.
    pub asked: bool,
}

/// What opens a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// Its owner, the agent that started it, exited.
    OwnerExited,
    /// It was found without an owner.
    NoOwner,
    /// The unit that it runs in was stopped, or restarted without it.
    UnitRestarted,
    /// Its owner is alive, and it was released all the same.
    Released(By),
    /// A person asked to end it.
    Asked,
}

/// Who released a server whose owner is alive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum By {
    /// The owner, without a word: it let go of its wires.
    Owner,
    /// The thread of the owner that started it: it exited.
    Thread,
    /// The registry of sessions: the session that it was started for is over.
    Session,
    /// Its manager: it said so.
    Manager,
    /// The rule of its owner, for a duplicate that does nothing while a newer one is in use (`idle_duplicates`).
    Idle,
}

impl By {
    /// Everybody who can release a server.
    pub const ALL: [Self; 5] = [Self::Owner, Self::Thread, Self::Session, Self::Manager, Self::Idle];

    /// Whether somebody said so. What the owner still holds of the server is then an accident, unless it was used since.
    pub const fn in_words(self) -> bool {
        matches!(self, Self::Session | Self::Manager | Self::Idle)
    }
}

impl Reason {
    /// Who released it, if its owner is alive.
    pub const fn released(self) -> Option<By> {
        match self {
            Self::Released(by) => Some(by),
            _ => None,
        }
    }

    /// Whether it may be left behind although its owner is alive.
    pub const fn under_living_owner(self) -> bool {
        self.released().is_some()
    }
}

/// The findings of a case, and what was done to end it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Why there is a case.
    pub cause: Cause,
    /// The evidence that it is an orphan.
    pub evidence: Vec<Evidence>,
    /// The doubts: what keeps that from being proven.
    pub doubts: Vec<Doubt>,
    /// The guards: what forbids ending it.
    pub guards: Vec<Guard>,
    /// Resident memory at the verdict, in bytes.
    pub rss_bytes: u64,
    /// Proportional memory at the verdict, in bytes, where it could be read.
    pub pss_bytes: Option<u64>,
    /// Whether it was announced as an orphan. A doubt may have come up since.
    pub announced: bool,
    /// What was done to end it.
    pub attempt: Attempt,
}

/// What was done to end an orphan. This is kept when a doubt or a guard stops the procedure.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attempt {
    /// When the first signal was sent.
    pub first_signal: Option<BootTime>,
    /// The session ids of the main process and its launch chain when the procedure began.
    pub sessions: BTreeSet<u32>,
    /// The processes that were tied to them when the procedure began.
    pub tied: BTreeSet<ProcessId>,
    /// The strongest signal that was sent to each process.
    pub signalled: BTreeMap<ProcessId, Signal>,
    /// Processes that cannot be ended. They get no further signal unless a person asks.
    pub refused: BTreeSet<ProcessId>,
    /// The container that is stopped in place of any signal.
    pub container: Option<ContainerId>,
    /// The first failure, until it is announced.
    pub failure: Option<Failure>,
}

/// Why a process could not be ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The process that could not be ended.
    pub process: ProcessId,
    /// The error message.
    pub error: String,
    /// The errno(3) value, if a system call failed.
    pub errno: Option<i32>,
}

/// A phase without its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// [`Phase::Clear`].
    Clear,
    /// [`Phase::Grace`].
    Grace,
    /// [`Phase::Unproven`].
    Unproven,
    /// [`Phase::Spared`].
    Spared,
    /// [`Step::MainProcess`].
    MainProcess,
    /// [`Step::Rest`].
    Rest,
    /// [`Step::Kill`].
    Kill,
    /// [`Phase::Failed`].
    Failed,
}

impl Verdict {
    /// A verdict without any findings.
    pub fn new(cause: Cause) -> Self {
        Self {
            cause,
            evidence: Vec::new(),
            doubts: Vec::new(),
            guards: Vec::new(),
            rss_bytes: 0,
            pss_bytes: None,
            announced: false,
            attempt: Attempt::default(),
        }
    }
}

impl Attempt {
    /// Whether this signal, or a stronger one, was already sent to a process, or cannot be sent to it.
    pub fn was_sent(&self, process: ProcessId, signal: Signal) -> bool {
        self.refused.contains(&process) || self.signalled.get(&process).is_some_and(|sent| *sent >= signal)
    }
}

impl Phase {
    /// The phase without its data.
    pub const fn kind(&self) -> Kind {
        match self {
            Self::Clear => Kind::Clear,
            Self::Grace { .. } => Kind::Grace,
            Self::Unproven { .. } => Kind::Unproven,
            Self::Spared { .. } => Kind::Spared,
            Self::Terminating { step: Step::MainProcess, .. } => Kind::MainProcess,
            Self::Terminating { step: Step::Rest, .. } => Kind::Rest,
            Self::Terminating { step: Step::Kill { .. }, .. } => Kind::Kill,
            Self::Failed { .. } => Kind::Failed,
        }
    }

    /// What reports say.
    pub fn state(&self) -> State {
        match self {
            Self::Clear => State::Live,
            // A person asked to end it, and the inspection that comes first has not been answered.
            Self::Grace { .. } | Self::Unproven { .. } | Self::Spared { .. } if self.asked() => State::Ending,
            Self::Grace { .. } => State::Suspect,
            Self::Unproven { .. } => State::Unproven,
            Self::Spared { .. } => State::Kept,
            Self::Terminating { .. } => State::Ending,
            Self::Failed { .. } => State::Orphan,
        }
    }

    /// Why there is a case, if there is one.
    pub fn cause(&self) -> Option<&Cause> {
        match self {
            Self::Clear => None,
            Self::Grace { cause, .. } => Some(cause),
            _ => self.verdict().map(|verdict| &verdict.cause),
        }
    }

    /// The verdict, if there was one: an orphan, or unproven.
    pub fn verdict(&self) -> Option<&Verdict> {
        match self {
            Self::Clear | Self::Grace { .. } => None,
            Self::Unproven { verdict, .. }
            | Self::Spared { verdict, .. }
            | Self::Terminating { verdict, .. }
            | Self::Failed { verdict } => Some(verdict),
        }
    }

    /// The verdict, if it is an orphan.
    pub fn orphan(&self) -> Option<&Verdict> {
        self.verdict().filter(|_| !self.is_unproven())
    }

    /// The end of the grace period, if nothing has been concluded yet.
    pub const fn grace(&self) -> Option<BootTime> {
        match self {
            Self::Grace { deadline, .. } => Some(*deadline),
            _ => None,
        }
    }

    /// Whether there is no case.
    pub const fn is_clear(&self) -> bool {
        matches!(self, Self::Clear)
    }

    /// Whether it is unproven.
    pub const fn is_unproven(&self) -> bool {
        matches!(self, Self::Unproven { .. })
    }

    /// Whether it is being ended.
    pub const fn is_terminating(&self) -> bool {
        matches!(self, Self::Terminating { .. })
    }

    /// When the reason for the case arose, if there is a case.
    pub fn since(&self) -> Option<BootTime> {
        self.cause().map(|cause| cause.since)
    }

    /// Whether a person asked to end it.
    pub fn asked(&self) -> bool {
        self.cause().is_some_and(|cause| cause.asked)
    }

    /// The strongest signal that was sent, if any was.
    pub fn strongest_signal(&self) -> Option<Signal> {
        self.verdict().and_then(|verdict| verdict.attempt.signalled.values().max().copied())
    }
}
