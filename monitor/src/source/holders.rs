//! Who holds a pipe or a socket open, asked of the kernel: a BPF iterator over all descriptors of the host (`iter/task_file`, since
//! Linux 5.8), which writes down those of the inodes that are wanted.
//!
//! Invariant: a pass tells every descriptor that was open from its beginning to its end, or it is an error.

use std::{
    io,
    os::unix::net::UnixStream,
    sync::{Mutex, Weak},
};

use aya::{
    Ebpf,
    maps::{HashMap, MapData, MapError},
};
use monitor_common::{EndRecord, wanted};
use rustix::{
    fs::fstat,
    pipe::{PipeFlags, pipe_with},
};

use super::{ends, iterator::Iterator};
use crate::host::{Beside, OpenEnd, Passes};
use orphand_core::model::Stdio;

/// The program.
pub(super) const PROGRAM: Iterator = Iterator { program: "task_file", kind: "task_file", hook: HOOK };
/// How it is called among the hooks.
pub const HOOK: &str = "iter:task_file";
/// Somebody else's fork may come between a descriptor and the look at it.
const TRIES: u32 = 5;

/// Makes passes over all descriptors as long as the kernel side is there.
pub struct Holders {
    programs: Weak<Mutex<Ebpf>>,
    wanted: HashMap<MapData, u64, u8>,
    /// How many inodes one pass can be about.
    room: usize,
}

impl std::fmt::Debug for Holders {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Holders").field("room", &self.room).finish_non_exhaustive()
    }
}

impl Holders {
    /// Of programs that were loaded. `room`: the size of the map `wanted`.
    pub(super) fn new(
        programs: Weak<Mutex<Ebpf>>,
        wanted: HashMap<MapData, u64, u8>,
        room: u32,
    ) -> Result<Self, String> {
        let mut holders = Self { programs, wanted, room: room as usize };
        holders.prove().map(|()| holders)
    }

    /// The proof that passes work here: a pipe and a pair of sockets of our own, whose ends are known.
    pub(super) fn prove(&mut self) -> Result<(), String> {
        let failed = |error: &dyn std::fmt::Display| format!("cannot make a pipe to try it with: {error}");
        let pipe = pipe_with(PipeFlags::CLOEXEC).map_err(|e| failed(&e))?;
        let pair = UnixStream::pair().map_err(|e| failed(&e))?;
        let of_pipe = fstat(&pipe.0).map_err(|e| failed(&e))?;
        let sockets = [&pair.0, &pair.1].map(fstat);
        let [Ok(one), Ok(other)] = sockets else { return Err(failed(&io::Error::last_os_error())) };
        // The peer is told without being asked for.
        let asked = [Stdio::Pipe(of_pipe.st_ino), Stdio::Socket(one.st_ino)];
        let mut found = Vec::new();
        for _ in 0..TRIES {
            found = self.pass(&asked, &Beside::default())?;
            let shown: Vec<_> = found.iter().map(shown).collect();
            let device = device(of_pipe.st_dev);
            let expected = [
                (Stdio::Pipe(of_pipe.st_ino), None, (true, false), 1, (1, 1)),
                (Stdio::Pipe(of_pipe.st_ino), None, (false, true), 1, (1, 1)),
                (Stdio::Socket(one.st_ino), Some(other.st_ino), (true, true), 1, (0, 0)),
                (Stdio::Socket(other.st_ino), Some(one.st_ino), (true, true), 1, (0, 0)),
            ];
            let own = found.iter().all(|end| end.process.pid == std::process::id());
            let pipes = || found.iter().filter(|end| matches!(end.of, Stdio::Pipe(_)));
            if own && shown == expected && pipes().all(|end| end.device == device) {
                return Ok(());
            }
        }
        Err(format!("what it tells of our own pipe and sockets is wrong: {found:?}"))
    }

    /// One pass over all descriptors of the host for what is in the map.
    fn read(&self) -> Result<Vec<EndRecord>, String> {
        let mut records = Vec::new();
        PROGRAM.pass(&self.programs, |bytes| {
            let (whole, rest) = ends::records(bytes);
            records.extend(whole);
            rest
        })?;
        Ok(records)
    }

    fn forget(&mut self, inodes: &[u64]) -> Result<(), MapError> {
        inodes
            .iter()
            .try_for_each(|inode| super::candidates::absent_is_fine(self.wanted.remove(inode)).map(drop))
    }

    fn pass_for_all(&mut self, mut keys: Vec<u64>) -> Result<Vec<EndRecord>, String> {
        keys.sort_unstable();
        keys.dedup();
        let mut records = Vec::new();
        for some in keys.chunks(self.room) {
            records.extend(self.pass_for(some)?);
        }
        Ok(records)
    }

    fn pass_for(&mut self, inodes: &[u64]) -> Result<Vec<EndRecord>, String> {
        let entered = inodes.iter().try_for_each(|inode| self.wanted.insert(inode, 0, 0));
        let found = entered.map_err(|e| told(&e)).and_then(|()| self.read());
        // In any case: what stays would be in the way of the next.
        self.forget(inodes).map_err(|e| told(&e))?;
        found
    }
}

fn told(error: &MapError) -> String {
    format!("cannot tell the kernel which pipes and sockets are wanted: {error}")
}

impl Passes for Holders {
    fn pass(&mut self, wanted: &[Stdio], beside: &Beside) -> Result<Vec<OpenEnd>, String> {
        let inodes = wanted.iter().filter_map(|one| inode(*one));
        let processes = beside.files.iter().map(|(pid, _)| wanted::PROCESS | u64::from(*pid));
        let lines = beside.lines.iter().map(|number| wanted::TERMINAL | u64::from(*number));
        let mut records = self.pass_for_all(inodes.chain(processes).chain(lines).collect())?;
        // The address of an open file is known only now. Most are nobody else's.
        let shared = ends::shared(&records, &beside.files);
        records.retain(|record| !ends::is_other(record));
        if !shared.is_empty() {
            records.extend(self.pass_for_all(shared.clone())?);
        }
        ends::settle(&records, wanted, &shared)
    }
}

const fn inode(of: Stdio) -> Option<u64> {
    match of {
        Stdio::Pipe(inode) | Stdio::Socket(inode) => Some(inode),
        _ => None,
    }
}

type Shown = (Stdio, Option<u64>, (bool, bool), u64, (u32, u32));

const fn shown(end: &OpenEnd) -> Shown {
    let access = (end.access.read, end.access.write);
    (end.of, end.peer, access, end.references, (end.readers, end.writers))
}

/// A device number as the kernel keeps it, of one as fstat(2) tells it.
fn device(told: u64) -> u32 {
    rustix::fs::major(told) << 20 | rustix::fs::minor(told)
}
