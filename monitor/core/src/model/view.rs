//! How events show agents, servers, processes, and how an unproven server is reached. Names and fields are a contract with
//! users.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{AgentHints, BootTime, Container, ProcessId, RunView, ServerHints, run_name, text};

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessView {
    pub pid: u32,
    pub start: u64,
    pub uid: u32,
    /// The path of its executable.
    pub exe: String,
    /// Its arguments; what is not known to be harmless is masked.
    pub argv: Vec<String>,
    /// Whether the arguments were cut.
    pub argv_truncated: bool,
    /// Whether its executable was replaced or deleted on disk since it started, as last seen.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub stale_binary: bool,
}

/// How many processes of one server are listed. A server may have thousands, and an event has to fit into
/// bounded queues and lines.
pub const SHOWN: usize = 64;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerView {
    /// `PID@START` of its first process; unique while the host is up.
    pub id: String,
    /// Its name: package, module or program.
    pub name: String,
    /// The rule that recognised it; `protocol` for a server that no rule knows and that speaks the protocol.
    pub rule: String,
    /// The name of the client that talks to it, as the client told it in its first message; absent if that message
    /// was not seen.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub client: Option<String>,
    /// Its processes from the head of the launch chain down; at most 64.
    pub processes: Vec<ProcessView>,
    /// How many processes it has, including those not listed; 0 if they were not counted.
    pub processes_total: u64,
    /// Their resident memory in bytes as last measured.
    pub rss_bytes: Option<u64>,
    /// The CPU time of its living processes in milliseconds, as last measured; absent if it was not measured.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub cpu_ms: Option<u64>,
    /// Whether the main process of the server leads a session.
    pub session_leader: bool,
    /// The run of its top-most agent; null for a server without an owner.
    pub run: Option<RunView>,
    /// The id of the session that it was started for; of a long one only the beginning.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub session: Option<String>,
    #[serde(flatten)]
    pub hints: ServerHints,
    /// The container that it works in; absent for a server that is no client of a container engine, and in no container.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub container: Option<Container>,
}

impl ProcessView {
    pub const fn id(&self) -> ProcessId {
        ProcessId::new(self.pid, self.start)
    }
}

impl ServerView {
    pub fn ids(&self) -> Vec<ProcessId> {
        self.processes.iter().map(ProcessView::id).collect()
    }

    pub fn age(&self, now: BootTime) -> Option<Duration> {
        self.processes.first().map(|first| now.since(BootTime::of_ticks(first.start)))
    }

    /// How many processes it has, including those not listed.
    pub fn count(&self) -> u64 {
        self.processes_total.max(self.processes.len() as u64)
    }

    pub fn hidden(&self) -> u64 {
        self.count() - self.processes.len() as u64
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentView {
    /// The name that its rule gives it, or the name of its program.
    pub name: String,
    /// Its process number.
    pub pid: u32,
    /// Start time of that process in clock ticks since boot.
    pub start: u64,
    pub uid: u32,
    /// The number of its run.
    pub generation: Option<u64>,
    /// The systemd unit that its run is numbered for.
    pub unit: Option<String>,
    /// That unit's invocation id.
    pub invocation_id: Option<String>,
    /// Whether it is alive.
    pub alive: bool,
    /// Whether no rule matched it: it counts as an agent because it started an MCP server.
    pub implied: bool,
    #[serde(flatten)]
    pub hints: AgentHints,
}

impl AgentView {
    pub const fn id(&self) -> ProcessId {
        ProcessId::new(self.pid, self.start)
    }

    /// What its run is called; without a number the run says nothing, and it is called by its own name.
    pub fn run_name(&self) -> String {
        run_name(&self.name, self.unit.as_deref().filter(|_| self.generation.is_some()))
    }

    /// The same with the number of its run.
    pub fn title(&self) -> String {
        text::numbered(&self.run_name(), self.generation)
    }

    /// Whether it, or its unit, has this name, or its run is shown so.
    pub fn is_called(&self, name: &str) -> bool {
        self.name == name || self.unit.as_deref() == Some(name) || self.title() == name
    }
}

/// One step of the path from somebody who acts by himself, or from a tool at work, to an unproven server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReachedBy {
    /// Who can reach the next one; absent if nobody can be named.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub pid: Option<u32>,
    /// Its start time, in clock ticks since boot.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub start: Option<u64>,
    /// The name of its program.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub program: Option<String>,
    /// Its real user id.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub user: Option<u32>,
    /// What joins the two: `stdin`, `stdout`, `connection`, `call`, `pipe`, `listener`, `file`, `memory`, `open_file`, `terminal`,
    /// `pid_namespace`, `parent_death`, `trace`, `device`, `launcher`, `work`.
    pub by: String,
    /// What it can do, in words that follow its name.
    pub via: String,
    /// What it can do that to; absent if that is the server.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub to: Option<u32>,
}

impl ReachedBy {
    /// Who can reach the next one, if anybody can be named.
    pub fn process(&self) -> Option<ProcessId> {
        Some(ProcessId::new(self.pid?, self.start?))
    }

    /// Whether it leads to a server by a use of it: over its wires a host talks to it, and the rest depends on it.
    pub fn is_use(&self) -> bool {
        matches!(
            self.by.as_str(),
            "connection" | "call" | "pipe" | "listener" | "file" | "memory" | "open_file"
        )
    }

    pub fn sentence(&self) -> String {
        let who = match (self.pid, &self.program, self.user) {
            (Some(pid), Some(program), Some(user)) => format!("pid {pid} ({program}, uid {user})"),
            (Some(pid), ..) => format!("pid {pid}"),
            (None, ..) => "somebody who cannot be seen".to_owned(),
        };
        format!("{who} {}", self.via)
    }
}

/// How a server was recognised that this rule knows, as one of four words: by its `name`, by its `arguments`, by the
/// `protocol`, or by a rule of the configuration (`config`).
pub fn recognised_by(rule: &str) -> &'static str {
    match rule {
        "protocol" => "protocol",
        "mcp-arguments" => "arguments",
        "npm-mcp" | "python-mcp" | "module-mcp" | "package-mcp" | "script-mcp" | "project-mcp"
        | "program-mcp" | "image-mcp" | "known-mcp" => "name",
        _ => "config",
    }
}

#[cfg(test)]
mod tests {
    use super::recognised_by;
    use crate::{
        model::Image,
        recognise::{Role, Rules},
    };

    fn by(argv: &[&str]) -> &'static str {
        let argv: Vec<String> = argv.iter().map(ToString::to_string).collect();
        let image = Image { exe: argv[0].clone(), argv, argv_truncated: false };
        match Rules::default().role(&image) {
            Role::Server { rule, .. } => recognised_by(&rule),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn every_built_in_rule_has_its_kind() {
        for argv in [
            &["npx", "@playwright/mcp"][..],
            &["python3", "/v/site-packages/mcp_server_git/__main__.py"],
            &["python3", "-m", "mcp_server_git"],
            &["uvx", "mcp-server-time"],
            &["node", "mcp-server.js"],
            &["node", "/x/weather-mcp/dist/index.js"],
            &["/usr/bin/mcp-grafana"],
            &["docker", "run", "-i", "mcp/fetch"],
            &["task-master-ai"],
        ] {
            assert_eq!(by(argv), "name", "{argv:?}");
        }
        assert_eq!(by(&["gopls", "mcp"]), "arguments");
        assert_eq!(recognised_by("protocol"), "protocol");
        assert_eq!(recognised_by("weather"), "config");
    }
}
