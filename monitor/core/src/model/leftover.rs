//! Leftovers: what an agent that has ended left behind and that is no server.

use serde::{Deserialize, Serialize};

use super::{AgentView, ProcessId, ProcessView, RunView, ServerReport};

/// What a leftover is, as far as its program and its ports tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LeftoverClass {
    /// A browser.
    Browser,
    /// It, or what is below it, listens on a TCP port: a development server, for instance.
    Listener,
    /// A shell, with its jobs.
    Shell,
    /// A forked copy of the agent that never ran a program of its own.
    Copy,
    /// Anything else.
    #[default]
    Other,
}

/// The head of a branch that an agent left behind: the topmost of its living processes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Leftover {
    /// What it is.
    pub class: LeftoverClass,
    /// The process.
    #[serde(flatten)]
    pub process: ProcessView,
    /// How many processes the branch has, this one included.
    pub processes_total: u64,
    /// Their resident memory in bytes.
    pub rss_bytes: u64,
    /// Their CPU time in milliseconds.
    pub cpu_ms: u64,
    /// For how many milliseconds the head has been running.
    pub age_ms: u64,
    /// The TCP addresses on which they listen.
    pub listens: Vec<String>,
}

/// What one agent left behind, in reports. Each head has the form of a server: whatever lists servers can list it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LeftoverReport {
    pub agent: AgentView,
    /// The run that it is accounted to.
    pub run: RunView,
    /// How many heads there are, those that are not listed included.
    pub count: u64,
    /// The heads; the rule of each is its class.
    pub heads: Vec<ServerReport>,
}

impl LeftoverReport {
    /// The resident memory of the heads and what is below them, in bytes.
    pub fn rss_bytes(&self) -> u64 {
        self.heads.iter().map(ServerReport::rss_bytes).fold(0, u64::saturating_add)
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Branch {
    pub head: ProcessId,
    /// Its present parent; absent if that was not read.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub parent: Option<ProcessId>,
    /// Its place: see [`super::SnapshotProcess::place`]. Absent if it could not be read.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub place: Option<String>,
    /// Those of its processes that are in another place, or whose place could not be read. They are not measured.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub apart: Vec<ProcessId>,
    pub rss_bytes: u64,
    pub cpu_ms: u64,
    /// The TCP addresses on which its processes listen.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub listens: Vec<String>,
}

/// What a person may want to know before something is ended: what it blocks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holdings {
    /// The TCP addresses on which it listens.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub listens: Vec<String>,
    /// The files on which it holds a lock, and the lock files and pid files that it has open for writing.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub locks: Vec<String>,
}
