//! orphand's eBPF programs: they report how processes are born, what they become and how they end.
// On the host there is nothing to run: that build is for clippy.
#![cfg_attr(target_arch = "bpf", no_std, no_main, feature(asm_experimental_arch))]
#![expect(
    clippy::inline_always,
    reason = "a call costs; only what a stranger's process never runs is behind one"
)]
#![expect(
    clippy::cast_possible_truncation,
    reason = "a checked conversion is a panic that the verifier has to prove away"
)]
#![expect(clippy::needless_pass_by_value, reason = "the macros of the entry points want it")]

mod calls;
mod emit;
mod ends;
mod file;
mod filter;
mod hooks;
mod maps;
mod members;
mod shares;
mod signals;
mod task;
mod tasks;

use core::ffi::c_void;

use aya_ebpf::{
    EbpfContext as _,
    macros::{fexit, raw_tracepoint, tracepoint},
    programs::{FExitContext, RawTracePointContext, TracePointContext},
};
use monitor_common::{Counter, Kind};

/// Counts a record that could not be made, and why. Returns what the kernel expects of a tracing program.
#[inline(always)]
fn finish(kind: Kind, outcome: Result<(), Counter>) -> i32 {
    if let Err(why) = outcome {
        maps::count(why);
        emit::count_lost(kind);
    }
    0
}

/// The work for a process that is followed. Most processes of a host are not, and their caches are cold when they come here. So
/// what they run is short and in one place, and the rest is a function of its own.
#[inline(never)]
fn of_interest(
    kind: Kind,
    ctx: *mut c_void,
    work: impl FnOnce(&RawTracePointContext) -> Result<(), Counter>,
) -> i32 {
    finish(kind, work(&RawTracePointContext::new(ctx)))
}

/// `TP_PROTO(struct task_struct *parent, struct task_struct *child)`, include/trace/events/sched.h.
#[raw_tracepoint(tracepoint = "sched_process_fork")]
pub fn sched_process_fork(ctx: RawTracePointContext) -> i32 {
    if !filter::may_contain(task::current_tgid()) {
        return 0;
    }
    of_interest(Kind::Fork, ctx.as_ptr(), hooks::fork)
}

/// `TP_PROTO(struct task_struct *p, pid_t old_pid, struct linux_binprm *bprm)`.
#[raw_tracepoint(tracepoint = "sched_process_exec")]
pub fn sched_process_exec(ctx: RawTracePointContext) -> i32 {
    match hooks::may_report_exec() {
        Ok(true) => of_interest(Kind::Exec, ctx.as_ptr(), hooks::exec),
        Ok(false) => 0,
        Err(why) => finish(Kind::Exec, Err(why)),
    }
}

/// `TP_PROTO(struct task_struct *p)`, since 6.17 or so `TP_PROTO(struct task_struct *p, bool group_dead)`.
#[raw_tracepoint(tracepoint = "sched_process_exit")]
pub fn sched_process_exit(ctx: RawTracePointContext) -> i32 {
    if !filter::may_contain(task::current_tgid()) {
        return 0;
    }
    of_interest(Kind::Exit, ctx.as_ptr(), hooks::exit)
}

/// A host sends thousands of signals a second, most of them SIGCHLD. What does not concern a followed process is over soon.
#[raw_tracepoint(tracepoint = "signal_generate")]
pub fn signal_generate(ctx: RawTracePointContext) -> i32 {
    match signals::may_end(&ctx) {
        Ok(true) => of_interest(Kind::Signal, ctx.as_ptr(), signals::sent),
        Ok(false) => 0,
        Err(why) => finish(Kind::Signal, Err(why)),
    }
}

/// `TP_PROTO(const struct sock *sk, const int oldstate, const int newstate)`, include/trace/events/sock.h: each change of the
/// state of a TCP connection.
#[raw_tracepoint(tracepoint = "inet_sock_set_state")]
pub fn inet_sock_set_state(ctx: RawTracePointContext) -> i32 {
    calls::written(calls::changes(ctx.arg(0), ctx.arg(1), ctx.arg(2)));
    0
}

/// `int ksys_setsid(void)`, kernel/sys.c. At its exit the result is known: it refuses a group leader with
/// EPERM. A function without arguments has its result in slot 0 of the context.
#[fexit(function = "ksys_setsid")]
pub fn ksys_setsid(ctx: FExitContext) -> i32 {
    finish(Kind::Setsid, hooks::setsid(i64::from(ctx.arg::<i32>(0))))
}

/// `int inet_csk_get_port(struct sock *sk, unsigned short snum)`, `net/ipv4/inet_connection_sock.c`: bind(2) of a TCP socket. Its result
/// is the third word of the context.
#[fexit(function = "inet_csk_get_port")]
pub fn inet_csk_get_port(ctx: FExitContext) -> i32 {
    let (port, is_taken) = (ctx.arg::<u64>(1) as u16, ctx.arg::<i32>(2) != 0);
    if is_taken {
        calls::written(calls::seeks(port));
    }
    0
}

/// `syscalls:sys_enter_bind`: where fexit does not load. What comes of it is not seen.
#[tracepoint(category = "syscalls", name = "sys_enter_bind")]
pub fn sys_enter_bind(ctx: TracePointContext) -> i32 {
    // SAFETY: a read of the context, which is longer than that.
    if let Ok(address) = unsafe { ctx.read_at::<u64>(SYS_ENTER_SECOND) } {
        calls::written(calls::binds(address));
    }
    0
}

/// Offset of the second argument in the format files of `syscalls:sys_enter_*` (`struct syscall_trace_enter`).
const SYS_ENTER_SECOND: usize = 24;

/// Offset of `ret` in the format file of the tracepoint in tracefs; the same for all
/// `syscalls:sys_exit_*` (`struct syscall_trace_exit`, kernel/trace/trace.h).
const SYS_EXIT_RET: usize = 16;

/// `syscalls:sys_exit_setsid`: where fexit does not load.
#[tracepoint(category = "syscalls", name = "sys_exit_setsid")]
pub fn sys_exit_setsid(ctx: TracePointContext) -> i32 {
    // SAFETY: a read of the context, which is longer than that.
    let ret = unsafe { ctx.read_at::<i64>(SYS_EXIT_RET) };
    finish(Kind::Setsid, ret.map_err(|_| Counter::Unreadable).and_then(hooks::setsid))
}

/// `bpf_iter_task_file`, `kernel/bpf/task_iter.c`: called for each open descriptor of each thread that has a table of its own, and
/// once after the last. Returning 0 continues the pass.
#[unsafe(link_section = "iter/task_file")]
#[unsafe(no_mangle)]
pub extern "C" fn task_file(ctx: &ends::TaskFile) -> i32 {
    ends::visit(ctx);
    0
}

/// `bpf_iter_task`, `kernel/bpf/task_iter.c`: called for each thread, and once after the last.
#[unsafe(link_section = "iter/task")]
#[unsafe(no_mangle)]
pub extern "C" fn task(ctx: &tasks::Visit) -> i32 {
    tasks::visit(ctx);
    0
}

#[cfg(target_arch = "bpf")]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    // The programs have no path that panics; the verifier would refuse this loop.
    loop {}
}

/// `bpf_probe_read_kernel()` and others are for programs under a licence compatible with the GPL only.
#[unsafe(link_section = "license")]
#[unsafe(no_mangle)]
static LICENSE: [u8; 13] = *b"Dual MIT/GPL\0";

#[cfg(not(target_arch = "bpf"))]
fn main() {}
