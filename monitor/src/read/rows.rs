//! A scene while it is filled: it knows which endpoint has which index, and describes each holder once.
//!
//! Invariant: every process that holds an end has a row. One that has ended or is exiting holds nothing; only as the
//! caller of a port it counts still. One that cannot be described is [`Holder::Unreadable`].

use std::collections::{BTreeMap, BTreeSet, HashMap};

use nix::libc;
use rustix::io::Errno;

use crate::{
    host::{Proc, ProcessDir, Room},
    source::kernel_side::{Caller, OpenEnd},
};
use orphand_core::{
    model::{
        ProcessId, UnitFacts,
        scene::{Address, End, Endpoint, Holder, ProcessRow, Scene, Side, Unread},
        text::base,
    },
    recognise::is_browser,
};

/// The most processes that are described for an endpoint beside those that were asked about.
pub(super) const HOLDERS: usize = 256;
/// The same for a whole scene.
const DESCRIBED: usize = 8192;
/// Those who are due together share it.
pub(super) const ENDS: usize = 1 << 18;
/// How often somebody may be entered as who has an end. A pass tells fewer descriptors than that, but a user decides at how many
/// ends each of them counts: that of a listener at each call which nobody has accepted yet, or that somebody else has.
const HOLDS: usize = 1 << 20;
/// The most numbers of descriptors that are told of an end.
const NUMBERS: usize = 8;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Key {
    /// Inode number and device.
    Pipe(u64, u32),
    /// The inode numbers of both sockets, in ascending order. 0 and the place in a table if there is none.
    Connection(u64, u64, u64),
    Open(u64),
    Terminal(u32),
    /// The terminal of a session, by its leader.
    Session(ProcessId),
    PidNamespace(Vec<u8>),
    Trace(ProcessId),
    /// The process that offers it.
    Device(ProcessId),
    ParentDeath(ProcessId),
    /// The device and the inode number of the mapped file.
    Memory(u32, u64),
    /// A message queue or semaphores of System V, by number.
    SystemV(u32),
    /// Who waits for anybody, at what has no number.
    Waiting(ProcessId),
    /// The number that the pass has for the open file.
    Shared(u64),
    /// The inode number of the listener, and who called.
    Call(u64, ProcessId),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Known {
    Row { in_full: bool },
    Gone,
    Unreadable,
}

pub(super) struct Rows<'a> {
    pub proc: &'a Proc,
    unit: &'a dyn Fn(ProcessId) -> Option<UnitFacts>,
    /// The processes that are read in full.
    pub asked: &'a BTreeSet<ProcessId>,
    /// When the first of those that were asked about began.
    oldest: u64,
    pub scene: Scene,
    endpoints: HashMap<Key, u32>,
    ends: BTreeMap<(u32, Holder, Side), usize>,
    known: HashMap<ProcessId, Known>,
    /// How many holders of an endpoint were described in brief.
    strangers: HashMap<u32, usize>,
    described: usize,
    holds: usize,
    /// Whether there was no room for the descriptors of all that were asked about.
    pub is_crowded: bool,
    room: Room,
    children: BTreeSet<ProcessId>,
}

/// What was read at once.
pub(super) struct Found {
    pub scene: Scene,
    /// The descendants of those asked about that hold an end and were not asked about.
    pub children: BTreeSet<ProcessId>,
    /// Whether a bound of the whole scene was reached: any server's own end may be one of those that had no room.
    pub is_full: bool,
}

impl<'a> Rows<'a> {
    pub fn new(
        proc: &'a Proc,
        unit: &'a dyn Fn(ProcessId) -> Option<UnitFacts>,
        asked: &'a BTreeSet<ProcessId>,
    ) -> Self {
        Self {
            proc,
            unit,
            asked,
            oldest: asked.iter().map(|one| one.start).min().unwrap_or(u64::MAX),
            scene: Scene::default(),
            endpoints: HashMap::new(),
            ends: BTreeMap::new(),
            known: HashMap::new(),
            strangers: HashMap::new(),
            described: 0,
            holds: 0,
            is_crowded: false,
            room: Room::default(),
            children: BTreeSet::new(),
        }
    }

    pub fn full(&mut self, row: ProcessRow) {
        self.known.insert(row.process, Known::Row { in_full: true });
        self.push(row);
    }

    fn push(&mut self, mut row: ProcessRow) {
        self.room.fit(row.uid, &mut row.image);
        row.unit = (self.unit)(row.process);
        self.scene.processes.push(row);
    }

    pub fn gone(&mut self, process: ProcessId) {
        self.known.insert(process, Known::Gone);
    }

    /// Enters that a process that was asked about could not be read, or not all of it.
    pub fn unread(&mut self, process: Option<ProcessId>, why: impl Into<String>) {
        if let Some(process) = process {
            self.known.entry(process).or_insert(Known::Unreadable);
        }
        self.scene.unread.push(Unread { process, why: why.into() });
    }

    /// Enters that a process that was asked about has a connection to a display.
    pub fn has_display(&mut self, process: ProcessId) {
        let rows = self.scene.processes.iter_mut().filter(|row| row.process == process);
        rows.for_each(|row| row.has_display = true);
    }

    pub fn is_full(&self, process: ProcessId) -> bool {
        self.known.get(&process) == Some(&Known::Row { in_full: true })
    }

    /// The index of this endpoint. The first who enters it says what it is.
    pub fn endpoint(&mut self, key: Key, endpoint: impl FnOnce() -> Endpoint) -> u32 {
        let all = &mut self.scene.endpoints;
        *self.endpoints.entry(key).or_insert_with(|| {
            all.push(endpoint());
            u32::try_from(all.len() - 1).unwrap_or(u32::MAX)
        })
    }

    /// Enters that the program of this listener named its port. That of another one may have been named all the same: the
    /// socket of a multipath connection does not say so.
    pub fn choose(&mut self, endpoint: u32) {
        let at = usize::try_from(endpoint).ok().and_then(|at| self.scene.endpoints.get_mut(at));
        if let Some(Endpoint::Open { by: Address::Tcp, chosen, .. }) = at {
            *chosen = true;
        }
    }

    /// Enters that a process has an end, by no descriptor that is known.
    pub fn hold(&mut self, endpoint: u32, side: Side, process: ProcessId) {
        self.hold_by(endpoint, side, process, None, false);
    }

    /// Whether further holders can be entered.
    pub const fn has_room(&self) -> bool {
        self.holds < HOLDS
    }

    /// Enters that a process has an end by a descriptor. `beyond`: the open file has more references than descriptors.
    pub fn hold_open(&mut self, endpoint: u32, side: Side, end: &OpenEnd, beyond: bool) {
        self.hold_by(endpoint, side, end.process, Some(end.number), beyond);
    }

    fn hold_by(&mut self, endpoint: u32, side: Side, process: ProcessId, number: Option<u32>, beyond: bool) {
        self.holds += 1;
        let holder = match self.knows(process) {
            Known::Gone => return,
            Known::Unreadable => Holder::Unreadable,
            Known::Row { in_full: true } => Holder::Process(process),
            Known::Row { in_full: false } => {
                let strangers = self.strangers.entry(endpoint).or_default();
                *strangers +=
                    usize::from(!self.ends.contains_key(&(endpoint, Holder::Process(process), side)));
                if *strangers > HOLDERS { Holder::Unreadable } else { Holder::Process(process) }
            }
        };
        self.end(endpoint, holder, side, number, beyond);
    }

    /// Enters who called, and may have ended since.
    pub fn caller(&mut self, endpoint: u32, caller: ProcessId) {
        let holder = match self.knows(caller) {
            Known::Unreadable => Holder::Unreadable,
            Known::Row { .. } | Known::Gone => Holder::Process(caller),
        };
        self.end(endpoint, holder, Side::Far, None, false);
    }

    /// Whose call this is, if that is known and it still counts: of one that has ended that of who stands for it.
    pub fn who_calls(&mut self, caller: Caller) -> Option<ProcessId> {
        let (by, above, lately) = match caller {
            Caller::Process { by, above, lately } => (by, above, lately),
            Caller::Seeker(by) => return self.may_live(by).then_some(by),
            Caller::Anybody | Caller::Unknown => return None,
        };
        let stands = if self.may_live(by) { Ok(None) } else { self.stands_for(by, above) };
        // Who cannot be read may be the one, and call again.
        let Ok(stands) = stands else { return Some(by) };
        let sender = stands.unwrap_or(by);
        (lately || self.may_call_again(sender)).then_some(sender)
    }

    /// The first process with one of these numbers that lives. One that is younger than `by` has been given the number since.
    fn stands_for(
        &mut self,
        by: ProcessId,
        numbers: impl IntoIterator<Item = u32>,
    ) -> Result<Option<ProcessId>, Errno> {
        for pid in numbers {
            let found = match self.proc.process(pid) {
                Err(Errno::NOENT | Errno::SRCH) => continue,
                found => found?.id(),
            };
            if found.start <= by.start && self.may_live(found) {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    fn may_live(&mut self, process: ProcessId) -> bool {
        !matches!(self.knows(process), Known::Gone)
    }

    /// Whether this process lives, or may, and calls because it is built so: what a browser calls are a person's visits.
    fn may_call_again(&mut self, process: ProcessId) -> bool {
        let is_known = self.may_live(process);
        let row = self.scene.processes.iter().find(|row| row.process == process);
        let names =
            row.into_iter().flat_map(|row| row.image.argv.first().into_iter().chain([&row.image.exe]));
        is_known && !names.map(|name| base(name)).any(is_browser)
    }

    /// Enters that somebody has an end whom no descriptor shows, or may have it.
    pub fn anybody(&mut self, endpoint: u32, side: Side) {
        self.end(endpoint, Holder::Anybody, side, None, false);
    }

    /// Enters that it could not be found out who has an end.
    pub fn unreadable(&mut self, endpoint: u32, side: Side) {
        self.end(endpoint, Holder::Unreadable, side, None, false);
    }

    fn end(&mut self, endpoint: u32, holder: Holder, side: Side, number: Option<u32>, beyond: bool) {
        let all = &mut self.scene.ends;
        // What has no room is held by somebody who cannot be told.
        let holder = if all.len() < ENDS { holder } else { Holder::Unreadable };
        let at = *self.ends.entry((endpoint, holder, side)).or_insert_with(|| {
            all.push(End { endpoint, holder, side, numbers: Vec::new(), beyond: false });
            all.len() - 1
        });
        let Some(end) = all.get_mut(at) else { return };
        end.beyond |= beyond;
        if let Some(number) = number
            && !end.numbers.contains(&number)
        {
            let at = end.numbers.partition_point(|one| *one < number);
            end.numbers.insert(at, number);
            end.numbers.truncate(NUMBERS);
        }
    }

    /// What is known about a holder. One of whom nothing is known yet is described.
    fn knows(&mut self, process: ProcessId) -> Known {
        self.known.get(&process).copied().unwrap_or_else(|| self.describe(process))
    }

    /// Describes a holder in brief, and whoever is between it and a process that was asked about.
    fn describe(&mut self, process: ProcessId) -> Known {
        let has_room = self.described < DESCRIBED;
        let known = match if has_room { self.brief(process) } else { Ok(Known::Unreadable) } {
            Ok(known) => known,
            Err(Errno::NOENT | Errno::SRCH) => Known::Gone,
            Err(_) => Known::Unreadable,
        };
        self.known.insert(process, known);
        known
    }

    fn brief(&mut self, process: ProcessId) -> Result<Known, Errno> {
        let Some(dir) = self.proc.identified(process)? else { return Ok(Known::Gone) };
        if dir.stat().has_begun_to_exit() {
            return Ok(Known::Gone);
        }
        let parent = self.parent(&dir);
        let row = in_brief(&dir, parent)?;
        self.described += 1;
        self.push(row);
        Ok(Known::Row { in_full: false })
    }

    /// Whether this process descends from one that was asked about, and nobody had heard of it; or that cannot be told.
    pub fn may_be_child(&mut self, process: ProcessId) -> bool {
        if process.start < self.oldest {
            return false;
        }
        match self.proc.identified(process) {
            Ok(Some(dir)) => {
                self.parent(&dir);
                self.children.contains(&process)
            }
            Ok(None) | Err(Errno::NOENT | Errno::SRCH) => false,
            Err(_) => true,
        }
    }

    /// The present parent. If a process further up was asked about, this one and those between are its children that
    /// nobody has heard of.
    pub fn parent(&mut self, dir: &ProcessDir) -> Option<ProcessId> {
        let oldest = self.oldest;
        let mut above = self.proc.ancestors(dir).map(|above| above.id());
        let parent = above.next()?;
        let is_young = |id: &ProcessId| id.start >= oldest;
        let mut between = vec![dir.id()];
        let mut next = Some(parent).filter(is_young);
        while let Some(id) = next {
            if self.asked.contains(&id) {
                self.children.extend(between.into_iter().filter(|one| !self.asked.contains(one)));
                break;
            }
            between.push(id);
            next = above.next().filter(is_young);
        }
        Some(parent)
    }

    /// The scene, and the descendants of the processes that were asked about that nobody had heard of.
    pub fn finish(self) -> Found {
        let is_full = self.is_crowded
            || self.holds >= HOLDS
            || self.scene.ends.len() >= ENDS
            || self.described >= DESCRIBED;
        let Self { scene, children, .. } = self;
        Found { scene, children, is_full }
    }
}

/// What is told of every process.
pub(super) fn in_brief(dir: &ProcessDir, parent: Option<ProcessId>) -> Result<ProcessRow, Errno> {
    let signals = dir.signals()?;
    Ok(ProcessRow {
        process: dir.id(),
        uid: dir.uid()?,
        sid: dir.stat().sid,
        group: dir.stat().group,
        parent,
        image: dir.image(),
        ignores_hangup: signals.ignores(libc::SIGHUP),
        ignores_interrupt: signals.ignores(libc::SIGINT),
        catches_term: signals.hears(libc::SIGTERM),
        hears_of_ends: signals.hears(libc::SIGCHLD),
        ..ProcessRow::default()
    })
}
