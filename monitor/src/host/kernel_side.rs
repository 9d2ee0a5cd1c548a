//! What the kernel side tells that /proc does not tell, or not for certain (`source` implements it).
//!
//! One pass of the kernel over all descriptors tells the open ends of pipes and sockets on the whole host: /proc lists
//! neither a descriptor that is in flight inside a socket nor the number of references to an open file. A pass over all
//! processes waits for none. Who called a port is witnessed: /proc shows a connection that was closed for a minute, or
//! not at all.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{Access, Proc, TaskRow};
use orphand_core::model::{ProcessId, Stdio};

/// A descriptor that is open on a requested pipe, FIFO or socket, or on the peer of a requested socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenEnd {
    /// The process whose descriptor table has it. A table that threads share is reported once.
    pub process: ProcessId,
    pub number: u32,
    /// The pipe or socket, by inode number; [`Stdio::Terminal`] and [`Stdio::Other`] for what was asked [`Beside`].
    pub of: Stdio,
    /// The device that the inode number belongs to (`super_block::s_dev`). Pipes, sockets and named FIFOs
    /// have separate inode numbers.
    pub device: u32,
    /// The peer's inode number, for a unix socket; 0 if the peer was closed or is not accepted yet.
    pub peer: Option<u64>,
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
}

/// A provider of passes over all descriptors of the host.
pub trait Passes: std::fmt::Debug + Send {
    /// All open ends of these pipes and sockets, and of the peers of these sockets, and what is asked beside, in all
    /// processes of the host. A pass takes between microseconds and some hundred milliseconds, depending on the number of
    /// descriptors on the host.
    fn pass(&mut self, wanted: &[Stdio], beside: &Beside) -> Result<Vec<OpenEnd>, String>;
}

/// A provider of passes over all processes of the host.
pub trait Tasks: std::fmt::Debug + Send {
    /// All processes. A pass takes less than a microsecond a thread.
    fn tasks(&mut self) -> Result<Vec<TaskRow>, String>;
}

/// Who called a TCP port in the last ten minutes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LastCaller {
    Nobody,
    /// This process, from the same address, and no other.
    Process(ProcessId),
    /// Another host, or another process that may be any.
    Anybody,
    /// That cannot be told: it was not watched for so long.
    Unknown,
}

impl LastCaller {
    /// The process, if it was exactly one.
    pub const fn process(self) -> Option<ProcessId> {
        match self {
            Self::Process(process) => Some(process),
            Self::Nobody | Self::Anybody | Self::Unknown => None,
        }
    }
}

pub trait Calls: std::fmt::Debug + Send {
    /// Who called this port lately, at which a process listens.
    fn lately(&mut self, port: u16, holder: ProcessId) -> Result<LastCaller, String>;
}

/// What of it there is here.
#[derive(Clone, Debug, Default)]
pub struct KernelSide {
    passes: Option<Arc<Mutex<Box<dyn Passes>>>>,
    tasks: Option<Arc<Mutex<Box<dyn Tasks>>>>,
    calls: Option<Arc<Mutex<Box<dyn Calls>>>>,
}

fn locked<T>(what: &Mutex<T>) -> MutexGuard<'_, T> {
    // No code panics while it holds this lock.
    what.lock().unwrap_or_else(PoisonError::into_inner)
}

impl KernelSide {
    pub fn new(
        passes: Option<impl Passes + 'static>,
        tasks: Option<impl Tasks + 'static>,
        calls: Option<impl Calls + 'static>,
    ) -> Self {
        Self {
            passes: passes.map(|one| Arc::new(Mutex::new(Box::new(one) as _))),
            tasks: tasks.map(|one| Arc::new(Mutex::new(Box::new(one) as _))),
            calls: calls.map(|one| Arc::new(Mutex::new(Box::new(one) as _))),
        }
    }

    /// Who has which of these pipes and sockets open, and what is asked beside, of all processes of the host; an error
    /// says why the kernel does not tell.
    pub fn pass(&self, wanted: &[Stdio], beside: &Beside) -> Result<Vec<OpenEnd>, String> {
        locked(self.passes.as_ref().ok_or("there are no passes")?).pass(wanted, beside)
    }

    /// All processes of the host: the kernel tells, or else /proc.
    pub fn tasks(&self, proc: &Proc) -> Result<Vec<TaskRow>, String> {
        if let Some(tasks) = &self.tasks {
            match locked(tasks).tasks() {
                Ok(rows) => return Ok(rows),
                Err(error) => tracing::debug!("no pass over all tasks: {error}"),
            }
        }
        proc.tasks().map_err(|error| error.to_string())
    }

    /// Who called this port lately. Where nobody watches, the tables of connections have to do.
    pub fn caller(&self, port: u16, holder: ProcessId) -> LastCaller {
        let told =
            self.calls.as_ref().map_or(Ok(LastCaller::Nobody), |calls| locked(calls).lately(port, holder));
        told.unwrap_or_else(|error| {
            tracing::debug!("who calls port {port} is not known: {error}");
            LastCaller::Unknown
        })
    }
}
