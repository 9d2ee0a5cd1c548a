//! What a pass of the kernel over all open files says about a wire. Unlike /proc it misses nobody: it tells how many ends a pipe
//! has and how often a file is open, so an end that is in flight inside a socket, or kept by `io_uring`, shows as a number that no
//! descriptor accounts for.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex},
    thread::sleep,
    time::{Duration, Instant},
};

use super::{locked, pipe::Side};
use crate::host::{Access, OpenEnd, Passes};
use orphand_core::model::{ProcessId, Stdio};

/// A pass answers questions for so long.
const FRESH: Duration = Duration::from_millis(100);

/// A reference that no descriptor accounts for may be a read(2) or a poll that is just going on in a process with threads.
const SECOND_LOOK: Duration = Duration::from_millis(1);

/// Wires that one pass may be asked for; those of the server at hand come first.
const WANTED_MAX: usize = 1024;

/// Who makes passes, and the last ones.
#[derive(Debug, Default)]
pub(super) struct Source {
    passes: Option<Arc<Mutex<Box<dyn Passes>>>>,
    last: Option<Pass>,
}

/// One pass, and the one that was made after it because there was a doubt.
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
    /// The other end is open nowhere.
    HungUp,
    /// No process of the server has an end of its own; these have one, and may have handed it on to one of them by fork(2).
    Lost(Vec<ProcessId>),
    /// These have the other end; `unseen`: somebody else may, too.
    Held { by: Vec<ProcessId>, unseen: bool },
    /// Not a kind that the kernel tells about.
    Unknown,
}

impl Source {
    pub fn new(passes: Box<dyn Passes>) -> Self {
        Self { passes: Some(Arc::new(Mutex::new(passes))), last: None }
    }

    /// One to ask, with what this one remembers. Nothing if there can be no passes.
    pub fn take(&mut self) -> Option<Self> {
        let passes = Some(Arc::clone(self.passes.as_ref()?));
        Some(Self { passes, last: self.last.take() })
    }

    /// Remembers what that one does.
    pub fn put_back(&mut self, taken: Self) {
        self.last = taken.last;
    }

    /// What is to be said about one of `wires`, those of the server at hand; `others` are asked for along with them. An error:
    /// there is no pass.
    pub fn ask(
        &mut self,
        wires: &[Stdio],
        others: &dyn Fn() -> Vec<Stdio>,
        judge: impl Fn(&[OpenEnd]) -> Told,
    ) -> Result<Told, String> {
        let Some(passes) = &self.passes else { return Err("there are no passes".to_owned()) };
        let covers = |pass: &Pass| wires.iter().all(|wire| !wire.is_wire() || pass.wanted.contains(wire));
        let kept = self.last.take().filter(|pass| pass.taken.elapsed() < FRESH && covers(pass));
        // Its age may hide a further holder beside one that is there, nothing else.
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

/// The pipe or FIFO `wire`, whose end on this `side` belongs to those `inside`.
pub(super) fn judge_pipe(ends: &[OpenEnd], wire: Stdio, side: Side, inside: &[ProcessId]) -> Told {
    judge(ends, wire, side, inside, hides)
}

/// The same for one who writes: that somebody unseen shares the read end of one who is seen is not asked. A reader with threads
/// that waits in read(2) looks like that, and most servers do.
pub(super) fn judge_output(ends: &[OpenEnd], wire: Stdio, inside: &[ProcessId]) -> Told {
    judge(ends, wire, Side::Writes, inside, hides_a_file)
}

/// Whether more is open than is seen.
type Hides = fn(&[&OpenEnd], fn(&OpenEnd) -> u32, &dyn Fn(Access) -> bool) -> bool;

fn judge(ends: &[OpenEnd], wire: Stdio, side: Side, inside: &[ProcessId], hides: Hides) -> Told {
    let mut by_device: BTreeMap<u32, Vec<&OpenEnd>> = BTreeMap::new();
    for end in ends.iter().filter(|end| end.of == wire) {
        by_device.entry(end.device).or_default().push(end);
    }
    let is_ours = |end: &&OpenEnd| side.is_own(end.access) && inside.contains(&end.process);
    let lost = !by_device.values().any(|ends| ends.iter().any(is_ours));
    if !lost {
        // The same number on another device is another file.
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
        // An end of its own that nobody has seen may be with the server all the same.
        unseen: hidden || lost,
    }
}

/// The socket `wire` of those `inside`.
pub(super) fn judge_socket(ends: &[OpenEnd], wire: Stdio, inside: &[ProcessId]) -> Told {
    let own: Vec<&OpenEnd> = ends.iter().filter(|end| end.of == wire).collect();
    if !own.iter().any(|end| inside.contains(&end.process)) {
        if is_shared_unseen(&own) {
            return Told::Held { by: Vec::new(), unseen: true };
        }
        return Told::Lost(processes(own.iter()));
    }
    // 0: closed, or not accepted yet. Which of them, this does not tell.
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

/// Whether there are more ends of one kind than those seen, or somebody unseen shares one that is seen.
fn hides(ends: &[&OpenEnd], count: fn(&OpenEnd) -> u32, kind: &dyn Fn(Access) -> bool) -> bool {
    let of_kind: Vec<&OpenEnd> = ends.iter().copied().filter(|end| kind(end.access)).collect();
    hides_a_file(ends, count, kind) || is_shared_unseen(&of_kind)
}

/// Whether there are more open files of one kind than those seen.
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
