//! What the kernel side answers that /proc does not tell, or not for certain. For the readers.
//!
//! One pass of the kernel over all descriptors tells the open ends of pipes and sockets on the whole host: /proc lists
//! neither a descriptor that is in flight inside a socket nor the number of references to an open file. A pass over all
//! processes waits for none. Who called a port is witnessed: /proc shows a connection that was closed for a minute, or
//! not at all.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
};

use monitor_common::PARENTS;

use super::{
    calls::{Begun, Calls},
    holders::Holders,
    tasks::Tasks,
};
use crate::{
    host::{Access, Proc, TaskRow},
    os::lock,
};
use orphand_core::model::{ProcessId, Stdio};

/// A descriptor that is open on a requested pipe, FIFO or socket, or on the peer of a requested socket.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OpenEnd {
    /// The process whose descriptor table has it. A table that threads share is reported once.
    pub process: ProcessId,
    pub number: u32,
    /// The pipe or socket, by inode number; [`Stdio::Terminal`], [`Stdio::File`] and [`Stdio::Other`] for what was asked [`Beside`].
    pub of: Stdio,
    /// The device that the inode number belongs to (`super_block::s_dev`). Pipes, sockets and named FIFOs
    /// have separate inode numbers.
    pub device: u32,
    pub inode: u64,
    /// The peer's inode number, for a unix socket; 0 if the peer was closed or is not accepted yet.
    pub peer: Option<u64>,
    /// Of a terminal: the address of its line, 0 if that is not known; and whether this is the other side, ptmx(4).
    pub line: u64,
    pub is_master: bool,
    /// Whether it is an internet socket whose port its program chose by bind(2), or where that cannot be told.
    pub has_chosen_port: bool,
    /// An identifier of the descriptor table. Threads share one, unless one of them has its own (unshare(2)); 0 if the
    /// process is giving it up, or it is not known.
    pub table: u64,
    pub access: Access,
    /// An identifier of the open file description (`struct file`). Duplicates and inherited descriptors
    /// have the same one. It is not an address.
    pub file: u64,
    /// The number of references to the open file description: its descriptors, and everything else that
    /// keeps it open (in flight in a socket, `io_uring`, a running read(2) in a process with threads).
    pub references: u64,
    /// The number of open file descriptions that can read from the pipe or FIFO
    /// (`pipe_inode_info::readers`).
    pub readers: u32,
    /// The number of open file descriptions that can write to the pipe or FIFO
    /// (`pipe_inode_info::writers`).
    pub writers: u32,
}

/// What a pass is asked for beside pipes and sockets. What it finds of it cannot be told apart by inode numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Beside {
    /// Open files, each by the process and the number of a descriptor of it: who else has a descriptor of the same open
    /// file description is told, too ([`Stdio::Other`]).
    pub files: Vec<(u32, u32)>,
    /// Terminals of devpts, by their numbers: who has a descriptor of their line is told ([`Stdio::Terminal`], with the
    /// number in place of the device).
    pub lines: Vec<u32>,
    /// Files that are mapped, by device and inode number: who has a descriptor of them is told ([`Stdio::File`]).
    pub mapped: BTreeSet<(u32, u64)>,
    /// Pipes without a path among those that are wanted, by inode number: a FIFO with the same number is not told.
    pub nameless: BTreeSet<u64>,
}

/// Somebody who called a TCP port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Caller {
    /// This process, from the same host.
    Process {
        by: ProcessId,
        /// When that has ended, the first of these that lives stands for it: who has such a number, and is older. 0: nobody.
        above: [u32; PARENTS + 2],
        /// In the last ten minutes. Longer ago, it may call again as long as it lives.
        lately: bool,
    },
    /// This process wanted the port for itself. The tracepoint of bind(2) does not tell whether it has got it.
    Seeker(ProcessId),
    /// Another host, or another process that may be any, in the last ten minutes.
    Anybody,
    /// That cannot be told: it was not watched for so long.
    Unknown,
}

/// What of it there is here. It works as long as the kernel side is there.
#[derive(Clone, Debug, Default)]
pub struct KernelSide {
    /// Tells who has what open. One pass at a time: it is told by a map what is wanted.
    pub holders: Option<Arc<Mutex<Holders>>>,
    pub tasks: Option<Arc<Tasks>>,
    pub calls: Option<Arc<Calls>>,
}

impl KernelSide {
    /// Who has which of these pipes and sockets and the peers of these sockets open, and what is asked beside, of all
    /// processes of the host; an error says why the kernel does not tell. A pass takes between microseconds and some
    /// hundred milliseconds, depending on the number of descriptors on the host.
    pub fn pass(&self, wanted: &[Stdio], beside: &Beside) -> Result<Vec<OpenEnd>, String> {
        let holders = self.holders.as_ref().ok_or("there are no passes")?;
        lock(holders).pass(None, wanted, beside)
    }

    /// All processes of the host: the kernel tells, or else /proc.
    pub fn tasks(&self, proc: &Proc) -> Result<Vec<TaskRow>, String> {
        match self.tasks.as_ref().map(|tasks| tasks.tasks()) {
            Some(Ok(rows)) => return Ok(rows),
            Some(Err(error)) => tracing::debug!("no pass over all tasks: {error}"),
            None => {}
        }
        proc.tasks().map_err(|error| error.to_string())
    }

    /// Who called this port in this network, where a server listens whose oldest process this is. Where nobody watches, the tables of
    /// connections have to do. `is_held`: who has the port is stopped or frozen now.
    pub fn callers(&self, network: u32, port: u16, oldest: ProcessId, is_held: bool) -> Vec<Caller> {
        let told =
            self.calls.as_ref().map_or(Ok(Vec::new()), |calls| calls.of(network, port, oldest, is_held));
        told.unwrap_or_else(|error| {
            tracing::debug!("who calls port {port} is not known: {error}");
            vec![Caller::Unknown]
        })
    }

    /// The open connections of which it was seen that a followed process began them.
    pub fn begun(&self) -> BTreeSet<Begun> {
        self.calls.as_ref().map(|calls| calls.begun()).unwrap_or_default()
    }
}
