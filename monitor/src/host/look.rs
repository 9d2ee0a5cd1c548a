//! Reads the description of one process from its directory in /proc.

use rustix::io::Errno;

use super::{Proc, ProcessDir, moved_wire};
use orphand_core::model::{Image, ProcessId, SnapshotProcess, Stdio};

/// A process and the pid of its parent. The parent's identity is not resolved yet.
#[derive(Clone, Debug)]
pub struct Seen {
    /// The process. Its field `parent` is not set.
    pub process: SnapshotProcess,
    /// The parent's pid; 0 if it has none.
    pub ppid: u32,
}

/// Reads a process. Returns `None` for kernel threads and for processes that have ended. The standard
/// streams are read only if `wants_stdio` accepts the image; otherwise they are reported as closed.
pub fn look(dir: &ProcessDir, wants_stdio: &impl Fn(&Image) -> bool) -> Result<Option<Seen>, Errno> {
    let stat = *dir.stat();
    if stat.is_kernel_thread() || !stat.is_alive() {
        return Ok(None);
    }
    let (image, stale_binary) = dir.program();
    let stdio = if wants_stdio(&image) { dir.stdio() } else { [Stdio::Closed; 3] };
    let uid = dir.uid()?;
    if image.exe.is_empty() && image.argv.is_empty() && !dir.still_alive() {
        return Ok(None);
    }
    let (id, sid) = (dir.id(), stat.sid);
    let process = SnapshotProcess { id, uid, sid, image, stdio, stale_binary, ..SnapshotProcess::default() };
    Ok(Some(Seen { process, ppid: stat.ppid }))
}

/// Checks that `parent` can be the parent of `child`: a parent has started before its child, or in the same
/// clock tick. A younger process has got the pid of the real parent by reuse.
pub fn as_parent(parent: ProcessId, child: ProcessId) -> Option<ProcessId> {
    (parent.start <= child.start && parent.pid != child.pid).then_some(parent)
}

impl Proc {
    /// This process, if it is alive and readable.
    pub fn seen(&self, id: ProcessId) -> Option<SnapshotProcess> {
        let dir = self.identified(id).ok()??;
        let Seen { mut process, ppid } = look(&dir, &|_| true).ok()??;
        if moved_wire::may_have_moved(&process) {
            let wires = moved_wire::find(self, &dir, &self.descendants(id.pid)?);
            if let Some(wires) = wires {
                let [stdin, stdout, _] = &mut process.stdio;
                [*stdin, *stdout] = wires;
            }
        }
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
        Some(moved_wire::below(pid, &pairs))
    }
}
