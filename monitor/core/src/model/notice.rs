//! The events of the event stream. Names and fields are a contract with users.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use strum::{EnumDiscriminants, IntoStaticStr, VariantArray};

use super::{
    AgentView, Doubt, Ending, Evidence, Guard, Leftover, Losses, NextStep, ProcessId, ProcessView, ReachedBy,
    ServerView, Signal, Watched,
};

/// An event. The stream adds `seq`, `time` and `boot_ns`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, EnumDiscriminants)]
#[strum_discriminants(name(EventKind), derive(PartialOrd, Ord, Hash, IntoStaticStr, VariantArray))]
#[strum_discriminants(strum(serialize_all = "snake_case"))]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Notice {
    /// The daemon is ready: the kernel hooks are attached, the self-test passed, /proc was read.
    Ready {
        version: String,
        /// Whether it ends orphans or only reports them.
        mode: Mode,
        kernel: String,
        hooks: Vec<String>,
        /// Processes in the process graph.
        processes: u64,
        /// Agents alive.
        agents: u64,
        /// Servers alive.
        servers: u64,
        /// Servers that may have been left behind, from before the first start of orphand on this host, or from before what it knew
        /// was lost: they are judged, and ended only by a person (`orphand reap`).
        found: u64,
    },
    /// An agent was recognised.
    AgentStarted {
        agent: AgentView,
        /// The process whose work this one continues: a launcher that forked itself into the background.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        continues: Option<ProcessId>,
        /// Whether it was found in /proc: it was there before the daemon, or records of its start were lost.
        #[serde(skip_serializing_if = "std::ops::Not::not", default)]
        found: bool,
    },
    /// An agent ended.
    AgentExited {
        agent: AgentView,
        /// How it ended.
        #[serde(flatten)]
        ending: Ending,
        /// Servers it owned that are still alive.
        servers_left: u64,
        /// Resident memory of those servers in bytes.
        rss_bytes: u64,
        /// CPU time of those servers in milliseconds.
        cpu_ms: u64,
    },
    /// An agent has ended, its grace has passed, and processes that it started are alive that are no servers. They are
    /// reported and never ended by the daemon. The event comes again if more are found later.
    LeftoversFound {
        agent: AgentView,
        /// How many were left: branches, counted by their heads.
        count: u64,
        rss_bytes: u64,
        /// CPU time in milliseconds.
        cpu_ms: u64,
        /// The heads, the topmost living process of each branch; at most 64.
        processes: Vec<Leftover>,
    },
    /// A user started more agents in a short time than are reported one by one. The agents counted here ended
    /// soon and without a server. They got no `agent_started`, no `agent_exited` and no run number. See
    /// `docs/shared-hosts.md`.
    AgentsFolded {
        /// The user id.
        uid: u32,
        /// How many agents.
        count: u64,
        /// How many agents of each name.
        names: BTreeMap<String, u64>,
    },
    /// A server was recognised.
    ServerStarted {
        server: ServerView,
        /// Its owner; null if none was found.
        owner: Option<AgentView>,
        /// Whether it was found in /proc: it was there before the daemon, or records of its start were lost.
        #[serde(skip_serializing_if = "std::ops::Not::not", default)]
        found: bool,
    },
    /// All processes of a server ended while its owner was alive.
    ServerExited {
        /// The server as it was.
        server: ServerView,
        owner: Option<AgentView>,
        #[serde(flatten)]
        ending: Ending,
        /// Processes that the server had started and let go: they stay.
        #[serde(skip_serializing_if = "Vec::is_empty", default)]
        let_go: Vec<ProcessView>,
    },
    /// A process of a server left its owner's session with setsid(2). Of one server that is reported once a second at most.
    ServerDetached {
        server: ServerView,
        /// The process.
        pid: u32,
        /// Its new session.
        sid: u32,
    },
    /// A living owner has a further server of the same identity: the same rule, arguments and working directory.
    /// It is reported and never ended by the daemon.
    ServerDuplicated {
        /// The further server.
        server: ServerView,
        owner: Option<AgentView>,
        /// How many servers of this identity the owner has now, this one included.
        count: u64,
    },
    /// The owner exited, or left the server behind although it lives; the grace period begins.
    OrphanSuspected {
        /// Whether the owner exited while no daemon was running.
        #[serde(skip_serializing_if = "std::ops::Not::not", default)]
        recovered: bool,
        server: ServerView,
        owner: Option<AgentView>,
        /// When the grace period ends. In nanoseconds since boot. `deadline` has it as RFC 3339.
        #[serde(rename = "deadline_boot_ns")]
        deadline: super::BootTime,
    },
    /// A suspect was cleared: it ended within its grace period without a signal from orphand, or a living owner was found.
    OrphanCleared {
        /// The server as it was.
        server: ServerView,
        /// Milliseconds from the owner's exit.
        after_ms: u64,
        /// `exited`, `owner_found`, or `session_lives`.
        reason: String,
        /// The living owner that was found.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        owner: Option<AgentView>,
        #[serde(flatten)]
        ending: Ending,
        /// Processes that the server had started and let go: they stay.
        #[serde(skip_serializing_if = "Vec::is_empty", default)]
        let_go: Vec<ProcessView>,
    },
    /// The server, or the agent, was judged an orphan.
    OrphanDetected {
        class: Class,
        /// Whether the verdict rests on what an earlier daemon witnessed.
        #[serde(skip_serializing_if = "std::ops::Not::not", default)]
        recovered: bool,
        /// Whether it was detected before: it was unproven in between, or an earlier daemon detected it. It is counted once.
        #[serde(skip_serializing_if = "std::ops::Not::not", default)]
        again: bool,
        server: ServerView,
        owner: Option<AgentView>,
        /// The facts that prove it.
        evidence: Vec<Evidence>,
        guards: Vec<Guard>,
        rss_bytes: u64,
        /// CPU time of its living processes in milliseconds; null if it was not measured.
        cpu_ms: Option<u64>,
        /// Proportional memory (PSS) in bytes; null if it could not be read.
        pss_bytes: Option<u64>,
        /// Milliseconds since the owner's exit; since the server was found, if it has no known owner.
        after_ms: u64,
        /// Milliseconds from the owner's exit to this event, without the grace period.
        latency_ms: f64,
    },
    /// It was left behind and the grace period has passed, but somebody may still use the server. It is not an
    /// orphan and is not ended.
    OrphanUnproven {
        server: ServerView,
        owner: Option<AgentView>,
        evidence: Vec<Evidence>,
        /// What prevents the proof.
        doubts: Vec<Doubt>,
        /// The path by which it is reached, from somebody who acts by himself; empty if that is not known. Before it the others
        /// who can reach the server itself, 64 at most.
        #[serde(skip_serializing_if = "Vec::is_empty", default)]
        reached_by: Vec<ReachedBy>,
        rss_bytes: u64,
        /// CPU time of its living processes in milliseconds; null if it was not measured.
        cpu_ms: Option<u64>,
        /// Milliseconds since the owner's exit; since the server was found, if it has no known owner.
        after_ms: u64,
        /// When the doubt `working` or `stopping` ends; absent without. In nanoseconds since boot. `deadline` has it as RFC 3339.
        #[serde(rename = "deadline_boot_ns", skip_serializing_if = "Option::is_none", default)]
        deadline: Option<super::BootTime>,
    },
    /// An orphan stays because of guards.
    OrphanSpared {
        class: Class,
        server: ServerView,
        owner: Option<AgentView>,
        guards: Vec<Guard>,
        /// When it is inspected again; absent if that is not known. In nanoseconds since boot. `deadline` has it as RFC 3339.
        #[serde(rename = "deadline_boot_ns", skip_serializing_if = "Option::is_none", default)]
        deadline: Option<super::BootTime>,
    },
    /// An orphan was ended.
    OrphanReaped {
        class: Class,
        /// Whether an earlier daemon signalled it and this one did not see it exit.
        #[serde(skip_serializing_if = "std::ops::Not::not", default)]
        recovered: bool,
        /// Whether a person asked to end it.
        #[serde(skip_serializing_if = "std::ops::Not::not", default)]
        asked: bool,
        /// Who that was.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        asked_by: Option<String>,
        /// The server as it was.
        server: ServerView,
        owner: Option<AgentView>,
        /// The last signal that was needed; null if the exit was not seen.
        signal: Option<Signal>,
        /// Milliseconds from the first signal to the exit of the last process; null if that was not seen.
        took_ms: Option<u64>,
        /// Resident memory in bytes before it was ended.
        freed_bytes: u64,
        /// CPU time of its processes in milliseconds before it was ended; null if it was not measured.
        cpu_ms: Option<u64>,
        /// Proportional memory (PSS) in bytes before it was ended: what the host regained. Null if it could
        /// not be read.
        freed_pss_bytes: Option<u64>,
        /// Processes that the server had started and let go: they stay.
        #[serde(skip_serializing_if = "Vec::is_empty", default)]
        let_go: Vec<ProcessView>,
    },
    /// An orphan, or part of it, could not be ended. Reported once, when no further attempt follows.
    ReapFailed {
        server: ServerView,
        /// The first process that could not be ended.
        pid: u32,
        /// Why that process could not be ended.
        error: String,
        /// errno(3), if a system call failed.
        errno: Option<i32>,
        /// How many processes could not be ended.
        failed: u64,
    },
    /// An orphan exited without a signal from orphand.
    OrphanExited {
        class: Class,
        /// The server as it was.
        server: ServerView,
        owner: Option<AgentView>,
        #[serde(flatten)]
        ending: Ending,
        /// Processes that the server had started and let go: they stay.
        #[serde(skip_serializing_if = "Vec::is_empty", default)]
        let_go: Vec<ProcessView>,
    },
    /// A threshold of an alert rule was crossed.
    Alert {
        /// The rule's name.
        rule: String,
        /// What it watches.
        on: Watched,
        /// The agent or unit it is about; null for the whole host.
        agent: Option<String>,
        /// The present value: a count; for `rss`, bytes; for `cpu`, percent of one CPU.
        value: u64,
        /// The threshold: the highest value that is no alert.
        limit: u64,
    },
    /// A threshold that was reported by `alert` is no longer crossed.
    AlertResolved {
        /// The rule's name.
        rule: String,
        /// What it watches.
        on: Watched,
        /// The agent or unit it is about; null for the whole host.
        agent: Option<String>,
        /// The present value.
        value: u64,
        /// The threshold: the highest value that is no alert.
        limit: u64,
        /// Milliseconds since the alert.
        after_ms: u64,
    },
    /// Another configuration is in effect.
    Reconfigured {
        /// Whether it ends orphans or only reports them.
        mode: Mode,
        /// Who decided the mode with `orphand pause`, `orphand resume` or `orphand mode`; absent if the configuration did, or
        /// the pause is over.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        by: Option<String>,
    },
    /// Records were lost in the kernel, or events were dropped for a reader that was too slow.
    Lost {
        /// Lost kernel records by kind.
        records: Losses,
        /// Dropped events by sink.
        #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
        sink: BTreeMap<String, u64>,
    },
    /// The process graph was repaired from /proc.
    Resynced {
        /// Processes that were found and had not been known.
        added: u64,
        /// Processes that had been known and were gone.
        removed: u64,
    },
    /// The daemon was told to stop.
    Stopping {
        /// Agents that are alive.
        agents: u64,
        /// Servers that are alive, orphans included.
        servers: u64,
        /// Orphans that are alive.
        orphans: u64,
    },
}

impl Notice {
    /// What happens next to the server; `None` if nothing does, or if that is not known.
    pub fn next(&self) -> Option<NextStep> {
        match self {
            Self::OrphanSuspected { .. } => Some(NextStep::Judged),
            Self::OrphanDetected { guards, .. } if guards.is_empty() => Some(NextStep::Ended),
            Self::OrphanDetected { .. } | Self::OrphanSpared { .. } | Self::OrphanUnproven { .. } => {
                Some(NextStep::InspectedAgain)
            }
            Self::ReapFailed { .. } => Some(NextStep::GivenUp),
            _ => None,
        }
    }
}

/// What kind of process was left behind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// An MCP stdio server.
    #[default]
    Server,
    /// An agent. It was started by an agent whose unit has since been stopped or restarted.
    Agent,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// It ends orphans. An earlier version stored the word `reap`.
    #[default]
    #[serde(alias = "reap")]
    Enforce,
    /// It judges and never sends a signal.
    Observe,
}
