//! Who ends a followed process: signals that it does not handle.
//!
//! Invariant: a signal that ends nobody, and one to a process that is not followed, costs no more than the look at the
//! filter before MEMBERS.

use aya_ebpf::programs::RawTracePointContext;
use monitor_common::{COMM_LEN, Counter, Kind, SenderKind, SignalRecord};

use crate::{
    emit::{Room, Urgency},
    filter,
    maps::global,
    members,
    task::{Task, current_tgid, read},
};

/// `TRACE_SIGNAL_DELIVERED` and `TRACE_SIGNAL_LOSE_INFO`, include/trace/events/signal.h: it will be acted upon. The others
/// say that it is ignored, pending already, or could not be queued.
const DELIVERED: u32 = 0;
const LOSE_INFO: u32 = 4;

/// `SEND_SIG_NOINFO` and `SEND_SIG_PRIV`, include/linux/sched/signal.h, in place of a pointer.
const NO_INFO: u64 = 0;
const PRIVATE: u64 = 1;

/// `SI_USER`, `SI_QUEUE`, `SI_TKILL`, include/uapi/asm-generic/siginfo.h: a process asked for it, and is the current one.
const FROM_A_PROCESS: [i32; 3] = [0, -1, -6];

/// The signals that end nobody who does not handle them: SIGCHLD, SIGCONT, the four that stop, SIGURG, SIGWINCH. They have
/// these numbers wherever orphand is built for.
const HARMLESS: u64 = bit(17) | bit(18) | bit(19) | bit(20) | bit(21) | bit(22) | bit(23) | bit(28);

const SIGNALS: u32 = 64;
const SIGKILL: u32 = 9;

const fn bit(signal: u32) -> u64 {
    1 << (signal - 1)
}

/// Whether the signal may end a followed process: all that is looked at of another's. `TP_PROTO(int sig, struct kernel_siginfo
/// *info, struct task_struct *task, int group, int result)`.
#[inline(always)]
pub fn may_end(ctx: &RawTracePointContext) -> Result<bool, Counter> {
    let (signal, result) = (ctx.arg::<u32>(0), ctx.arg::<u32>(4));
    if signal == 0 || signal > SIGNALS || HARMLESS >> (signal - 1) & 1 == 1 {
        return Ok(false);
    }
    if result != DELIVERED && result != LOSE_INFO {
        return Ok(false);
    }
    Ok(filter::may_contain(Task::new(ctx.arg(2)).tgid()?))
}

/// `__send_signal_locked()` (kernel/signal.c) calls this with the lock of the receiver's signals, which the receiver takes
/// before it acts upon any: the record precedes that of its exit.
#[inline(always)]
pub fn sent(ctx: &RawTracePointContext) -> Result<(), Counter> {
    let signal = ctx.arg::<u32>(0);
    let task = Task::new(ctx.arg(2));
    let tgid = task.tgid()?;
    // The second comparison is for the verifier.
    if !members::is_followed(tgid) || signal == 0 || signal > SIGNALS || !task.leaves_to_default(signal)? {
        return Ok(());
    }
    let Some(room) = Room::if_any(Kind::Signal, task.uid()?) else { return Ok(()) };
    let mut record = record(room, task, tgid, SenderKind::Kernel, signal)?;
    let current = current_tgid();
    if is_from_current(ctx.arg(1), current != tgid)? {
        let leader = Task::current().leader()?;
        record.sender_kind = SenderKind::Process as u32;
        record.sender_start = leader.birth()?;
        record.sender = current;
        record.sender_uid = leader.uid()?;
        record.sender_comm = leader.name()?;
    }
    room.emit(&record, Urgency::Ordinary);
    Ok(())
}

/// Of a signal that no process has sent.
#[inline(always)]
fn record(room: Room, task: Task, tgid: u32, kind: SenderKind, signal: u32) -> Result<SignalRecord, Counter> {
    Ok(SignalRecord {
        header: room.header(tgid, task.group_birth()?),
        sender_start: 0,
        sender: 0,
        sender_uid: 0,
        sender_kind: kind as u32,
        signal,
        sender_comm: [0; COMM_LEN],
    })
}

/// Whether the current process sent it, and not the kernel. Without information it comes from kernel code that acts for the
/// current process: a write to `cgroup.kill`, the end of a parent (`PR_SET_PDEATHSIG`); or about it (SIGPIPE).
#[inline(always)]
fn is_from_current(info: u64, is_another: bool) -> Result<bool, Counter> {
    if info == NO_INFO {
        return Ok(is_another);
    }
    if info == PRIVATE {
        return Ok(false);
    }
    let code: i32 = read(info as *const u8, global!(SIGNAL_OFFSETS.siginfo_code))?;
    Ok(FROM_A_PROCESS.contains(&code))
}

/// Before the exit of a followed process is reported: a process that the kernel ended because memory had run out. The signal
/// itself does not tell.
#[inline(always)]
pub fn report_out_of_memory(task: Task, tgid: u32) -> Result<(), Counter> {
    if task.group_status()? & 0x7f != SIGKILL || !task.is_out_of_memory()? {
        return Ok(());
    }
    if let Some(room) = Room::if_any(Kind::Signal, task.uid()?) {
        room.emit(&record(room, task, tgid, SenderKind::OutOfMemory, SIGKILL)?, Urgency::Ordinary);
    }
    Ok(())
}
