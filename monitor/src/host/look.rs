//! What one process is, read from its directory.

use rustix::io::Errno;

use super::{Proc, ProcessDir, moved_wire};
use orphand_core::model::{Image, ProcessId, SnapshotProcess, Stdio};

/// A process and the number of its parent, whose identity is still to be found.
#[derive(Clone, Debug)]
pub struct Seen {
    /// The process, without its parent.
    pub process: SnapshotProcess,
    /// Its parent's number; 0 for none.
    pub ppid: u32,
}

/// Reads a process; nothing for kernel threads and for what has ended. Standard streams are read where
/// `wants_stdio` asks for them and said to be closed elsewhere.
pub fn look(dir: &ProcessDir, wants_stdio: &impl Fn(&Image) -> bool) -> Result<Option<Seen>, Errno> {
    let stat = *dir.stat();
    if stat.is_kernel_thread() || !stat.is_alive() {
        return Ok(None);
    }
    let image = dir.image();
    let stdio = if wants_stdio(&image) { dir.stdio() } else { [Stdio::Closed; 3] };
    let uid = dir.uid()?;
    if image.exe.is_empty() && image.argv.is_empty() && !dir.still_alive() {
        return Ok(None);
    }
    let process =
        SnapshotProcess { id: dir.id(), parent: None, uid, sid: stat.sid, image, stdio, unit: None };
    Ok(Some(Seen { process, ppid: stat.ppid }))
}

/// A parent is older than its child, or as old to the clock's tick: another process has its number else.
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
        // The parent is who we read if the process still has it: numbers are reused, live parents are not.
        let now = self.identified(id).ok()??;
        process.parent = parent.filter(|_| now.stat().ppid == ppid);
        Some(process)
    }

    /// The numbers of all processes below this one now.
    fn descendants(&self, pid: u32) -> Option<Vec<u32>> {
        let parent = |pid| Some((pid, self.process(pid).ok()?.stat().ppid));
        let pairs: Vec<_> = self.pids().ok()?.into_iter().filter_map(parent).collect();
        Some(moved_wire::below(pid, &pairs))
    }
}
