//! The events: filter, fill, emit.

use aya_ebpf::{
    helpers::{bpf_get_current_comm, bpf_get_current_pid_tgid, generated::bpf_ktime_get_boot_ns},
    programs::RawTracePointContext,
};
use aya_log_ebpf::debug;
use monitor_common::{
    COMM_LEN, Candidate, Counter, ExecRecord, ExitRecord, ForkRecord, Header, Kind, SetsidRecord, State,
    StreamRecord, TAIL_MAX, flags,
};

use crate::{
    emit::{Urgency, emit, emit_bytes},
    maps::{self, CANDIDATES, SCRATCH, offset},
    members,
    task::{Task, executed_file},
};

#[inline(always)]
fn header(kind: Kind, tgid: u32, start: u64) -> Header {
    // SAFETY: no precondition.
    let at = unsafe { bpf_ktime_get_boot_ns() };
    Header { kind: kind as u32, tgid, at, start }
}

#[inline(always)]
fn current_tgid() -> u32 {
    (bpf_get_current_pid_tgid() >> 32) as u32
}

/// `kernel_clone()` (kernel/fork.c) calls this before it wakes the child: the record precedes all the child does.
/// The creator is the caller, whomever `CLONE_PARENT` makes the parent.
#[inline(always)]
pub fn fork(ctx: &RawTracePointContext) -> Result<(), Counter> {
    let creator = current_tgid();
    let Some(standing) = members::standing(creator) else { return Ok(()) };
    if standing.only_exits() {
        return Ok(());
    }
    let child = Task::new(ctx.arg(1));
    let tgid = child.tgid()?;
    // A thread: same group.
    if tgid == creator {
        return Ok(());
    }
    let uid = child.uid()?;
    if !members::inherit(standing, tgid, uid) {
        debug!(ctx, "fork of {} below {}: over the budget, or no room", tgid, standing.anchor);
        return Ok(());
    }
    let record = ForkRecord {
        header: header(Kind::Fork, tgid, child.birth()?),
        creator_start: Task::current().group_birth()?,
        creator,
        uid,
        sid: child.sid()?,
        pad: 0,
    };
    emit(Kind::Fork, &record, Urgency::Ordinary);
    Ok(())
}

/// `exec_binprm()` (fs/exec.c) calls this when the new image is in place: comm, credentials and memory are the new
/// ones, the other threads are gone, close-on-exec is done.
#[inline(always)]
pub fn exec(ctx: &RawTracePointContext) -> Result<(), Counter> {
    let tgid = current_tgid();
    let task = Task::current();
    let standing = members::standing(tgid);
    let followed = standing.is_some_and(|m| !m.only_exits());
    let parent = task.parent()?;
    let parent_tgid = parent.tgid()?;
    if !followed && !is_candidate(task)? && !members::is_manager(parent_tgid) {
        return Ok(());
    }
    let uid = task.uid()?;
    if !followed {
        debug!(ctx, "candidate {} below {}", tgid, parent_tgid);
        if !members::enter_candidate(tgid, uid, parent, parent_tgid)? {
            return Ok(());
        }
    }

    let scratch = SCRATCH.get_ptr_mut(0).ok_or(Counter::NoScratch)?;
    // SAFETY: the pointer came from a per-CPU map, see SCRATCH.
    let tail = unsafe { &raw mut (*scratch).tail }.cast::<u8>();
    // What user space can complete from /proc is no reason to lose the record.
    let exe_len = soft(executed_file(ctx.arg::<*const u8>(2), tail), 0);
    // SAFETY: `exe_len` is below EXE_MAX, so ARGV_MAX bytes are left.
    let (argv_len, more) = soft(task.argv(unsafe { tail.add(exe_len as usize) }), (0, true));
    let record = ExecRecord {
        header: header(Kind::Exec, tgid, task.group_birth()?),
        parent_start: parent.group_birth()?,
        parent: parent_tgid,
        uid,
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
    emit_bytes(Kind::Exec, scratch.cast(), size_of::<ExecRecord>() as u64 + len, Urgency::Ordinary);
    Ok(())
}

/// What a failure that does not cost the record leaves behind.
#[inline(always)]
fn soft<T>(read: Result<T, Counter>, without: T) -> T {
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
    soft(task.stream(fd), StreamRecord { ino: 0, rdev: 0, mode: 0 })
}

const S_IFMT: u32 = 0o170_000;
const S_IFIFO: u32 = 0o010_000;
const S_IFSOCK: u32 = 0o140_000;

/// Whether the exec of a process nobody follows is worth a report.
#[inline(always)]
fn is_candidate(task: Task) -> Result<bool, Counter> {
    let comm: [u8; COMM_LEN] = bpf_get_current_comm().map_err(|_| Counter::Unreadable)?;
    // SAFETY: user space fills this map before the programs run and never changes it.
    match unsafe { CANDIDATES.get(comm) } {
        Some(&when) if when == Candidate::NeedsWire as u32 => {
            let StreamRecord { mode, .. } = stream(task, 0);
            Ok(mode & S_IFMT == S_IFIFO || mode & S_IFMT == S_IFSOCK)
        }
        Some(_) => Ok(true),
        None => Ok(maps::mcp_names() && names_mcp(&comm)),
    }
}

/// Whether `mcp` is in the name, in either case.
#[inline(always)]
fn names_mcp(comm: &[u8; COMM_LEN]) -> bool {
    let mut seen = 0u32;
    let mut found = false;
    for byte in comm {
        seen = (seen << 8 | u32::from(byte | 0x20)) & 0xff_ffff;
        found |= seen == u32::from_be_bytes([0, b'm', b'c', b'p']);
    }
    found
}

/// `do_exit()` (kernel/exit.c) calls this for every thread; no task exits without it, whatever killed it.
#[inline(always)]
pub fn exit(ctx: &RawTracePointContext) -> Result<(), Counter> {
    let tgid = current_tgid();
    let Some(standing) = members::standing(tgid) else { return Ok(()) };
    let task = Task::new(ctx.arg(0));
    let dead = if offset!(exit_has_group_dead) == 1 { ctx.arg::<u8>(1) != 0 } else { task.group_dead()? };
    // Two last threads may both see the group dead: the one that removes it reports it.
    if !dead || !members::leave(tgid, standing) {
        return Ok(());
    }
    let record = ExitRecord {
        header: header(Kind::Exit, tgid, task.group_birth()?),
        status: task.group_status()?,
        pad: 0,
    };
    debug!(ctx, "exit of {}, state {}", tgid, standing.standing);
    let matters = standing.is(State::Agent) || standing.only_exits();
    emit(Kind::Exit, &record, if matters { Urgency::AtOnce } else { Urgency::Ordinary });
    Ok(())
}

/// setsid(2) returned `ret`: the session id, or a negative error. A session leader's number is its tgid, since only
/// then can the new session have the number of the caller's group.
#[inline(always)]
pub fn setsid(ret: i64) -> Result<(), Counter> {
    if ret < 0 {
        return Ok(());
    }
    let tgid = current_tgid();
    let Some(standing) = members::standing(tgid) else { return Ok(()) };
    if standing.only_exits() {
        return Ok(());
    }
    let task = Task::current();
    let record =
        SetsidRecord { header: header(Kind::Setsid, tgid, task.group_birth()?), sid: task.sid()?, pad: 0 };
    emit(Kind::Setsid, &record, Urgency::Ordinary);
    Ok(())
}
