//! Named FIFOs that a server reads besides its wires, and the pipe of a fork server ([`super::fork_server`]). A process
//! that holds the write end can give the server commands.
//!
//! A FIFO that no process outside the server has open for writing does not count: a read from it never
//! returns.

use std::collections::BTreeMap;

use super::{Probe, fork_server, pipe::Side, server::Looked, wire::Wired};
use crate::host::{Proc, Target};
use orphand_core::model::{ProcessId, SocketUse, Stdio, WireState};

impl Probe {
    /// Adds the writers of the FIFOs that the inspected processes read to what is known about their sockets.
    /// The server's `wires` are left out.
    pub(super) fn add_fifos(
        &self,
        looked: &[Looked],
        wires: &[Stdio],
        others: &dyn Fn() -> Vec<Stdio>,
        each: &mut [SocketUse],
    ) {
        let all = || wires.iter().copied().chain(others()).collect();
        for (inode, readers) in read(&self.proc, looked, wires) {
            let wires = [Stdio::Pipe(inode), Stdio::Closed];
            let state = self
                .wire(&Wired { looked, complete: true, wires, lasting: false, others: &all }, Side::Reads)
                .state;
            for at in readers {
                let (Some(one), Some(facts)) = (looked.get(at), each.get_mut(at)) else { continue };
                add_writers(facts, one.process, looked, &state);
            }
        }
    }
}

fn add_writers(facts: &mut SocketUse, reader: ProcessId, looked: &[Looked], state: &WireState) {
    match state {
        WireState::HungUp => {}
        WireState::Unknown => facts.clients = true,
        WireState::Held { holders, unseen } => {
            facts.clients |= unseen;
            for writer in holders.iter().map(|holder| holder.process).filter(|writer| *writer != reader) {
                if !looked.iter().any(|one| one.process == writer) {
                    facts.clients = true;
                } else if !facts.inside.contains(&writer) {
                    facts.inside.push(writer);
                }
            }
        }
    }
}

/// The FIFOs and pipes, by inode number, with the indices of the processes in `looked` that read them.
fn read(proc: &Proc, looked: &[Looked], wires: &[Stdio]) -> BTreeMap<u64, Vec<usize>> {
    let mut found: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
    for (at, one) in looked.iter().enumerate() {
        if let Some(pipe) = fork_server::of(proc, one).map(|found| found.users)
            && !wires.contains(&Stdio::Pipe(pipe))
        {
            found.entry(pipe).or_default().push(at);
        }
        let has_a_path = |target: &Target| matches!(target, Target::Path(path) if path.starts_with(b"/"));
        let mut files = one.table.fds.iter().filter(|fd| has_a_path(&fd.target)).peekable();
        if files.peek().is_none() {
            continue;
        }
        // A process that has ended reads nothing.
        let Ok(Some(dir)) = proc.identified(one.process) else { continue };
        let Ok(fds) = dir.fd_dir() else { continue };
        for fd in files {
            if let wire @ Stdio::Pipe(inode) = fds.stdio(fd.number)
                && !wires.contains(&wire)
                && fds.access(fd.number).is_some_and(|access| access.read)
            {
                let readers = found.entry(inode).or_default();
                if readers.last() != Some(&at) {
                    readers.push(at);
                }
            }
        }
    }
    found
}

#[cfg(test)]
mod tests;
