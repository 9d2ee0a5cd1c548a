//! All processes of the host with what joins them: session, terminal, PID namespace, tracer.
//!
//! The kernel side implements the pass (`source::tasks`), which waits for nobody. Without it /proc is read. If a process
//! there does not answer, nothing is told: it may be joined with anybody.

use rustix::io::Errno;

use super::{HostError, Proc, ProcessDir, fields, stat::UNIX98_PTY_SLAVE_MAJOR};
use orphand_core::model::ProcessId;

/// A process, as one pass over all of them shows it. Kernel threads are left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskRow {
    pub process: ProcessId,
    pub uid: u32,
    pub session: u32,
    /// Its controlling terminal: major << 20 | minor.
    pub terminal: Option<u32>,
    /// The address of that, 0 if it is not known: each devpts has numbers of its own.
    pub line: u64,
    pub namespace: PidNamespace,
    /// The threads that trace one of its threads, ptrace(2).
    pub tracers: Vec<u32>,
    /// The process with whose thread it is to end (`PR_SET_PDEATHSIG`, prctl(2)): its parent. /proc does not tell it.
    pub ends_with: Option<u32>,
    /// Whether it has ended, or ends now.
    pub dead: bool,
}

/// A PID namespace, and a process in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PidNamespace {
    /// Its inode number; 0 if that is unknown.
    pub inode: u32,
    /// How many namespaces are above it, the initial one included.
    pub level: u32,
    /// The number of the process there: 1 is the first process, with which the kernel ends all others.
    pub number: u32,
}

impl TaskRow {
    /// Whether the process lives in the PID namespace whose first process is `first`, which the kernel ends with that one. Those
    /// of namespaces below have an ancestor there. What does not tell its own may live in any that is as deep.
    pub const fn may_be_in_namespace_of(&self, first: &Self) -> bool {
        let (namespace, its) = (self.namespace, first.namespace);
        if namespace.inode == 0 { namespace.level >= its.level } else { namespace.inode == its.inode }
    }

    /// Which of the terminals of devpts is its own.
    pub fn pty(&self) -> Option<u32> {
        let terminal = self.terminal.filter(|terminal| terminal >> 20 == UNIX98_PTY_SLAVE_MAJOR);
        terminal.map(|terminal| terminal & 0xf_ffff)
    }
}

impl Proc {
    /// All processes as /proc shows them. Without the kernel's pass: for each process this takes some reads.
    pub fn tasks(&self) -> Result<Vec<TaskRow>, HostError> {
        let mut rows = Vec::new();
        for pid in self.pids()? {
            match self.process(pid).and_then(|dir| whole(&dir)) {
                Ok(row) => rows.extend(row),
                Err(Errno::NOENT | Errno::SRCH) => {}
                // An error is not a process that is not there.
                Err(errno) => return Err(HostError::of_process(pid, errno)),
            }
        }
        Ok(rows)
    }
}

fn whole(dir: &ProcessDir) -> Result<Option<TaskRow>, Errno> {
    let stat = dir.stat();
    if stat.is_kernel_thread() {
        return Ok(None);
    }
    let mut row = of_status(&dir.whole_status()?).ok_or(Errno::INVAL)?;
    row.process = dir.id();
    row.terminal = stat.terminal().map(|pty| UNIX98_PTY_SLAVE_MAJOR << 20 | pty);
    row.dead = stat.has_begun_to_exit();
    if row.dead {
        return Ok(Some(row));
    }
    if stat.threads > 1 {
        row.tracers = dir.tracers()?;
    }
    row.namespace.inode = match dir.link("ns/pid") {
        Ok(name) => {
            let inode = name.strip_prefix(b"pid:[").and_then(|rest| rest.strip_suffix(b"]"));
            inode.and_then(|inode| std::str::from_utf8(inode).ok()?.parse().ok()).ok_or(Errno::INVAL)?
        }
        // A process with rights that we do not have.
        Err(Errno::ACCESS | Errno::PERM) => 0,
        Err(errno) => return Err(errno),
    };
    Ok(Some(row))
}

/// What the first thread's `status` tells. Pure.
fn of_status(status: &[u8]) -> Option<TaskRow> {
    let numbers: Vec<u32> = fields::words(status, "NSpid")?.filter_map(|word| word.parse().ok()).collect();
    let mut row = TaskRow {
        uid: fields::number(status, "Uid")?,
        session: fields::number(status, "NSsid")?,
        namespace: PidNamespace {
            inode: 0,
            level: u32::try_from(numbers.len().checked_sub(1)?).ok()?,
            number: *numbers.last()?,
        },
        ..TaskRow::default()
    };
    row.tracers.extend(fields::number(status, "TracerPid").filter(|tracer: &u32| *tracer != 0));
    Some(row)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_status_tells() {
        let text =
            b"Name:\tsh\nTgid:\t40\nPid:\t40\nPPid:\t1\nTracerPid:\t77\nUid:\t1000\t0\t0\t0\nNSpid:\t40\t1\n\
            NSsid:\t30\t0\n";
        let row = of_status(text).unwrap();
        assert_eq!((row.uid, row.session, row.tracers.as_slice()), (1000, 30, &[77][..]));
        assert_eq!(row.namespace, PidNamespace { inode: 0, level: 1, number: 1 });
        assert_eq!(of_status(b"Name:\tsh\n"), None);
    }

    #[test]
    fn we_are_among_them() {
        let proc = Proc::system().unwrap();
        let own = proc.process(std::process::id()).unwrap();
        // A process of another test may keep its readers waiting for a moment.
        let rows = (0..10).find_map(|_| proc.tasks().ok()).unwrap();
        let row = rows.iter().find(|row| row.process == own.id()).unwrap();
        assert_eq!((row.session, row.dead), (own.stat().sid, false));
        assert_eq!(row.namespace.number, own.pid_inside().unwrap());
    }
}
