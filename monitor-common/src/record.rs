//! The records of the ring. A record starts with a [`Header`]; an exec record is followed by its file name
//! and the first part of its arguments.

use crate::COMM_LEN;

/// The longest file name an exec record carries, in bytes.
pub const EXE_MAX: usize = 256;
/// The longest prefix of the arguments an exec record carries, in bytes.
pub const ARGV_MAX: usize = 1024;
/// The longest tail of an exec record.
pub const TAIL_MAX: usize = EXE_MAX + ARGV_MAX;

/// The kind of a record; [`Header::kind`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum Kind {
    Fork = 1,
    Exec = 2,
    /// The last thread of a thread group exited: [`ValueRecord`].
    Exit = 3,
    /// A thread group became the leader of a new session: [`ValueRecord`].
    Setsid = 4,
    /// A thread exited that user space had entered into the map THREADS: [`ValueRecord`]. Its thread group lives on.
    ThreadExit = 5,
    Signal = 6,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Header {
    pub kind: u16,
    /// The slot of `RING_SHARES` that the record is counted in until it has been read.
    pub slot: u16,
    /// The thread group the record is about: the child of a fork.
    pub tgid: u32,
    /// When, in nanoseconds of `CLOCK_BOOTTIME`.
    pub at: u64,
    /// `group_leader->start_boottime` of that thread group, in nanoseconds.
    pub start: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct ForkRecord {
    pub header: Header,
    /// The creator's birth in nanoseconds.
    pub creator_start: u64,
    pub creator: u32,
    /// The child's real user id.
    pub uid: u32,
    pub sid: u32,
    /// The thread of the creator that called clone(2): its number, which is that of the thread group for the leader.
    pub thread: u32,
}

/// A standard stream: fields of the inode that it is open on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct StreamRecord {
    pub ino: u64,
    /// `i_rdev`, in the kernel's own encoding: major << 20 | minor.
    pub rdev: u32,
    /// `i_mode`; zero if the descriptor is not open or could not be read.
    pub mode: u32,
}

/// A thread group replaced its image. `exe_len` bytes of file name and `argv_len` bytes of NUL-terminated
/// arguments follow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct ExecRecord {
    pub header: Header,
    /// The parent's birth in nanoseconds.
    pub parent_start: u64,
    /// `real_parent->tgid`.
    pub parent: u32,
    pub uid: u32,
    pub sid: u32,
    pub flags: u32,
    /// Length of the file name, without a NUL.
    pub exe_len: u32,
    /// Length of the arguments as they stand in memory, NULs included.
    pub argv_len: u32,
    /// Descriptors 0, 1 and 2.
    pub streams: [StreamRecord; 3],
}

/// The bits of [`ExecRecord::flags`].
pub mod flags {
    /// The record does not have all arguments: there are more, or they could not be read.
    pub const ARGV_TRUNCATED: u32 = 1;
    /// It began with SIGINT ignored.
    pub const IGNORES_INTERRUPT: u32 = 2;
    /// It began with SIGHUP ignored.
    pub const IGNORES_HANGUP: u32 = 4;
}

/// What is told about a thread group in one number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct ValueRecord {
    pub header: Header,
    /// Of [`Kind::Exit`] the status as wait(2) encodes it (signal in bits 0 to 6, core flag in bit 7, code in bits 8 to 15), of
    /// [`Kind::Setsid`] the session, of [`Kind::ThreadExit`] the thread.
    pub value: u32,
    pub pad: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum SenderKind {
    Process = 1,
    /// The kernel: a fault, a timer, a terminal that was closed.
    Kernel = 2,
    /// The kernel, because memory had run out.
    OutOfMemory = 3,
}

/// A signal was sent that ends this thread group: it does not handle it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct SignalRecord {
    /// About the thread group that gets it.
    pub header: Header,
    /// The birth of the sender's thread group in nanoseconds. This and what follows of the sender is zero unless a process
    /// sent it.
    pub sender_start: u64,
    /// The sender's thread group.
    pub sender: u32,
    /// The sender's real user id.
    pub sender_uid: u32,
    pub sender_kind: u32,
    pub signal: u32,
    /// The name of the sender's leading thread.
    pub sender_comm: [u8; COMM_LEN],
}

// No implicit padding: the sizes are the sums of the fields'.
const _: () = {
    assert!(size_of::<Header>() == 2 + 2 + 4 + 8 + 8);
    assert!(EXE_MAX.is_power_of_two());
    assert!(size_of::<ForkRecord>() == 24 + 8 + 4 * 4);
    assert!(size_of::<StreamRecord>() == 8 + 4 + 4);
    assert!(size_of::<ExecRecord>() == 24 + 8 + 4 * 6 + 3 * 16);
    assert!(size_of::<ValueRecord>() == 24 + 4 + 4);
    assert!(size_of::<SignalRecord>() == 24 + 8 + 4 * 4 + COMM_LEN);
    assert!(align_of::<ForkRecord>() == 8 && align_of::<ExecRecord>() == 8 && align_of::<ValueRecord>() == 8);
};
