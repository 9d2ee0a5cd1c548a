//! The pass over all descriptors of the host: filter, fill, write.

use core::hint::black_box;

use aya_ebpf::{bindings::seq_file, helpers::generated::bpf_seq_write};
use monitor_common::{Counter, EndRecord, end_flags, wanted};

use crate::{
    file::{File, Inode, Terminal, is_fifo, is_fifo_or_socket, is_regular, is_socket},
    maps::{self, WANTED, global},
    task::Task,
};

/// `struct bpf_iter__task_file`, `kernel/bpf/task_iter.c`: what the kernel hands in.
#[repr(C)]
pub struct TaskFile {
    meta: *const Meta,
    task: *const u8,
    fd: u32,
    pad: u32,
    file: *const u8,
}

/// The beginning of `struct bpf_iter_meta`, include/linux/bpf.h.
#[repr(C)]
pub struct Meta {
    seq: *mut seq_file,
}

/// Writes a record about this descriptor if user space asked for it. One that cannot be read is reported too: a pass that
/// leaves something out must not look complete.
#[inline(always)]
pub fn visit(ctx: &TaskFile) {
    // Both are null after the last one. They are checked one after the other: the compiler would combine the checks with
    // an operation that the verifier does not allow on pointers.
    let task = black_box(ctx.task);
    if task.is_null() {
        return;
    }
    let file = black_box(ctx.file);
    if file.is_null() {
        return;
    }
    // Before the record is cleared: most descriptors of a host are of other files.
    let mode = File::new(file).inode().and_then(Inode::mode);
    let (mut terminal, mut is_mapped) = (None, false);
    if let Ok(mode) = mode
        && !is_fifo_or_socket(mode)
    {
        terminal = wanted_terminal(file, mode);
        is_mapped = is_mapped_wanted(file, mode);
        if terminal.is_none() && !is_mapped && !is_other_wanted(Task::new(task), file) {
            return;
        }
    }
    let mut record = EndRecord { number: ctx.fd, ..EndRecord::default() };
    match fill(Task::new(task), file, mode, &mut record) {
        Ok(true) => {
            if let Some(terminal) = terminal {
                record.device = terminal.number;
                record.peer = terminal.line;
                record.flags = if terminal.is_master { end_flags::MASTER } else { end_flags::LINE };
            }
            if is_mapped {
                record.flags |= end_flags::MAPPED;
            }
        }
        Ok(false) => return,
        Err(why) => {
            maps::count(why);
            record.flags = end_flags::UNREADABLE;
        }
    }
    write(ctx.meta, &record);
}

/// Writes what a pass tells of one thing. A full buffer is no failure: the kernel empties it and shows the same thing again.
#[inline(always)]
pub fn write<T>(meta: *const Meta, record: &T) {
    // SAFETY: the kernel hands in a valid pointer.
    let seq = unsafe { (*meta).seq };
    // SAFETY: the record is valid for its size.
    unsafe { bpf_seq_write(seq, core::ptr::from_ref(record).cast(), size_of::<T>() as u32) };
}

#[inline(always)]
fn fill(
    task: Task,
    address: *const u8,
    mode: Result<u32, Counter>,
    record: &mut EndRecord,
) -> Result<bool, Counter> {
    let file = File::new(address);
    let inode = file.inode()?;
    let mode = mode?;
    let fifo = is_fifo(mode);
    record.ino = inode.number()?;
    record.device = inode.device()?;
    let is_named = fifo && record.device != global!(TUNING.pipe_device);
    let key = if is_named { wanted::NAMED | record.ino } else { record.ino };
    let mut wanted = !(fifo || is_socket(mode)) || is_wanted(key);
    if is_socket(mode) {
        let Some(socket) = file.socket()? else { return Ok(false) };
        if let Some(peer) = socket.peer()? {
            record.peer = peer;
            record.flags = end_flags::PEER;
            wanted |= is_wanted(peer);
        }
        if wanted && socket.has_chosen_port()? {
            record.flags |= end_flags::CHOSEN_PORT;
        }
    }
    if !wanted {
        return Ok(false);
    }
    record.start = task.group_birth()?;
    record.tgid = task.tgid()?;
    record.table = task.table()? as u64;
    record.file = address as u64;
    record.references = file.references()?;
    record.access = file.access()?;
    record.mode = mode;
    if fifo {
        (record.readers, record.writers) = inode.pipe()?;
    }
    Ok(true)
}

/// Whether user space asked for this open file, or for all that the process has.
#[inline(always)]
fn is_other_wanted(task: Task, address: *const u8) -> bool {
    if is_wanted(address as u64) {
        return true;
    }
    matches!(task.tgid(), Ok(tgid) if is_wanted(wanted::PROCESS | u64::from(tgid)))
}

/// Whether user space asked for this file because it is mapped. Whoever makes a file system says which numbers its files have, so the
/// device has to be the same. What cannot be read is reported.
#[inline(always)]
fn is_mapped_wanted(address: *const u8, mode: u32) -> bool {
    is_regular(mode) && device_is_wanted(address).unwrap_or(true)
}

#[inline(always)]
fn device_is_wanted(address: *const u8) -> Result<bool, Counter> {
    let inode = File::new(address).inode()?;
    let Some(device) = WANTED.get_ptr(wanted::MAPPED | inode.number()?) else { return Ok(false) };
    // SAFETY: the pointer came from the map.
    let device = unsafe { *device };
    Ok(device == wanted::ANY_DEVICE || device == inode.device()?)
}

/// The terminal of which this is a side, if user space asked for its number.
#[inline(always)]
fn wanted_terminal(address: *const u8, mode: u32) -> Option<Terminal> {
    let terminal = File::new(address).terminal(mode).ok()??;
    if is_wanted(wanted::TERMINAL | u64::from(terminal.number)) { Some(terminal) } else { None }
}

#[inline(always)]
fn is_wanted(ino: u64) -> bool {
    // Made a boolean at once: the verifier does not allow two pointers to be combined.
    black_box(WANTED.get_ptr(ino).is_some())
}
