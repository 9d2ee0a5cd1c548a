//! What a pass of the kernel over all open files says about a wire. Unlike /proc it misses no holder. It
//! reports how many ends a pipe has and how often a file is open. So an end that is in flight inside a
//! socket, or kept by `io_uring`, shows as a count that is higher than the number of descriptors.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex},
    thread::sleep,
    time::{Duration, Instant},
};

use super::{locked, pipe::Side};
use crate::host::{Access, OpenEnd, Passes};
use orphand_core::model::{ProcessId, Stdio};

/// How long a pass answers questions.
const FRESH: Duration = Duration::from_millis(100);

/// The wait before a second pass. A reference without a descriptor may be a read(2) or a poll in progress in
/// a process with threads, which is over by then.
const SECOND_LOOK: Duration = Duration::from_millis(1);

/// The most wires that one pass is asked for. The wires of the present server come first.
const WANTED_MAX: usize = 1024;

/// The maker of passes, and the last passes.
#[derive(Debug, Default)]
pub(super) struct Source {
    passes: Option<Arc<Mutex<Box<dyn Passes>>>>,
    last: Option<Pass>,
}

/// One pass, and a second one that was made after it because of a doubt.
#[derive(Debug)]
struct Pass {
    taken: Instant,
    wanted: BTreeSet<Stdio>,
    ends: Vec<OpenEnd>,
    again: Option<Vec<OpenEnd>>,
}

/// What a pass says about a wire.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Told {
    /// No process has the other end open.
    HungUp,
    /// No process of the server has the server's end. These processes have it, and may have passed it to a
    /// process of the server by fork(2).
    Lost(Vec<ProcessId>),
    /// These processes have the other end. `unseen` means that a further process may have it too.
    Held { by: Vec<ProcessId>, unseen: bool },
    /// The pass tells nothing about this kind of file.
    Unknown,
}

impl Source {
    pub fn new(passes: Box<dyn Passes>) -> Self {
        Self { passes: Some(Arc::new(Mutex::new(passes))), last: None }
    }

    /// Takes out a source to ask, with everything that this one remembers; `None` if there can be no passes.
    pub fn take(&mut self) -> Option<Self> {
        let passes = Some(Arc::clone(self.passes.as_ref()?));
        Some(Self { passes, last: self.last.take() })
    }

    /// Puts back what the taken source remembers.
    pub fn put_back(&mut self, taken: Self) {
        self.last = taken.last;
    }

    /// What a pass says about one of `wires`, which are those of the present server. The pass covers `others`
    /// as well. An error means that there is no pass.
    pub fn ask(
        &mut self,
        wires: &[Stdio],
        others: &dyn Fn() -> Vec<Stdio>,
        judge: impl Fn(&[OpenEnd]) -> Told,
    ) -> Result<Told, String> {
        let Some(passes) = &self.passes else { return Err("there are no passes".to_owned()) };
        let covers = |pass: &Pass| wires.iter().all(|wire| !wire.is_wire() || pass.wanted.contains(wire));
        let kept = self.last.take().filter(|pass| pass.taken.elapsed() < FRESH && covers(pass));
        // An old pass can only miss a further holder beside one that exists.
        let kept = kept.filter(|pass| matches!(judge(pass.latest()), Told::Held { .. }));
        let last = if let Some(pass) = kept {
            self.last.insert(pass)
        } else {
            let all = wires.iter().copied().chain(others()).filter(|wire| wire.is_wire()).take(WANTED_MAX);
            let wanted: BTreeSet<Stdio> = all.collect();
            let wires: Vec<Stdio> = wanted.iter().copied().collect();
            let taken = Instant::now();
            let ends = locked(passes).pass(&wires)?;
            self.last.insert(Pass { taken, wanted, ends, again: None })
        };
        let told = judge(last.latest());
        if !matches!(told, Told::Held { unseen: true, .. }) {
            return Ok(told);
        }
        if last.again.is_none() {
            sleep(SECOND_LOOK);
            let wires: Vec<Stdio> = last.wanted.iter().copied().collect();
            last.again = Some(locked(passes).pass(&wires)?);
        }
        Ok(judge(last.latest()))
    }
}

impl Pass {
    fn latest(&self) -> &[OpenEnd] {
        self.again.as_ref().unwrap_or(&self.ends)
    }
}

/// Judges the pipe or FIFO `wire`. The processes `inside` have its end on this `side`.
pub(super) fn judge_pipe(ends: &[OpenEnd], wire: Stdio, side: Side, inside: &[ProcessId]) -> Told {
    judge(ends, wire, side, inside, hides)
}

/// Judges the same for a writer. It does not ask whether an unseen process shares the read end of a known
/// reader, because a multi-threaded reader that waits in read(2) looks the same, and most servers are such
/// readers.
pub(super) fn judge_output(ends: &[OpenEnd], wire: Stdio, inside: &[ProcessId]) -> Told {
    judge(ends, wire, Side::Writes, inside, hides_a_file)
}

/// Whether more ends are open than the pass lists.
type Hides = fn(&[&OpenEnd], fn(&OpenEnd) -> u32, &dyn Fn(Access) -> bool) -> bool;

fn judge(ends: &[OpenEnd], wire: Stdio, side: Side, inside: &[ProcessId], hides: Hides) -> Told {
    let mut by_device: BTreeMap<u32, Vec<&OpenEnd>> = BTreeMap::new();
    for end in ends.iter().filter(|end| end.of == wire) {
        by_device.entry(end.device).or_default().push(end);
    }
    let is_ours = |end: &&OpenEnd| side.is_own(end.access) && inside.contains(&end.process);
    let lost = !by_device.values().any(|ends| ends.iter().any(is_ours));
    if !lost {
        // The same inode number on another device is another file.
        by_device.retain(|_, ends| ends.iter().any(is_ours));
    }
    let here: Vec<&OpenEnd> = by_device.values().flatten().copied().collect();
    let unseen_own = by_device.values().any(|ends| hides(ends, side.own_count(), &|a| side.is_own(a)));
    if lost && !unseen_own {
        return Told::Lost(processes(here.iter().filter(|end| side.is_own(end.access))));
    }
    if !lost && here.iter().all(|end| side.other_count()(end) == 0) {
        return Told::HungUp;
    }
    let hidden = by_device.values().any(|ends| hides(ends, side.other_count(), &|a| side.is_other(a)));
    Told::Held {
        by: processes(here.iter().filter(|end| side.is_other(end.access))),
        // An end of the server's own kind that no listed process has may be with the server.
        unseen: hidden || lost,
    }
}

/// Judges the socket `wire` of the processes `inside`.
pub(super) fn judge_socket(ends: &[OpenEnd], wire: Stdio, inside: &[ProcessId]) -> Told {
    let own: Vec<&OpenEnd> = ends.iter().filter(|end| end.of == wire).collect();
    if !own.iter().any(|end| inside.contains(&end.process)) {
        if is_shared_unseen(&own) {
            return Told::Held { by: Vec::new(), unseen: true };
        }
        return Told::Lost(processes(own.iter()));
    }
    // 0 means closed or not accepted yet. The pass does not tell which.
    let Some(peer) = own.iter().find_map(|end| end.peer).filter(|peer| *peer != 0) else {
        return Told::Unknown;
    };
    let others: Vec<&OpenEnd> = ends.iter().filter(|end| end.of == Stdio::Socket(peer)).collect();
    Told::Held { by: processes(others.iter()), unseen: others.is_empty() || is_shared_unseen(&others) }
}

impl Side {
    fn own_count(self) -> fn(&OpenEnd) -> u32 {
        match self {
            Self::Reads => |end| end.readers,
            Self::Writes => |end| end.writers,
        }
    }

    fn other_count(self) -> fn(&OpenEnd) -> u32 {
        match self {
            Self::Reads => |end| end.writers,
            Self::Writes => |end| end.readers,
        }
    }
}

/// Whether there are more ends of one kind than are listed, or an unseen process shares a listed one.
fn hides(ends: &[&OpenEnd], count: fn(&OpenEnd) -> u32, kind: &dyn Fn(Access) -> bool) -> bool {
    let of_kind: Vec<&OpenEnd> = ends.iter().copied().filter(|end| kind(end.access)).collect();
    hides_a_file(ends, count, kind) || is_shared_unseen(&of_kind)
}

/// Whether there are more open files of one kind than are listed.
fn hides_a_file(ends: &[&OpenEnd], count: fn(&OpenEnd) -> u32, kind: &dyn Fn(Access) -> bool) -> bool {
    let files: BTreeSet<u64> = ends.iter().filter(|end| kind(end.access)).map(|end| end.file).collect();
    let open = ends.iter().map(|end| count(end)).max().unwrap_or_default();
    files.len() < usize::try_from(open).unwrap_or(usize::MAX)
}

/// Whether one of these files has more references than descriptors.
fn is_shared_unseen(ends: &[&OpenEnd]) -> bool {
    let mut files: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
    for end in ends {
        let (references, descriptors) = files.entry(end.file).or_default();
        *references = end.references.max(*references);
        *descriptors += 1;
    }
    files.values().any(|(references, descriptors)| references > descriptors)
}

fn processes<'a>(ends: impl Iterator<Item = &'a &'a OpenEnd>) -> Vec<ProcessId> {
    ends.map(|end| end.process).collect::<BTreeSet<_>>().into_iter().collect()
}

#[cfg(test)]
mod tests;
