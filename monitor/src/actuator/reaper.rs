//! Sends signals: the only place in orphand that can end a process.
//!
//! Invariant: a signal reaches exactly the intended process, or none. The pidfd is opened first ([`Reaper::aim`]). Then the
//! start time and the user of the process with that number are compared. Then the pidfd must still be alive: as long as it
//! is, no other process has the number, and what was read is about this process ([`Reaper::fire`]). A start time is known
//! only to a hundredth of a second: within that, the records of the kernel show the end of the first one, which a caller
//! that has them reads in between. The code never uses `kill(pid)`, a process group or a name.

use std::{os::fd::OwnedFd, time::Duration};

use anyhow::Result;
use rustix::{
    io::Errno,
    process::{Pid, PidfdFlags, pidfd_open, pidfd_send_signal},
};

use crate::{
    host::{Place, Proc, Scope, UNANSWERED, hastily},
    os::has_ended,
};
use orphand_core::model::{ProcessId, Signal, SignalError};

/// A process that may be signalled, held by a pidfd: its number cannot pass to another one unnoticed.
#[derive(Debug)]
pub struct Aim {
    process: ProcessId,
    pidfd: OwnedFd,
}

impl Aim {
    /// The signal fails unless the pidfd is still alive. Then the number belonged to this process all the time.
    pub fn send(&self, signal: Signal) -> Result<(), SignalError> {
        let signal = match signal {
            Signal::Term => rustix::process::Signal::TERM,
            Signal::Kill => rustix::process::Signal::KILL,
        };
        send(&self.pidfd, signal)
    }

    /// Stops the process (SIGSTOP): it can do nothing about what happens to others.
    pub fn hold(&self) {
        // One that cannot be stopped has ended, or may not be signalled: sending tells.
        _ = send(&self.pidfd, rustix::process::Signal::STOP);
    }

    /// Has a process go on that was held.
    pub fn release(&self) {
        _ = send(&self.pidfd, rustix::process::Signal::CONT);
    }
}

/// Signals processes. It keeps nothing from one signal to the next.
#[derive(Debug)]
pub struct Reaper {
    proc: Proc,
    scope: Option<Scope>,
}

impl Reaper {
    pub fn new() -> Result<Self> {
        Ok(Self { proc: Proc::system()?, scope: None })
    }

    /// With a scope: nothing is signalled that is not seen to be in it.
    pub fn within(self, scope: Option<Scope>) -> Self {
        Self { scope, ..self }
    }

    /// Opens a pidfd of whoever has this number now, if orphand may ever signal it. Whether it is meant [`Reaper::fire`] finds out.
    pub fn aim(&self, process: ProcessId) -> Result<Aim, SignalError> {
        let pid = i32::try_from(process.pid).ok().and_then(Pid::from_raw).filter(|pid| pid.as_raw_pid() > 0);
        let Some(pid) = pid else { return Err(never(process, "no process")) };
        if pid == Pid::INIT {
            return Err(never(process, "pid 1"));
        }
        let proc = self.proc.clone();
        match hastily(move || is_ours(&proc, process.pid)) {
            Ok(false) => {}
            Ok(true) => return Err(never(process, "orphand or an ancestor of it")),
            Err(errno) => return Err(unsure(process, "an ancestor of orphand cannot be read", errno)),
        }
        let pidfd = pidfd_open(pid, PidfdFlags::NONBLOCK).map_err(|errno| match errno {
            // For a thread id that is no process id, older kernels return EINVAL and newer ones ENOENT.
            Errno::INVAL | Errno::NOENT => never(process, "a thread, not a process"),
            errno => failed("pidfd_open", errno),
        });
        Ok(Aim { process, pidfd: pidfd? })
    }

    /// Signals the aimed process, if it is the intended one and has this real user.
    pub fn fire(&self, aim: &Aim, uid: Option<u32>, signal: Signal) -> Result<(), SignalError> {
        self.check(aim, uid)?;
        aim.send(signal)
    }

    /// Whether the aimed process is the intended one and has this real user: then it may be signalled.
    pub fn check(&self, aim: &Aim, uid: Option<u32>) -> Result<(), SignalError> {
        let process = aim.process;
        // The pidfd is open, and the signal fails if it is dead by then: what is read here is about this process.
        match self.scope.as_ref().map_or(Place::Inside, |scope| scope.place(process.pid)) {
            Place::Inside => {}
            Place::Outside => return Err(never(process, "outside of the scope of this daemon")),
            Place::Unseen => return Err(unsure(process, "its control groups cannot be read", Errno::NOENT)),
        }
        let proc = self.proc.clone();
        hastily(move || compare(&proc, process, uid))
    }

    /// Whether it was stopped, by whomever.
    pub fn is_stopped(&self, process: ProcessId) -> bool {
        self.state(process) == Some(b'T')
    }

    /// Whether one that was told to stop does nothing any more: it is stopped, or blocked in the kernel and stops when it comes out of
    /// that, or has ended. Of all its threads the first one is looked at: when that stops, the others have been told to
    /// (`do_signal_stop()`).
    pub fn is_held(&self, process: ProcessId) -> bool {
        self.state(process).is_none_or(|state| matches!(state, b'T' | b't' | b'D'))
    }

    /// The state of the first thread, as in /proc/PID/stat; absent if the process has ended, or cannot be read.
    fn state(&self, process: ProcessId) -> Option<u8> {
        let proc = self.proc.clone();
        hastily(move || proc.identified(process)).ok().flatten().map(|dir| dir.stat().state)
    }

    /// Aims and fires at once, for a caller that has no records of the kernel.
    pub fn signal(&self, process: ProcessId, uid: Option<u32>, signal: Signal) -> Result<(), SignalError> {
        self.fire(&self.aim(process)?, uid, signal)
    }
}

/// Checks that the process with this number is the intended one, and still belongs to that user.
fn compare(proc: &Proc, process: ProcessId, uid: Option<u32>) -> Result<(), SignalError> {
    let dir = match proc.process(process.pid) {
        Ok(dir) => dir,
        Err(UNANSWERED) => return Err(unsure(process, "it does not answer", UNANSWERED)),
        Err(errno) => return Err(failed("read /proc/PID/stat", errno)),
    };
    if dir.id() != process {
        return Err(SignalError::Gone);
    }
    if dir.stat().is_kernel_thread() {
        return Err(never(process, "a kernel thread"));
    }
    let Some(known) = uid else { return Ok(()) };
    match dir.uid() {
        Ok(uid) if uid == known => Ok(()),
        Ok(uid) => {
            Err(SignalError::Unsure { message: format!("{process} is user {uid}'s and was user {known}'s") })
        }
        Err(Errno::SRCH | Errno::NOENT) => Err(SignalError::Gone),
        Err(errno) => Err(unsure(process, "its user cannot be read", errno)),
    }
}

/// Whether `pid` is orphand itself or one of its present ancestors.
fn is_ours(proc: &Proc, pid: u32) -> Result<bool, Errno> {
    let mut at = std::process::id();
    // The limit protects against a /proc with a cycle. No real tree is that deep.
    for _ in 0..4096 {
        if at == pid {
            return Ok(true);
        }
        match proc.process(at) {
            Ok(dir) if dir.stat().ppid != 0 => at = dir.stat().ppid,
            Err(UNANSWERED) => return Err(UNANSWERED),
            _ => return Ok(false),
        }
    }
    Ok(false)
}

fn send(pidfd: &OwnedFd, signal: rustix::process::Signal) -> Result<(), SignalError> {
    // A signal to a zombie succeeds and has no effect.
    if has_ended(pidfd, Duration::ZERO) {
        return Err(SignalError::Gone);
    }
    pidfd_send_signal(pidfd, signal).map_err(|errno| failed("pidfd_send_signal", errno))
}

/// "No such process" is an end, a lack of descriptors or memory may pass, and every other error is reported.
fn failed(call: &str, errno: Errno) -> SignalError {
    match errno {
        Errno::SRCH | Errno::NOENT => SignalError::Gone,
        Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::AGAIN => {
            SignalError::NoRoom { message: format!("{call}: {errno}") }
        }
        errno => refused(errno, format!("{call}: {errno}")),
    }
}

fn never(process: ProcessId, what: &str) -> SignalError {
    refused(Errno::PERM, format!("refused: {process} is {what}"))
}

/// It could not be confirmed, and nothing contradicts it.
fn unsure(process: ProcessId, what: &str, errno: Errno) -> SignalError {
    SignalError::Unsure { message: format!("{process}: {what}: {errno}") }
}

fn refused(errno: Errno, message: String) -> SignalError {
    SignalError::System { errno: errno.raw_os_error(), message }
}

#[cfg(test)]
mod tests;
