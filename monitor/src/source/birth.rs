//! The identity that /proc gives a process, to compare with the kernel side's.

use procfs::process::{Process, Stat};

use crate::model::ProcessId;

/// Whether this very process lives: the same number and birth, and a thread that has not ended.
pub fn is_alive(process: ProcessId) -> bool {
    living(process).is_some()
}

/// Whether this very process lives and is not on its way out of the kernel: an exit that has begun may have been reported already
/// (`do_exit()` sets `PF_EXITING`, then calls the tracepoint, then hands its children on).
pub fn stays(process: ProcessId) -> bool {
    const PF_EXITING: u32 = 0x4;
    living(process).is_some_and(|stat| stat.flags & PF_EXITING == 0 || stat.num_threads > 1)
}

fn living(process: ProcessId) -> Option<Stat> {
    let stat = Process::new(i32::try_from(process.pid).ok()?).ok()?.stat().ok()?;
    // The leader may have ended before the other threads: then it is a zombie among several.
    let ended = matches!(stat.state, 'Z' | 'X') && stat.num_threads <= 1;
    (stat.starttime == process.start && !ended).then_some(stat)
}

/// The identity of the process with this number now.
pub fn identity(pid: u32) -> Option<ProcessId> {
    let stat = Process::new(i32::try_from(pid).ok()?).ok()?.stat().ok()?;
    Some(ProcessId::new(pid, stat.starttime))
}

/// The session of this program; 0 if it was made outside its PID namespace, or never (the first process).
pub fn session() -> Option<u32> {
    Process::myself().ok()?.stat().ok().and_then(|stat| u32::try_from(stat.session).ok())
}
