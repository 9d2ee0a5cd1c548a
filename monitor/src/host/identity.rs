//! Who has a process number now, and whether that process still lives.
//!
//! The calling thread reads, without a deadline: `stat` and `status` alone. For the source, which compares the records of the
//! kernel with /proc.

use rustix::{fs::CWD, io::Errno};

use super::{Stat, fields, read};
use orphand_core::model::ProcessId;

/// Whether a process lives, as far as /proc shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// This very process lives.
    Alive,
    /// It has ended, whoever has its number now.
    Gone,
    /// It could not be read: that is no proof of an end.
    Unseen,
}

/// Whether this very process lives: the same number and birth, and a thread that has not ended.
pub fn presence(process: ProcessId) -> Presence {
    presence_if(process, |_| true)
}

/// Whether this very process lives and has not begun to exit: an exit that has begun may have been reported already
/// (`do_exit()` sets `PF_EXITING`, then calls the tracepoint, then gives its children to another parent). A process that cannot
/// be read stays.
pub fn stays(process: ProcessId) -> bool {
    presence_if(process, |stat| !stat.has_begun_to_exit()) != Presence::Gone
}

/// The real user of this very process; nothing if it has ended. A process that cannot be read counts as root's.
pub fn user(process: ProcessId) -> Option<u32> {
    match presence(process) {
        Presence::Gone => None,
        Presence::Unseen => Some(0),
        Presence::Alive => Some(real_user(process.pid).unwrap_or(0)),
    }
}

/// The identity of the process with this number now.
pub fn identity(pid: u32) -> Option<ProcessId> {
    Some(ProcessId::new(pid, stat(pid).ok()?.start))
}

/// The session of this program; 0 if it was made outside its PID namespace, or never (the first process).
pub fn session() -> Option<u32> {
    Some(stat(std::process::id()).ok()?.sid)
}

/// The real user of the process with this number now. `status` takes no lock that a process can keep.
pub(super) fn real_user(pid: u32) -> Option<u32> {
    fields::number(&status(pid)?, "Uid")
}

/// The effective user of the process with this number now.
pub fn effective_user(pid: u32) -> Option<u32> {
    fields::words(&status(pid)?, "Uid")?.nth(1)?.parse().ok()
}

fn status(pid: u32) -> Option<Vec<u8>> {
    Some(read(CWD, &format!("/proc/{pid}/status"), 4096).ok()?.0)
}

pub(super) fn stat(pid: u32) -> Result<Stat, Errno> {
    let (line, _) = read(CWD, &format!("/proc/{pid}/stat"), 4096)?;
    Stat::parse(&line).ok_or(Errno::INVAL)
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
        assert_eq!(session(), Some(rustix::process::getsid(None).unwrap().as_raw_pid().unsigned_abs()));
        let other = ProcessId { start: own.start + 1, ..own };
        assert_eq!((presence(other), stays(other), user(other)), (Presence::Gone, false, None));
    }

    #[test]
    fn a_zombie_is_gone_and_keeps_its_identity() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let id = identity(child.id()).unwrap();
        while stat(id.pid).unwrap().is_alive() {
            std::thread::yield_now();
        }
        assert_eq!((presence(id), identity(id.pid)), (Presence::Gone, Some(id)));
        child.wait().unwrap();
        assert_eq!(identity(id.pid), None);
    }
}
