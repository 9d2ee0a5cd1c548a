//! The events: filter, fill, emit.

use aya_ebpf::{
    helpers::{bpf_get_current_comm, generated::bpf_ktime_get_boot_ns},
    programs::RawTracePointContext,
};
use aya_log_ebpf::debug;
use monitor_common::{
    COMM_LEN, Candidate, Counter, ExecRecord, ExitRecord, ForkRecord, Header, Kind, SetsidRecord, State,
    StreamRecord, TAIL_MAX, ThreadExitRecord, contains_mcp, flags, is_shell,
};

use crate::{
    emit::{Room, Urgency, emit, emit_bytes},
    file::{is_fifo, is_socket},
    filter,
    maps::{self, CANDIDATES, SCRATCH, global},
    members, signals,
    task::{Task, current_tgid, current_thread, executed_file, mode, opened},
    threads,
};

/// Of a record that is made now.
#[inline(always)]
pub fn header(kind: Kind, room: Room, tgid: u32, start: u64) -> Header {
    // SAFETY: no precondition.
    let at = unsafe { bpf_ktime_get_boot_ns() };
    Header { kind: kind as u16, slot: room.slot(), tgid, at, start }
}

/// `kernel_clone()` (kernel/fork.c) calls this before it wakes the child: the record precedes everything that the child
/// does. The creator is the caller, whichever process `CLONE_PARENT` makes the parent.
#[inline(always)]
pub fn fork(ctx: &RawTracePointContext) -> Result<(), Counter> {
    let creator = current_tgid();
    let Some(member) = members::look_up(creator) else { return Ok(()) };
    if member.reports_only_exit() {
        return Ok(());
    }
    let child = Task::new(ctx.arg(1));
    let tgid = child.tgid()?;
    // A thread: same group.
    if tgid == creator {
        return Ok(());
    }
    let uid = child.uid()?;
    let Some(room) = Room::of(uid) else { return Ok(()) };
    if !members::add_child(member, tgid, uid) {
        debug!(ctx, "fork of {} below {}: over the budget, or no room", tgid, member.anchor);
        return Ok(());
    }
    let record = ForkRecord {
        header: header(Kind::Fork, room, tgid, child.birth()?),
        creator_start: Task::current().group_birth()?,
        creator,
        uid,
        sid: child.sid()?,
        thread: current_thread(),
    };
    emit(Kind::Fork, room, &record, Urgency::Ordinary);
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
    let followed = members::look_up(tgid).is_some_and(|member| !member.reports_only_exit());
    let parent = task.parent()?;
    let parent_tgid = parent.tgid()?;
    if !followed && !is_candidate(task)? && !members::is_manager(parent_tgid) {
        return Ok(());
    }
    let uid = task.uid()?;
    let Some(room) = Room::of(uid) else { return Ok(()) };
    if !followed {
        debug!(ctx, "candidate {} below {}", tgid, parent_tgid);
        if !members::add_candidate(tgid, uid, parent, parent_tgid)? {
            return Ok(());
        }
    }
    let reported = report_exec(ctx, task, parent, room);
    if !followed && parent.group_dead()? && members::remove_watched(parent_tgid) {
        report_exit(parent, parent_tgid, Urgency::AtOnce)?;
    }
    reported
}

#[inline(always)]
fn report_exec(ctx: &RawTracePointContext, task: Task, parent: Task, room: Room) -> Result<(), Counter> {
    let scratch = SCRATCH.get_ptr_mut(0).ok_or(Counter::NoScratch)?;
    // SAFETY: the pointer came from a per-CPU map, see SCRATCH.
    let tail = unsafe { &raw mut (*scratch).tail }.cast::<u8>();
    // User space can complete these from /proc: their absence is no reason to lose the record.
    let exe_len = or_counted(executed_file(ctx.arg::<*const u8>(2), tail), 0);
    // SAFETY: `exe_len` is below EXE_MAX, so ARGV_MAX bytes are left.
    let (argv_len, more) = or_counted(task.argv(unsafe { tail.add(exe_len as usize) }), (0, true));
    let record = ExecRecord {
        header: header(Kind::Exec, room, current_tgid(), task.group_birth()?),
        parent_start: parent.group_birth()?,
        parent: parent.tgid()?,
        uid: task.uid()?,
        sid: task.sid()?,
        flags: if more { flags::ARGV_TRUNCATED } else { 0 },
        exe_len: exe_len as u32,
        argv_len: argv_len as u32,
        streams: [stream(task, 0), stream(task, 1), stream(task, 2)],
    };
    // SAFETY: as above; the record comes first in the buffer.
    unsafe { scratch.cast::<ExecRecord>().write(record) };
    let len = exe_len + argv_len;
    if len > TAIL_MAX as u64 {
        return Ok(());
    }
    emit_bytes(
        Kind::Exec,
        room,
        scratch.cast(),
        (size_of::<ExecRecord>() as u64 + len) as u32,
        Urgency::Ordinary,
    );
    Ok(())
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

#[inline(always)]
fn stream(task: Task, fd: u32) -> StreamRecord {
    or_counted(task.stream(fd), StreamRecord { ino: 0, rdev: 0, mode: 0 })
}

/// Whether the exec of a process that is not followed is reported.
#[inline(always)]
fn is_candidate(task: Task) -> Result<bool, Counter> {
    let comm: [u8; COMM_LEN] = bpf_get_current_comm().map_err(|_| Counter::Unreadable)?;
    // SAFETY: user space fills this map before the programs run and never changes it.
    match unsafe { CANDIDATES.get(comm) } {
        Some(&when) if when == Candidate::NeedsWire as u32 => {
            let StreamRecord { mode, .. } = stream(task, 0);
            Ok(is_fifo(mode) || is_socket(mode))
        }
        Some(_) => Ok(true),
        None if maps::mcp_names() && contains_mcp(&comm) => Ok(true),
        None => Ok(maps::wired_strangers() && is_wired(task)?),
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
fn is_wire(inode: *const u8) -> Result<bool, Counter> {
    if inode.is_null() {
        return Ok(false);
    }
    let mode = mode(inode)?;
    Ok(is_fifo(mode) || is_socket(mode))
}

/// `do_exit()` (kernel/exit.c) calls this for every thread, whatever ended it.
#[inline(always)]
pub fn exit(ctx: &RawTracePointContext) -> Result<(), Counter> {
    let tgid = current_tgid();
    let Some(member) = members::look_up(tgid) else { return Ok(()) };
    let task = Task::new(ctx.arg(0));
    let dead =
        if global!(OFFSETS.exit_has_group_dead) == 1 { ctx.arg::<u8>(1) != 0 } else { task.group_dead()? };
    // Only agents own servers, so no thread of another process is looked up.
    let made_a_server = member.is(State::Agent) && threads::remove(tgid);
    if !dead {
        return if made_a_server { thread_exit(task, tgid) } else { Ok(()) };
    }
    // The last two threads may both see the group dead: the one that removes it reports it.
    if !members::remove(tgid, member) {
        return Ok(());
    }
    debug!(ctx, "exit of {}, state {}", tgid, member.state_and_slot);
    or_counted(signals::report_out_of_memory(task, tgid), ());
    let urgent = member.is(State::Agent) || member.reports_only_exit();
    report_exit(task, tgid, if urgent { Urgency::AtOnce } else { Urgency::Ordinary })
}

#[inline(always)]
fn report_exit(task: Task, tgid: u32, urgency: Urgency) -> Result<(), Counter> {
    let Some(room) = Room::of(task.uid()?) else { return Ok(()) };
    let record = ExitRecord {
        header: header(Kind::Exit, room, tgid, task.group_birth()?),
        status: task.group_status()?,
        pad: 0,
    };
    emit(Kind::Exit, room, &record, urgency);
    Ok(())
}

/// A thread that made a server exits before its group does. Where the whole group is ending, its last exit says so.
#[inline(always)]
fn thread_exit(task: Task, tgid: u32) -> Result<(), Counter> {
    if task.group_exiting()? {
        return Ok(());
    }
    let Some(room) = Room::of(task.uid()?) else { return Ok(()) };
    let record = ThreadExitRecord {
        header: header(Kind::ThreadExit, room, tgid, task.group_birth()?),
        thread: current_thread(),
        pad: 0,
    };
    emit(Kind::ThreadExit, room, &record, Urgency::Ordinary);
    Ok(())
}

/// setsid(2) returned `ret`: the session id, or a negative error. The new session has the number of the caller's thread
/// group.
#[inline(always)]
pub fn setsid(ret: i64) -> Result<(), Counter> {
    if ret < 0 {
        return Ok(());
    }
    let tgid = current_tgid();
    let Some(member) = members::look_up(tgid) else { return Ok(()) };
    if member.reports_only_exit() {
        return Ok(());
    }
    let task = Task::current();
    let Some(room) = Room::of(task.uid()?) else { return Ok(()) };
    let record = SetsidRecord {
        header: header(Kind::Setsid, room, tgid, task.group_birth()?),
        sid: task.sid()?,
        pad: 0,
    };
    emit(Kind::Setsid, room, &record, Urgency::Ordinary);
    Ok(())
}
