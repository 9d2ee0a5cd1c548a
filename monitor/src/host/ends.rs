//! The open ends of pipes and sockets on the whole host, found by one pass of the kernel over all
//! descriptors.
//!
//! The kernel side implements the pass (`source::holders`), and probes request it. /proc gives less
//! information: it lists neither a descriptor that is in flight inside a socket nor the number of
//! references to an open file.

use super::Access;
use orphand_core::model::{ProcessId, Stdio};

/// A descriptor that is open on a requested pipe, FIFO or socket, or on the peer of a requested socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenEnd {
    /// The process whose descriptor table has it. A table that threads share is reported once.
    pub process: ProcessId,
    /// The descriptor number in that table.
    pub number: u32,
    /// The pipe or socket, by inode number; [`Stdio::Terminal`] and [`Stdio::Other`] for what was asked [`Beside`].
    pub of: Stdio,
    /// The device that the inode number belongs to (`super_block::s_dev`). Pipes, sockets and named FIFOs
    /// have separate inode numbers.
    pub device: u32,
    /// The peer's inode number, for a unix socket; 0 if the peer was closed or is not accepted yet.
    pub peer: Option<u64>,
    /// The access mode.
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
    ///
    /// # Errors
    ///
    /// A line that says why the pass failed.
    fn pass(&mut self, wanted: &[Stdio], beside: &Beside) -> Result<Vec<OpenEnd>, String>;
}
