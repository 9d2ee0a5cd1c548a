//! What a look at the host tells about a server, its wires and who else has to do with them.
//!
//! A look that failed is told as such, never as "nothing there": no verdict rests on it.

use serde::{Deserialize, Serialize};

use super::{Image, ProcessId, Stdio, UnitFacts};

/// What the host says about a server at the moment of a verdict.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerFacts {
    /// Those of the processes asked about that live, their identity compared.
    pub processes: Vec<ProcessFacts>,
    /// Who can talk to it: who holds the other end of its standard input.
    pub stdin: WireState,
    /// Who listens to it: who holds the other end of its standard output.
    pub stdout: WireState,
    /// Those of the copies asked about that live.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub copies: Vec<CopyFacts>,
    /// Whether the environment of a process asks to be left alone (`ORPHAND_OPT_OUT=1`), or could not be read to its end.
    pub opted_out: bool,
    /// The unit of the server proper, or of another of its processes where that has ended; absent outside of units.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub unit: Option<UnitFacts>,
    /// Why the look is not complete, if it is not.
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
    /// Proportional set size in bytes (`/proc/PID/smaps_rollup`), where it could be read.
    pub pss_bytes: Option<u64>,
    /// Its descriptors 0, 1 and 2 now.
    #[serde(default)]
    pub stdio: [Stdio; 3],
    /// Those of the processes asked about that hold the other end of its descriptors 0 to 2, itself not included.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub joined: Vec<ProcessId>,
    /// What it does with sockets.
    #[serde(default)]
    pub sockets: SocketUse,
    /// Whether a process that is not among those asked about traces it (ptrace(2)).
    #[serde(default)]
    pub traced: bool,
}

/// What a process does with sockets of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SocketUse {
    /// It listens on one.
    pub listens: bool,
    /// A client from outside is connected to one of them, or was within the last minute, or nobody can tell that none was; the
    /// same of a FIFO with a name that it reads.
    pub clients: bool,
    /// Those of the processes asked about that are such clients.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub inside: Vec<ProcessId>,
}

/// The other end of a wire of a server, seen from outside and without side effects.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WireState {
    /// It could not be found out.
    #[default]
    Unknown,
    /// The other end is open nowhere, or no process of the server has its own end open any more.
    HungUp,
    /// The other end is open.
    Held {
        /// In these processes, those of the server itself included.
        holders: Vec<Holder>,
        /// And somewhere else, or nobody can tell whether it is: in flight between two processes, for instance.
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
    /// The unit it lives in; asked for those outside of the server only.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub unit: Option<UnitFacts>,
    /// Whether it, or another process of its server, has clients of its own; asked for other servers of the same owner only.
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
    /// Whether it listens on a socket, or has a connection to somebody who is not asked about: a socket, or a pipe. What it only
    /// has as standard output and error is none.
    pub connected: bool,
    /// What it has done so far; absent where that could not be read.
    pub activity: Option<Activity>,
}

/// What a process has done since it was born. Two equal values: it did nothing in between.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Activity {
    /// Time on a processor in nanoseconds, of all its threads (`/proc/PID/task/TID/schedstat`, field 1).
    pub cpu_ns: u64,
    /// Bytes read and written (`rchar` and `wchar` of `/proc/PID/io`).
    pub io_bytes: u64,
}
