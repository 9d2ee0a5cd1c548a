//! From the kernel side to the engine: records of the ring, what was lost of them, and the readings of /proc for that.
//!
//! Records are completed before they are handed to the engine: command lines that do not fit, from /proc, and names of users.
//! What the engine is handed is recorded, so a replay gives the same.

use std::{
    collections::{BTreeMap, HashMap},
    time::Duration,
};

use super::environment::Environment;
use crate::{
    driver::{Driver, read_proc},
    host::{Proc, Room},
    os::{clock, users::local_names},
    source::completion::completed,
};
use orphand_core::{
    model::{BootTime, Input, Losses, ProcessEvent, ProcessId, Share, Snapshot, SnapshotProcess},
    recognise::Rules,
};

impl Environment {
    /// Hands in what the kernel side reported. Returns whether there was anything.
    pub(super) fn drain(&mut self, driver: &mut Driver) -> anyhow::Result<bool> {
        self.seen_until = clock::now();
        // Effects on the kernel side follow each record, so the ring is emptied first: both need it. What signals add to these records
        // is for the next time: a storm of records cannot keep this busy.
        let pending = self.pending.drain(&mut self.kernel);
        let mut any = pending > 0;
        for _ in 0..pending {
            let Some(event) = self.next_record() else { break };
            driver.handle(self, Input::Process { event })?;
        }
        let mut losses = self.kernel.losses()?;
        let refused = std::mem::take(&mut losses.member);
        if refused > 0 {
            any = true;
            let users = self.kernel.members.refused()?;
            self.note_refused(driver, &users, refused);
            driver.perform(self)?;
        }
        if losses != Losses::default() {
            any = true;
            self.doubtful = true;
            self.status.lost += losses;
            driver.handle(self, Input::Lost { losses })?;
        }
        Ok(any)
    }

    /// The repair after a loss: the records that are there, then a reading of /proc.
    pub(super) fn repair(&mut self, driver: &mut Driver) -> anyhow::Result<()> {
        self.pending.drain(&mut self.kernel);
        while let Some(event) = self.next_record() {
            driver.feed(Input::Process { event });
        }
        if self.feed_proc(driver, BTreeMap::new())? {
            self.status.resyncs += 1;
            self.doubtful = false;
        }
        Ok(())
    }

    /// Reads /proc where no loss asks for it.
    pub(super) fn reconcile(&mut self, driver: &mut Driver) -> anyhow::Result<()> {
        self.drain(driver)?;
        self.feed_proc(driver, BTreeMap::new())?;
        driver.perform(self)
    }

    /// Reads /proc twice, where it is not known yet who is followed. The first reading enters the processes that matter, the
    /// second finds what they forked before the kernel side tracked them. A process that the first one saw is read again only
    /// if it or its parent is followed now: of the others the kernel side reports what matters.
    pub(super) fn enter_all(&mut self, driver: &mut Driver) -> anyhow::Result<()> {
        self.drain(driver)?;
        let mut seen = Vec::new();
        if let Some(snapshot) = self.read_proc(BTreeMap::new())? {
            seen.clone_from(&snapshot.processes);
            driver.feed(Input::Snapshot { snapshot });
        }
        driver.perform(self)?;
        self.drain(driver)?;
        let followed = self.kernel.members.pids()?;
        let is_followed = |process: &ProcessId| followed.contains(&process.pid);
        let matters =
            |process: &SnapshotProcess| is_followed(&process.id) || process.parent.iter().any(is_followed);
        let known = seen.into_iter().filter(|process| !matters(process));
        self.feed_proc(driver, known.map(|process| (process.id, process)).collect())?;
        driver.perform(self)
    }

    /// Feeds one reading of /proc, in which those in `known` are not read again. Returns whether it could be made.
    fn feed_proc(
        &mut self,
        driver: &mut Driver,
        known: BTreeMap<ProcessId, SnapshotProcess>,
    ) -> anyhow::Result<bool> {
        let Some(snapshot) = self.read_proc(known)? else { return Ok(false) };
        driver.feed(Input::Snapshot { snapshot });
        Ok(true)
    }

    /// One reading of /proc. `None` if it could not be made: it will be tried again.
    fn read_proc(&mut self, known: BTreeMap<ProcessId, SnapshotProcess>) -> anyhow::Result<Option<Snapshot>> {
        match read_proc(&self.procfs, &self.probe, &self.rules, known) {
            Ok(snapshot) => {
                self.stuck.set_unread(clock::now(), &snapshot.unread);
                self.completer.command_lines.repair(&snapshot);
                Ok(Some(snapshot))
            }
            Err(error) => self.proc_failed(error).map(|()| None),
        }
    }

    /// The oldest record that was taken from the ring, counted and with its whole command line.
    fn next_record(&mut self) -> Option<ProcessEvent> {
        let event = self.pending.pop()?;
        count(&mut self.status.records, &event);
        Some(self.completer.complete(&self.procfs, &self.rules, event))
    }
}

fn count(records: &mut Losses, event: &ProcessEvent) {
    match event {
        ProcessEvent::Fork { .. } => records.fork += 1,
        ProcessEvent::Exec { .. } => records.exec += 1,
        ProcessEvent::Exit { .. } | ProcessEvent::ThreadExit { .. } => records.exit += 1,
        ProcessEvent::Setsid { .. } => records.setsid += 1,
        // Nothing depends on these: they are no part of what may be lost.
        ProcessEvent::Signal { .. } => {}
    }
}

/// The names of users are read again after so long.
const NAMES: Duration = Duration::from_secs(10);

#[derive(Debug, Default)]
pub struct Completer {
    users: Option<(BootTime, BTreeMap<u32, String>)>,
    pub(super) command_lines: CommandLines,
}

impl Completer {
    /// The name of a user. A file that was written meanwhile counts later: whoever sends many signals costs one reading.
    fn user(&mut self, uid: u32) -> Option<String> {
        let now = clock::now();
        if self.users.as_ref().is_none_or(|(read, _)| now.since(*read) > NAMES) {
            self.users = Some((now, local_names()));
        }
        self.users.as_ref().and_then(|(_, names)| names.get(&uid).cloned())
    }

    /// The same record, with the whole command line if the process has another role by it. Otherwise the cut one stays: a long
    /// command line that changes nothing is not worth its memory, nor is one of a user who has many.
    pub fn complete(&mut self, procfs: &Proc, rules: &Rules, mut event: ProcessEvent) -> ProcessEvent {
        if let ProcessEvent::Signal { killer, .. } = &mut event {
            killer.user = killer.uid.and_then(|uid| self.user(uid));
        }
        match &event {
            ProcessEvent::Fork { creator, child, .. } => self.command_lines.inherit(*child, *creator),
            ProcessEvent::Exec { process, .. } | ProcessEvent::Exit { process, .. } => {
                self.command_lines.leave(*process);
            }
            _ => {}
        }
        let ProcessEvent::Exec { at, process, parent, uid, sid, image, stdio, ignored } = event else {
            return event;
        };
        // What a user's processes make this wait is bounded and charged there.
        let found = if image.argv_truncated { procfs.command_line(process) } else { None };
        let found = found.and_then(|found| completed(&image, &found)).filter(|found| {
            rules.role(found) != rules.role(&image)
                || rules.role_but_for_exemption(found) != rules.role_but_for_exemption(&image)
        });
        let found = found.filter(|found| self.command_lines.enter(process, uid, found.size()));
        let image = found.unwrap_or(image);
        ProcessEvent::Exec { at, process, parent, uid, sid, image, stdio, ignored }
    }
}

/// How much the whole command lines of living processes take, for each user: he decides how long they are, and how many.
///
/// Invariant: those that were completed, and that the graph keeps of a user, take at most [`Room::OF_USER`] and what his forks have of
/// them.
#[derive(Debug, Default)]
pub struct CommandLines {
    sizes: HashMap<ProcessId, (Share, usize)>,
    users: HashMap<Share, usize>,
}

impl CommandLines {
    /// Whether the command line of this process, which takes so many bytes, may be kept. It counts if it may.
    pub fn enter(&mut self, process: ProcessId, uid: u32, size: usize) -> bool {
        let share = Share::of(uid);
        let taken = self.users.get(&share).copied().unwrap_or_default();
        let may = taken.saturating_add(size) <= Room::OF_USER;
        if may {
            self.count(process, share, size);
        }
        may
    }

    fn count(&mut self, process: ProcessId, share: Share, size: usize) {
        self.leave(process);
        self.sizes.insert(process, (share, size));
        *self.users.entry(share).or_default() += size;
    }

    /// A fork runs the program of its creator, and has its command line for as long as it lives.
    pub fn inherit(&mut self, child: ProcessId, creator: ProcessId) {
        if let Some((share, size)) = self.sizes.get(&creator).copied() {
            self.count(child, share, size);
        }
    }

    /// Exits may be among what was lost.
    pub fn repair(&mut self, snapshot: &Snapshot) {
        let gone: Vec<ProcessId> = self.sizes.keys().copied().filter(snapshot.gone()).collect();
        for process in gone {
            self.leave(process);
        }
    }

    /// The process has ended, runs another program, or is not followed any more.
    pub fn leave(&mut self, process: ProcessId) {
        let Some((share, size)) = self.sizes.remove(&process) else { return };
        let Some(taken) = self.users.get_mut(&share) else { return };
        *taken = taken.saturating_sub(size);
        if *taken == 0 {
            self.users.remove(&share);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_has_so_much_for_those_that_live() {
        let mut lines = CommandLines::default();
        let id = |pid| ProcessId { pid, start: 1 };
        let half = Room::OF_USER / 2;
        assert!(lines.enter(id(1), 1000, half));
        assert!(lines.enter(id(2), 1000, half));
        assert!(!lines.enter(id(3), 1000, 1));
        assert!(lines.enter(id(4), 1001, half), "another user has his own");
        lines.leave(id(1));
        lines.leave(id(9));
        assert!(lines.enter(id(3), 1000, half));
        assert!(!lines.enter(id(5), 1000, half));
        let living = SnapshotProcess { id: id(2), ..SnapshotProcess::default() };
        let horizon = BootTime::of_ticks(2);
        let snapshot = Snapshot { horizon, processes: vec![living], unread: vec![4] };
        lines.repair(&snapshot);
        assert!(lines.enter(id(5), 1000, half), "the exit of another one was lost");
        lines.leave(id(5));
        lines.inherit(id(6), id(2));
        lines.inherit(id(7), id(99));
        lines.leave(id(2));
        assert!(!lines.enter(id(8), 1000, half + 1), "a fork has it still");
        for pid in [4, 6] {
            lines.leave(id(pid));
        }
        assert!(lines.users.is_empty() && lines.sizes.is_empty());
    }
}
