//! What a person asks of the running daemon, and its answers.

use std::{collections::BTreeMap, fmt};

use serde::{Deserialize, Serialize};

use super::{Guard, Losses, Mode, Report, ServerView};

/// What `orphand status` shows.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// orphand's version.
    pub version: String,
    /// The daemon's process.
    pub pid: u32,
    /// Whether it acts.
    pub mode: Mode,
    /// The kernel's release.
    pub kernel: String,
    /// The hooks in use.
    pub hooks: Vec<String>,
    /// Milliseconds from SIGTERM to SIGKILL: how long an end may take.
    #[serde(default)]
    pub term_timeout_ms: u64,
    /// Nanoseconds since the daemon's `ready`.
    pub up_ns: u64,
    /// Why the configuration that is on disk is not in effect, since a reload was refused; absent while all is well.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub config_error: Option<String>,
    /// Why it cannot vouch for what it says; empty while it can.
    pub blind: Vec<String>,
    /// Processes that do not answer when they are looked at.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub stuck: Vec<StuckProcess>,
    /// Agents, servers, orphans, runs, with memory measured now.
    pub report: Report,
    /// Processes in the lineage graph.
    pub processes: u64,
    /// Records received since the start, by kind.
    pub records: Losses,
    /// Records lost since the start, by kind.
    pub lost: Losses,
    /// What went wrong in the kernel side since the start, by kind.
    #[serde(default)]
    pub kernel_errors: BTreeMap<String, u64>,
    /// Repairs from /proc since the start.
    pub resyncs: u64,
    /// Lines dropped by sink, since the start.
    pub sink_dropped: BTreeMap<String, u64>,
    /// Runs of the alert hook by outcome, since the start.
    #[serde(default)]
    pub hook_runs: BTreeMap<String, u64>,
}

impl Status {
    /// Whether it can vouch for what it says. Metrics and health both go by this.
    pub const fn is_watching(&self) -> bool {
        self.blind.is_empty() && self.report.blind.is_empty()
    }
}

/// A process that keeps whoever reads about it in /proc waiting: nothing is known of it, and everything else is judged without.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StuckProcess {
    /// Its number.
    pub pid: u32,
    /// Its real user; absent where that cannot be read.
    pub uid: Option<u32>,
    /// Whole seconds that it has not answered for.
    pub seconds: u64,
}

impl fmt::Display for StuckProcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.uid {
            Some(uid) => write!(f, "{} of user {uid}", self.pid),
            None => write!(f, "{}", self.pid),
        }
    }
}

/// A configuration was read again and is in effect.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reloaded {
    /// Keys that were changed and take effect at the next start only.
    pub later: Vec<String>,
}

/// Which servers to end.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
// A misspelt key must not widen what is ended.
#[serde(default, deny_unknown_fields)]
pub struct ReapRequest {
    /// Those of agents with this name, or of this unit.
    pub agent: Option<String>,
    /// Those of this run.
    pub generation: Option<u64>,
    /// The one with this process.
    pub pid: Option<u32>,
    /// Exactly these: what a plan said, so that nothing is ended that was not shown.
    pub servers: Option<Vec<String>>,
    /// Also servers whose owner lives.
    pub include_active: bool,
    /// Also servers whose owner is gone and that somebody may still use.
    pub include_unproven: bool,
}

/// One server that a [`ReapRequest`] means.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Planned {
    /// The server.
    pub server: ServerView,
    /// The verdict on it now: `live`, `suspect`, `unproven`, `orphan`, `spared`, `terminating`.
    pub state: String,
    /// What forbids to end it, whoever asks. Empty: it will be ended.
    pub guards: Vec<Guard>,
}
