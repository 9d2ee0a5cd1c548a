//! All facts from the host that a verdict on one server needs.

use std::collections::HashSet;

use rustix::io::Errno;

use super::{
    Probe, clients,
    pipe::Side,
    ties, tracers,
    wire::{Sight, Wired},
};
use crate::host::{Fd, FdTable, ProcessDir, Target, UNANSWERED};
use orphand_core::model::{ProcessFacts, ProcessId, ServerFacts, Stdio, Subject, WireState};

/// The environment variable by which a process asks to be left alone.
pub(super) const OPT_OUT: &[u8] = b"ORPHAND_OPT_OUT=1";

/// Up to this many resident bytes of a server the code reads its proportional memory. That costs 10 us for
/// each megabyte, and a verdict does not wait for a figure that is only reported.
const WEIGHED: u64 = 1 << 30;
/// The most descriptors of a server that are read, at 1 us each. A server with more is not inspected
/// completely: that is a doubt about this server, and no delay for the others.
const DESCRIPTORS: usize = 128 * 1024;

/// A process of a server and its open files, read once.
pub(super) struct Looked {
    pub process: ProcessId,
    pub table: FdTable,
    /// Sockets that its `io_uring` instances keep, and that need no descriptor.
    pub in_rings: Vec<u64>,
}

impl Probe {
    /// The facts about this server. Processes that have ended or are exiting are left out.
    /// [`ServerFacts::blind`] tells what could not be inspected of the living ones. `others` returns the
    /// wires that will be asked about next.
    pub fn facts(&self, subject: &Subject, others: &dyn Fn() -> Vec<Stdio>) -> ServerFacts {
        let mut facts = ServerFacts::default();
        let (mut looked, mut tracing) = (Vec::new(), Vec::new());
        let (mut weight, mut descriptors) = (0, 0);
        for &process in &subject.processes {
            if descriptors > DESCRIPTORS {
                break;
            }
            // One process at a time, because a server may have more processes than we may open descriptors.
            match self
                .proc
                .identified(process)
                .and_then(|dir| dir.map(|dir| look(&dir, &mut weight)).transpose())
            {
                Ok(Some(Some(seen))) => {
                    facts.opted_out |= seen.opted_out;
                    facts.processes.push(seen.facts);
                    tracing.push(seen.tracers);
                    if seen.table.cut {
                        facts
                            .blind
                            .get_or_insert(format!("{process} has more open files than orphand looks at"));
                    }
                    descriptors += seen.table.fds.len();
                    looked.push(Looked { process, table: seen.table, in_rings: seen.in_rings });
                }
                Ok(None | Some(None)) | Err(Errno::NOENT | Errno::SRCH) => {}
                Err(UNANSWERED) => {
                    facts.blind.get_or_insert(format!("process {process} does not answer"));
                }
                Err(errno) => {
                    facts.blind.get_or_insert(format!("cannot read process {process} in /proc: {errno}"));
                }
            }
        }
        if weight > WEIGHED {
            // A sum over only some of the processes would be wrong.
            facts.processes.iter_mut().for_each(|process| process.pss_bytes = None);
        }
        if descriptors > DESCRIPTORS {
            facts.blind = Some("its processes have more open files than orphand looks at".to_owned());
            return facts;
        }
        if !facts.processes.is_empty() {
            self.look_around(subject, &looked, others, &mut facts);
            self.judge_tracers(&tracing, &mut facts);
        }
        facts.enclosing = self.enclosing(&facts.processes).map(Box::new);
        // An engine may take its time, so it is asked only where the answer may come later.
        if let Some(query) = subject.container.as_deref().filter(|_| subject.turn.is_some()) {
            facts.container = self.container(query, others).map(Box::new);
        }
        if subject.work {
            let inside = facts.container.iter().flat_map(|container| &container.processes);
            let all: Vec<_> = subject.processes.iter().chain(inside).copied().collect();
            facts.work = self.work(&all);
        }
        facts.copies = self.copies(&subject.copies, &[&*subject.processes, &*subject.siblings].concat());
        facts
    }

    /// Inspects the wires, the ties between processes, the sockets and the unit.
    fn look_around(
        &self,
        subject: &Subject,
        looked: &[Looked],
        others: &dyn Fn() -> Vec<Stdio>,
        facts: &mut ServerFacts,
    ) {
        let wires = [subject.stdin, subject.stdout];
        let owner = subject.owner.and_then(|owner| self.proc.fd_table(owner.pid).ok()).unwrap_or_default();
        let hosts = owner.sockets().collect();
        let siblings = |sockets: &HashSet<u64>| self.of_unused_siblings(subject, sockets, others);
        let beside = clients::Beside { wires: &wires, hosts: &hosts, siblings: &siblings };
        let mut uses = clients::of(&self.proc, looked, &beside);
        self.add_fifos(looked, &wires, others, &mut uses.each);
        self.add_dependents(looked, &mut uses.each);
        let joined = ties::joined(&self.proc, looked, &uses.unix);
        for ((process, sockets), joined) in facts.processes.iter_mut().zip(uses.each).zip(joined) {
            (process.sockets, process.joined) = (sockets, joined);
        }
        let server = Wired { looked, complete: facts.blind.is_none(), wires, lasting: true, others };
        let stdin = self.wire(&server, Side::Reads);
        let is_same = subject.stdin == subject.stdout && matches!(subject.stdin, Stdio::Socket(_));
        let stdout = if is_same { stdin.clone() } else { self.wire(&server, Side::Writes) };
        facts.own_ends = self.own_ends(&server, &stdin.state);
        for blind in [uses.blind, stdin.blind.clone(), stdout.blind.clone()].into_iter().flatten() {
            facts.blind.get_or_insert(blind);
        }
        (facts.stdin, facts.stdout) = (self.in_units(stdin, subject), self.in_units(stdout, subject));
        self.mark_used_siblings(subject, others, [&mut facts.stdin, &mut facts.stdout]);
        facts.unit = self.unit_of(facts.processes.iter().map(|found| found.process));
    }

    /// Adds the units of holders that do not belong to the server.
    fn in_units(&self, sight: Sight, subject: &Subject) -> WireState {
        let mut state = sight.state;
        if let WireState::Held { holders, .. } = &mut state {
            for holder in holders.iter_mut().filter(|holder| !subject.processes.contains(&holder.process)) {
                holder.unit = self.unit(holder.process);
            }
        }
        state
    }

    fn judge_tracers(&self, tracing: &[Vec<u32>], facts: &mut ServerFacts) {
        let inside: Vec<ProcessId> = facts.processes.iter().map(|found| found.process).collect();
        for (found, tracers) in facts.processes.iter_mut().zip(tracing) {
            match tracers::is_outside(&self.proc, tracers, &inside) {
                Ok(traced) => found.traced = traced,
                Err(errno) => {
                    let process = found.process;
                    facts.blind.get_or_insert(format!("cannot tell who traces {process}: {errno}"));
                }
            }
        }
    }
}

struct Seen {
    facts: ProcessFacts,
    opted_out: bool,
    table: FdTable,
    in_rings: Vec<u64>,
    tracers: Vec<u32>,
}

/// The facts about one process; `None` if it is exiting. Its resident bytes are added to `weight`.
fn look(dir: &ProcessDir, weight: &mut u64) -> Result<Option<Seen>, Errno> {
    if dir.stat().has_begun_to_exit() {
        return Ok(None);
    }
    let rss_bytes = dir.resident_bytes().map_err(|_| Errno::SRCH)?;
    *weight = weight.saturating_add(rss_bytes);
    let table = dir.fd_table()?;
    Ok(Some(Seen {
        facts: ProcessFacts {
            process: dir.id(),
            uid: dir.uid()?,
            sid: dir.stat().sid,
            rss_bytes,
            // Memory is reported but is not evidence. The inspection is complete without it.
            pss_bytes: (*weight <= WEIGHED).then(|| dir.proportional_bytes().ok()).flatten(),
            stdio: dir.stdio(),
            stale_binary: dir.has_stale_binary(),
            ignores_hangup: dir.ignores_hangup()?,
            ..ProcessFacts::default()
        },
        opted_out: dir.has_environment(OPT_OUT),
        in_rings: sockets_in_rings(dir, &table),
        table,
        tracers: tracers::of(dir)?,
    }))
}

/// The sockets that are registered with an `io_uring` of this process.
pub(super) fn sockets_in_rings(dir: &ProcessDir, table: &FdTable) -> Vec<u64> {
    let is_ring = |fd: &&Fd| fd.target == Target::Path(b"anon_inode:[io_uring]".to_vec());
    table.fds.iter().filter(is_ring).flat_map(|fd| dir.sockets_of_ring(fd.number)).collect()
}

#[cfg(test)]
mod tests;
