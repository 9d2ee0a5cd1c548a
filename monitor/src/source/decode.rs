//! A record of the ring becomes a [`ProcessEvent`]. Pure and total: bytes that are no record are an error,
//! never a panic.

use std::{mem::offset_of, num::NonZeroU32};

use monitor_common::{
    COMM_LEN, ExecRecord, ExitRecord, ForkRecord, Header, Kind, SenderKind, SetsidRecord, SignalRecord,
    StreamRecord, ThreadExitRecord, flags,
};
use thiserror::Error;

use orphand_core::model::{BootTime, ExitStatus, Image, KilledBy, Killer, ProcessEvent, ProcessId, Stdio};

/// Why bytes are no record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum DecodeError {
    /// No such kind.
    #[error("a record of the unknown kind {0}")]
    Kind(u32),
    /// The length does not fit the kind.
    #[error("a record of kind {kind} with {len} bytes")]
    Length {
        /// Its kind, 0 if there is none.
        kind: u32,
        /// Its length.
        len: usize,
    },
}

/// The slot of `RING_SHARES` that a record is counted in.
pub(super) fn slot(bytes: &[u8]) -> Option<usize> {
    u16_at(bytes, offset_of!(Header, slot)).map(usize::from)
}

/// Decodes one record.
pub fn decode(bytes: &[u8]) -> Result<ProcessEvent, DecodeError> {
    let kind = u32::from(u16_at(bytes, offset_of!(Header, kind)).unwrap_or(0));
    let length = || DecodeError::Length { kind, len: bytes.len() };
    if bytes.len() < size_of::<Header>() {
        return Err(length());
    }
    let exactly = |len: usize| if bytes.len() == len { Ok(()) } else { Err(length()) };
    let event = if kind == Kind::Fork as u32 {
        exactly(size_of::<ForkRecord>())?;
        fork(bytes)
    } else if kind == Kind::Exec as u32 {
        exec(bytes)
    } else if kind == Kind::Exit as u32 {
        exactly(size_of::<ExitRecord>())?;
        exit(bytes)
    } else if kind == Kind::Setsid as u32 {
        exactly(size_of::<SetsidRecord>())?;
        setsid(bytes)
    } else if kind == Kind::ThreadExit as u32 {
        exactly(size_of::<ThreadExitRecord>())?;
        thread_exit(bytes)
    } else if kind == Kind::Signal as u32 {
        exactly(size_of::<SignalRecord>())?;
        signal(bytes)
    } else {
        return Err(DecodeError::Kind(kind));
    };
    event.ok_or_else(length)
}

fn fork(b: &[u8]) -> Option<ProcessEvent> {
    let creator = u32_at(b, offset_of!(ForkRecord, creator))?;
    let thread = u32_at(b, offset_of!(ForkRecord, thread))?;
    Some(ProcessEvent::Fork {
        at: at(b)?,
        creator: process(creator, u64_at(b, offset_of!(ForkRecord, creator_start))?),
        thread: NonZeroU32::new(thread).filter(|thread| thread.get() != creator),
        child: subject(b)?,
        uid: u32_at(b, offset_of!(ForkRecord, uid))?,
        sid: u32_at(b, offset_of!(ForkRecord, sid))?,
    })
}

fn exec(b: &[u8]) -> Option<ProcessEvent> {
    let exe_len = u32_at(b, offset_of!(ExecRecord, exe_len))? as usize;
    let argv_len = u32_at(b, offset_of!(ExecRecord, argv_len))? as usize;
    let flags = u32_at(b, offset_of!(ExecRecord, flags))?;
    let (exe, rest) = b.get(size_of::<ExecRecord>()..)?.split_at_checked(exe_len)?;
    let argv = rest.get(..argv_len)?;
    if rest.len() != argv_len {
        return None;
    }
    let argv_truncated = flags & flags::ARGV_TRUNCATED != 0;
    let stream = |n: usize| stdio(b, offset_of!(ExecRecord, streams) + n * size_of::<StreamRecord>());
    Some(ProcessEvent::Exec {
        at: at(b)?,
        process: subject(b)?,
        parent: process(
            u32_at(b, offset_of!(ExecRecord, parent))?,
            u64_at(b, offset_of!(ExecRecord, parent_start))?,
        ),
        uid: u32_at(b, offset_of!(ExecRecord, uid))?,
        sid: u32_at(b, offset_of!(ExecRecord, sid))?,
        image: Image {
            exe: String::from_utf8_lossy(exe).into_owned(),
            argv: arguments(argv),
            argv_truncated,
        },
        stdio: [stream(0)?, stream(1)?, stream(2)?],
    })
}

fn exit(b: &[u8]) -> Option<ProcessEvent> {
    let status = u32_at(b, offset_of!(ExitRecord, status))?;
    Some(ProcessEvent::Exit { at: at(b)?, process: subject(b)?, status: exit_status(status) })
}

fn setsid(b: &[u8]) -> Option<ProcessEvent> {
    Some(ProcessEvent::Setsid {
        at: at(b)?,
        process: subject(b)?,
        sid: u32_at(b, offset_of!(SetsidRecord, sid))?,
    })
}

fn thread_exit(b: &[u8]) -> Option<ProcessEvent> {
    Some(ProcessEvent::ThreadExit {
        at: at(b)?,
        process: subject(b)?,
        thread: NonZeroU32::new(u32_at(b, offset_of!(ThreadExitRecord, thread))?)?,
    })
}

fn signal(b: &[u8]) -> Option<ProcessEvent> {
    let process = subject(b)?;
    let kind = u32_at(b, offset_of!(SignalRecord, sender_kind))?;
    let killer = if kind == SenderKind::Process as u32 {
        sender(b, process)?
    } else if kind == SenderKind::OutOfMemory as u32 {
        Killer::of(KilledBy::OutOfMemory)
    } else {
        Killer::of(KilledBy::Kernel)
    };
    let signal = u8::try_from(u32_at(b, offset_of!(SignalRecord, signal))?).ok()?;
    Some(ProcessEvent::Signal { at: at(b)?, process, signal, killer: Box::new(killer) })
}

fn sender(b: &[u8], receiver: ProcessId) -> Option<Killer> {
    let number = u32_at(b, offset_of!(SignalRecord, sender))?;
    let sender = process(number, u64_at(b, offset_of!(SignalRecord, sender_start))?);
    if sender == receiver {
        return Some(Killer::of(KilledBy::Itself));
    }
    let from = offset_of!(SignalRecord, sender_comm);
    let name = b.get(from..from + COMM_LEN)?.split(|byte| *byte == 0).next()?;
    Some(Killer {
        pid: Some(sender.pid),
        start: Some(sender.start),
        program: Some(String::from_utf8_lossy(name).into_owned()),
        uid: Some(u32_at(b, offset_of!(SignalRecord, sender_uid))?),
        ..Killer::of(KilledBy::Process)
    })
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

pub(super) const S_IFMT: u32 = 0o170_000;
pub(super) const S_IFIFO: u32 = 0o010_000;
const S_IFCHR: u32 = 0o020_000;
const S_IFREG: u32 = 0o100_000;
pub(super) const S_IFSOCK: u32 = 0o140_000;

fn stdio(b: &[u8], base: usize) -> Option<Stdio> {
    let ino = u64_at(b, base + offset_of!(StreamRecord, ino))?;
    let rdev = u32_at(b, base + offset_of!(StreamRecord, rdev))?;
    let mode = u32_at(b, base + offset_of!(StreamRecord, mode))?;
    if mode == 0 {
        return Some(Stdio::Closed);
    }
    Some(match mode & S_IFMT {
        S_IFIFO => Stdio::Pipe(ino),
        S_IFSOCK => Stdio::Socket(ino),
        S_IFREG => Stdio::File,
        S_IFCHR => character_device(rdev >> 20, rdev & 0xf_ffff),
        _ => Stdio::Other,
    })
}

/// Numbers from Documentation/admin-guide/devices.txt: 4 tty and ttyS, 5 /dev/tty and the console, 136 to 143
/// pseudo-terminals, 166 ttyACM, 188 ttyUSB, 204 small serial ports, 229 hvc.
const fn character_device(major: u32, minor: u32) -> Stdio {
    match (major, minor) {
        (1, 3) => Stdio::Null,
        (4 | 5 | 136..=143 | 166 | 188 | 204 | 229, _) => Stdio::Terminal,
        _ => Stdio::Other,
    }
}

fn at(b: &[u8]) -> Option<BootTime> {
    u64_at(b, offset_of!(Header, at)).map(BootTime)
}

fn subject(b: &[u8]) -> Option<ProcessId> {
    Some(process(u32_at(b, offset_of!(Header, tgid))?, u64_at(b, offset_of!(Header, start))?))
}

pub(super) const fn process(tgid: u32, start_ns: u64) -> ProcessId {
    ProcessId::new(tgid, BootTime(start_ns).ticks())
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at.checked_add(2)?)?.try_into().ok()?))
}

pub(super) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

pub(super) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(bytes.get(at..at.checked_add(8)?)?.try_into().ok()?))
}

#[cfg(test)]
mod tests;
