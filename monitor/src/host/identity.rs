//! Finds the process that has a pid now, and checks whether a process is still alive.
//!
//! The daemon's loop asks here, to compare the records of the kernel with /proc. A process in execve(2) can withhold its
//! `stat` for ever (see `watch`): one that does not answer at once is [`Presence::Unseen`]. `status` takes no such
//! lock, and is read by the calling thread.

use rustix::{fs::CWD, io::Errno};

use super::{
    Stat, fields, read,
    watch::{door, hastily, visit},
};
use orphand_core::model::ProcessId;

/// The state of a process, as far as /proc shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    Alive,
    /// The process has ended. Its pid may belong to another process now.
    Gone,
    /// The process could not be read. This does not prove its end.
    Unseen,
}

/// Whether exactly this process is alive: pid and start time match, and at least one thread has not ended.
pub fn presence(process: ProcessId) -> Presence {
    presence_if(process, |_| true)
}

/// Whether exactly this process is alive and has not begun to exit. An exit that has begun may already have
/// been reported: each thread sets `PF_EXITING` in `do_exit()`, then calls the tracepoint; the last one then gives
/// the children to another parent. The answer is `true` for a process that cannot be read.
pub fn stays(process: ProcessId) -> bool {
    let goes_on = |stat: &Stat| {
        !stat.has_begun_to_exit() && (!stat.thread_exits() || has_a_thread_that_stays(process.pid))
    };
    presence_if(process, goes_on) != Presence::Gone
}

/// Whether a thread of this process has not begun to exit. The answer is `true` if they cannot be listed.
fn has_a_thread_that_stays(pid: u32) -> bool {
    let Ok(threads) = std::fs::read_dir(format!("/proc/{pid}/task")) else { return true };
    let mut threads = threads.filter_map(|thread| thread.ok()?.file_name().to_str()?.parse().ok());
    threads.any(|thread| !matches!(thread_began(pid, thread), Ok(None)))
}

/// When the thread that has this number in process `pid` began, in clock ticks since boot. `None`: there is no such
/// thread, or it has begun to exit.
pub fn thread_began(pid: u32, thread: u32) -> Result<Option<u64>, Errno> {
    match stat_of(pid, format!("/proc/{pid}/task/{thread}/stat")) {
        Ok(stat) => Ok(Some(stat.start).filter(|_| !stat.thread_exits())),
        Err(Errno::NOENT | Errno::SRCH) => Ok(None),
        Err(errno) => Err(errno),
    }
}

/// The real user id of exactly this process; `None` if it has ended. The result is 0 (root) for a process
/// whose user cannot be read.
pub fn user(process: ProcessId) -> Option<u32> {
    match presence(process) {
        Presence::Gone => None,
        Presence::Unseen | Presence::Alive => Some(real_user(process.pid).unwrap_or(0)),
    }
}

pub fn identity(pid: u32) -> Option<ProcessId> {
    Some(ProcessId::new(pid, stat(pid).ok()?.start))
}

/// The session id of this program. It is 0 if the session was made outside of its PID namespace, or if it
/// never had one (the first process).
pub fn session() -> Option<u32> {
    Some(stat(std::process::id()).ok()?.sid)
}

/// The real user id of the process that has this pid now. `status` takes no lock that a process can hold.
pub fn real_user(pid: u32) -> Option<u32> {
    fields::number(&status(pid)?, "Uid")
}

pub fn effective_user(pid: u32) -> Option<u32> {
    fields::words(&status(pid)?, "Uid")?.nth(1)?.parse().ok()
}

fn status(pid: u32) -> Option<Vec<u8>> {
    Some(read(CWD, &format!("/proc/{pid}/status"), 4096).ok()?.0)
}

pub(super) fn stat(pid: u32) -> Result<Stat, Errno> {
    stat_of(pid, format!("/proc/{pid}/stat"))
}

/// This file of a process or a thread. An error if the process does not answer at once.
fn stat_of(pid: u32, file: String) -> Result<Stat, Errno> {
    let line = hastily(move || {
        door(pid)?;
        let _visit = visit(pid)?;
        read(CWD, &file, 4096).map(|(line, _)| line)
    });
    Stat::parse(&line?).ok_or(Errno::INVAL)
}

fn presence_if(process: ProcessId, fits: impl Fn(&Stat) -> bool) -> Presence {
    match stat(process.pid) {
        Ok(stat) if stat.start == process.start && stat.is_alive() && fits(&stat) => Presence::Alive,
        // ESRCH: it ended between open and read.
        Ok(_) | Err(Errno::NOENT | Errno::SRCH) => Presence::Gone,
        Err(_) => Presence::Unseen,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_process_lives_and_no_other_birth_does() {
        let own = identity(std::process::id()).unwrap();
        assert_eq!(presence(own), Presence::Alive);
        assert!(stays(own));
        assert_eq!(user(own), Some(rustix::process::getuid().as_raw()));
        assert_eq!(effective_user(own.pid), Some(rustix::process::geteuid().as_raw()));
        let status = status(own.pid).unwrap();
        let sessions = fields::words(&status, "NSsid").unwrap();
        assert_eq!(session(), sessions.last().unwrap().parse().ok());
        let other = ProcessId { start: own.start + 1, ..own };
        assert_eq!((presence(other), stays(other), user(other)), (Presence::Gone, false, None));
    }

    #[test]
    fn a_leader_that_exits_alone_takes_nobody_with_it() {
        let source = "import ctypes, sys, threading
def other(): print(flush=True); sys.stdin.read()
threading.Thread(target=other).start()
ctypes.CDLL(None).pthread_exit(None)";
        let mut command = std::process::Command::new("python3");
        let pipe = std::process::Stdio::piped;
        let mut child = command.args(["-c", source]).stdin(pipe()).stdout(pipe()).spawn().unwrap();
        // It does not answer while it is in execve(2), which takes its time on a busy host.
        while !stat(child.id()).is_ok_and(|stat| stat.leader_exited()) {
            std::thread::yield_now();
        }
        let id = identity(child.id()).unwrap();
        assert!(stays(id));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!stays(id));
    }

    #[test]
    fn a_zombie_is_gone_and_keeps_its_identity() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        while !stat(child.id()).is_ok_and(|stat| !stat.is_alive()) {
            std::thread::yield_now();
        }
        let id = identity(child.id()).unwrap();
        assert_eq!((presence(id), identity(id.pid)), (Presence::Gone, Some(id)));
        child.wait().unwrap();
        assert_eq!(identity(id.pid), None);
    }
}
