//! Past runs and orphans from the store: the answer of `orphand history`. Times are wall-clock times in UTC.
//!
//! What was left behind over time, from the store: the answer for a chart. Its size is bounded, whatever the store has.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{AgentHints, Doubt, Ending, Evidence, Guard, Losses, RunView, ServerHints, Signal, text};

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HistoryQuery {
    /// Only what was still alive at this time, or came later. Absent: everything.
    pub since: Option<Timestamp>,
    /// Only what began, or was judged or signalled, before or at this time. Absent: until now.
    pub until: Option<Timestamp>,
    /// Only agents of this name, or of this unit.
    pub agent: Option<String>,
    /// The boot id of the running kernel, if known. What an earlier boot left open counts as ended.
    pub boot_id: Option<String>,
    /// With servers that ended and were never judged.
    pub never_judged: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct History {
    /// The `since` of the query.
    pub since: Option<Timestamp>,
    /// The `until` of the query.
    pub until: Option<Timestamp>,
    /// When the first daemon began whose life is in the store: nothing is known of the time before.
    pub begins: Option<Timestamp>,
    /// Every signal that the daemon sent, in order.
    pub signals: Vec<PastSignal>,
    /// The runs in the order in which they began.
    pub runs: Vec<PastRun>,
    /// Servers that count for no run, because the run of their agent was not known.
    pub unaccounted: ServerCounts,
    /// What was judged an orphan, in the order of the verdicts.
    pub orphans: Vec<PastOrphan>,
    /// What was judged unproven and never became an orphan, in the order of the verdicts.
    pub unproven: Vec<PastOrphan>,
    /// Servers that ended without a verdict, in the order of their ends; only if they were asked for. `judged` is the time of
    /// the end.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub never_judged: Vec<PastOrphan>,
    /// The lives of the daemon, in order. Empty in a query for one agent.
    pub daemons: Vec<DaemonLife>,
    /// Kernel records that were lost, in order. Empty in a query for one agent.
    pub losses: Vec<PastLoss>,
    /// Why the daemon does not write the store, so that the latest is missing. Absent while it does, and without a daemon.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub store_error: Option<String>,
}

/// How many servers a run had and what became of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerCounts {
    /// Servers seen.
    pub servers: u64,
    /// Servers that were judged orphans.
    pub orphans: u64,
    /// Orphans that orphand ended.
    pub reaped: u64,
    /// Their resident memory in bytes before they were ended. Shared pages count once for each process.
    pub freed_bytes: u64,
    /// Their proportional memory (PSS) in bytes before they were ended, where it could be read: what the host
    /// regained.
    pub freed_pss_bytes: u64,
    /// Orphans that are still there.
    pub left: u64,
    /// Servers that were judged unproven and never an orphan.
    pub unproven: u64,
    /// Unproven servers that are still there.
    pub unproven_left: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PastRun {
    /// `PID@START` of its first agent.
    pub id: String,
    pub run: RunView,
    /// Start time of its first agent, to the clock tick (10 ms).
    pub started: Timestamp,
    /// When its last top-most agent exited, or the host stopped. Absent while it is alive.
    pub ended: Option<Timestamp>,
    /// What its agents left behind that is no server: how many branches of processes were found.
    pub leftovers: u64,
    /// Their resident memory in bytes when they were found.
    pub leftover_bytes: u64,
    /// By what a person recognises its first agent.
    #[serde(flatten)]
    pub hints: AgentHints,
    /// Its servers.
    #[serde(flatten)]
    pub account: ServerCounts,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PastOrphan {
    /// `PID@START` of its first process.
    pub id: String,
    pub name: String,
    /// The rule that recognised it.
    pub rule: String,
    #[serde(flatten)]
    pub hints: ServerHints,
    /// The run that it counts for.
    pub run: Option<RunView>,
    /// The name of its owner.
    pub owner: Option<String>,
    /// `PID@START` of its owner.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub owner_id: Option<String>,
    /// When it was judged.
    pub judged: Timestamp,
    pub evidence: Vec<Evidence>,
    /// What prevented the proof, if it was unproven.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub doubts: Vec<Doubt>,
    /// What forbade ending it.
    pub guards: Vec<Guard>,
    /// Resident memory in bytes at the verdict.
    pub rss_bytes: u64,
    /// Proportional memory (PSS) in bytes at the verdict.
    pub pss_bytes: Option<u64>,
    /// Who asked orphand to end it; absent if orphand decided.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub asked_by: Option<String>,
    /// Why a process of it could not be ended.
    pub failure: Option<String>,
    /// What became of it.
    #[serde(flatten)]
    pub outcome: Fate,
    /// When it exited.
    pub ended: Option<Timestamp>,
}

impl PastOrphan {
    /// Whether there was a verdict: what ended before has neither evidence nor doubts.
    pub const fn is_judged(&self) -> bool {
        !self.evidence.is_empty() || !self.doubts.is_empty()
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PastSignal {
    /// When.
    pub at: Timestamp,
    /// Which one.
    pub signal: Signal,
    /// The process that got it.
    pub pid: u32,
    /// When that process started, in clock ticks since boot.
    pub start: u64,
    /// The name of its program; empty if it is not known.
    pub program: String,
    /// The server that it belonged to: `PID@START` of its first process.
    pub server: String,
    /// The name of the server.
    pub name: String,
    /// The run that the server counts for.
    pub run: Option<RunView>,
    /// The name of the server's owner.
    pub owner: Option<String>,
    /// Whether a person asked to end the server.
    pub asked: bool,
    /// Who that was.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub asked_by: Option<String>,
    /// The evidence of the verdict at that moment.
    pub evidence: Vec<Evidence>,
    /// The doubts at that moment, which a person did not heed.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub doubts: Vec<Doubt>,
}

/// What became of a server. In a fact it has ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum Fate {
    /// orphand ended it.
    Reaped {
        /// The last signal that was needed; absent if the daemon that sent it did not see the exit.
        signal: Option<Signal>,
        /// Milliseconds from the first signal to the exit of the last process; absent if the exit was not
        /// seen.
        took_ms: Option<u64>,
        /// Resident memory in bytes before it was ended.
        freed_bytes: u64,
        /// Proportional memory (PSS) in bytes before it was ended.
        freed_pss_bytes: Option<u64>,
    },
    /// It ended without orphand.
    Exited {
        #[serde(flatten)]
        ending: Ending,
    },
    /// It exited while no daemon was running, or the host stopped.
    Unseen,
    /// It was signalled, and its exit is not known.
    Ending,
    /// As far as is known it is still there.
    Stays,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DaemonLife {
    /// When it opened the store.
    pub started: Timestamp,
    /// When it stopped in good order. Absent if it is still running or was killed.
    pub stopped: Option<Timestamp>,
    pub version: String,
    /// The boot id of the kernel it ran on.
    pub boot_id: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PastLoss {
    /// When the loss was noticed.
    pub at: Timestamp,
    /// How many, by kind.
    pub records: Losses,
}

impl ServerCounts {
    /// `148 MB (PSS 61 MB)`: what was resident, and what the host regained, where that could be read.
    pub fn freed(&self) -> String {
        text::both_sizes(self.freed_bytes, Some(self.freed_pss_bytes).filter(|bytes| *bytes > 0))
    }

    pub fn add(&mut self, other: &Self) {
        self.servers += other.servers;
        self.orphans += other.orphans;
        self.reaped += other.reaped;
        self.freed_bytes += other.freed_bytes;
        self.freed_pss_bytes += other.freed_pss_bytes;
        self.left += other.left;
        self.unproven += other.unproven;
        self.unproven_left += other.unproven_left;
    }
}

impl History {
    pub fn sum(&self) -> ServerCounts {
        let mut sum = self.unaccounted;
        self.runs.iter().for_each(|run| sum.add(&run.account));
        sum
    }
}

/// How many runs have a series of their own.
pub const SERIES: usize = 24;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimelineQuery {
    /// When the first step begins.
    pub from: Timestamp,
    /// The length of a step in milliseconds.
    pub step_ms: i64,
    pub steps: usize,
}

/// What was left behind in each step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Timeline {
    /// The runs that left most memory behind, in that order, at most [`SERIES`].
    pub series: Vec<Series>,
    pub other: Series,
    /// Resident memory of the orphans that were ended in a step, in bytes.
    pub freed_bytes: Vec<u64>,
}

/// The orphans of one run in each step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Series {
    /// The run; absent for servers of no known run, and for several runs.
    pub run: Option<RunView>,
    pub owner: Option<String>,
    /// How many there were, and what became of them. `servers` counts those that were judged.
    pub sums: ServerCounts,
    /// Memory of the orphans that were there in a step, in bytes as of their verdicts.
    pub bytes: Vec<u64>,
    /// How many orphans were there in a step.
    pub orphans: Vec<u64>,
}
