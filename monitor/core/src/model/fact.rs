//! What must outlive the daemon, and what an earlier daemon of this boot knew.
//!
//! A fact is on disk before anything follows from it: the shell carries out [`super::Effect::Persist`] before the effects behind
//! it. So a number that was told is never given again, and a signal that was sent is known to the next daemon.

use serde::{Deserialize, Serialize};

use super::{Doubt, Evidence, Guard, Losses, ProcessId, Run, RunKey, Signal};

/// Something to be remembered. Every fact may be told twice and counts once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "fact", rename_all = "snake_case")]
pub enum Fact {
    /// A run began, or changed: known by key and generation.
    Run {
        /// The run as it is now.
        run: Run,
    },
    /// All runs of a key are over, and its user has others that are younger: it is remembered no more. If it comes back, its
    /// numbers begin again.
    Forgotten {
        /// Whose runs.
        key: RunKey,
    },
    /// A server is followed, or changed: known by its identity.
    Server {
        /// The server as it is now.
        server: Tracked,
    },
    /// It was judged: an orphan.
    Orphan {
        /// The server.
        server: ProcessId,
        /// What speaks for it.
        evidence: Vec<Evidence>,
        /// What forbids to end it.
        guards: Vec<Guard>,
        /// Resident memory in bytes.
        rss_bytes: u64,
        /// Proportional memory in bytes, where it could be read.
        pss_bytes: Option<u64>,
    },
    /// It was judged: its owner is gone, and it is not proven that nobody uses it.
    Unproven {
        /// The server.
        server: ProcessId,
        /// What speaks for an orphan.
        evidence: Vec<Evidence>,
        /// What keeps it from being one.
        doubts: Vec<Doubt>,
        /// Resident memory in bytes.
        rss_bytes: u64,
    },
    /// The first signal to it is about to be sent.
    Reaping {
        /// The server.
        server: ProcessId,
    },
    /// A process of it could not be ended.
    ReapFailed {
        /// The server.
        server: ProcessId,
        /// The process.
        pid: u32,
        /// What happened.
        error: String,
    },
    /// It was no orphan after all, and lives.
    Cleared {
        /// The server.
        server: ProcessId,
    },
    /// It has ended.
    Ended {
        /// The server.
        server: ProcessId,
        /// How.
        end: End,
    },
    /// Records were lost.
    Lost {
        /// How many, by kind.
        losses: Losses,
    },
}

/// How a server ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "how", rename_all = "snake_case")]
pub enum End {
    /// By itself, while its owner lived or in its grace.
    Exited,
    /// By itself, as an orphan.
    OrphanExited,
    /// orphand ended it.
    Reaped {
        /// The last signal that was needed; absent where the daemon that sent it did not see the end.
        signal: Option<Signal>,
        /// Milliseconds from the first signal to the end of the last process; absent likewise.
        took_ms: Option<u64>,
        /// Resident memory before, in bytes.
        freed_bytes: u64,
        /// Proportional memory before, in bytes: what the host regained.
        freed_pss_bytes: Option<u64>,
    },
    /// While no daemon watched.
    Unseen,
}

/// A server that is followed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tracked {
    /// Its identity: the head of its launch chain.
    pub id: ProcessId,
    /// Its name.
    pub name: String,
    /// The rule that recognised it.
    pub rule: String,
    /// Its real user id; absent where nothing is known of its processes.
    #[serde(default)]
    pub uid: Option<u32>,
    /// Its processes as far as they matter: launch chain, server proper, what was left behind with it.
    pub processes: Vec<ProcessId>,
    /// Who owns it.
    pub owner: Option<TrackedOwner>,
    /// The run it is accounted to.
    pub run: Option<(RunKey, u64)>,
}

/// The owner of a server that is followed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrackedOwner {
    /// Its main process.
    pub main: ProcessId,
    /// Its name.
    pub name: String,
    /// Its real user id.
    pub uid: u32,
    /// Whether no rule knows it.
    pub implied: bool,
}

/// What earlier daemons knew. The shell reads it from the store at the start and hands it in before anything else.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Knowledge {
    /// The runs still remembered, of every boot, those that ended first in front. `alive` as last known.
    pub runs: Vec<RememberedRun>,
    /// The servers followed when the last daemon of this boot ended.
    pub servers: Vec<RememberedServer>,
}

/// A run of an earlier daemon.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RememberedRun {
    /// The run.
    pub run: Run,
    /// Whether it began in this boot: only then its process identity means anything.
    pub this_boot: bool,
}

/// A server of an earlier daemon of this boot.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RememberedServer {
    /// The server as last known.
    pub server: Tracked,
    /// Whether it had been judged an orphan, and then what was known of its memory.
    pub orphan: Option<RememberedOrphan>,
}

/// The case of an orphan of an earlier daemon.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RememberedOrphan {
    /// Whether a signal may have been sent to it.
    pub reaping: bool,
    /// Resident memory at the verdict, in bytes.
    pub rss_bytes: u64,
    /// Proportional memory at the verdict, in bytes.
    pub pss_bytes: Option<u64>,
}
