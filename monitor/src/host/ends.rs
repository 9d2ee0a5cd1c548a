//! The open ends of pipes and sockets on the whole host: what one pass of the kernel over all descriptors tells.
//!
//! The kernel side makes such passes (`source::holders`); a probe asks for them. What /proc tells instead says less: it lists
//! neither a descriptor that is in flight inside a socket nor how often a file is open.

use super::Access;
use orphand_core::model::{ProcessId, Stdio};

/// A descriptor that is open on a pipe, a FIFO or a socket that was asked for, or on the peer of such a socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenEnd {
    /// Whose descriptor table it is in. A table that threads share is told once.
    pub process: ProcessId,
    /// The descriptor's number in that table.
    pub number: u32,
    /// The pipe or socket, by inode number.
    pub of: Stdio,
    /// The device that the inode number belongs to (`super_block::s_dev`): pipes, sockets and FIFOs with a name count apart.
    pub device: u32,
    /// Of a unix socket: its peer's inode number; 0 where the peer was closed, or was not accepted yet.
    pub peer: Option<u64>,
    /// How it was opened.
    pub access: Access,
    /// Which open file description it is (`struct file`); equal for duplicates and inherited ones. Not an address.
    pub file: u64,
    /// References to that description: its descriptors, and whatever else keeps it open (in flight in a socket, `io_uring`, a
    /// read(2) that is going on in a process with threads).
    pub references: u64,
    /// Of a pipe or FIFO: how many open file descriptions can read from it (`pipe_inode_info::readers`).
    pub readers: u32,
    /// Likewise, write to it.
    pub writers: u32,
}

/// Who makes such passes.
pub trait Passes: std::fmt::Debug + Send {
    /// All open ends of these pipes and sockets, and of the peers of these sockets, in all processes of the host. Microseconds to
    /// some hundred milliseconds, by the number of descriptors of the host.
    ///
    /// # Errors
    ///
    /// A line that says why there is none.
    fn pass(&mut self, wanted: &[Stdio]) -> Result<Vec<OpenEnd>, String>;
}
