//! The pass over all tasks of the host: filter, fill, write. It asks no process for anything, so none can delay it.

use core::hint::black_box;

use monitor_common::{Counter, TaskRecord, task_flags};

use crate::{
    ends::{Meta, write},
    maps::{self, global},
    task::{Task, pointer, read},
};

/// `PF_KTHREAD`, include/linux/sched.h.
const KERNEL_THREAD: u32 = 0x0020_0000;
/// `MAX_PID_NS_LEVEL`, `include/linux/pid_namespace.h`.
const DEEPEST: u32 = 32;

/// `struct bpf_iter__task`, `kernel/bpf/task_iter.c`: what the kernel hands in.
#[repr(C)]
pub struct Visit {
    meta: *const Meta,
    task: *const u8,
}

/// Writes a record about this task if it is a process, or a thread that is traced. One that cannot be read is reported
/// too: a pass that leaves something out must not look complete.
#[inline(always)]
pub fn visit(ctx: &Visit) {
    // Null after the last one.
    let task = black_box(ctx.task);
    if task.is_null() {
        return;
    }
    let mut record = TaskRecord::default();
    match fill(task, &mut record) {
        Ok(true) => {}
        Ok(false) => return,
        Err(why) => {
            maps::count(why);
            record.flags = task_flags::UNREADABLE;
        }
    }
    write(ctx.meta, &record);
}

/// Whether there is something to tell. What is being released has lost its number: it has ended.
#[inline(always)]
fn fill(address: *const u8, record: &mut TaskRecord) -> Result<bool, Counter> {
    let task = Task::new(address);
    if read::<u32>(address, global!(TASK_OFFSETS.task_flags))? & KERNEL_THREAD != 0 {
        return Ok(false);
    }
    record.tgid = task.tgid()?;
    record.tid = read(address, global!(TASK_OFFSETS.task_pid))?;
    if read::<u32>(address, global!(TASK_OFFSETS.task_ptrace))? != 0 {
        record.tracer =
            read(pointer(address, global!(TASK_OFFSETS.task_parent))?, global!(TASK_OFFSETS.task_pid))?;
    }
    if record.tid != record.tgid && record.tracer == 0 {
        return Ok(false);
    }
    if read::<u32>(address, global!(TASK_OFFSETS.task_pdeath_signal))? != 0 {
        record.ends_with = task.parent()?.tgid()?;
    }
    let signal = pointer(address, global!(OFFSETS.task_signal))?;
    let number = pointer(address, global!(TASK_OFFSETS.task_thread_pid))?;
    if number.is_null() {
        return Ok(false);
    }
    // What the kernel itself started has none: 0.
    let session = pointer(signal, global!(OFFSETS.signal_sid))?;
    if !session.is_null() {
        record.sid = read(session, global!(OFFSETS.pid_nr))?;
    }
    record.start = task.group_birth()?;
    record.uid = task.uid()?;
    let tty = pointer(signal, global!(TASK_OFFSETS.signal_tty))?;
    record.line = tty as u64;
    record.terminal = terminal(tty)?;
    place(number, record)?;
    if task.group_dead()? {
        record.flags |= task_flags::DEAD;
    }
    Ok(true)
}

/// `tty_devnum()`, include/linux/tty.h. A terminal that is released meanwhile is no longer that of the process.
#[inline(always)]
fn terminal(tty: *const u8) -> Result<u32, Counter> {
    if tty.is_null() {
        return Ok(0);
    }
    let driver = pointer(tty, global!(TASK_OFFSETS.tty_driver))?;
    let major: u32 = read(driver, global!(TASK_OFFSETS.driver_major))?;
    let first: u32 = read(driver, global!(TASK_OFFSETS.driver_minor_start))?;
    let index: u32 = read(tty, global!(TASK_OFFSETS.tty_index))?;
    Ok((major << 20).wrapping_add(first).wrapping_add(index))
}

/// The namespace, and the number there: the last of its numbers (`ns_of_pid()`, include/linux/pid.h).
#[inline(always)]
fn place(number: *const u8, record: &mut TaskRecord) -> Result<(), Counter> {
    record.level = read(number, global!(TASK_OFFSETS.pid_level))?;
    if record.level > DEEPEST {
        return Err(Counter::Unreadable);
    }
    let first = global!(TASK_OFFSETS.pid_nr);
    let own = record.level.wrapping_mul(global!(TASK_OFFSETS.pid_next_nr).wrapping_sub(first));
    record.inner = read(number, own.wrapping_add(first))?;
    let namespace = pointer(number, own.wrapping_add(global!(TASK_OFFSETS.pid_ns)))?;
    record.namespace = read(namespace, global!(TASK_OFFSETS.namespace_inum))?;
    Ok(())
}
