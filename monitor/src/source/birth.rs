//! The identity that /proc gives a process, to compare with the kernel side's.

use procfs::{
    ProcError,
    process::{Process, Stat},
};

use orphand_core::model::ProcessId;

/// Whether a process lives, as far as /proc can tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Birth {
    /// This very process lives.
    Alive,
    /// It has ended, whoever has its number now.
    Gone,
    /// It could not be looked at: that is no proof of an end.
    Unseen,
}

/// Whether this very process lives: the same number and birth, and a thread that has not ended.
pub fn is_alive(process: ProcessId) -> Birth {
    living(process, |_| true)
}

/// Whether this very process lives and is not on its way out of the kernel: an exit that has begun may have been reported already
/// (`do_exit()` sets `PF_EXITING`, then calls the tracepoint, then hands its children on). One that cannot be seen stays.
pub fn stays(process: ProcessId) -> bool {
    const PF_EXITING: u32 = 0x4;
    living(process, |stat| stat.flags & PF_EXITING == 0 || stat.num_threads > 1) != Birth::Gone
}

/// The real user of this very process; nothing if it has ended. Of one that cannot be seen it is said to be root's.
pub fn user(process: ProcessId) -> Option<u32> {
    match is_alive(process) {
        Birth::Gone => None,
        Birth::Unseen => Some(0),
        Birth::Alive => {
            let status = open(process.pid).and_then(|it| it.status());
            Some(status.map_or(0, |status| status.ruid))
        }
    }
}

fn open(pid: u32) -> Result<Process, ProcError> {
    Process::new(i32::try_from(pid).map_err(|_| ProcError::NotFound(None))?)
}

fn living(process: ProcessId, fits: impl Fn(&Stat) -> bool) -> Birth {
    match open(process.pid).and_then(|it| it.stat()) {
        Ok(stat) => {
            // The leader may have ended before the other threads: then it is a zombie among several.
            let ended = matches!(stat.state, 'Z' | 'X') && stat.num_threads <= 1;
            if stat.starttime == process.start && !ended && fits(&stat) { Birth::Alive } else { Birth::Gone }
        }
        Err(ProcError::NotFound(_)) => Birth::Gone,
        // ESRCH: it ended between two reads.
        Err(ProcError::Io(error, _)) if error.raw_os_error() == Some(3) => Birth::Gone,
        Err(_) => Birth::Unseen,
    }
}

/// The identity of the process with this number now.
pub fn identity(pid: u32) -> Option<ProcessId> {
    let stat = open(pid).ok()?.stat().ok()?;
    Some(ProcessId::new(pid, stat.starttime))
}

/// The session of this program; 0 if it was made outside its PID namespace, or never (the first process).
pub fn session() -> Option<u32> {
    Process::myself().ok()?.stat().ok().and_then(|stat| u32::try_from(stat.session).ok())
}
