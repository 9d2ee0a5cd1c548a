//! Sends signals: the only place in orphand that can end a process.
//!
//! Invariant: a signal reaches exactly the process meant, or nobody. The pidfd is opened first ([`Reaper::aim`]), then the
//! number's birth and user are compared, then the pidfd must still be alive: while it is, the number is its own and what was
//! read is about it ([`Reaper::fire`]). A birth is known to a hundredth of a second only: whoever has the kernel's records takes
//! what there is of them in between, where the end of a process that handed its number on within that time must be.
//! Never `kill(pid)`, never a process group, never by name. For the daemon's shell, which carries out what a verdict asks
//! for, and for `reap`.

use std::{collections::BTreeMap, io, os::fd::OwnedFd};

use rustix::{
    event::{PollFd, PollFlags, Timespec, epoll, poll},
    io::Errno,
    process::{Pid, PidfdFlags, pidfd_open, pidfd_send_signal},
};
use tokio::io::{Interest, unix::AsyncFd};

use crate::{
    descriptors,
    host::{HostError, Proc},
    model::{ProcessId, Signal, SignalError},
    readable::readable,
};

/// Processes watched at a time. More than any verdict needs; and never more than a quarter of the descriptors.
const WATCHED_MAX: usize = 512;

/// Why there is no reaper.
#[derive(Debug, thiserror::Error)]
pub enum ReaperError {
    /// The system refused.
    #[error("cannot {operation}: {source}")]
    System {
        /// What was tried.
        operation: &'static str,
        /// Why not.
        source: io::Error,
    },
    /// /proc cannot be read.
    #[error(transparent)]
    Host(#[from] HostError),
}

/// A process that may be signalled, held by a pidfd: its number is not handed on unnoticed any more.
#[derive(Debug)]
pub struct Aim {
    process: ProcessId,
    /// Nothing if the reaper holds one since an earlier signal.
    pidfd: Option<OwnedFd>,
}

impl Aim {
    /// Whether it was signalled before, and has been held since: nothing can be wrong about whose number it is.
    pub fn is_held(&self) -> bool {
        self.pidfd.is_none()
    }
}

/// Signals processes and knows when those it has signalled have ended.
#[derive(Debug)]
pub struct Reaper {
    proc: Proc,
    /// Readable when one of the watched processes has ended. Holds no descriptor of its own alive.
    ends: AsyncFd<OwnedFd>,
    watched: BTreeMap<ProcessId, OwnedFd>,
    /// How many at a time.
    most: usize,
}

impl Reaper {
    /// A reaper that watches nobody. Must be called inside a tokio runtime.
    pub fn new() -> Result<Self, ReaperError> {
        let ends = epoll::create(epoll::CreateFlags::CLOEXEC)
            .map_err(io::Error::from)
            .and_then(readable)
            .map_err(|source| ReaperError::System { operation: "create an epoll for pidfds", source })?;
        Ok(Self {
            proc: Proc::system()?,
            ends,
            watched: BTreeMap::new(),
            most: descriptors::quarter().min(WATCHED_MAX),
        })
    }

    /// Opens who has the number of this process now, if orphand may ever signal it. Whether it is the process meant is for
    /// [`Reaper::fire`] to find out.
    pub fn aim(&self, process: ProcessId) -> Result<Aim, SignalError> {
        if self.watched.contains_key(&process) {
            return Ok(Aim { process, pidfd: None });
        }
        let most = self.most;
        if self.watched.len() >= most {
            return Err(refused(Errno::MFILE, format!("not sent: {most} processes are being ended already")));
        }
        let pidfd = Some(self.open(process)?);
        Ok(Aim { process, pidfd })
    }

    /// Signals the process aimed at, if it is the one meant and has this real user, and watches it until it has ended
    /// ([`Reaper::ended`], [`Reaper::wait_any`]) or is [forgotten](Reaper::forget). A process that cannot be signalled is not
    /// watched.
    pub fn fire(&mut self, aim: Aim, uid: Option<u32>, signal: Signal) -> Result<(), SignalError> {
        let Aim { process, pidfd } = aim;
        let Some(pidfd) = pidfd else {
            // The same process for as long as the descriptor is open; the next `ended` tells of its end.
            return self.watched.get(&process).map_or(Err(SignalError::Gone), |pidfd| send(pidfd, signal));
        };
        self.compare(process, uid)?;
        let event = epoll::EventData::new_u64(process.pid.into());
        epoll::add(self.ends.get_ref(), &pidfd, event, epoll::EventFlags::IN)
            .map_err(|errno| system("epoll_ctl", errno))?;
        // The pidfd must still be alive, see there: then the number was its own all the time.
        let sent = send(&pidfd, signal);
        self.watched.insert(process, pidfd);
        if sent.is_err() {
            self.forget(process);
        }
        sent
    }

    /// Both at once, for whoever has no records of the kernel.
    pub fn signal(
        &mut self,
        process: ProcessId,
        uid: Option<u32>,
        signal: Signal,
    ) -> Result<(), SignalError> {
        let aim = self.aim(process)?;
        self.fire(aim, uid, signal)
    }

    /// The watched processes that have ended since the last call. Does not wait.
    pub fn ended(&mut self) -> Vec<ProcessId> {
        // Asked one by one: the list is short, and the answer is the truth of this moment.
        let over = self.watched.iter().filter(|(_, pidfd)| has_ended(pidfd));
        let ended: Vec<_> = over.map(|(&process, _)| process).collect();
        for &process in &ended {
            self.forget(process);
        }
        ended
    }

    /// Waits until a watched process has ended. Never returns while nobody is watched. Cancel-safe: a process is
    /// taken off the list in the poll that returns it.
    pub async fn wait_any(&mut self) -> Result<ProcessId, ReaperError> {
        loop {
            let next = self.watched.iter().find(|(_, pidfd)| has_ended(pidfd)).map(|(&process, _)| process);
            if let Some(process) = next {
                self.forget(process);
                return Ok(process);
            }
            self.ends
                .async_io(Interest::READABLE, any_event)
                .await
                .map_err(|source| ReaperError::System { operation: "wait for pidfds", source })?;
        }
    }

    /// Watches this process no longer.
    pub fn forget(&mut self, process: ProcessId) {
        if let Some(pidfd) = self.watched.remove(&process) {
            // Closing would do, but for copies in children of ours that have not called exec yet. An error
            // would mean that it is not there.
            let _ = epoll::delete(self.ends.get_ref(), &pidfd);
        }
    }

    /// How many are watched.
    pub fn watched(&self) -> usize {
        self.watched.len()
    }

    /// A pidfd of whoever has this number.
    fn open(&self, process: ProcessId) -> Result<OwnedFd, SignalError> {
        let pid = i32::try_from(process.pid).ok().and_then(Pid::from_raw).filter(|pid| pid.as_raw_pid() > 0);
        let Some(pid) = pid else { return Err(never(process, "no process")) };
        if pid == Pid::INIT {
            return Err(never(process, "pid 1"));
        }
        if self.is_ours(process.pid) {
            return Err(never(process, "orphand or an ancestor of it"));
        }
        pidfd_open(pid, PidfdFlags::NONBLOCK).map_err(|errno| match errno {
            // Older kernels answer EINVAL, newer ones ENOENT, for a thread that is no process.
            Errno::INVAL | Errno::NOENT => never(process, "a thread, not a process"),
            errno => failed("pidfd_open", errno),
        })
    }

    /// Whether who has the number now is the process meant, and still that user's.
    fn compare(&self, process: ProcessId, uid: Option<u32>) -> Result<(), SignalError> {
        let unreadable = |errno| failed("read /proc/PID/stat", errno);
        let dir = self.proc.process(process.pid).map_err(unreadable)?;
        if dir.id() != process {
            return Err(SignalError::Gone);
        }
        if dir.stat().is_kernel_thread() {
            return Err(never(process, "a kernel thread"));
        }
        let Some(known) = uid else { return Ok(()) };
        match dir.uid() {
            Ok(uid) if uid == known => Ok(()),
            Ok(uid) => Err(SignalError::Unsure {
                message: format!("{process} is user {uid}'s and was user {known}'s"),
            }),
            Err(Errno::SRCH | Errno::NOENT) => Err(SignalError::Gone),
            Err(errno) => {
                Err(SignalError::Unsure { message: format!("whose {process} is cannot be read: {errno}") })
            }
        }
    }

    /// Whether `pid` is orphand itself or above it, by the present parents.
    fn is_ours(&self, pid: u32) -> bool {
        let mut at = std::process::id();
        // No tree is deeper than there are numbers; a bound against a /proc that lies.
        for _ in 0..4096 {
            if at == pid {
                return true;
            }
            match self.proc.process(at) {
                Ok(dir) if dir.stat().ppid != 0 => at = dir.stat().ppid,
                _ => return false,
            }
        }
        false
    }
}

/// Whether the process has ended: a pidfd is readable from the exit of its last thread on (`pidfd_poll()`, kernel/
/// fork.c), a zombie's too. An error (there is none in the manual page) is taken for "no".
fn has_ended(pidfd: &OwnedFd) -> bool {
    let mut fds = [PollFd::new(pidfd, PollFlags::IN)];
    poll(&mut fds, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
}

/// `WouldBlock` while no watched process has ended.
fn any_event(ends: &OwnedFd) -> io::Result<()> {
    let mut events = Vec::with_capacity(1);
    match epoll::wait(ends, rustix::buffer::spare_capacity(&mut events), Some(&Timespec::default()))? {
        0 => Err(io::ErrorKind::WouldBlock.into()),
        _ => Ok(()),
    }
}

fn send(pidfd: &OwnedFd, signal: Signal) -> Result<(), SignalError> {
    // A zombie takes every signal and does nothing.
    if has_ended(pidfd) {
        return Err(SignalError::Gone);
    }
    let signal = match signal {
        Signal::Term => rustix::process::Signal::TERM,
        Signal::Kill => rustix::process::Signal::KILL,
    };
    pidfd_send_signal(pidfd, signal).map_err(|errno| failed("pidfd_send_signal", errno))
}

/// What a failed call means: no such process is an end, everything else is told.
fn failed(call: &str, errno: Errno) -> SignalError {
    match errno {
        Errno::SRCH | Errno::NOENT => SignalError::Gone,
        errno => system(call, errno),
    }
}

fn system(call: &str, errno: Errno) -> SignalError {
    refused(errno, format!("{call}: {errno}"))
}

/// Orphand never signals this.
fn never(process: ProcessId, what: &str) -> SignalError {
    refused(Errno::PERM, format!("refused: {process} is {what}"))
}

fn refused(errno: Errno, message: String) -> SignalError {
    SignalError::System { errno: errno.raw_os_error(), message }
}

#[cfg(test)]
#[path = "reaper_tests.rs"]
mod tests;
