//! What an inspection of the host says about a server, its wires, and the processes that use it.
//!
//! A failed inspection is reported as failed, never as "nothing there", and no verdict rests on it.

use serde::{Deserialize, Serialize};

use super::{ContainerFacts, Enclosing, Image, ProcessId, Stdio, UnitFacts, Work};

/// The result of inspecting a server before a verdict.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerFacts {
    /// Those of the requested processes that are alive; their identities were compared.
    pub processes: Vec<ProcessFacts>,
    /// Who holds the other end of its standard input, and so may send requests.
    pub stdin: WireState,
    /// Who holds the other end of its standard output, and so may read answers.
    pub stdout: WireState,
    /// Whether a process of the server still has its own end of its standard input and output open.
    #[serde(default)]
    pub own_ends: [bool; 2],
    /// Those of the requested copies that are alive.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub copies: Vec<CopyFacts>,
    /// What its processes have done so far, if that was asked for: those that could be read.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub work: Vec<Work>,
    /// Whether the environment of a process opts out (`ORPHAND_OPT_OUT=1`), or could not be read to its end.
    pub opted_out: bool,
    /// The unit of its main process, or of another of its processes if that has exited; absent outside of
    /// units.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub unit: Option<UnitFacts>,
    /// The container that its client works for; absent if there is none, or if its engine did not tell exactly
    /// one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub container: Option<Box<ContainerFacts>>,
    /// The container that one of its processes is in; absent outside of containers, and in the container of orphand
    /// itself.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub enclosing: Option<Box<Enclosing>>,
    /// Why the inspection is incomplete; absent if it is complete.
    pub blind: Option<String>,
}

/// One process of a server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessFacts {
    /// Its identity.
    pub process: ProcessId,
    /// Its real user id.
    pub uid: u32,
    /// Its session id.
    pub sid: u32,
    /// Resident set size in bytes (`/proc/PID/statm`).
    pub rss_bytes: u64,
    /// Proportional set size (PSS) in bytes (`/proc/PID/smaps_rollup`); absent if it could not be read.
    pub pss_bytes: Option<u64>,
    /// Its descriptors 0, 1 and 2 now.
    #[serde(default)]
    pub stdio: [Stdio; 3],
    /// Those of the requested processes that hold the other end of its descriptors 0 to 2, without itself.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub joined: Vec<ProcessId>,
    /// Its use of sockets.
    #[serde(default)]
    pub sockets: SocketUse,
    /// Whether its executable was replaced or deleted on disk since it started.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub stale_binary: bool,
    /// Whether a process outside of those requested traces it (ptrace(2)).
    #[serde(default)]
    pub traced: bool,
    /// Whether it ignores SIGHUP, as `nohup` makes a program do that shall outlive its session.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub ignores_hangup: bool,
}

/// How a process uses sockets of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SocketUse {
    /// Whether it listens on one.
    pub listens: bool,
    /// Whether an outside client is connected to one of them, or was within the last minute, or this cannot
    /// be ruled out. A named FIFO that it reads counts as a socket.
    pub clients: bool,
    /// Those of the requested processes that are such clients.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub inside: Vec<ProcessId>,
}

/// The other end of a wire of a server. It is found from outside, without side effects.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WireState {
    /// It could not be found out.
    #[default]
    Unknown,
    /// No process has the other end open, or no process of the server has its own end open any more.
    HungUp,
    /// The other end is open.
    Held {
        /// In these processes, which may be processes of the server itself.
        holders: Vec<Holder>,
        /// Whether it may also be open elsewhere, for instance in flight between two processes.
        unseen: bool,
    },
}

/// A process that holds the other end of a wire.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// The process.
    pub process: ProcessId,
    /// Its real user id.
    pub uid: u32,
    /// Its session id.
    pub sid: u32,
    /// What it runs.
    pub image: Image,
    /// The unit it belongs to. Looked up only for processes outside of the server.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub unit: Option<UnitFacts>,
    /// Whether it, or another process of its server, has clients of its own. Looked up only for other servers
    /// of the same owner.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub clients: bool,
}

/// What a forked copy of an agent does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CopyFacts {
    /// The copy.
    pub process: ProcessId,
    /// Its session id.
    pub sid: u32,
    /// Whether it listens on a socket, or has a connection (socket or pipe) to a process outside of those
    /// requested. Standard output and error do not count.
    pub connected: bool,
    /// What it has done so far; absent if that could not be read.
    pub work: Option<Work>,
}
