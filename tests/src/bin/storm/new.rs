//! Creates processes that exit at once. std has no call for a child that runs no program, so this code is unsafe.

use std::ptr;

use anyhow::{Context as _, Result};
use rustix::process::Pid;

/// A copy of this process that exits.
pub fn fork() -> Result<Pid> {
    // SAFETY: this process has one thread, so the copy may do what it likes.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        exit(ptr::null_mut());
    }
    pid_of(pid)
}

/// A child that shares our memory and holds us until it exits: what vfork(2) asks of the kernel, but on a
/// stack of its own, so that no function returns twice.
pub fn vfork() -> Result<Pid> {
    let mut stack = [0_u128; 1024];
    let top = stack.as_mut_ptr_range().end;
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
    // SAFETY: `exit` fits the signature, needs a few words of the 16 KiB aligned stack, which stays in place
    // until the child is gone because CLONE_VFORK holds us, and touches nothing of ours.
    let pid = unsafe { libc::clone(exit, top.cast(), flags, ptr::null_mut()) };
    pid_of(pid)
}

extern "C" fn exit(_: *mut libc::c_void) -> libc::c_int {
    // SAFETY: ends this process at once, without destructors or handlers that belong to the parent.
    unsafe { libc::_exit(0) }
}

fn pid_of(pid: libc::pid_t) -> Result<Pid> {
    Pid::from_raw(pid.max(0)).with_context(|| format!("no new process: {}", std::io::Error::last_os_error()))
}
