//! Sibling servers (other servers of the same dead owner) that hold a wire: whether they are in use, and so
//! the wire through them.

use std::collections::BTreeSet;

use rustix::io::Errno;

use super::{Probe, clients, server::Looked};
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
            holder.clients = self.is_used(&kin, others);
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

    /// Whether one of these processes has clients from elsewhere, or this could not be found out.
    fn is_used(&self, processes: &[ProcessId], others: &dyn Fn() -> Vec<Stdio>) -> bool {
        let (mut looked, mut wires) = (Vec::new(), Vec::new());
        for &process in processes {
            let seen = self
                .proc
                .identified(process)
                .and_then(|dir| dir.map(|dir| Ok((dir.fd_table()?, dir.stdio()))).transpose());
            match seen {
                Ok(Some((table, [stdin, stdout, _]))) if !table.cut => {
                    looked.push(Looked { process, table });
                    wires.extend([stdin, stdout]);
                }
                Ok(None) | Err(Errno::NOENT | Errno::SRCH) => {}
                Ok(Some(_)) | Err(_) => return true,
            }
        }
        let mut uses = clients::of(&self.proc, &looked);
        self.add_fifos(&looked, &wires, others, &mut uses.each);
        uses.blind.is_some() || uses.each.iter().any(|uses| uses.clients)
    }
}

#[cfg(test)]
mod tests;
