//! Sibling servers (other servers of the same dead owner) that hold a wire: whether they are in use, and so
//! the wire through them. A sibling is in use if it has clients, if somebody debugs it, if somebody outside holds a
//! wire of its own, or if it opted out and stays whatever happens.

use std::collections::{BTreeSet, HashMap, HashSet};

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
        let families = self.families(subject);
        for holder in &mut found {
            holder.clients = self.is_used(subject, &families.kin(holder.process), others);
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
        let (mut unused, mut families) = (HashSet::new(), None);
        for &process in subject.siblings.iter().filter(|one| !subject.processes.contains(one)) {
            let of_it: Vec<u64> =
                self.sockets_of(process).filter(|socket| sockets.contains(socket)).collect();
            if !of_it.is_empty() {
                let families = families.get_or_insert_with(|| self.families(subject));
                if !self.is_used(subject, &families.kin(process), others) {
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

    /// Whether one of these processes is used from elsewhere, or this could not be found out.
    fn is_used(&self, subject: &Subject, processes: &[ProcessId], others: &dyn Fn() -> Vec<Stdio>) -> bool {
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
        // Whether those at the other ends of its channels are used is asked where they are judged.
        let siblings = |_: &HashSet<u64>| {
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
            || wires.into_iter().any(|wires| self.is_held_from_outside(subject, &looked, wires, others))
    }

    /// Whether somebody holds the other end of one of these wires of a sibling who is neither a server of the same
    /// owner nor a copy of it. The copies are judged by what they do.
    fn is_held_from_outside(
        &self,
        subject: &Subject,
        looked: &[Looked],
        wires: [Stdio; 2],
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
