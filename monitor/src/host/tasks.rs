//! All processes of the host with what joins them: session, terminal, PID namespace, tracer.
//!
//! The kernel side implements the pass (`source::tasks`), which waits for nobody. Without it /proc is read, where a
//! process may not answer: its `status` is then read all the same, because that takes no lock of the process's
//! (see `watch`), and the row says that it tells only part.

use rustix::io::Errno;

use super::{HostError, Proc, ProcessDir, UNANSWERED, each_number, fields, read};
use orphand_core::model::ProcessId;

/// A process, as one pass over all of them shows it. Kernel threads are left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskRow {
    /// The process.
    pub process: ProcessId,
    /// Its real user id.
    pub uid: u32,
    /// Its session.
    pub session: u32,
    /// Its controlling terminal: major << 20 | minor.
    pub terminal: Option<u32>,
    /// Its PID namespace.
    pub namespace: PidNamespace,
    /// The threads that trace one of its threads, ptrace(2).
    pub tracers: Vec<u32>,
    /// The process with whose thread it is to end (`PR_SET_PDEATHSIG`, prctl(2)): its parent. /proc does not tell it.
    pub ends_with: Option<u32>,
    /// Whether it ignores SIGHUP.
    pub ignores_hangup: bool,
    /// Whether it has ended, or ends now.
    pub dead: bool,
    /// Whether it did not answer: its birth is 0, and its terminal is unknown, as is its namespace.
    pub partly: bool,
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

/// A provider of passes over all processes of the host.
pub trait Tasks: std::fmt::Debug + Send {
    /// All processes. A pass takes less than a microsecond a thread.
    ///
    /// # Errors
    ///
    /// A line that says why the pass failed.
    fn tasks(&mut self) -> Result<Vec<TaskRow>, String>;
}

/// The major number of the terminals of devpts, whose minor numbers are their names.
const UNIX98_PTY_SLAVE_MAJOR: u32 = 136;

impl TaskRow {
    /// Whether it is about this process.
    pub fn is(&self, process: ProcessId) -> bool {
        self.process == process || (self.partly && self.process.pid == process.pid)
    }

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
            let row = match self.process(pid).and_then(|dir| whole(&dir)) {
                Err(UNANSWERED) => self.part(pid).map(Some),
                told => told,
            };
            match row {
                Ok(row) => rows.extend(row),
                Err(Errno::NOENT | Errno::SRCH) => {}
                // An error is not a process that is not there.
                Err(errno) => {
                    let path = self.path.join(pid.to_string());
                    return Err(HostError::Read { operation: "read", path, source: errno.into() });
                }
            }
        }
        Ok(rows)
    }

    /// What is told of a process that does not answer.
    fn part(&self, pid: u32) -> Result<TaskRow, Errno> {
        let (status, _) = read(&self.root, &format!("{pid}/status"), STATUS)?;
        let mut row = of_status(&status).ok_or(Errno::INVAL)?;
        let tasks = rustix::fs::openat(
            &self.root,
            format!("{pid}/task"),
            super::DIRECTORY,
            rustix::fs::Mode::empty(),
        )?;
        let mut tids = Vec::new();
        each_number(&tasks, |tid| tids.push(tid))?;
        for tid in tids {
            match read(&tasks, &format!("{tid}/status"), STATUS) {
                Ok((status, _)) => add_tracer(&mut row, fields::number(&status, "TracerPid")),
                Err(Errno::NOENT | Errno::SRCH) => {}
                Err(errno) => return Err(errno),
            }
        }
        Ok(TaskRow { process: ProcessId::new(pid, 0), partly: true, ..row })
    }
}

/// `status` is shorter, however long the name and the list of groups may be.
const STATUS: usize = 512 << 10;

fn whole(dir: &ProcessDir) -> Result<Option<TaskRow>, Errno> {
    let stat = dir.stat();
    if stat.is_kernel_thread() {
        return Ok(None);
    }
    let status = {
        let _at = dir.at()?;
        read(dir.body(), "status", STATUS)?.0
    };
    let mut row = of_status(&status).ok_or(Errno::INVAL)?;
    row.process = dir.id();
    row.terminal = stat.terminal().map(|pty| UNIX98_PTY_SLAVE_MAJOR << 20 | pty);
    row.dead = stat.has_begun_to_exit();
    if row.dead {
        return Ok(Some(row));
    }
    if stat.threads > 1 {
        for tid in dir.threads()? {
            add_tracer(&mut row, dir.tracer(tid)?);
        }
    }
    row.namespace.inode = match dir.pid_namespace_name() {
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

fn add_tracer(row: &mut TaskRow, tracer: Option<u32>) {
    let fresh = tracer.filter(|tracer| *tracer != 0 && !row.tracers.contains(tracer));
    row.tracers.extend(fresh);
}

/// What the first thread's `status` tells. Pure.
fn of_status(status: &[u8]) -> Option<TaskRow> {
    let numbers: Vec<u32> = fields::words(status, "NSpid")?.filter_map(|word| word.parse().ok()).collect();
    let hangup = u64::from_str_radix(fields::words(status, "SigIgn")?.next()?, 16).ok()? & 1 != 0;
    let mut row = TaskRow {
        process: ProcessId::default(),
        uid: fields::number(status, "Uid")?,
        session: fields::number(status, "NSsid")?,
        terminal: None,
        namespace: PidNamespace {
            inode: 0,
            level: u32::try_from(numbers.len().checked_sub(1)?).ok()?,
            number: *numbers.last()?,
        },
        tracers: Vec::new(),
        ends_with: None,
        ignores_hangup: hangup,
        dead: false,
        partly: false,
    };
    add_tracer(&mut row, fields::number(status, "TracerPid"));
    Some(row)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_status_tells() {
        let text =
            b"Name:\tsh\nTgid:\t40\nPid:\t40\nPPid:\t1\nTracerPid:\t77\nUid:\t1000\t0\t0\t0\nNSpid:\t40\t1\n\
            NSsid:\t30\t0\nSigIgn:\t0000000000000001\n";
        let row = of_status(text).unwrap();
        assert_eq!((row.uid, row.session, row.tracers.as_slice()), (1000, 30, &[77][..]));
        assert_eq!(row.namespace, PidNamespace { inode: 0, level: 1, number: 1 });
        assert!(row.ignores_hangup);
        assert_eq!(of_status(b"Name:\tsh\n"), None);
    }

    #[test]
    fn we_are_among_them() {
        let proc = Proc::system().unwrap();
        let own = proc.process(std::process::id()).unwrap();
        let rows = proc.tasks().unwrap();
        let row = rows.iter().find(|row| row.process == own.id()).unwrap();
        assert_eq!((row.session, row.dead, row.partly), (own.stat().sid, false, false));
        assert_eq!(row.namespace.number, own.pid_inside().unwrap());
        let part = proc.part(std::process::id()).unwrap();
        assert_eq!((part.uid, part.session, part.partly), (row.uid, row.session, true));
        assert_eq!(part.namespace, PidNamespace { inode: 0, ..row.namespace });
    }
}
