//! A scene: the raw facts of one moment about servers that may have been left behind, and about who is joined with
//! them. It is one input of the core, and a recording shows it. It has no conclusion in it: [`crate::reach`] draws them.
//!
//! Invariant: the rows are closed. An end of which no row tells is held by nobody. So whoever fills a scene adds a row
//! for what it could not find out, with [`Holder::Anybody`] or [`Holder::Unreadable`], and such a row can only keep a
//! server, never end it.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::{Image, ProcessId, Stdio, UnitFacts, Work};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SceneQuestion {
    /// The server that is due, then those of the same owner: they are read where they are joined with it.
    pub servers: Vec<SceneServer>,
    /// Forked copies of their dead owner, which may be inert.
    pub copies: Vec<ProcessId>,
    /// Whether it matters what the processes of the server that is due wait for.
    pub waits: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SceneServer {
    /// Its launch chain, its main process and what descends from that. All of them are described in full.
    pub processes: Vec<ProcessId>,
    /// Its standard input when it was created. Both wires are asked about even if none of these processes has its end:
    /// a child that nobody knows yet may have it.
    pub stdin: Stdio,
    /// Its standard output when it was created.
    pub stdout: Stdio,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scene {
    /// The processes that were asked about and live, in full; and whoever else holds an end, in brief. A process that has
    /// ended or is exiting holds nothing and has no row.
    pub processes: Vec<ProcessRow>,
    pub endpoints: Vec<Endpoint>,
    pub ends: Vec<End>,
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub unread: Vec<Unread>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessRow {
    pub process: ProcessId,
    pub uid: u32,
    pub sid: u32,
    /// Its process group.
    #[serde(skip_serializing_if = "is_default", default)]
    pub group: u32,
    /// Its parent. A child of a server's process that no record has told of yet is part of the server.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub parent: Option<ProcessId>,
    pub image: Image,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub unit: Option<UnitFacts>,
    /// The systemd slices above it, by name.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub slices: Vec<String>,
    #[serde(default)]
    pub stdio: [Stdio; 3],
    /// What all its threads wait for. Only for copies, and where [`SceneQuestion::waits`].
    #[serde(skip_serializing_if = "is_default", default)]
    pub waits: Wait,
    /// The pipes and sockets that its threads read at this moment, and wait for what comes. Only for copies.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub reads: Vec<Stdio>,
    /// What it has done so far; absent if it could not be read, or is stopped and goes on some day. Only for copies.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub work: Option<Work>,
    /// Whether it is kept from running for now: stopped, or frozen with its control group.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub held: bool,
    /// Whether its environment opts out (`ORPHAND_OPT_OUT=1`), or could not be read to its end.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub opted_out: bool,
    /// Whether its environment names a transport other than the standard streams, or could not be read to its end.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub told_to_serve: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub ignores_hangup: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub ignores_interrupt: bool,
    /// Whether it has a handler for SIGTERM, or takes it itself (sigwait(3), signalfd(2)): it may do anything then.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub catches_term: bool,
    /// Whether its first thread waits for a child.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub awaits_child: bool,
    /// For which one alone, by its number, or for which group, by its negative number, as waitpid(2) has it; absent where it waits
    /// for any, or that cannot be told.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub awaited: Option<i32>,
    /// Whether another thread of it does. Many a runtime has one for each child (asyncio, Java, Go, Ruby), whether it is
    /// needed or not.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub reaps: bool,
    /// Whether it is told when a child ends: it has a handler for SIGCHLD, takes that itself, or has a pidfd (node, asyncio, tokio,
    /// .NET).
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub hears_of_ends: bool,
    /// Whether it has a connection to a display (X11, Wayland): a person may see it.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub has_display: bool,
    /// Whether its executable was replaced or deleted on disk since it started.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub stale_binary: bool,
    /// Whether it is described in full: all its ends have a row. Of other processes only those are told that lead to one
    /// that was asked about.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub full: bool,
    #[serde(default)]
    pub rss_bytes: u64,
    #[serde(default)]
    pub cpu_ms: u64,
    /// Proportional set size in bytes; absent if it could not be read.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub pss_bytes: Option<u64>,
}

impl ProcessRow {
    /// Whether its first thread waits for this child, or for any.
    pub fn awaits(&self, child: &Self) -> bool {
        let names = |awaited: i32| {
            awaited.unsigned_abs() == if awaited > 0 { child.process.pid } else { child.group }
        };
        self.awaits_child && self.awaited.is_none_or(names)
    }
}

/// What the threads of a process wait for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Wait {
    /// A time, a lock, a file, a terminal, a queue; or one runs, is stopped or could not be read. It may go on by itself.
    #[default]
    Anything,
    /// Without a limit for pipes, sockets, memory that has a row, each other, a child or a signal.
    Ends,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Something that joins processes. [`End::endpoint`] is its index in the scene.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum Endpoint {
    /// A pipe or FIFO: [`Side::Reads`] and [`Side::Writes`].
    Pipe {
        inode: u64,
        /// Whether it still exists under a name, so that anybody may open it.
        #[serde(skip_serializing_if = "std::ops::Not::not", default)]
        named: bool,
    },
    /// A connection, a pair of sockets, or connected datagram sockets: [`Side::Near`] and [`Side::Far`]. One that waits to
    /// be accepted is held by the listener's holders. A socket that is hung up has no other end.
    Connection {
        /// The inode number of the socket on the near side; 0 if that is not accepted yet.
        near: u64,
        /// The inode number of the socket on the far side; 0 if that is on another host, or not accepted yet.
        far: u64,
        began: Began,
    },
    /// A socket that others may call or send to without an end of their own: [`Side::Listens`].
    Open {
        inode: u64,
        by: Address,
        /// Whether anybody ever did: the access time of the socket's file; of a TCP port, whether anybody who is not known did
        /// lately: a call that its holders ended in the last ten minutes, or a connection of the last minute (`TIME_WAIT`).
        called: Called,
        /// Of a TCP port: somebody chose it, and the system has not given it out.
        #[serde(skip_serializing_if = "is_default", default)]
        chosen: bool,
    },
    /// Calls of a TCP port by one process, over for less than ten minutes, or longer if that may call again: who listens there is
    /// [`Side::Near`], the caller [`Side::Far`]. It has no row if it has ended.
    Call,
    /// Memory that several processes share, and at which one waits: the waiter [`Side::Reads`], all that share it
    /// [`Side::Writes`].
    Memory {
        /// The inode number of the mapped file.
        inode: u64,
    },
    /// An open file by which each of its holders can wake the others (eventfd(2), a timer of a descriptor ..). Each of them is
    /// [`Side::Near`] and [`Side::Far`].
    Shared,
    /// A terminal: who has its other side [`Side::Serves`], who works in it or has its line open [`Side::Depends`].
    Terminal,
    /// A PID namespace: its first process [`Side::Serves`], all others [`Side::Depends`].
    PidNamespace,
    /// ptrace(2): the tracer [`Side::Serves`], the traced process [`Side::Depends`].
    Trace,
    /// A process that the kernel is to signal when its parent ends (`PR_SET_PDEATHSIG`): the parent [`Side::Serves`], the
    /// process [`Side::Depends`].
    ParentDeath,
    /// A file system or a device that a process offers through the kernel (FUSE, TUN, CUSE, NBD ..): [`Side::Serves`]. Its
    /// users [`Side::Depends`]: anybody.
    Device,
}

impl Endpoint {
    pub const fn is(&self, wire: Stdio) -> bool {
        self.side_of(wire, true).is_some()
    }

    /// Whether it is a connection that somebody made, and no pair of sockets.
    pub fn is_call(&self) -> bool {
        matches!(self, Self::Connection { began, .. } if *began != Began::Pair)
    }

    /// Whether only who has an end of it can hand it on: a pipe without a name, or a connection.
    pub const fn is_nameless(&self) -> bool {
        matches!(self, Self::Pipe { named: false, .. } | Self::Connection { .. })
    }

    /// The side of it that who has this wire has; `reads`: of a pipe the one that is read.
    pub const fn side_of(&self, wire: Stdio, reads: bool) -> Option<Side> {
        match (self, wire) {
            (Self::Pipe { inode, .. }, Stdio::Pipe(wire)) if *inode == wire => {
                Some(if reads { Side::Reads } else { Side::Writes })
            }
            (Self::Connection { near, .. }, Stdio::Socket(wire)) if *near == wire => Some(Side::Near),
            (Self::Connection { far, .. }, Stdio::Socket(wire)) if *far == wire => Some(Side::Far),
            _ => None,
        }
    }

    /// Whether it is a connection that was begun on this side.
    pub const fn was_begun_at(&self, side: Side) -> bool {
        let Self::Connection { began, .. } = self else { return false };
        matches!((began, side), (Began::Near, Side::Near) | (Began::Far, Side::Far))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Began {
    Near,
    Far,
    /// Nobody called: a pair that one process made.
    Pair,
    Unknown,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Address {
    Tcp,
    /// The name of a unix socket, for connections or datagrams.
    Unix,
    /// A UDP port that was chosen, or an address.
    Udp,
    MulticastDns,
    /// A file that anybody may open who knows it: a FIFO that it waits to open, a terminal that it reads.
    File,
    /// Anything else (vsock, another network namespace): nobody can tell who calls.
    Other,
}

/// Whether anybody ever called.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Called {
    Yes,
    /// Nobody did. Of a TCP port: nobody lately.
    No,
    #[default]
    Unknown,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct End {
    /// The index of what it is an end of.
    pub endpoint: u32,
    pub holder: Holder,
    pub side: Side,
    /// The lowest numbers of the holder's descriptors of it, 8 at most. None if it is kept without a descriptor
    /// (`io_uring`), or by a thread with a table of its own.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub numbers: Vec<u32>,
    /// Whether the open file has more references than descriptors: a call that is going on (a thread waits in read(2)),
    /// or somebody whom nobody sees.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub beyond: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Holder {
    Process(ProcessId),
    /// There is a reference that no descriptor accounts for, or somebody on another host, or anybody who wants to.
    Anybody,
    /// Whether and by whom it is held could not be found out.
    Unreadable,
}

impl Holder {
    pub const fn process(self) -> Option<ProcessId> {
        match self {
            Self::Process(process) => Some(process),
            Self::Anybody | Self::Unreadable => None,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    Reads,
    Writes,
    Near,
    Far,
    /// Is open to calls.
    Listens,
    /// Others depend on it.
    Serves,
    /// Would end or stop with it.
    Depends,
}

impl Side {
    /// The other end of a pipe or a connection.
    pub const fn opposite(self) -> Option<Self> {
        match self {
            Self::Reads => Some(Self::Writes),
            Self::Writes => Some(Self::Reads),
            Self::Near => Some(Self::Far),
            Self::Far => Some(Self::Near),
            Self::Listens | Self::Serves | Self::Depends => None,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unread {
    /// The process that was asked about and could not be read; absent if it concerns all of them.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub process: Option<ProcessId>,
    pub why: String,
}

impl Scene {
    pub fn row(&self, process: ProcessId) -> Option<&ProcessRow> {
        self.processes.iter().find(|row| row.process == process)
    }

    /// Why one of these processes was not read, or nothing was; `None` if all were.
    pub fn blind(&self, is_one: impl Fn(ProcessId) -> bool) -> Option<&str> {
        let concerning = self.unread.iter().find(|unread| unread.process.is_none_or(&is_one));
        concerning.map(|unread| unread.why.as_str())
    }

    /// Those of these processes that live and were read.
    pub fn full<'a>(&'a self, processes: &[ProcessId]) -> impl Iterator<Item = &'a ProcessRow> + use<'a> {
        let all: BTreeSet<ProcessId> = processes.iter().copied().collect();
        self.processes.iter().filter(move |row| row.full && all.contains(&row.process))
    }

    pub fn endpoint(&self, at: u32) -> Option<&Endpoint> {
        self.endpoints.get(usize::try_from(at).ok()?)
    }
}
