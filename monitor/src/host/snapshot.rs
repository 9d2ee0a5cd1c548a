//! Reads all processes of the host through /proc: at the start, and to recover after records of the kernel
//! were lost.
//!
//! Invariant: every `SnapshotProcess` is read through one open directory, so it never mixes the facts of
//! two processes. A snapshot misses processes that start and end while it is taken. It makes no claim about
//! the time after [`Snapshot::horizon`]. The users are the daemon's shell and the commands that work
//! without a daemon.

use std::collections::{BTreeMap, HashMap};

use rustix::io::Errno;

use super::{HostError, Proc, ProcessDir, Running, UNANSWERED, hastily, moved_wire, with_deadline};
use orphand_core::model::{BootTime, Image, ProcessId, Share, Snapshot, SnapshotProcess, Stdio};

pub const COMMAND_LINE_MAX: usize = 32 * 1024;

/// What the programs and arguments of processes take in one reading of many: a user decides how long they are, and how
/// many.
#[derive(Debug, Default)]
pub struct Room(BTreeMap<Share, usize>);

impl Room {
    /// The most bytes for one user: some thousand ordinary programs.
    pub const OF_USER: usize = 8 << 20;

    /// Shortens the program of a user whose others have taken his room.
    pub fn fit(&mut self, uid: u32, image: &mut Image) {
        let taken = self.0.entry(Share::of(uid)).or_default();
        *taken = taken.saturating_add(image.size());
        if *taken > Self::OF_USER {
            image.shorten();
        }
    }
}

/// The program and arguments of a process, as bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandLine {
    /// The path of the executable, as in [`Image::exe`].
    pub exe: String,
    /// The content of `cmdline`, at most [`COMMAND_LINE_MAX`] bytes of it.
    pub cmdline: Vec<u8>,
    pub more: bool,
}

impl Proc {
    /// All living processes. `horizon` is a time before the first read, and strictly after the last drain
    /// of the kernel's records. Standard streams are read only of the processes that `wants_stdio` accepts;
    /// those of the others are reported as closed. Those in `known` are reported as they are there, if they
    /// live and have the same parent. The wait for each process is bounded: the pids that do not answer are
    /// in [`Snapshot::unread`].
    pub fn snapshot(
        &self,
        horizon: BootTime,
        wants_stdio: impl Fn(&Image) -> bool + Send + Sync + 'static,
        known: BTreeMap<ProcessId, SnapshotProcess>,
    ) -> Result<Snapshot, HostError> {
        let this = self.clone();
        with_deadline(move || this.look(horizon, &wants_stdio, &known))
    }

    fn look(
        &self,
        horizon: BootTime,
        wants_stdio: &impl Fn(&Image) -> bool,
        known: &BTreeMap<ProcessId, SnapshotProcess>,
    ) -> Result<Snapshot, HostError> {
        let (mut seen, mut unread) = (Vec::with_capacity(1024), Vec::new());
        let mut room = Room::default();
        let mut processes = Vec::new();
        for pid in self.pids()? {
            let found = self.process(pid).and_then(|dir| {
                let is_same = |known: &&SnapshotProcess| {
                    dir.stat().is_alive() && known.parent.is_some_and(|parent| parent.pid == dir.stat().ppid)
                };
                let Some(process) = known.get(&dir.id()).filter(is_same) else {
                    return look(&dir, wants_stdio);
                };
                processes.push(process.clone());
                Ok(None)
            });
            match found {
                Ok(found) => seen.extend(found.map(|mut seen: Seen| {
                    room.fit(seen.process.uid, &mut seen.process.image);
                    seen
                })),
                // The process ended meanwhile, or it is hidden from us (hidepid), which yields EPERM or
                // EACCES.
                Err(Errno::NOENT | Errno::SRCH | Errno::PERM | Errno::ACCESS) => {}
                Err(UNANSWERED) => unread.push(pid),
                Err(errno) => return Err(HostError::of_process(pid, errno)),
            }
        }
        let parent = |process: &SnapshotProcess| Some((process.id.pid, process.parent?.pid));
        let pairs = seen.iter().map(|seen| (seen.process.id.pid, seen.ppid));
        let pairs: Vec<(u32, u32)> = processes.iter().filter_map(parent).chain(pairs).collect();
        moved_wire::mend_moved_wires(self, &mut seen, &pairs);
        let ids = processes.iter().chain(seen.iter().map(|seen| &seen.process)).map(|process| process.id);
        let starts: HashMap<u32, u64> = ids.map(|id| (id.pid, id.start)).collect();
        processes.extend(seen.into_iter().map(|Seen { mut process, ppid }| {
            process.parent =
                starts.get(&ppid).and_then(|&start| as_parent(ProcessId::new(ppid, start), process.id));
            process
        }));
        Ok(Snapshot { horizon, processes, unread })
    }

    /// This process and its ancestors, which must never be signalled. The calling thread reads them itself,
    /// without a deadline.
    pub fn ourselves(&self) -> Result<Vec<ProcessId>, HostError> {
        let pid = std::process::id();
        let own = self.process(pid).map_err(|errno| HostError::of_process(pid, errno))?;
        let above: Vec<ProcessId> = self.ancestors(&own).map(|above| above.id()).collect();
        Ok([vec![own.id()], above].concat())
    }

    /// The command line of exactly this process, if it is alive and readable at once.
    pub fn command_line(&self, id: ProcessId) -> Option<CommandLine> {
        let this = self.clone();
        hastily(move || {
            let dir = this.identified(id).ok()??;
            let (cmdline, more) = dir.command_line(COMMAND_LINE_MAX).ok()?;
            Some(CommandLine { exe: dir.exe(), cmdline, more })
        })
    }
}

/// A process and the pid of its parent. The parent's identity is not resolved yet.
#[derive(Clone, Debug)]
pub struct Seen {
    /// The process. Its field `parent` is not set.
    pub process: SnapshotProcess,
    /// The parent's pid; 0 if it has none.
    pub ppid: u32,
}

/// Reads a process. Returns `None` for kernel threads and for processes that have ended. The standard
/// streams are read only if `wants_stdio` accepts the image, or a title hides it; otherwise they are reported as closed.
pub fn look(dir: &ProcessDir, wants_stdio: &impl Fn(&Image) -> bool) -> Result<Option<Seen>, Errno> {
    let stat = *dir.stat();
    if stat.is_kernel_thread() || !stat.is_alive() {
        return Ok(None);
    }
    let _at = dir.at()?;
    let Running { image, titled, stale_binary } = dir.program();
    let stdio = if titled || wants_stdio(&image) { dir.stdio() } else { [Stdio::Closed; 3] };
    let uid = dir.uid()?;
    if image.exe.is_empty() && image.argv.is_empty() && !dir.still_alive() {
        return Ok(None);
    }
    let (id, sid) = (dir.id(), stat.sid);
    let process =
        SnapshotProcess { id, uid, sid, image, titled, stdio, stale_binary, ..SnapshotProcess::default() };
    Ok(Some(Seen { process, ppid: stat.ppid }))
}

/// Checks that `parent` can be the parent of `child`: a parent has started before its child, or in the same
/// clock tick. A younger process has got the pid of the real parent by reuse.
pub fn as_parent(parent: ProcessId, child: ProcessId) -> Option<ProcessId> {
    (parent.start <= child.start && parent.pid != child.pid).then_some(parent)
}

impl Proc {
    /// This process, if it is alive and readable. No wire that it has moved is sought: that takes a look at every process of
    /// the host, and the daemon's loop asks this of hosts of servers.
    pub fn seen(&self, id: ProcessId) -> Option<SnapshotProcess> {
        let dir = self.identified(id).ok()??;
        let Seen { mut process, ppid } = look(&dir, &|_| true).ok()??;
        let parent = self.process(ppid).ok().and_then(|parent| as_parent(parent.id(), id));
        // Keep the parent only if the process still has the same parent pid. The pid of a live parent is
        // not reused, so the process read above is then the parent.
        let now = self.identified(id).ok()??;
        process.parent = parent.filter(|_| now.stat().ppid == ppid);
        Some(process)
    }

    pub fn descendants(&self, pid: u32) -> Option<Vec<u32>> {
        let parent = |pid| Some((pid, self.process(pid).ok()?.stat().ppid));
        let pairs: Vec<_> = self.pids().ok()?.into_iter().filter_map(parent).collect();
        Some(moved_wire::below(pid, &moved_wire::children(&pairs), usize::MAX))
    }
}

#[cfg(test)]
mod tests;
