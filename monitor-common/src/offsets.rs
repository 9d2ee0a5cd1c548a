//! Globals of the eBPF programs that user space sets before it loads them. They are read-only in the kernel, so the verifier
//! knows their values and removes the code that they switch off.

/// Sets of fields of the running kernel's structures: the name of a field, the way to it, and its size in bytes, 0 for
/// any. A value is the field's place in its structure, in bytes, which user space finds in BTF.
///
/// The way begins with a structure. `a[N]` is an element of an array, `a|b` one of two names: kernels differ. Where it ends in `:`, the
/// place is in bits.
macro_rules! offsets {
    ($($(#[$about:meta])* $set:ident { $($name:ident = $way:literal, $size:literal;)+ })+) => {
        $(
            $(#[$about])*
            #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
            #[repr(C)]
            pub struct $set { $(pub $name: u32,)+ }

            impl $set {
                /// Asks for the place of each field by its way and its size.
                pub fn read<E>(mut find: impl FnMut(&'static str, u32) -> Result<u32, E>) -> Result<Self, E> {
                    Ok(Self { $($name: find($way, $size)?,)+ })
                }
            }
        )+

        /// The ways to all fields.
        pub const WAYS: &[&str] = &[$($($way,)+)+];
    };
}

offsets! {
    /// What the hooks on forks, execs, exits and sessions read. A kernel without one of them is not watched.
    Offsets {
        task_tgid = "task_struct.tgid", 4;
        task_group_leader = "task_struct.group_leader", 8;
        task_real_parent = "task_struct.real_parent", 8;
        task_start_boottime = "task_struct.start_boottime", 8;
        task_exit_code = "task_struct.exit_code", 4;
        task_signal = "task_struct.signal", 8;
        task_real_cred = "task_struct.real_cred", 8;
        task_mm = "task_struct.mm", 8;
        task_files = "task_struct.files", 8;
        task_comm = "task_struct.comm[0]", 1;
        signal_live = "signal_struct.live", 4;
        signal_flags = "signal_struct.flags", 4;
        signal_group_exit_code = "signal_struct.group_exit_code", 4;
        signal_sid = "signal_struct.pids[PIDTYPE_SID]", 8;
        // Its number in the initial PID namespace.
        pid_nr = "pid.numbers[0].nr", 4;
        cred_uid = "cred.uid", 4;
        mm_arg_start = "mm_struct.arg_start", 8;
        mm_arg_end = "mm_struct.arg_end", 8;
        bprm_interp = "linux_binprm.interp", 8;
        files_fdt = "files_struct.fdt", 8;
        fdtable_fd = "fdtable.fd", 8;
        file_inode = "file.f_inode", 8;
        inode_mode = "inode.i_mode", 2;
        inode_ino = "inode.i_ino", 8;
        inode_rdev = "inode.i_rdev", 4;
    }
    /// What only the hook on signals reads. A kernel without one of them has no such hook: who sends a signal is not known.
    SignalOffsets {
        siginfo_code = "kernel_siginfo.si_code", 4;
        task_sighand = "task_struct.sighand", 8;
        // The handlers of the signals 1 and 2.
        first_handler = "sighand_struct.action[0].sa.sa_handler", 8;
        second_handler = "sighand_struct.action[1].sa.sa_handler", 8;
        signal_oom_mm = "signal_struct.oom_mm", 8;
    }
    /// What only the hook on connections reads. A kernel without one of them (`CONFIG_IPV6=n`) has no such hook: who called
    /// is known for a minute only.
    CallOffsets {
        sock_network = "sock.__sk_common.skc_net.net", 8;
        network_number = "net.ns.inum", 4;
        task_nsproxy = "task_struct.nsproxy", 8;
        nsproxy_network = "nsproxy.net_ns", 8;
        sock_family = "sock.__sk_common.skc_family", 2;
        // Addresses and port of the other side, the port in network byte order.
        sock_far = "sock.__sk_common.skc_daddr", 4;
        sock_far6 = "sock.__sk_common.skc_v6_daddr", 16;
        sock_far_port = "sock.__sk_common.skc_dport", 2;
        sock_near = "sock.__sk_common.skc_rcv_saddr", 4;
        sock_near6 = "sock.__sk_common.skc_v6_rcv_saddr", 16;
        // In network byte order, too. `skc_num` is gone when a connection is cut.
        sock_near_port = "inet_sock.inet_sport", 2;
    }
    /// What only the pass over all descriptors reads. A kernel without one of them (`CONFIG_UNIX=m`) has no such pass.
    EndOffsets {
        file_mode = "file.f_mode", 4;
        file_private = "file.private_data", 8;
        // Since 6.13 `f_ref`, which counts from another number: `Tuning::file_count_of_one`.
        file_count = "file.f_ref|f_count", 8;
        inode_super = "inode.i_sb", 8;
        inode_pipe = "inode.i_pipe", 8;
        super_device = "super_block.s_dev", 4;
        pipe_readers = "pipe_inode_info.readers", 4;
        pipe_writers = "pipe_inode_info.writers", 4;
        socket_sk = "socket.sk", 8;
        sock_family = "sock.__sk_common.skc_family", 2;
        sock_socket = "sock.sk_socket", 8;
        unix_peer = "unix_sock.peer", 8;
        // A `struct socket` and its inode are in one structure.
        alloc_socket = "socket_alloc.socket", 0;
        alloc_inode = "socket_alloc.vfs_inode", 0;
    }
    /// What only the pass over all tasks reads. A kernel without one of them has no such pass.
    TaskOffsets {
        task_pid = "task_struct.pid", 4;
        task_flags = "task_struct.flags", 4;
        task_ptrace = "task_struct.ptrace", 4;
        // Of a traced thread that which traces it.
        task_parent = "task_struct.parent", 8;
        task_thread_pid = "task_struct.thread_pid", 8;
        task_pdeath_signal = "task_struct.pdeath_signal", 4;
        signal_tty = "signal_struct.tty", 8;
        tty_driver = "tty_struct.driver", 8;
        tty_index = "tty_struct.index", 4;
        driver_major = "tty_driver.major", 4;
        driver_minor_start = "tty_driver.minor_start", 4;
        pid_level = "pid.level", 4;
        // In the namespaces of the levels 0 and 1.
        pid_nr = "pid.numbers[0].nr", 4;
        pid_next_nr = "pid.numbers[1].nr", 4;
        pid_ns = "pid.numbers[0].ns", 8;
        namespace_inum = "pid_namespace.ns.inum", 4;
    }
}

/// What user space chooses, and how kernels differ besides.
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
    /// 1 if the tracepoint `sched_process_exit` has the argument `group_dead`, else 0.
    pub exit_has_group_dead: u32,
    /// What [`EndOffsets::file_count`] has for a file with one reference: 1, or 0 for an `f_ref` (`FILE_REF_ONEREF`).
    pub file_count_of_one: u32,
    /// Where `sock.sk_userlocks` is, in bits: four of them until 6.7, a byte since. 0 if that is not known.
    pub sock_userlocks: u32,
    /// `super_block::s_dev` of the pipes that pipe(2) makes.
    pub pipe_device: u32,
    /// The network namespace of the daemon, which is the host's: the inode number of /proc/PID/ns/net. 0 if that is not known.
    pub host_network: u32,
    /// Where `tty_struct.link` is, the other side of a terminal, and `tty_struct.index`. 0 if one of them is not known.
    pub tty: [u32; 2],
}
