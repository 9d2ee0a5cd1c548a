//! Globals of the eBPF programs that user space sets before it loads them. They are read-only in the kernel, so the verifier
//! knows their values and removes the code that they switch off.

/// Where the fields of the running kernel's structures are, in bytes. A name says structure and field. The values come from
/// BTF.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Offsets {
    /// `task_struct::tgid`, 4 bytes.
    pub task_tgid: u32,
    /// `task_struct::group_leader`, a pointer.
    pub task_group_leader: u32,
    /// `task_struct::real_parent`, a pointer.
    pub task_real_parent: u32,
    /// `task_struct::start_boottime`, 8 bytes.
    pub task_start_boottime: u32,
    /// `task_struct::exit_code`, 4 bytes.
    pub task_exit_code: u32,
    /// `task_struct::signal`, a pointer.
    pub task_signal: u32,
    /// `task_struct::real_cred`, a pointer.
    pub task_real_cred: u32,
    /// `task_struct::mm`, a pointer.
    pub task_mm: u32,
    /// `task_struct::files`, a pointer.
    pub task_files: u32,
    /// `task_struct::comm`, 16 bytes.
    pub task_comm: u32,
    /// `signal_struct::live`, 4 bytes.
    pub signal_live: u32,
    /// `signal_struct::flags`, 4 bytes.
    pub signal_flags: u32,
    /// `signal_struct::group_exit_code`, 4 bytes.
    pub signal_group_exit_code: u32,
    /// `signal_struct::pids[PIDTYPE_SID]`, a pointer.
    pub signal_sid: u32,
    /// `pid::numbers[0].nr`, 4 bytes: the number in the initial PID namespace.
    pub pid_nr: u32,
    /// `cred::uid`, 4 bytes.
    pub cred_uid: u32,
    /// `mm_struct::arg_start`, 8 bytes.
    pub mm_arg_start: u32,
    /// `mm_struct::arg_end`, 8 bytes.
    pub mm_arg_end: u32,
    /// `linux_binprm::interp`, a pointer.
    pub bprm_interp: u32,
    /// `files_struct::fdt`, a pointer.
    pub files_fdt: u32,
    /// `fdtable::fd`, a pointer to an array of pointers.
    pub fdtable_fd: u32,
    /// `file::f_inode`, a pointer.
    pub file_inode: u32,
    /// `inode::i_mode`, 2 bytes.
    pub inode_mode: u32,
    /// `inode::i_ino`, 8 bytes.
    pub inode_ino: u32,
    /// `inode::i_rdev`, 4 bytes.
    pub inode_rdev: u32,
    /// 1 if the tracepoint `sched_process_exit` has the argument `group_dead`, else 0.
    pub exit_has_group_dead: u32,
}

/// Where the fields are that only the hook on signals reads, in bytes like [`Offsets`]. A kernel may lack some: then there is
/// no such hook, and all of them are zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct SignalOffsets {
    /// `kernel_siginfo::si_code`, 4 bytes.
    pub siginfo_code: u32,
    /// `task_struct::sighand`, a pointer.
    pub task_sighand: u32,
    /// `sighand_struct::action[0].sa.sa_handler`, a pointer.
    pub sighand_first_handler: u32,
    /// The size of an element of `sighand_struct::action`.
    pub action_size: u32,
    /// `signal_struct::oom_mm`, a pointer.
    pub signal_oom_mm: u32,
}

/// What user space chooses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Tuning {
    /// The ring's size in bytes, a power of two.
    pub ring_bytes: u32,
    /// How many forks below one pending candidate are reported.
    pub pending_budget: u32,
    /// 1 if a name that contains `mcp` is a candidate without being listed.
    pub mcp_names: u32,
    /// 1 if any program is a candidate whose standard input and output are wires that its parent, no shell, made.
    pub wired_strangers: u32,
    /// How many entries of MEMBERS the processes of one user may have.
    pub member_share: u32,
    /// For [`crate::share_slot`].
    pub seed: u32,
}

const _: () = assert!(size_of::<Offsets>() == 26 * 4);
const _: () = assert!(size_of::<SignalOffsets>() == 5 * 4);
const _: () = assert!(size_of::<Tuning>() == 6 * 4);
