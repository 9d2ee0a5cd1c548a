//! Empty eBPF programs on raw tracepoints. They show what the kernel charges to a program that does nothing.
//!
//! No library of this package makes the three calls of bpf(2) needed here, so this code is unsafe. The structures
//! are the beginnings of `union bpf_attr`, include/uapi/linux/bpf.h.

use std::{
    ffi::{CStr, CString},
    io::Error,
    os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd},
};

use anyhow::{Context as _, Result};

const BPF_PROG_LOAD: libc::c_int = 5;
const BPF_RAW_TRACEPOINT_OPEN: libc::c_int = 17;
const BPF_ENABLE_STATS: libc::c_int = 32;
const BPF_PROG_TYPE_RAW_TRACEPOINT: u32 = 17;
const BPF_STATS_RUN_TIME: u32 = 0;

/// `r0 = 0` and `exit`.
const INSTRUCTIONS: [u64; 2] = [0xb7, 0x95];
const LICENCE: &CStr = c"GPL";

#[repr(C)]
struct Load {
    kind: u32,
    instruction_count: u32,
    instructions: u64,
    licence: u64,
}

#[repr(C)]
struct Open {
    name: u64,
    program: u32,
    pad: u32,
}

/// An attached program: it runs until both are closed.
#[derive(Debug)]
pub struct Attached {
    _program: OwnedFd,
    _link: OwnedFd,
}

/// Attaches an empty program to a raw tracepoint.
pub fn attach(tracepoint: &str) -> Result<Attached> {
    let load = Load {
        kind: BPF_PROG_TYPE_RAW_TRACEPOINT,
        instruction_count: u32::try_from(INSTRUCTIONS.len())?,
        instructions: INSTRUCTIONS.as_ptr() as u64,
        licence: LICENCE.as_ptr() as u64,
    };
    let program = bpf(BPF_PROG_LOAD, &load).context("cannot load an empty program")?;
    let name = CString::new(tracepoint)?;
    let open = Open { name: name.as_ptr() as u64, program: u32::try_from(program.as_raw_fd())?, pad: 0 };
    let link = bpf(BPF_RAW_TRACEPOINT_OPEN, &open);
    Ok(Attached { _program: program, _link: link.with_context(|| format!("cannot attach to {tracepoint}"))? })
}

/// Has the kernel take the time of every program. Until the descriptor is closed: nothing is left behind, whatever
/// becomes of this process.
pub fn clocks() -> Result<OwnedFd> {
    bpf(BPF_ENABLE_STATS, &BPF_STATS_RUN_TIME).context("cannot have the kernel take the time of programs")
}

/// bpf(2), where it answers with a descriptor.
fn bpf<T>(command: libc::c_int, attributes: &T) -> std::io::Result<OwnedFd> {
    let attributes = std::ptr::from_ref(attributes);
    // SAFETY: the kernel reads as many bytes as it is told, and what they point to lives in the callers.
    let answer = unsafe { libc::syscall(libc::SYS_bpf, command, attributes, size_of::<T>()) };
    let descriptor = i32::try_from(answer).ok().filter(|it| *it >= 0).ok_or_else(Error::last_os_error)?;
    // SAFETY: the kernel has just made it for this call.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}
