//! Requests to the running daemon, and its answers.

use std::{collections::BTreeMap, fmt, path::PathBuf};

use serde::{Deserialize, Serialize};

use super::{Asked, BootTime, Losses, Mode, Report, ServerView, SessionState, Standing, State};

/// What `orphand status` shows.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Status {
    pub version: String,
    /// The daemon's process.
    pub pid: u32,
    /// Whether it ends orphans.
    pub mode: Mode,
    /// What persons decided about that.
    #[serde(flatten)]
    pub standing: Standing,
    /// The main file of the configuration that it reads; absent if an earlier version answers.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub config: Option<PathBuf>,
    pub kernel: String,
    pub hooks: Vec<String>,
    /// Milliseconds from SIGTERM to SIGKILL.
    pub term_timeout_ms: u64,
    /// Milliseconds since the daemon became ready.
    pub up_ms: u64,
    /// Why the configuration on disk is not in effect: the error of the last reload. Absent if there was
    /// none.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub config_error: Option<String>,
    /// Why the store is not written: what is reported is lost when the daemon ends. Absent while it is.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub store_error: Option<String>,
    /// What an earlier daemon knew and this one does not, one sentence each, with what follows from it.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub forgotten: Vec<String>,
    /// Why its view of the host may be incomplete, one sentence each; empty if it is complete.
    pub blind: Vec<String>,
    /// Processes whose /proc files do not answer.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub stuck: Vec<StuckProcess>,
    /// Agents, servers, orphans and runs, with memory measured now.
    pub report: Report,
    /// Processes in the process graph.
    pub processes: u64,
    /// Kernel records received since the start, by kind.
    pub records: Losses,
    /// Kernel records lost since the start, by kind.
    pub lost: Losses,
    /// Processes whose first message was not asked for since the start, because too many waited for that.
    pub not_asked: u64,
    /// Errors of the eBPF programs since the start, by kind.
    pub kernel_errors: BTreeMap<String, u64>,
    /// Repairs of the process graph from /proc since the start.
    pub resyncs: u64,
    /// Events dropped since the start, by sink.
    pub sink_dropped: BTreeMap<String, u64>,
    /// Runs of the alert hook since the start, by outcome.
    pub hook_runs: BTreeMap<String, u64>,
    /// The sessions that servers were started for; absent if no registry is configured.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub sessions: Option<SessionsStatus>,
}

impl Status {
    /// Whether its view of the host is complete. Metrics and health use the same answer.
    pub const fn is_watching(&self) -> bool {
        self.blind.is_empty() && self.report.blind.is_empty()
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionsStatus {
    /// How many sessions are in each state.
    pub states: BTreeMap<SessionState, u64>,
    /// Rounds of questions to the registry that failed since the start, by what failed.
    pub errors: BTreeMap<String, u64>,
}

/// A process whose /proc files block every reader. Nothing is known of it, and everything else is judged
/// without it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StuckProcess {
    pub pid: u32,
    /// Its real user id; absent if it cannot be read.
    pub uid: Option<u32>,
    /// For how many milliseconds it has not answered.
    pub unanswered_ms: u64,
}

impl fmt::Display for StuckProcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.uid {
            Some(uid) => write!(f, "{} of user {uid}", self.pid),
            None => write!(f, "{}", self.pid),
        }
    }
}

/// The configuration was read again and is in effect.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reloaded {
    /// Changed keys that take effect only at the next start.
    pub later: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
// `deny_unknown_fields`: a misspelt key must not widen the set of servers that are ended.
#[serde(default, deny_unknown_fields)]
pub struct ReapRequest {
    /// Servers of agents of this name, or of this unit.
    pub agent: Option<String>,
    pub generation: Option<u64>,
    /// Servers that have one of these processes; all, if there is none. A name means no server here.
    pub targets: Vec<Asked>,
    /// Exactly these servers, by id. The second request of `orphand reap` names what the plan showed, so that
    /// nothing else is ended.
    pub servers: Option<Vec<String>>,
    pub include_active: bool,
    /// Include servers that were left behind and that somebody may still use.
    pub include_unproven: bool,
    /// Only servers of which their living owner has a newer one with the same identity.
    pub duplicates: bool,
    /// No servers, but what agents that have ended left behind besides. An id is that of a head.
    pub leftovers: bool,
}

/// Servers that their manager is done with.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ReleaseRequest {
    /// Servers that have one of these processes. A name means no server here.
    pub targets: Vec<Asked>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
}

/// One server that a [`ReleaseRequest`] selects.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Released {
    pub server: ServerView,
    /// Its state after the request.
    pub state: State,
    /// Whether it is released. Not so if its owner is not known, or has ended: then it is judged without that.
    pub released: bool,
    /// When it is judged; absent if that was before, or if it is not released.
    #[serde(rename = "deadline_boot_ns", skip_serializing_if = "Option::is_none", default)]
    pub deadline: Option<BootTime>,
}
