//! What must survive a restart of the daemon.
//!
//! A fact is on disk before anything depends on it: the daemon carries out [`super::Effect::Persist`] before
//! the effects that follow it. So a run number that was reported is never given out again, and the next
//! daemon knows every signal that was sent.

use serde::{Deserialize, Serialize};

use super::{
    AgentHints, BootTime, Doubt, Ending, Evidence, Guard, Losses, ProcessId, Run, RunKey, ServerHints, Signal,
};

/// A fact to store. Storing the same fact twice has the effect of storing it once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "fact", rename_all = "snake_case")]
pub enum Fact {
    /// A run began or changed. It is identified by key and generation.
    Run {
        /// The run as it is now.
        run: Run,
    },
    /// All runs of this key are over and it was removed to make room for younger ones of the same user. If
    /// the key comes back, its numbers start at 1.
    Forgotten {
        /// Whose runs.
        key: RunKey,
    },
    /// A server is tracked, or what is known of it changed.
    Server {
        /// The server as it is now.
        server: Tracked,
    },
    /// The server was judged an orphan.
    Orphan {
        /// The server.
        server: ProcessId,
        /// The facts that prove it.
        evidence: Vec<Evidence>,
        /// What forbids ending it.
        guards: Vec<Guard>,
        /// Resident memory in bytes.
        rss_bytes: u64,
        /// Proportional memory (PSS) in bytes; absent if it could not be read.
        pss_bytes: Option<u64>,
    },
    /// The server was judged unproven: its owner is gone, and somebody may still use it.
    Unproven {
        /// The server.
        server: ProcessId,
        /// The facts that speak for an orphan.
        evidence: Vec<Evidence>,
        /// What prevents the proof.
        doubts: Vec<Doubt>,
        /// Resident memory in bytes.
        rss_bytes: u64,
    },
    /// The first signal to the server is about to be sent.
    Reaping {
        /// The server.
        server: ProcessId,
    },
    /// A signal was sent to a process of the server.
    Signalled {
        /// The server.
        server: ProcessId,
        /// The process.
        process: ProcessId,
        /// The name of its program; empty if it is not known.
        program: String,
        /// The signal.
        signal: Signal,
        /// Whether a person asked to end the server.
        asked: bool,
    },
    /// A process of the server could not be ended.
    ReapFailed {
        /// The server.
        server: ProcessId,
        /// The process.
        pid: u32,
        /// Why.
        error: String,
    },
    /// The server was not an orphan after all, and is alive.
    Cleared {
        /// The server.
        server: ProcessId,
    },
    /// The server has exited.
    Ended {
        /// The server.
        server: ProcessId,
        /// How it exited.
        end: End,
    },
    /// Agents of a run have ended and left processes behind that are no servers.
    Leftovers {
        /// Whose run.
        key: RunKey,
        /// Its number.
        generation: u64,
        /// How many branches of processes were found, of the whole run.
        count: u64,
        /// Their resident memory in bytes.
        rss_bytes: u64,
    },
    /// By what a person recognises the agent of a run.
    AgentHints {
        /// The agent: the main process of a run.
        agent: ProcessId,
        /// What it is known by.
        hints: AgentHints,
    },
    /// By what a person recognises a server.
    ServerHints {
        /// The server.
        server: ProcessId,
        /// What it is known by.
        hints: ServerHints,
    },
    /// Kernel records were lost.
    Lost {
        /// How many, by kind.
        losses: Losses,
    },
}

/// How a server ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "how", rename_all = "snake_case")]
pub enum End {
    /// Without orphand, while its owner was alive or within the grace period.
    Exited {
        /// How its main process ended.
        ending: Ending,
    },
    /// Without orphand, as an orphan.
    OrphanExited {
        /// How its main process ended.
        ending: Ending,
    },
    /// orphand ended it.
    Reaped {
        /// The last signal that was needed; absent if the daemon that sent it did not see the exit.
        signal: Option<Signal>,
        /// Milliseconds from the first signal to the exit of the last process; absent if the exit was not
        /// seen.
        took_ms: Option<u64>,
        /// Resident memory in bytes before it was ended.
        freed_bytes: u64,
        /// Proportional memory (PSS) in bytes before it was ended: what the host regained.
        freed_pss_bytes: Option<u64>,
    },
    /// While no daemon was running.
    Unseen,
}

/// A server as it is stored.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tracked {
    /// Its identity: the head of its launch chain.
    pub id: ProcessId,
    /// Its name.
    pub name: String,
    /// The rule that recognised it.
    pub rule: String,
    /// Its real user id; absent if none of its processes is known.
    #[serde(default)]
    pub uid: Option<u32>,
    /// The processes that matter for it: launch chain, main process, and what was left behind with it.
    pub processes: Vec<ProcessId>,
    /// Its owner.
    pub owner: Option<TrackedOwner>,
    /// The run that it counts for.
    pub run: Option<(RunKey, u64)>,
    /// What was known of its start; absent if an older version stored it.
    #[serde(default)]
    pub start: Option<TrackedStart>,
}

/// What a daemon that saw the start of a server, or found it first, knew of that. A later one cannot find it out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrackedStart {
    /// Whether its owner was still sought. Otherwise a server without an owner has none.
    pub seeks_owner: bool,
    /// Whether it was found adopted.
    pub adopted: bool,
    /// Whether another program made its standard output than made its standard input.
    pub made_apart: bool,
}

/// The owner of a stored server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrackedOwner {
    /// Its main process.
    pub main: ProcessId,
    /// Its name.
    pub name: String,
    /// Its real user id.
    pub uid: u32,
    /// Whether no rule matched it.
    pub implied: bool,
}

/// What earlier daemons stored. The daemon reads it from the store when it starts, and hands it in as the
/// first input.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Knowledge {
    /// The runs still remembered, of every boot, those that ended first in front. `alive` is the last known
    /// state.
    pub runs: Vec<RememberedRun>,
    /// The servers that were tracked when the last daemon of this boot ended.
    pub servers: Vec<RememberedServer>,
    /// Whether there was an earlier daemon in this boot, or there may have been one. It witnessed starts and ends that
    /// this one cannot know of.
    #[serde(default)]
    pub restarted: bool,
    /// When orphand was started on this host for the first time, as far as is known; absent if that was in an earlier boot.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub first_start: Option<BootTime>,
}

/// A run that an earlier daemon stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RememberedRun {
    /// The run.
    pub run: Run,
    /// Whether it began in this boot. Otherwise its process identity means nothing.
    pub this_boot: bool,
}

/// A server that an earlier daemon of this boot stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RememberedServer {
    /// The server as last stored.
    pub server: Tracked,
    /// Set if it had been judged an orphan: what was known then.
    pub orphan: Option<RememberedOrphan>,
}

/// An orphan that an earlier daemon of this boot judged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RememberedOrphan {
    /// Whether a signal may have been sent to it.
    pub reaping: bool,
    /// Resident memory in bytes at the verdict.
    pub rss_bytes: u64,
    /// Proportional memory (PSS) in bytes at the verdict.
    pub pss_bytes: Option<u64>,
}
