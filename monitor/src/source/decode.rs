//! A record of the ring becomes a [`ProcessEvent`]. Pure and total: bytes that are no record are an error,
//! never a panic.

use std::num::NonZeroU32;

use aya::Pod;
use monitor_common::{
    ExecRecord, ForkRecord, Header, Kind, SenderKind, SignalRecord, StreamRecord, ValueRecord, flags, record,
};
use rustix::fs::FileType;
use thiserror::Error;

use crate::host::character_device;
use orphand_core::model::{
    BootTime, ExitStatus, Ignored, Image, KilledBy, Killer, ProcessEvent, ProcessId, Stdio,
};

/// Bytes that are no record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("a record of kind {kind} with {len} bytes")]
pub struct DecodeError {
    pub kind: u16,
    pub len: usize,
}

pub fn decode(bytes: &[u8]) -> Result<ProcessEvent, DecodeError> {
    let header = record::<Header>(bytes);
    let event = header.and_then(|header| event(header, bytes));
    event.ok_or(DecodeError { kind: header.map_or(0, |header| header.kind), len: bytes.len() })
}

fn event(header: Header, bytes: &[u8]) -> Option<ProcessEvent> {
    let (at, process) = (BootTime(header.at), id(header.tgid, header.start));
    let is = |kind: Kind| header.kind == kind as u16;
    Some(if is(Kind::Fork) {
        let ForkRecord { creator_start, creator, uid, sid, thread, .. } = whole(bytes)?;
        let thread = NonZeroU32::new(thread).filter(|thread| thread.get() != creator);
        ProcessEvent::Fork { at, creator: id(creator, creator_start), thread, child: process, uid, sid }
    } else if is(Kind::Exec) {
        exec(at, process, bytes)?
    } else if is(Kind::Exit) {
        ProcessEvent::Exit { at, process, status: exit_status(value(bytes)?) }
    } else if is(Kind::Setsid) {
        ProcessEvent::Setsid { at, process, sid: value(bytes)? }
    } else if is(Kind::ThreadExit) {
        let thread = NonZeroU32::new(value(bytes)?)?;
        ProcessEvent::ThreadExit { at, process, thread }
    } else if is(Kind::Signal) {
        let record: SignalRecord = whole(bytes)?;
        let killer = Box::new(killer(&record, process));
        ProcessEvent::Signal { at, process, signal: u8::try_from(record.signal).ok()?, killer }
    } else {
        return None;
    })
}

/// All of these bytes as a record of one size.
fn whole<T: Pod>(bytes: &[u8]) -> Option<T> {
    if bytes.len() == size_of::<T>() { record(bytes) } else { None }
}

fn value(bytes: &[u8]) -> Option<u32> {
    whole(bytes).map(|record: ValueRecord| record.value)
}

fn exec(at: BootTime, process: ProcessId, bytes: &[u8]) -> Option<ProcessEvent> {
    let ExecRecord { parent_start, parent, uid, sid, flags, exe_len, argv_len, streams, .. } = record(bytes)?;
    let (exe, argv) = bytes.get(size_of::<ExecRecord>()..)?.split_at_checked(exe_len as usize)?;
    (argv.len() == argv_len as usize).then_some(())?;
    let is_cut = flags & flags::ARGV_TRUNCATED != 0;
    let image = Image::new(String::from_utf8_lossy(exe).into_owned(), arguments(argv), is_cut);
    let parent = id(parent, parent_start);
    let stdio = streams.map(stdio);
    let ignored = Ignored {
        interrupt: flags & flags::IGNORES_INTERRUPT != 0,
        hangup: flags & flags::IGNORES_HANGUP != 0,
    };
    Some(ProcessEvent::Exec { at, process, parent, uid, sid, image, stdio, ignored })
}

fn killer(record: &SignalRecord, receiver: ProcessId) -> Killer {
    let sender = id(record.sender, record.sender_start);
    if record.sender_kind == SenderKind::OutOfMemory as u32 {
        Killer::of(KilledBy::OutOfMemory)
    } else if record.sender_kind != SenderKind::Process as u32 {
        Killer::of(KilledBy::Kernel)
    } else if sender == receiver {
        Killer::of(KilledBy::Itself)
    } else {
        let name = record.sender_comm.split(|byte| *byte == 0).next().unwrap_or_default();
        Killer {
            pid: Some(sender.pid),
            start: Some(sender.start),
            program: Some(String::from_utf8_lossy(name).into_owned()),
            uid: Some(record.sender_uid),
            ..Killer::of(KilledBy::Process)
        }
    }
}

/// As wait(2) encodes it: the signal in bits 0 to 6, the code in bits 8 to 15.
fn exit_status(status: u32) -> ExitStatus {
    let [low, code, ..] = status.to_le_bytes();
    match low & 0x7f {
        0 => ExitStatus::Code(code),
        signal => ExitStatus::Signal(signal),
    }
}

/// The arguments as they stand in memory: each ends with a NUL, the last may be cut short.
pub(super) fn arguments(bytes: &[u8]) -> Vec<String> {
    if bytes.is_empty() {
        return Vec::new();
    }
    let bytes = bytes.strip_suffix(&[0]).unwrap_or(bytes);
    bytes.split(|&b| b == 0).map(|arg| String::from_utf8_lossy(arg).into_owned()).collect()
}

fn stdio(StreamRecord { ino, rdev, mode }: StreamRecord) -> Stdio {
    match FileType::from_raw_mode(mode) {
        _ if mode == 0 => Stdio::Closed,
        FileType::Fifo => Stdio::Pipe(ino),
        FileType::Socket => Stdio::Socket(ino),
        FileType::RegularFile => Stdio::File,
        FileType::CharacterDevice => character_device(rdev >> 20, rdev & 0xf_ffff),
        _ => Stdio::Other,
    }
}

pub(super) const fn id(tgid: u32, start_ns: u64) -> ProcessId {
    ProcessId::new(tgid, BootTime(start_ns).ticks())
}

#[cfg(test)]
mod tests;
