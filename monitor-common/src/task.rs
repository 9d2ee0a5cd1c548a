//! What the pass over all tasks reports of each process, and of each thread that is traced.

/// The first thread of a process, or another one that is traced; what `iter/task` writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct TaskRecord {
    /// `group_leader->start_boottime`, in nanoseconds.
    pub start: u64,
    /// The address of its controlling terminal; 0 if it has none.
    pub line: u64,
    pub tgid: u32,
    pub tid: u32,
    /// Its real user id in the initial user namespace.
    pub uid: u32,
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
    pub flags: u32,
    /// The process with whose thread it is to end (`PR_SET_PDEATHSIG`, prctl(2)): its parent; 0 if with none.
    pub ends_with: u32,
    pub pad: u32,
}

/// The bits of [`TaskRecord::flags`].
pub mod task_flags {
    /// No thread of the process is alive.
    pub const DEAD: u32 = 1;
    /// Something could not be read: the rest of the record means nothing.
    pub const UNREADABLE: u32 = 4;
}

const _: () = assert!(size_of::<TaskRecord>() == 2 * 8 + 12 * 4);
