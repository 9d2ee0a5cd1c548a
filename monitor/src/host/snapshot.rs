//! One look at all processes through /proc: bootstrap and the repair after a loss.
//!
//! Invariant: every [`SnapshotProcess`] was read through one open directory, so none is made of two processes.
//! A look misses what is forked and ends meanwhile; [`Snapshot::horizon`] says from when on it claims nothing.
//! For the daemon's shell and the verbs that work without a daemon.

use std::{collections::HashMap, sync::Arc};

use rustix::io::Errno;

use super::{
    HostError, Proc, Seen, UNANSWERED, as_parent, look, moved_wire::mend_moved_wires, with_deadline,
};
use crate::os::descriptors::ran_out;
use orphand_core::model::{BootTime, Image, ProcessId, Snapshot, SnapshotProcess};

/// Why /proc could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ProcfsError {
    /// /proc itself cannot be read.
    #[error("cannot read /proc: {0}; is it mounted?")]
    Host(#[from] HostError),
    /// A process is there and cannot be read, for want of descriptors or memory.
    #[error("cannot read process {pid} in /proc: {errno}")]
    Process {
        /// Its number.
        pid: u32,
        /// Why not.
        errno: Errno,
    },
}

impl ProcfsError {
    /// Whether it is for want of descriptors.
    pub fn is_want(&self) -> bool {
        match self {
            Self::Process { errno, .. } => ran_out(*errno),
            Self::Host(HostError::Read { source, .. }) => Errno::from_io_error(source).is_some_and(ran_out),
        }
    }
}

/// The most bytes of a [`CommandLine`].
pub const COMMAND_LINE_MAX: usize = 32 * 1024;

/// What a process runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandLine {
    /// `exe`, as in [`Image::exe`].
    pub exe: String,
    /// `cmdline`: [`COMMAND_LINE_MAX`] bytes of it.
    pub cmdline: Vec<u8>,
    /// Whether there is more.
    pub more: bool,
}

/// The processes of the host, as /proc shows them.
#[derive(Clone, Debug)]
pub struct Procfs {
    proc: Arc<Proc>,
}

impl Procfs {
    /// The host's own.
    pub fn system() -> Result<Self, ProcfsError> {
        Ok(Self { proc: Arc::new(Proc::system()?) })
    }

    /// Those of a tree that looks like /proc.
    pub fn at(root: impl Into<std::path::PathBuf>) -> Result<Self, ProcfsError> {
        Ok(Self { proc: Arc::new(Proc::at(root)?) })
    }

    /// All living processes. `horizon` is the time before the look, strictly after the last drain of the
    /// kernel's records. The standard streams are read of those that `wants_stdio` asks for; the others' are
    /// said to be closed. It waits for nobody: who does not answer is [`Snapshot::unread`].
    pub fn snapshot(
        &self,
        horizon: BootTime,
        wants_stdio: impl Fn(&Image) -> bool + Send + Sync + 'static,
    ) -> Result<Snapshot, ProcfsError> {
        let this = self.clone();
        with_deadline(move || this.look(horizon, &wants_stdio))
    }

    fn look(
        &self,
        horizon: BootTime,
        wants_stdio: &impl Fn(&Image) -> bool,
    ) -> Result<Snapshot, ProcfsError> {
        let (mut seen, mut unread) = (Vec::with_capacity(1024), Vec::new());
        for pid in self.proc.pids()? {
            match self.proc.process(pid).and_then(|dir| look(&dir, wants_stdio)) {
                Ok(found) => seen.extend(found),
                // Ended meanwhile; or hidden from us (hidepid), as EPERM or EACCES says.
                Err(Errno::NOENT | Errno::SRCH | Errno::PERM | Errno::ACCESS) => {}
                Err(UNANSWERED) => unread.push(pid),
                Err(errno) => return Err(ProcfsError::Process { pid, errno }),
            }
        }
        mend_moved_wires(&self.proc, &mut seen);
        let starts: HashMap<u32, u64> = seen.iter().map(|s| (s.process.id.pid, s.process.id.start)).collect();
        let processes = seen.into_iter().map(|Seen { mut process, ppid }| {
            process.parent =
                starts.get(&ppid).and_then(|&start| as_parent(ProcessId::new(ppid, start), process.id));
            process
        });
        Ok(Snapshot { horizon, processes: processes.collect(), unread })
    }

    /// This process and those above it: never to be signalled. Read by the calling thread alone.
    pub fn ourselves(&self) -> Result<Vec<ProcessId>, ProcfsError> {
        let pid = std::process::id();
        let own = self.proc.process(pid).map_err(|errno| ProcfsError::Process { pid, errno })?;
        let above: Vec<ProcessId> = self.proc.ancestors(&own).map(|above| above.id()).collect();
        Ok([vec![own.id()], above].concat())
    }

    /// The command line of this very process, if it is alive and readable.
    pub fn command_line(&self, id: ProcessId) -> Option<CommandLine> {
        let this = self.clone();
        with_deadline(move || {
            let dir = this.proc.identified(id).ok()??;
            let (cmdline, more) = dir.command_line(COMMAND_LINE_MAX).ok()?;
            Some(CommandLine { exe: dir.exe(), cmdline, more })
        })
    }

    /// This process, if it is alive and readable.
    pub fn process(&self, id: ProcessId) -> Option<SnapshotProcess> {
        let this = self.clone();
        with_deadline(move || this.proc.seen(id))
    }
}

#[cfg(test)]
mod tests;
