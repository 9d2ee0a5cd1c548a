//! Which processes of the host hold which pipe or socket, as /proc tells.

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use rustix::io::Errno;

use super::pipe::{Fifo, Side};
use crate::host::{FdDir, HostError, Proc, Target};
use orphand_core::model::{Holder, ProcessId, Stdio};

/// All descriptors of pipes and sockets on the host at one moment.
#[derive(Debug)]
pub(super) struct Index {
    taken: Instant,
    ends: Vec<End>,
    /// Why the index may be incomplete; `None` if it is complete.
    pub blind: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct End {
    /// The pipe or socket.
    of: Stdio,
    pid: u32,
    number: u32,
}

/// How long an index answers questions. Each holder that it names is checked again before it is believed. If
/// it names no holder, a new index is made. So an old index can only miss a further holder beside one that
/// exists.
const FRESH: Duration = Duration::from_millis(100);

/// The most holders that are reported. The oldest are kept, because a process that is older than a server may
/// own it.
const HOLDERS_MAX: usize = 256;

impl Index {
    /// Reads every descriptor of every process. This takes 1 us for each descriptor, about 20 ms with 1,000
    /// processes.
    pub fn take(proc: &Proc) -> Result<Self, HostError> {
        let taken = Instant::now();
        let mut ends = Vec::with_capacity(4096);
        let (mut hidden, mut cut) = (Vec::new(), Vec::new());
        for pid in proc.pids()? {
            match proc.fd_table(pid) {
                Ok(table) => {
                    cut.extend(table.cut.then_some(pid));
                    ends.extend(table.fds.iter().filter_map(|fd| {
                        let of = match fd.target {
                            Target::Pipe(inode) => Stdio::Pipe(inode),
                            Target::Socket(inode) => Stdio::Socket(inode),
                            Target::Path(_) => return None,
                        };
                        Some(End { of, pid, number: fd.number })
                    }));
                }
                Err(Errno::NOENT | Errno::SRCH) => {}
                Err(_) => hidden.push(pid),
            }
        }
        ends.sort_unstable();
        let blind = match (hidden.as_slice(), cut.as_slice()) {
            ([first, rest @ ..], _) => {
                Some(format!("the open files of process {first}{} cannot be read", and_others(rest)))
            }
            ([], [first, rest @ ..]) => {
                Some(format!("process {first}{} has more open files than orphand looks at", and_others(rest)))
            }
            ([], []) => None,
        };
        Ok(Self { taken, ends, blind })
    }

    /// Whether the index is young enough to answer one more question.
    pub fn is_fresh(&self) -> bool {
        self.taken.elapsed() < FRESH
    }

    /// The descriptors of this pipe or socket, as pid and descriptor number.
    pub fn on(&self, of: Stdio) -> impl Iterator<Item = (u32, u32)> {
        let from = self.ends.partition_point(|end| end.of < of);
        self.ends.iter().skip(from).take_while(move |end| end.of == of).map(|end| (end.pid, end.number))
    }

    /// The processes that have the other end open now, oldest first. The other end of a pipe is the end that
    /// the server on this `side` does not have. For a socket, `of` is the peer, and any descriptor of it
    /// counts.
    pub fn holders(&self, proc: &Proc, of: Stdio, side: Side) -> Vec<Holder> {
        let has = |fds: &FdDir, number| {
            let same = match (fds.target(number), of) {
                (Some(Target::Pipe(n)), Stdio::Pipe(m)) | (Some(Target::Socket(n)), Stdio::Socket(m)) => {
                    n == m
                }
                _ => false,
            };
            let is_socket = matches!(of, Stdio::Socket(_));
            same && (is_socket || fds.access(number).is_some_and(|access| side.is_other(access)))
        };
        still_held(proc, self.on(of), has)
    }

    /// The processes that have the same end as the server.
    pub fn sharers(&self, proc: &Proc, of: Stdio, side: Side) -> Vec<ProcessId> {
        let shares = |(pid, number)| {
            let dir = proc.process(pid).ok()?;
            let is_socket = matches!(of, Stdio::Socket(_));
            let own =
                is_socket || dir.fd_dir().ok()?.access(number).is_some_and(|access| side.is_own(access));
            own.then(|| dir.id())
        };
        self.on(of).filter_map(shares).collect()
    }
}

fn and_others(rest: &[u32]) -> String {
    if rest.is_empty() { String::new() } else { format!(" and {} others", rest.len()) }
}

/// The processes that have the other end of this named FIFO. The code reads all descriptors anew, because
/// servers on a named FIFO are rare. It does not find a process that knows the FIFO by another path (in
/// another mount namespace).
pub(super) fn fifo_holders(
    proc: &Proc,
    inode: u64,
    fifo: &Fifo,
    side: Side,
) -> Result<Vec<Holder>, HostError> {
    let named = |target: &Target| matches!(target, Target::Path(path) if *path == fifo.path);
    let mut found = Vec::new();
    for pid in proc.pids()? {
        let Ok(table) = proc.fd_table(pid) else { continue };
        found.extend(table.fds.iter().filter(|fd| named(&fd.target)).map(|fd| (pid, fd.number)));
    }
    let has = |fds: &FdDir, number| {
        fds.target(number).is_some_and(|target| named(&target))
            && fds.stdio(number) == Stdio::Pipe(inode)
            && fds.pin(number).and_then(rustix::fs::fstat).is_ok_and(|stat| stat.st_dev == fifo.device)
            && fds.access(number).is_some_and(|access| side.is_other(access))
    };
    Ok(still_held(proc, found.into_iter(), has))
}

fn still_held(
    proc: &Proc,
    found: impl Iterator<Item = (u32, u32)>,
    has: impl Fn(&FdDir, u32) -> bool,
) -> Vec<Holder> {
    let mut seen = BTreeSet::new();
    let mut holders = Vec::new();
    for (pid, number) in found {
        if seen.contains(&pid) {
            continue;
        }
        let Ok(dir) = proc.process(pid) else { continue };
        let Ok(fds) = dir.fd_dir() else { continue };
        if has(&fds, number) {
            seen.insert(pid);
            holders.push(dir.id());
        }
    }
    describe(proc, holders).0
}

/// Describes these processes as holders, oldest first, at most [`HOLDERS_MAX`]. The flag tells that the list
/// is incomplete, because a process could not be read or there are more. A process that has ended or is
/// exiting holds nothing.
pub(super) fn describe(proc: &Proc, mut processes: Vec<ProcessId>) -> (Vec<Holder>, bool) {
    processes.sort_unstable_by_key(|id| (id.start, id.pid));
    let mut missing = processes.len() > HOLDERS_MAX;
    processes.truncate(HOLDERS_MAX);
    let one = |process| -> Result<Option<Holder>, Errno> {
        let Some(dir) = proc.identified(process)? else { return Ok(None) };
        if dir.stat().has_begun_to_exit() {
            return Ok(None);
        }
        let (uid, sid, image) = (dir.uid()?, dir.stat().sid, dir.image());
        Ok(Some(Holder { process, uid, sid, image, unit: None, clients: false }))
    };
    let mut holders = Vec::with_capacity(processes.len());
    for process in processes {
        match one(process) {
            Ok(holder) => holders.extend(holder),
            Err(Errno::NOENT | Errno::SRCH) => {}
            Err(_) => missing = true,
        }
    }
    (holders, missing)
}
