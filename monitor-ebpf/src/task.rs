//! The reader of `task_struct` and of what it points to. Every offset comes from the running kernel's BTF.
//!
//! The tracepoints run inside an RCU read-side section and mostly on behalf of the task that they report, so what is
//! reached from it stays allocated meanwhile. Otherwise `bpf_probe_read_kernel()` answers EFAULT: that is counted, and
//! the value is not used.

use core::hint::black_box;

use aya_ebpf::helpers::{
    bpf_get_current_pid_tgid, bpf_get_current_task, bpf_probe_read_kernel,
    generated::{bpf_probe_read_kernel_str, bpf_probe_read_user},
};
use monitor_common::{ARGV_MAX, COMM_LEN, Counter, EXE_MAX, flags};

use crate::maps::global;

/// `SIGNAL_GROUP_EXIT`, include/linux/sched/signal.h: the group is ending by `exit_group(2)` or a fatal signal.
const SIGNAL_GROUP_EXIT: u32 = 4;
/// `SIG_IGN`, include/uapi/asm-generic/signal-defs.h.
const IGNORED: u64 = 1;

#[inline(always)]
pub fn current_tgid() -> u32 {
    (bpf_get_current_pid_tgid() >> 32) as u32
}

#[inline(always)]
pub fn current_thread() -> u32 {
    bpf_get_current_pid_tgid() as u32
}

#[derive(Clone, Copy)]
pub struct Task(*const u8);

#[inline(always)]
pub fn read<T: Copy>(base: *const u8, offset: u32) -> Result<T, Counter> {
    let at = base.wrapping_add(offset as usize).cast::<T>();
    // SAFETY: the helper checks the address.
    unsafe { bpf_probe_read_kernel(at) }.map_err(|_| Counter::Unreadable)
}

#[inline(always)]
pub fn pointer(base: *const u8, offset: u32) -> Result<*const u8, Counter> {
    read(base, offset)
}

/// Methods that read a field as it is.
macro_rules! fields {
    ($($(#[$doc:meta])* $visible:vis $field:ident: $type:ty = $offsets:ident . $offset:ident;)+) => {$(
        $(#[$doc])*
        #[inline(always)]
        $visible fn $field(self) -> Result<$type, Counter> {
            read(self.0, global!($offsets.$offset))
        }
    )+};
}
pub(crate) use fields;

impl Task {
    fields! {
        pub tgid: u32 = OFFSETS.task_tgid;
        /// Its own birth, `CLOCK_BOOTTIME` in nanoseconds: that of the group if it is the leader.
        pub birth: u64 = OFFSETS.task_start_boottime;
        signal: *const u8 = OFFSETS.task_signal;
        /// The address of its descriptor table; null once it has released it.
        pub table: *const u8 = OFFSETS.task_files;
        pub name: [u8; COMM_LEN] = OFFSETS.task_comm;
        pub name_start: u64 = OFFSETS.task_comm;
    }

    #[inline(always)]
    pub const fn new(task: *const u8) -> Self {
        Self(task)
    }

    #[inline(always)]
    pub fn current() -> Self {
        // SAFETY: no precondition.
        Self(unsafe { bpf_get_current_task() } as *const u8)
    }

    /// The birth of its thread group: what `/proc/PID/stat` shows in clock ticks (`do_task_stat()`,
    /// fs/proc/array.c). A thread that execs takes over the leader's (`de_thread()`, fs/exec.c).
    #[inline(always)]
    pub fn group_birth(self) -> Result<u64, Counter> {
        self.leader()?.birth()
    }

    /// Its parent: its creator, or the process that adopted it.
    #[inline(always)]
    pub fn parent(self) -> Result<Self, Counter> {
        Ok(Self(pointer(self.0, global!(OFFSETS.task_real_parent))?))
    }

    /// Its network namespace.
    #[inline(always)]
    pub fn network(self) -> Result<*const u8, Counter> {
        let namespaces = pointer(self.0, global!(CALL_OFFSETS.task_nsproxy))?;
        pointer(namespaces, global!(CALL_OFFSETS.nsproxy_network))
    }

    /// Its real user id in the initial user namespace.
    #[inline(always)]
    pub fn uid(self) -> Result<u32, Counter> {
        read(pointer(self.0, global!(OFFSETS.task_real_cred))?, global!(OFFSETS.cred_uid))
    }

    /// Its session id in the initial PID namespace: `task_session_nr_ns()`, include/linux/pid.h.
    #[inline(always)]
    pub fn sid(self) -> Result<u32, Counter> {
        read(pointer(self.signal()?, global!(OFFSETS.signal_sid))?, global!(OFFSETS.pid_nr))
    }

    /// Whether no thread of the group is alive: `do_exit()` (kernel/exit.c) decrements `signal->live` before it calls the
    /// tracepoint.
    #[inline(always)]
    pub fn group_dead(self) -> Result<bool, Counter> {
        let live: i32 = read(self.signal()?, global!(OFFSETS.signal_live))?;
        Ok(live == 0)
    }

    #[inline(always)]
    pub fn group_exiting(self) -> Result<bool, Counter> {
        let flags: u32 = read(self.signal()?, global!(OFFSETS.signal_flags))?;
        Ok(flags & SIGNAL_GROUP_EXIT != 0)
    }

    /// The status that the parent will receive: `wait_task_zombie()`, kernel/exit.c.
    #[inline(always)]
    pub fn group_status(self) -> Result<u32, Counter> {
        if self.group_exiting()? {
            return read(self.signal()?, global!(OFFSETS.signal_group_exit_code));
        }
        read(self.leader()?.0, global!(OFFSETS.task_exit_code))
    }

    /// Whether the kernel chose it to die because memory had run out: `mark_oom_victim()`, `mm/oom_kill.c`.
    #[inline(always)]
    pub fn is_out_of_memory(self) -> Result<bool, Counter> {
        let at = global!(SIGNAL_OFFSETS.signal_oom_mm);
        if at == 0 {
            return Ok(false);
        }
        Ok(!pointer(self.signal()?, at)?.is_null())
    }

    /// Whether it has no handler of its own for a signal from 1 to 64, and does not ignore it (`SIG_DFL`).
    #[inline(always)]
    pub fn leaves_to_default(self, signal: u32) -> Result<bool, Counter> {
        let handlers = pointer(self.0, global!(SIGNAL_OFFSETS.task_sighand))?;
        if handlers.is_null() {
            return Ok(false);
        }
        let first = global!(SIGNAL_OFFSETS.first_handler);
        let size = global!(SIGNAL_OFFSETS.second_handler).wrapping_sub(first);
        Ok(pointer(handlers, first + (signal - 1) * size)?.is_null())
    }

    /// Which of SIGHUP and SIGINT it ignores, as [`flags`] has it. Neither where the kernel lacks a field.
    #[inline(always)]
    pub fn ignored(self) -> Result<u32, Counter> {
        let (first, second) = (global!(SIGNAL_OFFSETS.first_handler), global!(SIGNAL_OFFSETS.second_handler));
        if second == 0 {
            return Ok(0);
        }
        let handlers = pointer(self.0, global!(SIGNAL_OFFSETS.task_sighand))?;
        if handlers.is_null() {
            return Ok(0);
        }
        let bit = |at, flag| Ok(u32::from(read::<u64>(handlers, at)? == IGNORED) * flag);
        Ok(bit(first, flags::IGNORES_HANGUP)? | bit(second, flags::IGNORES_INTERRUPT)?)
    }

    #[inline(always)]
    pub fn leader(self) -> Result<Self, Counter> {
        Ok(Self(pointer(self.0, global!(OFFSETS.task_group_leader))?))
    }

    /// The address of its descriptor array; null once it has released its table. In an exec hook the table is the task's own
    /// (`unshare_files()` in `begin_new_exec()`).
    #[inline(always)]
    pub fn descriptors(self) -> Result<*const u8, Counter> {
        let table = self.table()?;
        if table.is_null() {
            return Ok(table);
        }
        pointer(pointer(table, global!(OFFSETS.files_fdt))?, global!(OFFSETS.fdtable_fd))
    }

    /// Copies the beginning of the arguments to `to`, which has room for `ARGV_MAX` bytes. Returns how much was copied
    /// and whether there is more. For the current task only, because its own memory is read.
    #[inline(always)]
    pub fn argv(self, to: *mut u8) -> Result<(u64, bool), Counter> {
        let mm = pointer(self.0, global!(OFFSETS.task_mm))?;
        let start: u64 = read(mm, global!(OFFSETS.mm_arg_start))?;
        let end: u64 = read(mm, global!(OFFSETS.mm_arg_end))?;
        let total = end.wrapping_sub(start);
        let len = if total > ARGV_MAX as u64 { ARGV_MAX as u64 } else { total };
        // SAFETY: `to` has the room; the helper checks the source.
        if unsafe { bpf_probe_read_user(to.cast(), len as u32, start as *const _) } != 0 {
            return Err(Counter::ArgvFault);
        }
        Ok((len, total > len))
    }
}

/// Copies `linux_binprm::interp`, the file that is run in the end (a script's interpreter), to `to`, which has
/// room for `EXE_MAX` bytes. Returns its length without the NUL.
#[inline(always)]
pub fn executed_file(bprm: *const u8, to: *mut u8) -> Result<u64, Counter> {
    let name = pointer(bprm, global!(OFFSETS.bprm_interp)).map_err(|_| Counter::ExeFault)?;
    // SAFETY: `to` has the room; the helper checks the source.
    let len = unsafe { bpf_probe_read_kernel_str(to.cast(), EXE_MAX as u32, name.cast()) }.cast_unsigned();
    // Negative errors are huge now. The NUL counts: success is never 0.
    if len == 0 || len > EXE_MAX as u64 {
        return Err(Counter::ExeFault);
    }
    // The verifier before 5.13 does not conclude from `len != 0` that `len - 1` is not negative: the mask shows it. The
    // compiler does conclude it, and would drop the mask.
    Ok(black_box(len - 1) & (EXE_MAX as u64 - 1))
}
