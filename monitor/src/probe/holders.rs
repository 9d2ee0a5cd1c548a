//! Who on the host holds which pipe or socket.

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use rustix::io::Errno;

use crate::{
    host::{HostError, Proc, Target},
    model::{Holder, Stdio},
};

/// All pipe and socket descriptors of the host at one moment.
#[derive(Debug)]
pub(super) struct Index {
    taken: Instant,
    ends: Vec<End>,
    /// Why it may lack some, if it may.
    pub blind: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct End {
    /// The pipe or socket.
    of: Stdio,
    pid: u32,
    number: u32,
}

/// An index answers questions for so long. What it finds is looked at again before it is believed, and where it
/// finds nobody a new one is made; so its age can only hide a further holder beside one that is there.
const FRESH: Duration = Duration::from_millis(100);

/// Holders told of. The oldest are the ones that matter: who is older than a server may own it.
const HOLDERS_MAX: usize = 256;

impl Index {
    /// Looks at every descriptor of every process: 1 us each, some 20 ms with 1,000 processes.
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

    /// Whether it may answer one more question.
    pub fn is_fresh(&self) -> bool {
        self.taken.elapsed() < FRESH
    }

    /// The descriptors of this pipe or socket: pid and number.
    pub fn on(&self, of: Stdio) -> impl Iterator<Item = (u32, u32)> {
        let from = self.ends.partition_point(|end| end.of < of);
        self.ends.iter().skip(from).take_while(move |end| end.of == of).map(|end| (end.pid, end.number))
    }

    /// Who has it open now, oldest first: a pipe for writing, a socket at all. At most [`HOLDERS_MAX`].
    pub fn holders(&self, proc: &Proc, of: Stdio) -> Vec<Holder> {
        still_held(proc, of, self.on(of), |target| match (target, of) {
            (Target::Pipe(n), Stdio::Pipe(m)) | (Target::Socket(n), Stdio::Socket(m)) => *n == m,
            _ => false,
        })
    }
}

fn and_others(rest: &[u32]) -> String {
    if rest.is_empty() { String::new() } else { format!(" and {} others", rest.len()) }
}

/// Who has the FIFO `inode` with this path open for writing. Everything is looked at anew: servers on a named FIFO
/// are rare. A process that knows it by another path (another mount namespace) is not found.
pub(super) fn fifo_holders(proc: &Proc, inode: u64, path: &[u8]) -> Result<Vec<Holder>, HostError> {
    let named = |target: &Target| matches!(target, Target::Path(p) if p == path);
    let mut found = Vec::new();
    for pid in proc.pids()? {
        let Ok(table) = proc.fd_table(pid) else { continue };
        found.extend(table.fds.iter().filter(|fd| named(&fd.target)).map(|fd| (pid, fd.number)));
    }
    Ok(still_held(proc, Stdio::Pipe(inode), found.into_iter(), named))
}

fn still_held(
    proc: &Proc,
    of: Stdio,
    found: impl Iterator<Item = (u32, u32)>,
    is_it: impl Fn(&Target) -> bool,
) -> Vec<Holder> {
    let mut seen = BTreeSet::new();
    let mut holders = Vec::new();
    for (pid, number) in found {
        if seen.contains(&pid) {
            continue;
        }
        let Ok(dir) = proc.process(pid) else { continue };
        let Ok(fds) = dir.fd_dir() else { continue };
        let there = fds.target(number).is_some_and(|target| is_it(&target)) && fds.stdio(number) == of;
        let counts = matches!(of, Stdio::Socket(_)) || fds.access(number).is_some_and(|access| access.write);
        if there && counts && dir.stat().is_alive() {
            seen.insert(pid);
            holders.push((dir.id(), dir.stat().sid));
        }
    }
    holders.sort_unstable_by_key(|(id, _)| (id.start, id.pid));
    holders.truncate(HOLDERS_MAX);
    holders
        .into_iter()
        .filter_map(|(process, sid)| {
            let dir = proc.identified(process).ok()??;
            Some(Holder { process, uid: dir.uid().ok()?, sid, image: dir.image(), unit: None })
        })
        .collect()
}
