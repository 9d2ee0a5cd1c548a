//! One read of /proc.

use serde::{Deserialize, Serialize};

use super::{AgentHints, BootTime, Image, ProcessId, Stdio, UnitFacts};

/// What one pass over /proc saw. Processes that started at or after `horizon` may be missing or incomplete.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot {
    /// The time before the pass began, and strictly after the ring was last drained.
    pub horizon: BootTime,
    /// The living processes in no particular order, without zombies and kernel threads.
    pub processes: Vec<SnapshotProcess>,
    /// The ids of processes whose /proc files did not answer. They exist, and nothing else is known of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unread: Vec<u32>,
}

/// One process as /proc describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnapshotProcess {
    pub id: ProcessId,
    /// Its present parent (creator or adopter); absent for pid 1 and if the parent was not seen.
    pub parent: Option<ProcessId>,
    pub uid: u32,
    pub sid: u32,
    /// What it runs now. A program may have overwritten its argv with a title.
    pub image: Image,
    /// Standard input, output and error now. `stdio[0]` is the wire even if the program moved it to another
    /// descriptor, as Python's mcp 2 does.
    pub stdio: [Stdio; 3],
    /// The unit it belongs to; absent outside of units and in a full pass over /proc. An answer to
    /// [`super::About::Process`] always says it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub unit: Option<UnitFacts>,
    /// Its place among the units: the innermost service or scope of each hierarchy of control groups, as text to be
    /// compared; empty outside of units. Read with `unit`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub place: Option<String>,
    /// By what a person recognises it, if it is an agent. Read with `unit`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub hints: Option<Box<AgentHints>>,
    /// Whether its executable was replaced or deleted on disk since it started.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub stale_binary: bool,
}
