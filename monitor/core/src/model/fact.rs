//! What must survive a restart of the daemon.
//!
//! A fact is on disk before anything depends on it: the daemon carries out [`super::Effect::Persist`] before
//! the effects that follow it. So a run number that was reported is never given out again, and the next
//! daemon knows every signal that was sent.

use serde::{Deserialize, Serialize};

use super::{
    AgentHints, BootTime, Doubt, Evidence, Fate, Guard, Image, Losses, Placement, ProcessId, Run, RunKey,
    ServerHints, Signal, Stdio,
};

/// A fact to store. Storing the same fact twice has the effect of storing it once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "fact", rename_all = "snake_case")]
pub enum Fact {
    /// A run began or changed. It is identified by key and generation.
    Run {
        run: Run,
    },
    /// All runs of this key are over and it was removed to make room for younger ones of the same user. If
    /// the key comes back, its numbers start at 1.
    Forgotten {
        key: RunKey,
    },
    Server {
        server: Tracked,
    },
    Orphan {
        server: ProcessId,
        evidence: Vec<Evidence>,
        guards: Vec<Guard>,
        rss_bytes: u64,
        /// Proportional memory (PSS) in bytes; absent if it could not be read.
        pss_bytes: Option<u64>,
    },
    /// Other guards hold for an orphan than before.
    Spared {
        server: ProcessId,
        guards: Vec<Guard>,
    },
    /// The server was judged unproven: its owner is gone, and somebody may still use it.
    Unproven {
        server: ProcessId,
        evidence: Vec<Evidence>,
        doubts: Vec<Doubt>,
        rss_bytes: u64,
    },
    /// The first signal to the server is about to be sent.
    Reaping {
        server: ProcessId,
        /// The person who asked for that, if one did.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        asked_by: Option<String>,
    },
    Signalled {
        server: ProcessId,
        process: ProcessId,
        /// The name of its program; empty if it is not known.
        program: String,
        signal: Signal,
        asked: bool,
    },
    ReapFailed {
        server: ProcessId,
        pid: u32,
        error: String,
    },
    Cleared {
        server: ProcessId,
    },
    Ended {
        server: ProcessId,
        end: Fate,
    },
    /// Agents of a run have ended and left processes behind that are no servers.
    Leftovers {
        key: RunKey,
        generation: u64,
        /// How many branches of processes were found, of the whole run.
        count: u64,
        rss_bytes: u64,
    },
    AgentHints {
        /// The agent: the main process of a run.
        agent: ProcessId,
        hints: AgentHints,
    },
    ServerHints {
        server: ProcessId,
        hints: ServerHints,
    },
    Lost {
        losses: Losses,
    },
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tracked {
    /// Its identity: the head of its launch chain.
    pub id: ProcessId,
    pub name: String,
    pub rule: String,
    /// Its real user id; absent if none of its processes is known.
    #[serde(default)]
    pub uid: Option<u32>,
    /// The processes that matter for it: launch chain, main process, and what was left behind with it.
    pub processes: Vec<ProcessId>,
    pub owner: Option<TrackedOwner>,
    pub run: Option<(RunKey, u64)>,
    /// What only who saw it can know; absent if an older version stored it.
    #[serde(default)]
    pub start: Option<TrackedStart>,
}

/// What a daemon that saw the start of a server, or found it first, knew of that. A later one cannot find it out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrackedStart {
    /// Whether its owner was still sought. Otherwise a server without an owner has none.
    pub seeks_owner: bool,
    pub adopted: bool,
    /// Whether another program made its standard output than made its standard input.
    pub made_apart: bool,
    /// Whether a message of the protocol to it was seen, or settings declare it.
    #[serde(default)]
    pub spoken: bool,
    /// Whether it was seen to speak the protocol itself, to a program that it started.
    #[serde(default)]
    pub gateway: bool,
    /// Its standard input.
    #[serde(default)]
    pub stdin: Stdio,
    /// When its owner exited, if that was seen.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub owner_exited: Option<BootTime>,
    /// The agents, multiplexers and exempt programs that it started, and that live.
    #[serde(default)]
    pub guarded_by: Vec<TrackedGuard>,
    /// What the processes that matter run: its launch chain and main process, its owner, and what guards it.
    #[serde(default)]
    pub programs: Vec<TrackedProgram>,
    /// What its shells left that run another program in their place, and are the parents still; and what began below `nohup`.
    #[serde(skip_serializing_if = "<[_]>::is_empty", default)]
    pub left: Box<[ProcessId]>,
}

/// What a process was seen to run. It may write a title over that later.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrackedProgram {
    pub process: ProcessId,
    /// The process that created it, if that was seen. Something may have adopted it since.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub creator: Option<ProcessId>,
    /// Bounded, and without secrets once it is stored.
    pub image: Image,
    /// Whether it was recognised as the server. Otherwise it is none, whatever wires it has.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub recognised: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrackedGuard {
    pub process: ProcessId,
    /// The name of an agent that no rule knows.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub implied: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrackedOwner {
    pub main: ProcessId,
    pub name: String,
    pub uid: u32,
    /// Whether no rule matched it.
    pub implied: bool,
    /// Where it ran, and the agents above it.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub placements: Vec<Placement>,
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
    /// Until when the last of them watched; absent if it did not say.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub watched_until: Option<BootTime>,
    /// When orphand was started on this host for the first time, as far as is known; absent if that was in an earlier boot.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub first_start: Option<BootTime>,
    /// Of servers that began before that not all is known: what an earlier daemon knew of them is lost, or may be.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub incomplete_before: Option<BootTime>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RememberedRun {
    pub run: Run,
    /// Whether it began in this boot. Otherwise its process identity means nothing.
    pub this_boot: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RememberedServer {
    pub server: Tracked,
    /// Set if it had been judged an orphan, or was being ended: what was known then.
    pub orphan: Option<RememberedOrphan>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RememberedOrphan {
    /// Whether it was announced as one. Otherwise a person had it ended for what it was.
    #[serde(default)]
    pub announced: bool,
    /// Whether a signal may have been sent to it.
    pub reaping: bool,
    #[serde(default)]
    pub asked_by: Option<String>,
    pub rss_bytes: u64,
    pub pss_bytes: Option<u64>,
}
