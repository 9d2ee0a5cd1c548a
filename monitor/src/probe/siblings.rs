//! Sibling servers (other servers of the same dead owner) that hold a wire: whether they are in use, and so
//! the wire through them. A sibling is in use if it has clients, if somebody debugs it, if somebody outside holds a
//! wire of its own, or if it opted out and stays whatever happens; and if a further sibling that may talk to it is in
//! use in such a way.

use std::{
    cell::RefCell,
    collections::{BTreeSet, HashMap, HashSet},
};

use rustix::io::Errno;

use super::{
    Probe, clients,
    pipe::Side,
    server::{Looked, OPT_OUT, sockets_in_rings},
    tracers,
    wire::Wired,
};
use orphand_core::model::{Holder, ProcessId, Stdio, Subject, WireState};

/// The most levels that are climbed from a process.
const LEVELS: usize = 1024;

/// The processes of all siblings, and the parents of them and of their ancestors.
#[derive(Default)]
struct Families {
    processes: Vec<ProcessId>,
    /// The parent of each process, if it has one. A user may have thousands of processes, all of them below thousands of
    /// others: each of these is read once.
    parents: HashMap<ProcessId, Option<ProcessId>>,
    /// Processes whose ancestors cannot be read.
    unread: BTreeSet<ProcessId>,
}

impl Families {
    fn parent(&self, process: ProcessId) -> Option<ProcessId> {
        self.parents.get(&process).copied().flatten()
    }

    /// Whether a process is below another one. `known` are answers about that other one.
    fn is_below(&self, process: ProcessId, top: ProcessId, known: &mut HashMap<ProcessId, bool>) -> bool {
        let (mut at, mut way) = (process, Vec::new());
        let is_below = loop {
            if let Some(is_below) = known.get(&at) {
                break *is_below;
            }
            way.push(at);
            match self.parent(at) {
                Some(above) if above == top => break true,
                Some(above) if way.len() < LEVELS => at = above,
                _ => break false,
            }
        };
        known.extend(way.into_iter().map(|process| (process, is_below)));
        is_below
    }

    /// What belongs to one server with this process: the process itself, its ancestors and its descendants.
    fn kin(&self, member: ProcessId) -> Vec<ProcessId> {
        if !self.processes.contains(&member) || self.unread.contains(&member) {
            return self.processes.clone();
        }
        let up = |process: &ProcessId| self.parent(*process);
        let above: BTreeSet<ProcessId> = std::iter::successors(up(&member), up).take(LEVELS).collect();
        let mut known = HashMap::new();
        let mut is_kin = |process: ProcessId| {
            process == member
                || above.contains(&process)
                || self.unread.contains(&process)
                || self.is_below(process, member, &mut known)
        };
        self.processes.iter().copied().filter(|process| is_kin(*process)).collect()
    }
}

/// What siblings may talk to those that are looked at: by a channel to one of these sockets, or as one of these holders
/// of a wire.
#[derive(Default)]
struct Talkers {
    sockets: HashSet<u64>,
    holders: BTreeSet<ProcessId>,
}

/// Siblings that were asked about, each with all that may talk to it, and whether one of them is in use.
#[derive(Default)]
struct Answers(Vec<(BTreeSet<ProcessId>, bool)>);

impl Probe {
    /// Marks each holder that is a sibling of the server and has clients itself, or belongs to a sibling that
    /// has.
    pub(super) fn mark_used_siblings(
        &self,
        subject: &Subject,
        others: &dyn Fn() -> Vec<Stdio>,
        wires: [&mut WireState; 2],
    ) {
        let is_sibling = |holder: &Holder| {
            subject.siblings.contains(&holder.process) && !subject.processes.contains(&holder.process)
        };
        let mut found: Vec<&mut Holder> = wires
            .into_iter()
            .flat_map(|state| match state {
                WireState::Held { holders, .. } => holders.as_mut_slice(),
                WireState::HungUp | WireState::Unknown => &mut [],
            })
            .filter(|holder| is_sibling(holder))
            .collect();
        if found.is_empty() {
            return;
        }
        let (families, mut answers) = (self.families(subject), Answers::default());
        for holder in &mut found {
            holder.clients = self.is_in_use(subject, holder.process, &families, &mut answers, others);
        }
    }

    /// Those of these sockets that siblings have open and that nobody uses. A server may have inherited the other end,
    /// which was the owner's; or the owner joined two of its servers.
    pub(super) fn of_unused_siblings(
        &self,
        subject: &Subject,
        sockets: &HashSet<u64>,
        others: &dyn Fn() -> Vec<Stdio>,
    ) -> HashSet<u64> {
        let (mut unused, mut families, mut answers) = (HashSet::new(), None, Answers::default());
        for &process in subject.siblings.iter().filter(|one| !subject.processes.contains(one)) {
            let of_it: Vec<u64> =
                self.sockets_of(process).filter(|socket| sockets.contains(socket)).collect();
            if !of_it.is_empty() {
                let families = families.get_or_insert_with(|| self.families(subject));
                if !self.is_in_use(subject, process, families, &mut answers, others) {
                    unused.extend(of_it);
                }
            }
        }
        unused
    }

    /// The sockets that a process has open; none if it cannot be read.
    fn sockets_of(&self, process: ProcessId) -> impl Iterator<Item = u64> {
        let dir = self.proc.identified(process).ok().flatten();
        let table = dir.and_then(|dir| dir.fd_table().ok()).unwrap_or_default();
        table.sockets().collect::<Vec<_>>().into_iter()
    }

    fn families(&self, subject: &Subject) -> Families {
        let mut families = Families { processes: subject.siblings.clone(), ..Families::default() };
        for &process in &subject.siblings {
            let Ok(dir) = self.proc.identified(process) else {
                families.unread.insert(process);
                continue;
            };
            let mut below = process;
            let ancestors = dir.iter().flat_map(|dir| self.proc.ancestors(dir));
            for above in ancestors.map(|above| above.id()) {
                if families.parents.get(&below).is_some_and(Option::is_some) {
                    break;
                }
                families.parents.insert(below, Some(above));
                below = above;
            }
            families.parents.entry(below).or_insert(None);
        }
        families
    }

    /// Whether this sibling is used from elsewhere, or one that may talk to it, or one that may talk to that; or this
    /// could not be found out.
    fn is_in_use(
        &self,
        subject: &Subject,
        sibling: ProcessId,
        families: &Families,
        answers: &mut Answers,
        others: &dyn Fn() -> Vec<Stdio>,
    ) -> bool {
        if let Some((_, used)) = answers.0.iter().find(|(joined, _)| joined.contains(&sibling)) {
            return *used;
        }
        let mut joined: BTreeSet<ProcessId> = families.kin(sibling).into_iter().collect();
        let used = loop {
            let talkers = RefCell::default();
            let all: Vec<ProcessId> = joined.iter().copied().collect();
            if self.is_used(subject, &all, &talkers, others) {
                break true;
            }
            let Talkers { sockets, holders } = talkers.into_inner();
            let talks = |process: &ProcessId| {
                holders.contains(process)
                    || (!sockets.is_empty() && self.sockets_of(*process).any(|one| sockets.contains(&one)))
            };
            let further = subject.siblings.iter().filter(|one| !subject.processes.contains(one));
            let further: Vec<_> =
                further.filter(|one| !joined.contains(one) && talks(one)).copied().collect();
            if further.is_empty() {
                break false;
            }
            joined.extend(further.into_iter().flat_map(|one| families.kin(one)));
        };
        answers.0.push((joined, used));
        used
    }

    /// Whether one of these processes is used by others than servers of the same owner, or this could not be found out.
    /// Adds which of those may talk to them.
    fn is_used(
        &self,
        subject: &Subject,
        processes: &[ProcessId],
        talkers: &RefCell<Talkers>,
        others: &dyn Fn() -> Vec<Stdio>,
    ) -> bool {
        let (mut looked, mut wires, mut tracing) = (Vec::new(), Vec::new(), Vec::new());
        for &process in processes {
            let seen = self.proc.identified(process).and_then(|dir| {
                let look = |dir: crate::host::ProcessDir| {
                    tracing.extend(tracers::of(&dir)?);
                    let table = dir.fd_table()?;
                    let in_rings = sockets_in_rings(&dir, &table);
                    Ok((dir.has_environment(OPT_OUT), Looked { process, table, in_rings }, dir.stdio()))
                };
                dir.map(look).transpose()
            });
            match seen {
                Ok(Some((false, one, [stdin, stdout, _]))) if !one.table.cut => {
                    looked.push(one);
                    wires.push([stdin, stdout]);
                }
                Ok(None) | Err(Errno::NOENT | Errno::SRCH) => {}
                Ok(Some(_)) | Err(_) => return true,
            }
        }
        let all: Vec<Stdio> = wires.iter().flatten().copied().collect();
        let hosts = HashSet::new();
        let siblings = |asked: &HashSet<u64>| {
            talkers.borrow_mut().sockets.extend(asked);
            let all = subject.processes.iter().chain(&subject.siblings);
            all.flat_map(|process| self.sockets_of(*process)).collect()
        };
        let beside = clients::Beside { wires: &all, hosts: &hosts, siblings: &siblings };
        let mut uses = clients::of(&self.proc, &looked, &beside);
        self.add_fifos(&looked, &all, others, &mut uses.each);
        let traced = tracers::is_outside(&self.proc, &tracing, processes).unwrap_or(true);
        traced
            || uses.blind.is_some()
            || uses.each.iter().any(|uses| uses.clients)
            || wires
                .into_iter()
                .any(|wires| self.is_held_from_outside(subject, &looked, wires, talkers, others))
    }

    /// Whether somebody holds the other end of one of these wires of a sibling who is neither a server of the same
    /// owner nor a copy of it. The copies are judged by what they do. Adds all who hold one.
    fn is_held_from_outside(
        &self,
        subject: &Subject,
        looked: &[Looked],
        wires: [Stdio; 2],
        talkers: &RefCell<Talkers>,
        others: &dyn Fn() -> Vec<Stdio>,
    ) -> bool {
        let known = |process: ProcessId| {
            let ours = subject.processes.iter().chain(&subject.siblings).chain(&subject.copies);
            ours.copied().any(|one| one == process)
        };
        let server = Wired { looked, complete: true, wires, lasting: true, others };
        wires.into_iter().zip([Side::Reads, Side::Writes]).any(|(wire, side)| {
            match self.wire(&server, side).state {
                WireState::Held { holders, unseen } => {
                    talkers.borrow_mut().holders.extend(holders.iter().map(|one| one.process));
                    unseen || holders.iter().any(|one| !known(one.process))
                }
                WireState::HungUp => false,
                // What it has there is no wire: its wire was moved, or is none.
                WireState::Unknown => wire.is_wire(),
            }
        })
    }
}

#[cfg(test)]
mod tests;
