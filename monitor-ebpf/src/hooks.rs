//! The events: filter, fill, emit.

use aya_ebpf::{
    helpers::{bpf_get_current_comm, generated::bpf_ktime_get_boot_ns},
    programs::RawTracePointContext,
};
use aya_log_ebpf::debug;
use monitor_common::{
    ARGV_MAX, COMM_LEN, Candidate, Counter, EXE_MAX, ExecRecord, ForkRecord, Kind, State, TAIL_MAX,
    ValueRecord, contains_mcp, flags, is_shell,
};

use crate::{
    emit::{Room, Urgency},
    file::{CLOSED, Inode, is_fifo_or_socket, opened, stream},
    filter,
    maps::{self, CANDIDATES, SCRATCH, Scratch, WOKEN, global},
    members, signals,
    task::{Task, current_tgid, current_thread, executed_file},
};

/// `kernel_clone()` (kernel/fork.c) calls this before it wakes the child: the record precedes everything that the child
/// does. The creator is the caller, whichever process `CLONE_PARENT` makes the parent.
#[inline(always)]
pub fn fork(ctx: &RawTracePointContext) -> Result<(), Counter> {
    let creator = current_tgid();
    let Some(member) = members::followed(creator) else { return Ok(()) };
    let child = Task::new(ctx.arg(1));
    let tgid = child.tgid()?;
    // A thread: same group.
    if tgid == creator {
        return Ok(());
    }
    let uid = child.uid()?;
    let Some(room) = Room::of(Kind::Fork, uid) else { return Ok(()) };
    if !members::add_child(member, tgid, uid) {
        debug!(ctx, "fork of {} below {}: over the budget, or no room", tgid, member.anchor);
        return Ok(());
    }
    let record = ForkRecord {
        header: room.header(tgid, child.birth()?),
        creator_start: Task::current().group_birth()?,
        creator,
        uid,
        sid: child.sid()?,
        thread: current_thread(),
    };
    room.emit(&record, Urgency::Ordinary);
    Ok(())
}

/// Whether the current task's exec may have to be reported: of a stranger's, this is all that is looked at.
#[inline(always)]
pub fn may_report_exec() -> Result<bool, Counter> {
    let task = Task::current();
    Ok(filter::may_contain(current_tgid())
        || is_candidate(task)?
        || filter::may_contain(task.parent()?.tgid()?))
}

/// `exec_binprm()` (fs/exec.c) calls this when the new image is in place: comm, credentials and memory are the new
/// ones, the other threads are gone, close-on-exec is done.
#[inline(always)]
pub fn exec(ctx: &RawTracePointContext) -> Result<(), Counter> {
    let tgid = current_tgid();
    let task = Task::current();
    let followed = members::followed(tgid).is_some();
    let parent = task.parent()?;
    let parent_tgid = parent.tgid()?;
    if !followed && !is_candidate(task)? && !members::is_manager(parent_tgid) {
        return Ok(());
    }
    let uid = task.uid()?;
    let Some(room) = Room::of(Kind::Exec, uid) else { return Ok(()) };
    if !followed {
        debug!(ctx, "candidate {} below {}", tgid, parent_tgid);
        if !members::add_candidate(tgid, uid, parent, parent_tgid)? {
            return Ok(());
        }
    }
    let reported = report_exec(ctx, task, parent, room);
    if !followed && parent.group_dead()? && members::remove_watched(parent_tgid) {
        report(Kind::Exit, parent, parent_tgid, parent.group_status()?, Urgency::AtOnce)?;
    }
    reported
}

#[inline(always)]
fn report_exec(ctx: &RawTracePointContext, task: Task, parent: Task, room: Room) -> Result<(), Counter> {
    let descriptors = or_counted(task.descriptors(), core::ptr::null());
    let streams = [
        or_counted(stream(descriptors, 0), CLOSED),
        or_counted(stream(descriptors, 1), CLOSED),
        or_counted(stream(descriptors, 2), CLOSED),
    ];
    // What was said to a program on two wires can be seen until it reads that, which may be some milliseconds.
    let has_wires = is_fifo_or_socket(streams[0].mode) && is_fifo_or_socket(streams[1].mode);
    let is_urgent = has_wires && is_seldom();
    let urgency = if is_urgent { Urgency::AtOnce } else { Urgency::Ordinary };
    let scratch = SCRATCH.get_ptr_mut(0).ok_or(Counter::NoScratch)?;
    // SAFETY: the pointer came from a per-CPU map, see SCRATCH.
    let tail = unsafe { &raw mut (*scratch).tail }.cast::<u8>();
    // User space can complete these from /proc: their absence is no reason to lose the record.
    let exe_len = or_counted(executed_file(ctx.arg::<*const u8>(2), tail), 0);
    let exe_len = through_map(exe_len, scratch) & (EXE_MAX as u64 - 1);
    // SAFETY: `exe_len` is below EXE_MAX, so ARGV_MAX bytes are left.
    let (argv_len, more) = or_counted(task.argv(unsafe { tail.add(exe_len as usize) }), (0, true));
    let argv_len = through_map(argv_len, scratch) & (2 * ARGV_MAX as u64 - 1);
    let ignored = or_counted(task.ignored(), 0);
    let record = ExecRecord {
        header: room.header(current_tgid(), task.group_birth()?),
        parent_start: parent.group_birth()?,
        parent: parent.tgid()?,
        uid: task.uid()?,
        sid: task.sid()?,
        flags: ignored | if more { flags::ARGV_TRUNCATED } else { 0 },
        exe_len: exe_len as u32,
        argv_len: argv_len as u32,
        streams,
    };
    // SAFETY: as above; the record comes first in the buffer.
    unsafe { scratch.cast::<ExecRecord>().write(record) };
    let len = exe_len + argv_len;
    if len > TAIL_MAX as u64 {
        return Ok(());
    }
    room.emit_bytes(scratch.cast(), (size_of::<ExecRecord>() as u64 + len) as u32, urgency);
    Ok(())
}

/// Whether no exec on this CPU has woken the reader in the last millisecond: a storm of them keeps it from nothing.
#[inline(always)]
fn is_seldom() -> bool {
    const PAUSE: u64 = 1_000_000;
    let Some(woken) = WOKEN.get_ptr_mut(0) else { return false };
    // SAFETY: no precondition.
    let now = unsafe { bpf_ktime_get_boot_ns() };
    // SAFETY: the pointer came from a per-CPU map.
    let woken = unsafe { &mut *woken };
    let is_seldom = now.wrapping_sub(*woken) >= PAUSE;
    if is_seldom {
        *woken = now;
    }
    is_seldom
}

/// The same value. To the verifier, what comes out of a map is any value: it looks once at what follows, and not once for each
/// way on which the value was found. That is a third of the work.
#[inline(always)]
fn through_map(value: u64, scratch: *mut Scratch) -> u64 {
    // SAFETY: the pointer came from a per-CPU map. The field is written again with the record.
    let at = unsafe { &raw mut (*scratch).record.parent_start };
    // SAFETY: as above.
    unsafe { core::ptr::write_volatile(at, value) };
    // SAFETY: as above.
    unsafe { core::ptr::read_volatile(at) }
}

/// The value that was read. A failure is counted and does not cost the record: `without` takes its place.
#[inline(always)]
fn or_counted<T>(read: Result<T, Counter>, without: T) -> T {
    match read {
        Ok(value) => value,
        Err(why) => {
            maps::count(why);
            without
        }
    }
}

/// Whether the exec of a process that is not followed is reported.
#[inline(always)]
fn is_candidate(task: Task) -> Result<bool, Counter> {
    let comm: [u8; COMM_LEN] = bpf_get_current_comm().map_err(|_| Counter::Unreadable)?;
    // SAFETY: user space fills this map before the programs run and never changes it.
    match unsafe { CANDIDATES.get(comm) } {
        Some(&when) if when == Candidate::NeedsWire as u32 => is_wire(opened(task.descriptors()?, 0)?),
        Some(_) => Ok(true),
        None if global!(TUNING.mcp_names) == 1 && contains_mcp(&comm) => Ok(true),
        None => Ok(global!(TUNING.wired_strangers) == 1 && is_wired(task)?),
    }
}

/// Whether standard input and output are wires that the parent has made for this program: the parent's own are others, and
/// the parent is no shell, which makes the pipes of a pipeline.
#[inline(always)]
fn is_wired(task: Task) -> Result<bool, Counter> {
    let own = task.descriptors()?;
    let input = opened(own, 0)?;
    if !is_wire(input)? {
        return Ok(false);
    }
    let output = opened(own, 1)?;
    if !is_wire(output)? {
        return Ok(false);
    }
    let parent = task.parent()?;
    if is_shell(parent.name_start()?) {
        return Ok(false);
    }
    let theirs = parent.descriptors()?;
    Ok(opened(theirs, 0)? != input && opened(theirs, 1)? != output)
}

#[inline(always)]
fn is_wire(inode: Inode) -> Result<bool, Counter> {
    if inode.is_null() {
        return Ok(false);
    }
    inode.mode().map(is_fifo_or_socket)
}

/// `do_exit()` (kernel/exit.c) calls this for every thread, whatever ended it.
#[inline(always)]
pub fn exit(ctx: &RawTracePointContext) -> Result<(), Counter> {
    let tgid = current_tgid();
    let Some(member) = members::look_up(tgid) else { return Ok(()) };
    let task = Task::new(ctx.arg(0));
    let dead =
        if global!(TUNING.exit_has_group_dead) == 1 { ctx.arg::<u8>(1) != 0 } else { task.group_dead()? };
    // Only agents own servers, so no thread of another process is looked up.
    let made_a_server = member.is(State::Agent) && members::remove_thread(tgid);
    if !dead {
        // Where the whole group is ending, its last exit says so.
        if made_a_server && !task.group_exiting()? {
            report(Kind::ThreadExit, task, tgid, current_thread(), Urgency::Ordinary)?;
        }
        return Ok(());
    }
    // The last two threads may both see the group dead: the one that removes it reports it.
    if !members::remove(tgid, member) {
        return Ok(());
    }
    debug!(ctx, "exit of {}, state {}", tgid, member.state_and_slot);
    or_counted(signals::report_out_of_memory(task, tgid), ());
    let urgent = member.is(State::Agent) || member.reports_only_exit();
    let urgency = if urgent { Urgency::AtOnce } else { Urgency::Ordinary };
    report(Kind::Exit, task, tgid, task.group_status()?, urgency)
}

/// setsid(2) returned `ret`: the session id, or a negative error. The new session has the number of the caller's thread
/// group.
#[inline(always)]
pub fn setsid(ret: i64) -> Result<(), Counter> {
    let tgid = current_tgid();
    if ret < 0 || members::followed(tgid).is_none() {
        return Ok(());
    }
    let task = Task::current();
    report(Kind::Setsid, task, tgid, task.sid()?, Urgency::Ordinary)
}

#[inline(always)]
fn report(kind: Kind, task: Task, tgid: u32, value: u32, urgency: Urgency) -> Result<(), Counter> {
    if let Some(room) = Room::of(kind, task.uid()?) {
        room.emit(&ValueRecord { header: room.header(tgid, task.group_birth()?), value, pad: 0 }, urgency);
    }
    Ok(())
}
