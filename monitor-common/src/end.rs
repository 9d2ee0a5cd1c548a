//! What the pass over all descriptors reports of each that user space asked for, and the fields that it reads.

/// An open descriptor; what `iter/task_file` writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct EndRecord {
    /// `group_leader->start_boottime` of its process, in nanoseconds.
    pub start: u64,
    /// `inode::i_ino`.
    pub ino: u64,
    /// The inode number of a unix socket's peer, see [`end_flags::PEER`]; 0 where the peer has none.
    pub peer: u64,
    /// Address of the open file description.
    pub file: u64,
    /// Address of the descriptor table; 0 if its process is just releasing it.
    pub table: u64,
    /// References to the description, without the one that the pass itself holds.
    pub references: u64,
    /// Its process.
    pub tgid: u32,
    /// The descriptor's number.
    pub number: u32,
    /// `inode::i_mode`.
    pub mode: u32,
    /// `super_block::s_dev`, in the kernel's own encoding: major << 20 | minor.
    pub device: u32,
    /// `file::f_mode`.
    pub access: u32,
    /// See [`end_flags`].
    pub flags: u32,
    /// `pipe_inode_info::readers`; 0 for a socket.
    pub readers: u32,
    /// `pipe_inode_info::writers`; 0 for a socket.
    pub writers: u32,
}

/// What a pass is asked for, beside the inode numbers of pipes and sockets: keys that are no inode numbers.
pub mod wanted {
    /// With the number of a process: all its descriptors of other files.
    pub const PROCESS: u64 = 1 << 62;
    /// With the number of a terminal of devpts: all descriptors of its line.
    pub const TERMINAL: u64 = 1 << 61;
}

/// The bits of [`EndRecord::flags`].
pub mod end_flags {
    /// A unix socket that has a peer.
    pub const PEER: u32 = 1;
    /// Something of the descriptor could not be read: the rest of the record means nothing.
    pub const UNREADABLE: u32 = 2;
    /// The line of a terminal that was asked for: its number stands in place of the device.
    pub const LINE: u32 = 4;
}

/// Where the fields are that only the pass over all descriptors reads, in bytes like [`crate::Offsets`]. A kernel may lack
/// some: then there is no such pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct EndOffsets {
    /// `file::f_mode`, 4 bytes.
    pub file_mode: u32,
    /// `file::private_data`, a pointer.
    pub file_private: u32,
    /// `file::f_count`, or since 6.13 `file::f_ref`; 8 bytes.
    pub file_count: u32,
    /// The value of that counter for a file with one reference: 1, or 0 for an `f_ref` (`FILE_REF_ONEREF`).
    pub file_count_of_one: u32,
    /// `inode::i_sb`, a pointer.
    pub inode_super: u32,
    /// `inode::i_pipe`, a pointer.
    pub inode_pipe: u32,
    /// `super_block::s_dev`, 4 bytes.
    pub super_device: u32,
    /// `pipe_inode_info::readers`, 4 bytes.
    pub pipe_readers: u32,
    /// `pipe_inode_info::writers`, 4 bytes.
    pub pipe_writers: u32,
    /// `socket::sk`, a pointer.
    pub socket_sk: u32,
    /// `sock::__sk_common.skc_family`, 2 bytes.
    pub sock_family: u32,
    /// `sock::sk_socket`, a pointer.
    pub sock_socket: u32,
    /// `unix_sock::peer`, a pointer.
    pub unix_peer: u32,
    /// From a `struct socket` to its inode: both are in a `struct socket_alloc`.
    pub socket_inode: u32,
}

const _: () = assert!(size_of::<EndRecord>() == 6 * 8 + 8 * 4);
const _: () = assert!(size_of::<EndOffsets>() == 14 * 4);
