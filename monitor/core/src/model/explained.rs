//! What the engine knows of one process: the facts behind `orphand explain`. Times are those of the kernel's boot
//! clock; the shell turns them into sentences and dates.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{AgentView, BootTime, Holdings, Kept, ProcessId, ProcessView, ServerReport, Stdio};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Asked {
    /// The process with this number: `4711`.
    Pid(u32),
    /// Exactly this process: `4711@229468`.
    Id(ProcessId),
    Name(String),
}

impl From<&str> for Asked {
    fn from(typed: &str) -> Self {
        let id = || {
            let (pid, start) = typed.split_once('@')?;
            Some(ProcessId::new(pid.parse().ok()?, start.parse().ok()?))
        };
        let pid = || typed.parse().ok().map(Self::Pid);
        pid().or_else(|| id().map(Self::Id)).unwrap_or_else(|| Self::Name(typed.to_owned()))
    }
}

impl fmt::Display for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pid(pid) => write!(f, "pid {pid}"),
            Self::Id(id) => write!(f, "{id}"),
            Self::Name(name) => write!(f, "\"{name}\""),
        }
    }
}

impl Asked {
    /// Whether this process is meant; names are compared elsewhere.
    pub fn is(&self, process: ProcessId) -> bool {
        match self {
            Self::Pid(pid) => process.pid == *pid,
            Self::Id(id) => process == *id,
            Self::Name(_) => false,
        }
    }

    /// Whether this is the id that is meant, as people read it.
    pub fn is_id(&self, id: &str) -> bool {
        matches!(self, Self::Id(meant) if meant.to_string() == id)
    }

    /// Whether a server or an agent of this name is meant.
    pub fn names(&self, name: &str) -> bool {
        matches!(self, Self::Name(asked) if asked == name)
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TakenFor {
    /// A stdio server, or a part of one that a rule recognised.
    Server,
    /// A process that a server started.
    ServerPart,
    /// A shell or launcher around a server.
    Wrapper,
    /// A process that an agent left behind when it ended, and that is no server.
    Leftover,
    /// An agent.
    Agent,
    /// Nothing.
    #[default]
    Nothing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoServer {
    KernelThread,
    /// A rule knows its program, and its standard streams are no wires.
    NoWire,
    /// A rule knows its program, it has wires, and it is not followed.
    NotFollowed,
    Shell,
    /// A program that starts others.
    Launcher,
    Multiplexer,
    /// A rule exempts its program.
    Exempt,
    ServiceManager,
    /// It was started inside a multiplexer or an exempt program.
    Protected,
    AgentNotFollowed,
    /// Its name looks like that of a server, and no rule matches it.
    NearMiss,
    /// A shell made its wires: it is a part of a pipeline, or a job.
    ShellsJob,
    /// It has wires, and nobody spoke the protocol to it.
    Silent,
    /// It has no wires, and no rule knows its program.
    Unrelated,
    /// Its program or its standard streams could not be read.
    Unread,
}

/// Why a process is no server, and the rule that almost applied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Nothing {
    pub reason: NoServer,
    /// The rule that knows its program, if one does.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub rule: Option<String>,
    pub streams: [Stdio; 2],
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Creator {
    pub id: ProcessId,
    pub program: Option<String>,
    pub uid: Option<u32>,
    /// Whether it is alive; absent if the engine does not follow it.
    pub alive: Option<bool>,
    pub exited: Option<BootTime>,
    /// Whether the kernel reported that it created the next one. Otherwise it was its parent when /proc was read.
    pub witnessed: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NextStep {
    /// Nothing, as long as its owner lives.
    OwnerEnds,
    /// Nothing: nobody can leave it behind.
    Never,
    /// Nothing, as long as its owner lives and it does anything before that time: an idle duplicate is released then.
    Idle,
    /// It is judged at the end of its grace.
    Judged,
    /// The host is being inspected now.
    Inspected,
    /// It is inspected again.
    InspectedAgain,
    /// The next step of ending it.
    Ended,
    /// It could not be ended, and nothing more is tried.
    GivenUp,
}

/// How many processes of one name are explained at a time.
pub const EXPLAINED: usize = 32;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Explained {
    pub process: ProcessView,
    pub taken_for: TakenFor,
    pub nothing: Option<Nothing>,
    pub agent: Option<AgentView>,
    /// The rule that recognised this agent.
    pub rule: Option<String>,
    /// How many living servers this agent has.
    pub servers: u64,
    /// The server that it belongs to, or the agent that was left behind, with the reasons of its verdict.
    pub report: Option<Box<ServerReport>>,
    /// Whether a rule exempts it, or the agent or server that it is a part of.
    pub exempt: bool,
    /// The rule by which it is exempt, where it is known which one of the configuration that is.
    #[serde(skip)]
    pub exempted_by: Option<ExemptedBy>,
    /// The servers that it keeps from being orphans.
    #[serde(skip)]
    pub keeps: Vec<Kept>,
    /// Whether nothing but its name says that it is a server.
    pub only_named: bool,
    /// Whether its server started it and has let it go, as the last inspection found.
    pub let_go: bool,
    /// What it blocks, with the rest of its server or branch.
    #[serde(flatten)]
    pub holdings: Holdings,
    pub owner: Option<AgentView>,
    pub owner_exited: Option<BootTime>,
    /// Why there is a case, as one word.
    pub cause: Option<String>,
    pub since: Option<BootTime>,
    /// The user who released it, if that is why there is a case.
    pub released_by: Option<u32>,
    /// The creators, the nearest first.
    pub creators: Vec<Creator>,
    /// What happens next; absent without a daemon.
    pub next: Option<NextStep>,
    pub due: Option<BootTime>,
    pub observes: bool,
}

/// A rule of the configuration that exempts something.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExemptedBy {
    pub rule: String,
    /// The file, and the line where it begins.
    pub place: String,
    /// Whether a person wrote it with `orphand spare`.
    pub spared: bool,
}

impl Explained {
    pub fn nothing(process: ProcessView, nothing: Nothing) -> Self {
        Self { process, nothing: Some(nothing), ..Self::default() }
    }

    /// The processes that are shown of its server or branch, or itself.
    pub fn processes(&self) -> Vec<ProcessId> {
        let shown = self.report.as_ref().map(|report| report.server.ids());
        shown.filter(|shown| !shown.is_empty()).unwrap_or_else(|| vec![self.id()])
    }

    pub const fn id(&self) -> ProcessId {
        self.process.id()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_typed_is_a_number_an_id_or_a_name() {
        let id = ProcessId::new(4711, 229_468);
        assert_eq!(Asked::from("4711"), Asked::Pid(4711));
        assert_eq!(Asked::from("4711@229468"), Asked::Id(id));
        for name in ["claude", "4711@", "@playwright/mcp", "99999999999", ""] {
            assert_eq!(Asked::from(name), Asked::Name(name.to_owned()));
        }
        assert!(Asked::from("4711").is(id) && Asked::from("4711@229468").is(id));
        assert!(!Asked::from("4711@1").is(id) && !Asked::from("claude").is(id));
        assert!(Asked::from("claude").names("claude") && !Asked::from("claude").names("claude2"));
    }
}
