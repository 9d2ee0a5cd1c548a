//! What the pass over all tasks reports of each process, and of each thread that is traced; and the fields that it reads.

/// The first thread of a process, or another one that is traced; what `iter/task` writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct TaskRecord {
    /// `group_leader->start_boottime`, in nanoseconds.
    pub start: u64,
    /// Its process.
    pub tgid: u32,
    /// Its own number.
    pub tid: u32,
    /// Its real user id in the initial user namespace.
    pub uid: u32,
    /// Its session.
    pub sid: u32,
    /// Its controlling terminal in the kernel's own encoding: major << 20 | minor; 0 if it has none.
    pub terminal: u32,
    /// The inode number of its PID namespace.
    pub namespace: u32,
    /// How many namespaces are above that one.
    pub level: u32,
    /// Its number in that namespace.
    pub inner: u32,
    /// The number of the thread that traces it, ptrace(2); 0 if none does.
    pub tracer: u32,
    /// See [`task_flags`].
    pub flags: u32,
    /// The process with whose thread it is to end (`PR_SET_PDEATHSIG`, prctl(2)): its parent; 0 if with none.
    pub ends_with: u32,
    /// Always 0.
    pub pad: u32,
}

/// The bits of [`TaskRecord::flags`].
pub mod task_flags {
    /// No thread of the process is alive.
    pub const DEAD: u32 = 1;
    /// The process ignores SIGHUP.
    pub const IGNORES_HANGUP: u32 = 2;
    /// Something could not be read: the rest of the record means nothing.
    pub const UNREADABLE: u32 = 4;
}

/// Where the fields are that only the pass over all tasks reads, in bytes like [`crate::Offsets`]. A kernel may lack
/// some: then there is no such pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct TaskOffsets {
    /// `task_struct::pid`, 4 bytes.
    pub task_pid: u32,
    /// `task_struct::flags`, 4 bytes.
    pub task_flags: u32,
    /// `task_struct::ptrace`, 4 bytes.
    pub task_ptrace: u32,
    /// `task_struct::parent`, a pointer: of a traced thread that which traces it.
    pub task_parent: u32,
    /// `task_struct::thread_pid`, a pointer.
    pub task_thread_pid: u32,
    /// `task_struct::sighand`, a pointer.
    pub task_sighand: u32,
    /// `sighand_struct::action[SIGHUP - 1].sa.sa_handler`, a pointer.
    pub sighand_hangup: u32,
    /// `signal_struct::tty`, a pointer.
    pub signal_tty: u32,
    /// `tty_struct::driver`, a pointer.
    pub tty_driver: u32,
    /// `tty_struct::index`, 4 bytes.
    pub tty_index: u32,
    /// `tty_driver::major`, 4 bytes.
    pub driver_major: u32,
    /// `tty_driver::minor_start`, 4 bytes.
    pub driver_minor_start: u32,
    /// `task_struct::pdeath_signal`, 4 bytes.
    pub task_pdeath_signal: u32,
    /// `pid::level`, 4 bytes.
    pub pid_level: u32,
    /// `pid::numbers`, an array of `struct upid`.
    pub pid_numbers: u32,
    /// The size of a `struct upid`.
    pub upid_size: u32,
    /// `upid::nr`, 4 bytes.
    pub upid_nr: u32,
    /// `upid::ns`, a pointer.
    pub upid_ns: u32,
    /// `pid_namespace::ns.inum`, 4 bytes.
    pub namespace_inum: u32,
}

const _: () = assert!(size_of::<TaskRecord>() == 8 + 12 * 4);
const _: () = assert!(size_of::<TaskOffsets>() == 19 * 4);
