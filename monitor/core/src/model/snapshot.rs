//! One look at /proc.

use serde::{Deserialize, Serialize};

use super::{BootTime, Image, ProcessId, Stdio, UnitFacts};

/// What one pass over /proc saw. It says nothing about processes born at or after `horizon`: they may have
/// been missed, or seen half-made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot {
    /// Taken before the pass began and strictly after the last drain of the ring.
    pub horizon: BootTime,
    /// The living processes (no zombies, no kernel threads) in no particular order.
    pub processes: Vec<SnapshotProcess>,
    /// The numbers of those that did not answer: they are there, and nothing else is known of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unread: Vec<u32>,
}

/// One process as /proc describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnapshotProcess {
    /// Its identity.
    pub id: ProcessId,
    /// Its present parent, creator or adopter; absent for pid 1 and where the parent was not seen.
    pub parent: Option<ProcessId>,
    /// Its real user id.
    pub uid: u32,
    /// Its session id.
    pub sid: u32,
    /// What it runs now. A program may have overwritten its argv with a title.
    pub image: Image,
    /// Standard input, output and error now. `stdio[0]` is the wire where it could be found on another
    /// descriptor (Python's mcp 2 moves it).
    pub stdio: [Stdio; 3],
    /// The unit it lives in; absent outside of units, and where nobody asked ([`super::About::Process`] always does).
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub unit: Option<UnitFacts>,
}
