//! What the store tells of the past: the answer of `orphand history`. Times are those of the wall clock, in UTC.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{Doubt, Evidence, Guard, Losses, RunView, Signal};

/// What is asked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HistoryQuery {
    /// What was still going on at this time, or came later. Absent: all there is.
    pub since: Option<Timestamp>,
    /// Only agents with this name, or of this unit.
    pub agent: Option<String>,
    /// The kernel's name of this boot, where known: what an earlier boot left open has ended.
    pub boot_id: Option<String>,
}

/// The past.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct History {
    /// What was asked.
    pub since: Option<Timestamp>,
    /// The runs, in the order in which they began.
    pub runs: Vec<PastRun>,
    /// Servers that are accounted to no run: their agent's number was not known.
    pub unaccounted: Account,
    /// What was judged an orphan, in the order of the verdicts.
    pub orphans: Vec<PastOrphan>,
    /// What was judged unproven and never became an orphan, likewise: the owner was gone, and somebody may have used it.
    #[serde(default)]
    pub unproven: Vec<PastOrphan>,
    /// The daemons, in order. Not of one agent, and so absent where one was asked for.
    pub daemons: Vec<DaemonLife>,
    /// Records lost, likewise.
    pub losses: Vec<PastLoss>,
}

/// What became of the servers of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Account {
    /// Servers seen.
    pub servers: u64,
    /// Those that were judged orphans.
    pub orphans: u64,
    /// Those that orphand ended.
    pub reaped: u64,
    /// Their resident memory before, in bytes: what they share is counted for each.
    pub freed_bytes: u64,
    /// Their proportional memory before, in bytes, where it could be read: what the host regained.
    pub freed_pss_bytes: u64,
    /// Orphans that are still there.
    pub left: u64,
    /// Those of which it was never proven that nobody used them, although the owner was gone: no orphans.
    #[serde(default)]
    pub unproven: u64,
    /// Those of them that are still there.
    #[serde(default)]
    pub unproven_left: u64,
}

/// One run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PastRun {
    /// The run.
    pub run: RunView,
    /// When its first agent was born, to the clock tick (10 ms).
    pub started: Timestamp,
    /// When its last top-most agent ended, or the host did. Absent while it lives.
    pub ended: Option<Timestamp>,
    /// Its servers.
    #[serde(flatten)]
    pub account: Account,
}

/// One orphan, or one that was unproven.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PastOrphan {
    /// `PID@START` of its first process.
    pub id: String,
    /// Its name.
    pub name: String,
    /// The rule that recognised it.
    pub rule: String,
    /// The run it is accounted to.
    pub run: Option<RunView>,
    /// The name of its owner.
    pub owner: Option<String>,
    /// When it was judged.
    pub judged: Timestamp,
    /// What speaks for it.
    pub evidence: Vec<Evidence>,
    /// What kept it from being an orphan, if it was unproven.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub doubts: Vec<Doubt>,
    /// What forbade to end it.
    pub guards: Vec<Guard>,
    /// Resident memory at the verdict, in bytes.
    pub rss_bytes: u64,
    /// Proportional memory at the verdict, in bytes.
    pub pss_bytes: Option<u64>,
    /// Why a process of it could not be ended.
    pub failure: Option<String>,
    /// What became of it.
    #[serde(flatten)]
    pub outcome: Outcome,
    /// When it ended.
    pub ended: Option<Timestamp>,
}

/// What became of an orphan, or of one that was unproven.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum Outcome {
    /// orphand ended it.
    Reaped {
        /// The last signal that was needed; absent where the daemon that sent it did not see the end.
        signal: Option<Signal>,
        /// Milliseconds from the first signal to the end of the last process; absent likewise.
        took_ms: Option<u64>,
        /// Resident memory before, in bytes.
        freed_bytes: u64,
        /// Proportional memory before, in bytes.
        freed_pss_bytes: Option<u64>,
    },
    /// It ended by itself.
    Exited,
    /// It ended while no daemon watched, or with the host.
    Unseen,
    /// Signals were sent to it, and it is not known to have ended.
    Ending,
    /// It is there, as far as is known.
    Stays,
}

/// One life of the daemon.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DaemonLife {
    /// When it opened the store.
    pub started: Timestamp,
    /// When it stopped in good order. Absent of one that runs, or that was killed.
    pub stopped: Option<Timestamp>,
    /// orphand's version.
    pub version: String,
    /// The kernel's name of the boot it ran in.
    pub boot_id: String,
}

/// Records that were lost at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PastLoss {
    /// When it was noticed.
    pub at: Timestamp,
    /// How many, by kind.
    pub records: Losses,
}

impl Account {
    /// Adds another account to this one.
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
    /// The sum over all runs, and what is accounted to none.
    pub fn sum(&self) -> Account {
        let mut sum = self.unaccounted;
        self.runs.iter().for_each(|run| sum.add(&run.account));
        sum
    }
}
