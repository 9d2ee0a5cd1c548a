//! The phases of a case, the data of each, and its delays: how long it waits before each step. "It" is the server or the agent
//! of the case.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use crate::model::{BootTime, ContainerId, Doubt, Evidence, Guard, ProcessId, Signal, State};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Phase {
    /// There is no case: the owner is alive, or there never was one.
    #[default]
    Clear,
    /// It may have been left behind. It has some time to end by itself, and nothing is concluded before the
    /// deadline.
    Grace { cause: Cause, deadline: BootTime },
    /// Its owner is gone, and it was judged.
    Judged(Box<Verdict>),
}

/// What is being done about a server or an agent that was judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// It is not proven that nobody can use it. Nothing is done to it.
    Unproven,
    /// It is an orphan and is not being ended: a guard forbids it, or the first step is about to begin.
    Spared,
    /// SIGTERM was sent to its main process.
    MainProcess,
    /// SIGTERM was sent to all of its processes.
    Rest,
    /// SIGKILL is being sent to what is left.
    Kill,
    /// It could not be ended. Nothing more is tried.
    Failed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cause {
    pub reason: Reason,
    pub since: BootTime,
    pub asked: Wish,
}

/// Whether a person asked to end it. Guards count in any case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Wish {
    #[default]
    None,
    /// If it is an orphan: who was shown one may be wrong by now.
    Orphan,
    /// Doubts do not count.
    Anyway,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    OwnerExited,
    NoOwner,
    /// The unit that it runs in was stopped, or restarted without it.
    UnitRestarted,
    /// Its owner is alive, and it was released all the same.
    Released(By),
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
    pub const ALL: [Self; 5] = [Self::Owner, Self::Thread, Self::Session, Self::Manager, Self::Idle];

    /// Whether somebody said so. What the owner still holds of the server is then an accident, unless it was used since.
    pub const fn in_words(self) -> bool {
        matches!(self, Self::Session | Self::Manager | Self::Idle)
    }
}

impl Reason {
    pub const fn released(self) -> Option<By> {
        match self {
            Self::Released(by) => Some(by),
            _ => None,
        }
    }
}

/// The findings of a case, and what was done to end it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    pub stage: Stage,
    /// How many inspections in a row found nothing new.
    pub inspections: u32,
    pub cause: Cause,
    pub evidence: Vec<Evidence>,
    /// What keeps that from being proven: empty unless it is unproven.
    pub doubts: Vec<Doubt>,
    /// What forbids ending it: empty while it is being ended.
    pub guards: Vec<Guard>,
    /// Resident memory at the verdict, in bytes.
    pub rss_bytes: u64,
    /// Proportional memory at the verdict, in bytes, where it could be read.
    pub pss_bytes: Option<u64>,
    /// Whether it was announced as an orphan. A doubt may have come up since.
    pub announced: bool,
    pub attempt: Attempt,
}

/// What was done to end an orphan. This is kept when a doubt or a guard stops the procedure.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attempt {
    pub first_signal: Option<BootTime>,
    /// The session ids of the main process and its launch chain when the procedure began.
    pub sessions: BTreeSet<u32>,
    /// The processes that were tied to them when the procedure began.
    pub tied: BTreeSet<ProcessId>,
    /// Those that get SIGKILL where others get SIGTERM: what was let go is not known any more when it has been released.
    pub not_to_be_asked: BTreeSet<ProcessId>,
    /// The strongest signal that was sent to each process.
    pub signalled: BTreeMap<ProcessId, Signal>,
    /// Processes that cannot be ended. They get no further signal unless a person asks.
    pub refused: BTreeSet<ProcessId>,
    /// How many rounds of SIGKILL there were.
    pub rounds: u32,
    /// The container that is stopped in place of any signal.
    pub container: Option<ContainerId>,
    /// The first failure, until it is announced.
    pub failure: Option<Failure>,
}

/// Why a process could not be ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    pub process: ProcessId,
    pub error: String,
    /// The errno(3) value, if a system call failed.
    pub errno: Option<i32>,
}

impl Attempt {
    /// Whether this signal, or a stronger one, was sent to this process, or cannot be.
    pub(super) fn is_settled(&self, process: ProcessId, signal: Signal) -> bool {
        self.refused.contains(&process) || self.signalled.get(&process).is_some_and(|sent| *sent >= signal)
    }
}

impl Verdict {
    /// Whether one of its doubts counts for the time of `work_grace` at most.
    pub fn has_deadline(&self) -> bool {
        self.doubts.iter().any(|doubt| doubt.has_deadline())
    }

    /// Without any findings. There is none without a cause: no default says that an owner exited.
    pub fn new(cause: Cause) -> Self {
        Self {
            stage: Stage::Unproven,
            inspections: 0,
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

impl Stage {
    pub const fn is_terminating(self) -> bool {
        matches!(self, Self::MainProcess | Self::Rest | Self::Kill)
    }
}

impl Phase {
    pub fn state(&self) -> State {
        match (self, self.stage()) {
            (Self::Clear, _) => State::Live,
            (_, Some(stage)) if stage.is_terminating() => State::Ending,
            (_, Some(Stage::Failed)) => State::Orphan,
            // A person asked to end it, and the inspection that comes first has not been answered.
            _ if self.asked() => State::Ending,
            (_, Some(Stage::Unproven)) => State::Unproven,
            (_, Some(_)) => State::Kept,
            (Self::Grace { .. } | Self::Judged(_), None) => State::Suspect,
        }
    }

    pub fn cause(&self) -> Option<&Cause> {
        match self {
            Self::Clear => None,
            Self::Grace { cause, .. } => Some(cause),
            Self::Judged(verdict) => Some(&verdict.cause),
        }
    }

    /// Who released it, if that is why there is a case: it may be left behind although its owner is alive.
    pub fn released(&self) -> Option<By> {
        self.cause()?.reason.released()
    }

    pub fn verdict(&self) -> Option<&Verdict> {
        match self {
            Self::Clear | Self::Grace { .. } => None,
            Self::Judged(verdict) => Some(verdict),
        }
    }

    /// What is being done, if it was judged.
    pub fn stage(&self) -> Option<Stage> {
        self.verdict().map(|verdict| verdict.stage)
    }

    pub fn orphan(&self) -> Option<&Verdict> {
        self.verdict().filter(|verdict| verdict.stage != Stage::Unproven)
    }

    /// The end of the grace period, if nothing has been concluded yet.
    pub const fn grace(&self) -> Option<BootTime> {
        match self {
            Self::Grace { deadline, .. } => Some(*deadline),
            _ => None,
        }
    }

    /// No time has passed for this long.
    pub fn put_off(&mut self, by: Duration) {
        if let Self::Grace { deadline, .. } = self {
            *deadline = *deadline + by;
        }
    }

    pub const fn is_clear(&self) -> bool {
        matches!(self, Self::Clear)
    }

    pub fn is_terminating(&self) -> bool {
        self.stage().is_some_and(Stage::is_terminating)
    }

    /// When the reason for the case arose, if there is a case.
    pub fn since(&self) -> Option<BootTime> {
        self.cause().map(|cause| cause.since)
    }

    pub fn asked(&self) -> bool {
        self.cause().is_some_and(|cause| cause.asked != Wish::None)
    }

    /// Whether a person wants its end in spite of all doubts.
    pub fn asked_anyway(&self) -> bool {
        self.cause().is_some_and(|cause| cause.asked == Wish::Anyway)
    }

    /// Whether any signal was sent to it.
    pub fn is_signalled(&self) -> bool {
        self.verdict().is_some_and(|verdict| !verdict.attempt.signalled.is_empty())
    }

    /// What was sent to those who could be asked to end, if there are any.
    pub fn strongest_signal(&self) -> Option<Signal> {
        let attempt = &self.verdict()?.attempt;
        let may_be_asked = |(process, _): &(&ProcessId, _)| !attempt.not_to_be_asked.contains(process);
        let asked = attempt.signalled.iter().filter(may_be_asked).map(|(_, signal)| *signal).max();
        asked.or_else(|| attempt.signalled.values().max().copied())
    }
}

/// After an inspection that failed or was not answered, and after a signal that was not sent because of a doubt.
pub const INSPECT_AGAIN: Duration = Duration::from_secs(1);
/// The time for the kernel to close the files of an owner that has just exited.
pub(super) const CLOSING: Duration = Duration::from_millis(100);
/// The delay after a deadline that came while the lineage was being repaired.
pub(super) const WHILE_REPAIRED: Duration = Duration::from_millis(50);

/// Between inspections of an orphan that is spared, the first time: see [`Pace::after`].
pub(super) const SPARED: Duration = Duration::from_secs(30);
/// Between inspections while it is unproven, the first time: a doubt may disappear at any moment.
pub(super) const UNPROVEN: Duration = Duration::from_secs(5);
/// Between two rounds of SIGKILL. What was forked meanwhile is killed in the next round.
pub(super) const KILL_EVERY: Duration = Duration::from_millis(50);
/// After this number of rounds, what is left counts as impossible to kill.
pub(super) const KILL_ROUNDS: u32 = 100;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// From the owner's exit to the first inspection.
    pub grace: Duration,
    /// Between two inspections, at most.
    pub longest: Duration,
    /// From SIGTERM to SIGKILL.
    pub term_timeout: Duration,
}

impl Pace {
    /// A delay doubles with each inspection in a row that finds nothing new.
    pub(super) fn after(&self, first: Duration, inspections: u32) -> Duration {
        first.saturating_mul(1 << inspections.min(10)).min(self.longest)
    }

    /// From SIGTERM to the main process to the next step. In this time it closes its browser and unlinks its pid file.
    pub(super) fn main_process(&self) -> Duration {
        Duration::from_secs(1).min(self.term_timeout / 5)
    }

    /// From SIGTERM to the rest to SIGKILL. It is not counted from the very first signal: a guard may have stopped an
    /// earlier attempt long ago.
    pub(super) fn rest(&self) -> Duration {
        self.term_timeout.saturating_sub(self.main_process())
    }
}
