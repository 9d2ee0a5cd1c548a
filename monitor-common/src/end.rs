//! What the pass over all descriptors reports of each that user space asked for.

/// An open descriptor; what `iter/task_file` writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct EndRecord {
    /// `group_leader->start_boottime` of its process, in nanoseconds.
    pub start: u64,
    pub ino: u64,
    /// The inode number of a unix socket's peer, see [`end_flags::PEER`]; 0 where the peer has none. Of a terminal the address of
    /// its line, 0 if that cannot be read: each devpts has numbers of its own.
    pub peer: u64,
    /// Address of the open file description.
    pub file: u64,
    /// Address of the descriptor table; 0 if its process is just releasing it.
    pub table: u64,
    /// References to the description, without the one that the pass itself holds.
    pub references: u64,
    pub tgid: u32,
    pub number: u32,
    /// `inode::i_mode`.
    pub mode: u32,
    /// `super_block::s_dev`, in the kernel's own encoding: major << 20 | minor.
    pub device: u32,
    /// `file::f_mode`.
    pub access: u32,
    pub flags: u32,
    /// `pipe_inode_info::readers`; 0 for a socket.
    pub readers: u32,
    /// `pipe_inode_info::writers`; 0 for a socket.
    pub writers: u32,
}

/// What a pass is asked for, beside the inode numbers of pipes and sockets, which the kernel gives out: keys that are no inode
/// numbers.
pub mod wanted {
    /// With an inode number: FIFOs with a path. Whoever makes a file system says which numbers its files have.
    pub const NAMED: u64 = 1 << 60;
    /// With the number of a process: all its descriptors of other files.
    pub const PROCESS: u64 = 1 << 62;
    /// With the number of a terminal of devpts: all descriptors of its line, and of its other side.
    pub const TERMINAL: u64 = 1 << 61;
    /// With an inode number: files that are mapped as memory, of the device that is the value, or of [`ANY_DEVICE`].
    pub const MAPPED: u64 = 1 << 59;
    pub const ANY_DEVICE: u32 = u32::MAX;
}

/// The bits of [`EndRecord::flags`].
pub mod end_flags {
    /// A unix socket that has a peer.
    pub const PEER: u32 = 1;
    /// Something of the descriptor could not be read: the rest of the record means nothing.
    pub const UNREADABLE: u32 = 2;
    /// The line of a terminal that was asked for: its number stands in place of the device.
    pub const LINE: u32 = 4;
    /// An internet socket whose port its program chose by bind(2), as far as can be told.
    pub const CHOSEN_PORT: u32 = 8;
    /// As `LINE`, of the other side of a terminal: of who opened it, ptmx(4).
    pub const MASTER: u32 = 16;
    /// A file that was asked for because it is mapped.
    pub const MAPPED: u32 = 32;
}

const _: () = assert!(size_of::<EndRecord>() == 6 * 8 + 8 * 4);
