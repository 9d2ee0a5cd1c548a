//! Sibling servers (other servers of the same dead owner) that hold a wire: whether they are in use, and so
//! the wire through them. A sibling is in use if it has clients, if somebody debugs it, if somebody outside holds a
//! wire of its own, or if it opted out and stays whatever happens.

use std::collections::{BTreeSet, HashSet};

use rustix::io::Errno;

use super::{
    Probe, clients,
    pipe::Side,
    server::{Looked, OPT_OUT, sockets_in_rings},
    tracers,
    wire::Wired,
};
use orphand_core::model::{Holder, ProcessId, Stdio, Subject, WireState};

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
        let above: Vec<(ProcessId, Option<BTreeSet<ProcessId>>)> =
            subject.siblings.iter().map(|process| (*process, self.above(*process))).collect();
        for holder in &mut found {
            // The sibling itself, its ancestors and its descendants belong to one server.
            let own = above.iter().find(|(process, _)| *process == holder.process);
            let own = own.and_then(|(_, above)| above.as_ref());
            let is_kin = |process: ProcessId, above: Option<&BTreeSet<ProcessId>>| {
                process == holder.process
                    || above.is_none_or(|above| above.contains(&holder.process))
                    || own.is_none_or(|own| own.contains(&process))
            };
            let kin = above.iter().filter(|(process, above)| is_kin(*process, above.as_ref()));
            let kin: Vec<ProcessId> = kin.map(|(process, _)| *process).collect();
            holder.clients = self.is_used(subject, &kin, others);
        }
    }

    /// The ancestors of the process; `None` if they cannot be read.
    fn above(&self, process: ProcessId) -> Option<BTreeSet<ProcessId>> {
        match self.proc.identified(process) {
            Ok(Some(dir)) => Some(self.proc.ancestors(&dir).map(|above| above.id()).collect()),
            Ok(None) => Some(BTreeSet::new()),
            Err(_) => None,
        }
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
        let mut uses = clients::of(&self.proc, &looked, &all, &HashSet::new());
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
        [Side::Reads, Side::Writes].into_iter().any(|side| match self.wire(&server, side).state {
            WireState::Held { holders, unseen } => unseen || holders.iter().any(|one| !known(one.process)),
            // Its wire was moved, or is none.
            WireState::HungUp | WireState::Unknown => false,
        })
    }
}

#[cfg(test)]
mod tests;
