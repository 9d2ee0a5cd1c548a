//! What orphand tells the world: the events of the stream. Names and fields are a contract with users.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Doubt, Evidence, Guard, Losses, ProcessId, RunView, Signal, Watched};

/// An event. The stream adds `seq`, `time` and `boot_ns`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Notice {
    /// The daemon watches: its hooks are attached, the self-test has passed, and /proc has been read.
    Ready {
        /// orphand's version.
        version: String,
        /// Whether it ends orphans or only observes.
        mode: Mode,
        /// The kernel's release.
        kernel: String,
        /// The hooks in use.
        hooks: Vec<String>,
        /// Processes in the lineage graph.
        processes: u64,
        /// Agents alive.
        agents: u64,
        /// Servers alive.
        servers: u64,
    },
    /// An agent was recognised.
    AgentStarted {
        /// The agent.
        agent: AgentView,
        /// The process whose work it continues: the launcher of a program that forked itself into the background.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        continues: Option<ProcessId>,
    },
    /// An agent ended.
    AgentExited {
        /// The agent.
        agent: AgentView,
        /// Its exit code, if it called exit(2).
        exit_code: Option<u8>,
        /// The signal that ended it, if one did.
        signal: Option<u8>,
        /// How many servers it owned are still alive.
        servers_left: u64,
        /// Their resident memory in bytes.
        rss_bytes: u64,
    },
    /// A user started more agents in a short time than are reported one by one. These ended within a moment and without a server. They
    /// had no `agent_started` and no `agent_exited`, and no run of them was counted. See `docs/shared-hosts.md`.
    AgentsFolded {
        /// The user id.
        uid: u32,
        /// How many agents.
        count: u64,
        /// The same by name.
        names: BTreeMap<String, u64>,
    },
    /// A server was recognised.
    ServerStarted {
        /// The server.
        server: ServerView,
        /// Its owner, if one was found.
        owner: Option<AgentView>,
    },
    /// All processes of a server ended while its owner was alive.
    ServerExited {
        /// The server as it was.
        server: ServerView,
        /// Its owner.
        owner: Option<AgentView>,
        /// Processes that it had started and let go. They stay.
        #[serde(skip_serializing_if = "Vec::is_empty", default)]
        let_go: Vec<ProcessView>,
    },
    /// A process of a server left its owner's session with setsid(2).
    ServerDetached {
        /// The server.
        server: ServerView,
        /// The process.
        pid: u32,
        /// Its new session.
        sid: u32,
    },
    /// The owner exited; grace begins.
    OrphanSuspected {
        /// Whether the owner ended while no daemon watched.
        #[serde(skip_serializing_if = "std::ops::Not::not", default)]
        recovered: bool,
        /// The server.
        server: ServerView,
        /// Its owner.
        owner: Option<AgentView>,
        /// When the grace ends, in nanoseconds since boot. The field `deadline` has it as RFC 3339.
        #[serde(rename = "deadline_boot_ns")]
        deadline: super::BootTime,
    },
    /// A suspect is no orphan: it ended by itself within its grace, or a living owner was found.
    OrphanCleared {
        /// The server as it was.
        server: ServerView,
        /// Milliseconds from the owner's exit.
        after_ms: u64,
        /// `exited`, or `owner_found`.
        reason: String,
        /// The living owner that was found.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        owner: Option<AgentView>,
        /// Processes that it had started and let go. They stay.
        #[serde(skip_serializing_if = "Vec::is_empty", default)]
        let_go: Vec<ProcessView>,
    },
    /// A server, or an agent, is an orphan.
    OrphanDetected {
        /// What was left behind.
        #[serde(default)]
        class: Class,
        /// Whether the verdict rests on what an earlier daemon witnessed.
        #[serde(skip_serializing_if = "std::ops::Not::not", default)]
        recovered: bool,
        /// The server.
        server: ServerView,
        /// Its owner.
        owner: Option<AgentView>,
        /// What proves it.
        evidence: Vec<Evidence>,
        /// What forbids to end it.
        guards: Vec<Guard>,
        /// Resident memory in bytes.
        rss_bytes: u64,
        /// Proportional memory in bytes, where it could be read.
        pss_bytes: Option<u64>,
        /// Milliseconds since the owner's exit; without a known owner, since the server was found.
        #[serde(default)]
        after_ms: u64,
        /// Milliseconds from the owner's exit to this event, less the grace.
        latency_ms: f64,
    },
    /// The owner is gone and the grace has passed, but somebody may still use the server: it is no orphan and is not ended.
    OrphanUnproven {
        /// The server.
        server: ServerView,
        /// Its owner.
        owner: Option<AgentView>,
        /// What speaks for an orphan.
        evidence: Vec<Evidence>,
        /// What keeps it from being one.
        doubts: Vec<Doubt>,
        /// Resident memory in bytes.
        rss_bytes: u64,
        /// Milliseconds since the owner's exit; without a known owner, since the server was found.
        after_ms: u64,
    },
    /// An orphan stays because of these guards.
    OrphanSpared {
        /// What was left behind.
        #[serde(default)]
        class: Class,
        /// The server.
        server: ServerView,
        /// Its owner.
        owner: Option<AgentView>,
        /// What forbids to end it.
        guards: Vec<Guard>,
    },
    /// An orphan was ended.
    OrphanReaped {
        /// What was left behind.
        #[serde(default)]
        class: Class,
        /// Whether the daemon that signalled it did not see the end.
        #[serde(skip_serializing_if = "std::ops::Not::not", default)]
        recovered: bool,
        /// Whether a person asked to end it.
        #[serde(skip_serializing_if = "std::ops::Not::not", default)]
        asked: bool,
        /// The server as it was.
        server: ServerView,
        /// Its owner.
        owner: Option<AgentView>,
        /// The last signal that was needed; null if nobody saw the end.
        signal: Option<Signal>,
        /// Milliseconds from the first signal to the end of the last process; null likewise.
        took_ms: Option<u64>,
        /// Resident memory before, in bytes.
        freed_bytes: u64,
        /// Proportional memory before, in bytes, where it could be read: what the host regained.
        freed_pss_bytes: Option<u64>,
        /// Processes that it had started and let go. They stay.
        #[serde(skip_serializing_if = "Vec::is_empty", default)]
        let_go: Vec<ProcessView>,
    },
    /// An orphan could not be ended, or not all of it. This is reported once, when nothing more is tried.
    ReapFailed {
        /// The server.
        server: ServerView,
        /// The first process that could not be ended.
        pid: u32,
        /// Why that process could not be ended.
        error: String,
        /// errno(3), where a system call failed.
        errno: Option<i32>,
        /// How many processes could not be ended.
        #[serde(default)]
        failed: u64,
    },
    /// An orphan ended that orphand had not signalled.
    OrphanExited {
        /// What was left behind.
        #[serde(default)]
        class: Class,
        /// The server as it was.
        server: ServerView,
        /// Its owner.
        owner: Option<AgentView>,
        /// Processes that it had started and let go. They stay.
        #[serde(skip_serializing_if = "Vec::is_empty", default)]
        let_go: Vec<ProcessView>,
    },
    /// A threshold was crossed.
    Alert {
        /// The rule's name.
        rule: String,
        /// What it watches.
        on: Watched,
        /// The agent, or unit, that it is about; null for the whole host.
        agent: Option<String>,
        /// A count; for `rss`, bytes.
        value: u64,
        /// The highest value that is no alert.
        limit: u64,
    },
    /// A threshold that an `alert` was about is not crossed any more.
    AlertResolved {
        /// The rule's name.
        rule: String,
        /// What it watches.
        on: Watched,
        /// The agent, or unit, that it is about; null for the whole host.
        agent: Option<String>,
        /// The same now.
        value: u64,
        /// The highest value that is no alert.
        limit: u64,
        /// Milliseconds since the `alert`.
        after_ms: u64,
    },
    /// Another configuration is in effect.
    Reconfigured {
        /// Whether it ends orphans or only observes.
        mode: Mode,
    },
    /// Records were lost in the kernel, or events on the way to a reader that was too slow.
    Lost {
        /// Records of the kernel, by kind.
        records: Losses,
        /// Events, by sink.
        #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
        sink: BTreeMap<String, u64>,
    },
    /// The lineage graph was repaired from /proc.
    Resynced {
        /// Processes found that were not known.
        added: u64,
        /// Processes known that had ended.
        removed: u64,
    },
    /// The daemon was told to stop. It ends nothing.
    Stopping {
        /// Agents alive.
        agents: u64,
        /// Servers alive, orphans included.
        servers: u64,
        /// Orphans alive.
        orphans: u64,
    },
}

/// What can be left behind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// An MCP stdio server.
    #[default]
    Server,
    /// An agent that was started by an agent whose unit has been stopped or started anew since.
    Agent,
}

/// Whether the daemon acts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// It ends orphans.
    #[default]
    Reap,
    /// It judges and never signals.
    Observe,
}

/// A process in an event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessView {
    /// Its process number.
    pub pid: u32,
    /// Its start time in clock ticks since boot.
    pub start: u64,
    /// Its real user id.
    pub uid: u32,
    /// The file it runs.
    pub exe: String,
    /// Its arguments, secrets redacted.
    pub argv: Vec<String>,
    /// Whether the arguments are cut short.
    pub argv_truncated: bool,
}

/// Processes of one server that are shown. A server may have thousands; what is told of it has to fit into queues and lines.
pub const SHOWN: usize = 64;

/// A server in an event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerView {
    /// `PID@START` of its first process; never reused while the host is up.
    pub id: String,
    /// Its name: package, module or program.
    pub name: String,
    /// The rule that recognised it.
    pub rule: String,
    /// Its processes, from the head of the launch chain down: the first 64 of them.
    pub processes: Vec<ProcessView>,
    /// How many there are, including those not shown; 0 where nobody counted.
    #[serde(default)]
    pub processes_total: u64,
    /// Their resident memory in bytes when last measured.
    pub rss_bytes: Option<u64>,
    /// Whether its main process leads a session of its own.
    pub session_leader: bool,
    /// The run it is accounted to: that of the top-most agent. None for a server without an owner.
    #[serde(default)]
    pub run: Option<RunView>,
}

impl ServerView {
    /// How many processes it has, those not shown included.
    pub fn count(&self) -> u64 {
        self.processes_total.max(self.processes.len() as u64)
    }

    /// How many are not shown.
    pub fn hidden(&self) -> u64 {
        self.count() - self.processes.len() as u64
    }
}

/// An agent in an event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentView {
    /// The name that its rule gives it, or the name of its program.
    pub name: String,
    /// Its process number.
    pub pid: u32,
    /// The start time of that process in clock ticks since boot.
    pub start: u64,
    /// The number of its run.
    pub generation: Option<u64>,
    /// The systemd unit it runs in.
    pub unit: Option<String>,
    /// That unit's invocation.
    pub invocation_id: Option<String>,
    /// Whether it is alive.
    pub alive: bool,
    /// Whether no rule knows it: it counts as an agent because it started an MCP server.
    pub implied: bool,
}
