//! Who holds a pipe or a socket open, asked of the kernel: a BPF iterator over all descriptors of the host (`iter/task_file`, since
//! Linux 5.8), which writes down those of the inodes that are wanted.
//!
//! Invariant: a pass tells every descriptor that was open from its beginning to its end, or it is an error.

use std::{
    collections::BTreeMap,
    io,
    os::unix::net::UnixStream,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use aya::{
    Btf, Ebpf,
    maps::{HashMap, MapData, MapError},
};
use monitor_common::{EndRecord, wanted};
use rustix::{
    fs::fstat,
    pipe::{PipeFlags, pipe_with},
};

use super::{
    ends,
    iterator::Iterator,
    kernel_error::KernelError,
    kernel_side::{Beside, OpenEnd},
    maps,
};
use orphand_core::model::Stdio;

/// How it is called among the hooks.
pub const HOOK: &str = "iter:task_file";
/// The most descriptors of what is wanted: a user may have millions of one pipe, in thousands of processes that share a table. To
/// tell them apart takes some 400 bytes each, and others wait for the pass.
const MOST: usize = 1 << 17;
/// Verdicts wait for a pass. One that takes longer is told, and the next of them after a minute.
const SLOW: Duration = Duration::from_secs(2);
const TELL_AGAIN: Duration = Duration::from_secs(60);
/// Somebody else's fork may come between a descriptor and the look at it.
const TRIES: u32 = 5;

/// Makes passes over all descriptors as long as the kernel side is there.
#[derive(Debug)]
pub struct Holders {
    iterator: Iterator<EndRecord>,
    wanted: HashMap<MapData, u64, u32>,
    /// How many inodes one pass can be about.
    room: usize,
    /// When it was told last that a pass is slow.
    told: Option<Instant>,
}

impl Holders {
    /// Loads and proves the program. `room`: the size of the map `wanted`.
    pub(super) fn open(
        programs: &Arc<Mutex<Ebpf>>,
        btf: &Btf,
        wanted: HashMap<MapData, u64, u32>,
        room: u32,
    ) -> Result<Self, KernelError> {
        let iterator = Iterator::load(programs, "task_file", btf)?;
        let mut holders = Self { iterator, wanted, room: room as usize, told: None };
        holders.prove().map_err(KernelError)?;
        Ok(holders)
    }

    /// The proof that passes work here: a pipe and a pair of sockets of our own, whose ends are known. It looks at our own
    /// descriptors alone, because any user may have millions.
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
            found = self.pass(Some(std::process::id()), &asked, &Beside::default())?;
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

    fn tell_if_slow(&mut self, began: Instant) {
        let took = began.elapsed();
        if took > SLOW && self.told.is_none_or(|told| told.elapsed() > TELL_AGAIN) {
            self.told = Some(Instant::now());
            tracing::warn!(
                "a pass over all open files took {:.1} s, and verdicts wait for that: limit the open files and processes of users \
                 whom you do not trust (nofile, TasksMax)",
                took.as_secs_f32()
            );
        }
    }

    /// As many passes as it takes for all of these.
    fn pass_for(&mut self, whose: Option<u32>, keys: Vec<(u64, u32)>) -> Result<Vec<EndRecord>, String> {
        let told =
            |error: MapError| format!("cannot tell the kernel which pipes and sockets are wanted: {error}");
        let mut all = BTreeMap::new();
        for (key, device) in keys {
            let known = all.entry(key).or_insert(device);
            if *known != device {
                *known = wanted::ANY_DEVICE;
            }
        }
        let keys: Vec<(u64, u32)> = all.into_iter().collect();
        let mut records = Vec::new();
        for some in keys.chunks(self.room) {
            let entered = some.iter().try_for_each(|(key, device)| self.wanted.insert(key, device, 0));
            let found = entered.map_err(told).and_then(|()| self.iterator.pass(whose, MOST));
            // In any case: what stays would be in the way of the next.
            let mut all = some.iter().map(|(key, _)| self.wanted.remove(key));
            all.try_for_each(|gone| maps::absent_is_fine(gone).map(drop)).map_err(told)?;
            records.extend(found?);
        }
        Ok(records)
    }

    /// All open ends of these pipes and sockets, and of the peers of these sockets, and what is asked beside. Of this process
    /// at least, if one is given.
    pub(super) fn pass(
        &mut self,
        whose: Option<u32>,
        wanted: &[Stdio],
        beside: &Beside,
    ) -> Result<Vec<OpenEnd>, String> {
        let inodes = wanted.iter().filter_map(|one| one.inode());
        let named =
            wanted.iter().filter_map(|one| one.try_as_pipe()).filter(|n| !beside.nameless.contains(n));
        let named = named.map(|inode| wanted::NAMED | inode);
        let processes = beside.files.iter().map(|(pid, _)| wanted::PROCESS | u64::from(*pid));
        let lines = beside.lines.iter().map(|number| wanted::TERMINAL | u64::from(*number));
        let mapped = beside.mapped.iter().map(|(device, inode)| (wanted::MAPPED | inode, *device));
        let keys = inodes.chain(named).chain(processes).chain(lines).map(|key| (key, 0)).chain(mapped);
        let began = Instant::now();
        let records = self.pass_for(whose, keys.collect());
        self.tell_if_slow(began);
        let mut records = records?;
        // The address of an open file is known only now. Most are nobody else's.
        let shared = ends::shared(&records, &beside.files);
        records.retain(|record| !ends::is_other(record));
        if !shared.is_empty() {
            records.extend(self.pass_for(whose, shared.iter().map(|file| (*file, 0)).collect())?);
        }
        ends::settle(&records, wanted, &shared)
    }
}

type Shown = (Stdio, Option<u64>, (bool, bool), u64, (u32, u32));

const fn shown(end: &OpenEnd) -> Shown {
    let access = (end.access.read, end.access.write);
    (end.of, end.peer, access, end.references, (end.readers, end.writers))
}

/// The device of the pipes that pipe(2) makes; 0 if none can be made, and no pass is proven then.
pub fn pipe_device() -> u32 {
    let pipe = pipe_with(PipeFlags::CLOEXEC).and_then(|pipe| fstat(&pipe.0));
    pipe.map_or(0, |status| device(status.st_dev))
}

/// A device number as the kernel keeps it, of one as fstat(2) tells it.
fn device(told: u64) -> u32 {
    rustix::fs::major(told) << 20 | rustix::fs::minor(told)
}
