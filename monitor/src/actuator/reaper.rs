//! Sends signals: the only place in orphand that can end a process.
//!
//! Invariant: a signal reaches exactly the process meant, or nobody. The pidfd is opened first ([`Reaper::aim`]), then the
//! number's birth and user are compared, then the pidfd must still be alive: while it is, the number is its own and what was
//! read is about it ([`Reaper::fire`]). A birth is known to a hundredth of a second only: whoever has the kernel's records takes
//! what there is of them in between, where the end of a process that handed its number on within that time must be.
//! Never `kill(pid)`, never a process group, never by name. For the daemon's shell, which carries out what a verdict asks
//! for, and for `reap`.

use std::{collections::BTreeMap, io, os::fd::OwnedFd, sync::Arc};

use rustix::{
    event::{PollFd, PollFlags, Timespec, epoll, poll},
    io::Errno,
    process::{Pid, PidfdFlags, pidfd_open, pidfd_send_signal},
};
use tokio::io::{Interest, unix::AsyncFd};

use crate::{
    host::{HostError, Proc, UNANSWERED, with_deadline},
    os::{descriptors, readable},
};
use orphand_core::model::{ProcessId, Signal, SignalError};

/// Processes watched at a time, each by a descriptor, and never more than a quarter of the descriptors. Whoever finds no place is
/// signalled all the same: see [`Reaper`].
pub const ROOM: usize = 512;

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
///
/// To hold a process by its pidfd from one signal to the next spares the next one the comparison, and tells of an end that no record
/// tells. Nothing rests on it: for whoever finds no place among those held, each signal is aimed and compared like the first, and
/// the end is told by the kernel's record, or by [`Reaper::ended`]. So nobody who fills the places hinders anybody's end.
#[derive(Debug)]
pub struct Reaper {
    proc: Arc<Proc>,
    /// Readable when one of the watched processes has ended. Holds no descriptor of its own alive.
    ends: AsyncFd<OwnedFd>,
    watched: BTreeMap<ProcessId, OwnedFd>,
    room: usize,
}

impl Reaper {
    /// A reaper that watches nobody. Must be called inside a tokio runtime.
    pub fn new() -> Result<Self, ReaperError> {
        Self::with_room(descriptors::quarter().min(ROOM))
    }

    /// The same with so many places for processes that are watched.
    pub fn with_room(room: usize) -> Result<Self, ReaperError> {
        let ends = epoll::create(epoll::CreateFlags::CLOEXEC)
            .map_err(io::Error::from)
            .and_then(readable)
            .map_err(|source| ReaperError::System { operation: "create an epoll for pidfds", source })?;
        Ok(Self { proc: Arc::new(Proc::system()?), ends, watched: BTreeMap::new(), room })
    }

    /// Opens who has the number of this process now, if orphand may ever signal it. Whether it is the process meant is for
    /// [`Reaper::fire`] to find out.
    pub fn aim(&self, process: ProcessId) -> Result<Aim, SignalError> {
        if self.watched.contains_key(&process) {
            return Ok(Aim { process, pidfd: None });
        }
        let pidfd = Some(self.open(process)?);
        Ok(Aim { process, pidfd })
    }

    /// Signals the process aimed at, if it is the one meant and has this real user, and watches it until it has ended
    /// ([`Reaper::ended`], [`Reaper::wait_any`]) or is [forgotten](Reaper::forget), if there is a place. A process that cannot be
    /// signalled is not watched.
    pub fn fire(&mut self, aim: Aim, uid: Option<u32>, signal: Signal) -> Result<(), SignalError> {
        let Aim { process, pidfd } = aim;
        let Some(pidfd) = pidfd else {
            // The same process for as long as the descriptor is open; the next `ended` tells of its end.
            return self.watched.get(&process).map_or(Err(SignalError::Gone), |pidfd| send(pidfd, signal));
        };
        let proc = Arc::clone(&self.proc);
        with_deadline(move || compare(&proc, process, uid))?;
        // The pidfd must still be alive, see there: then the number was its own all the time.
        send(&pidfd, signal)?;
        let event = epoll::EventData::new_u64(process.pid.into());
        // The kernel has a limit of its own for what may be waited for.
        if self.watched.len() < self.room
            && epoll::add(self.ends.get_ref(), &pidfd, event, epoll::EventFlags::IN).is_ok()
        {
            self.watched.insert(process, pidfd);
        }
        Ok(())
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
            let pid = self
                .ends
                .async_io(Interest::READABLE, next_event)
                .await
                .map_err(|source| ReaperError::System { operation: "wait for pidfds", source })?;
            let first = ProcessId::new(u32::try_from(pid).unwrap_or_default(), 0);
            let of_number = self.watched.range(first..).take_while(|(process, _)| process.pid == first.pid);
            let ended = of_number.filter(|(_, pidfd)| has_ended(pidfd)).map(|(&process, _)| process).next();
            let Some(process) = ended else {
                // Cannot be: what is forgotten is taken out of the epoll. The others are not to wait for it.
                tokio::task::yield_now().await;
                continue;
            };
            self.forget(process);
            return Ok(process);
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
        let proc = Arc::clone(&self.proc);
        match with_deadline(move || is_ours(&proc, process.pid)) {
            Ok(false) => {}
            Ok(true) => return Err(never(process, "orphand or an ancestor of it")),
            Err(errno) => return Err(unsure(process, "an ancestor of orphand cannot be read", errno)),
        }
        pidfd_open(pid, PidfdFlags::NONBLOCK).map_err(|errno| match errno {
            // Older kernels answer EINVAL, newer ones ENOENT, for a thread that is no process.
            Errno::INVAL | Errno::NOENT => never(process, "a thread, not a process"),
            errno => failed("pidfd_open", errno),
        })
    }
}

/// Whether who has the number now is the process meant, and still that user's.
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

/// Whether `pid` is orphand itself or above it, by the present parents.
fn is_ours(proc: &Proc, pid: u32) -> Result<bool, Errno> {
    let mut at = std::process::id();
    // No tree is deeper than there are numbers; a bound against a /proc that lies.
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

/// Whether the process has ended: a pidfd is readable from the exit of its last thread on (`pidfd_poll()`, kernel/
/// fork.c), a zombie's too. An error (there is none in the manual page) is taken for "no".
fn has_ended(pidfd: &OwnedFd) -> bool {
    let mut fds = [PollFd::new(pidfd, PollFlags::IN)];
    poll(&mut fds, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
}

/// The number of a watched process that has ended. `WouldBlock` while none has.
fn next_event(ends: &OwnedFd) -> io::Result<u64> {
    let mut events = Vec::with_capacity(1);
    epoll::wait(ends, rustix::buffer::spare_capacity(&mut events), Some(&Timespec::default()))?;
    let event: Option<&epoll::Event> = events.first();
    event.map(|event| event.data.u64()).ok_or_else(|| io::ErrorKind::WouldBlock.into())
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

/// What a failed call means: no such process is an end, want of descriptors or of memory passes, everything else is told.
fn failed(call: &str, errno: Errno) -> SignalError {
    match errno {
        Errno::SRCH | Errno::NOENT => SignalError::Gone,
        Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::AGAIN => {
            SignalError::NoRoom { message: format!("{call}: {errno}") }
        }
        errno => refused(errno, format!("{call}: {errno}")),
    }
}

/// Orphand never signals this.
fn never(process: ProcessId, what: &str) -> SignalError {
    refused(Errno::PERM, format!("refused: {process} is {what}"))
}

/// Nothing is known against it, but not enough for it.
fn unsure(process: ProcessId, what: &str, errno: Errno) -> SignalError {
    SignalError::Unsure { message: format!("{process}: {what}: {errno}") }
}

fn refused(errno: Errno, message: String) -> SignalError {
    SignalError::System { errno: errno.raw_os_error(), message }
}

#[cfg(test)]
mod tests;
