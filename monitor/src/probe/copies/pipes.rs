//! The pipes of forked copies, including named FIFOs: whether another process has the other end.

use std::collections::HashSet;

use super::OUTPUT;
use crate::{
    host::{FdTable, Proc, ProcessDir, Target},
    probe::{
        Probe, holders,
        pass::{self, Told},
        pipe::{self, Said, Side},
        wire::Age,
    },
};
use orphand_core::model::{ProcessId, Stdio};

/// An end of a pipe that a copy has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct End {
    inode: u64,
    side: Side,
    number: u32,
}

/// The pipe ends of a process that may be a connection; `None` if they could not be read.
pub(super) fn ends(proc: &Proc, process: ProcessId, table: Option<&FdTable>) -> Option<Vec<End>> {
    let dir = proc.identified(process).ok()??;
    let fds = dir.fd_dir().ok()?;
    let mut found = Vec::new();
    for fd in &table?.fds {
        let inode = match &fd.target {
            Target::Pipe(inode) => *inode,
            Target::Path(path) if path.starts_with(b"/") => match fds.stdio(fd.number) {
                Stdio::Pipe(inode) => inode,
                _ => continue,
            },
            _ => continue,
        };
        let access = fds.access(fd.number)?;
        let end = |side| End { inode, side, number: fd.number };
        found.extend(access.read.then(|| end(Side::Reads)));
        found.extend((access.write && !OUTPUT.contains(&fd.number)).then(|| end(Side::Writes)));
    }
    Some(found)
}

impl Probe {
    /// Whether a process that is not `known` has, or may have, the other end of one of the pipes of this
    /// copy. `all` are the pipe ends of the other copies: one pass over all open files answers for them too.
    pub(super) fn is_at_a_pipe(
        &self,
        process: ProcessId,
        ends: &[End],
        all: &[Option<Vec<End>>],
        known: &HashSet<u32>,
    ) -> bool {
        if ends.is_empty() {
            return false;
        }
        self.told_of(process, ends, all, known).unwrap_or_else(|| {
            let Ok(Some(dir)) = self.proc.identified(process) else { return true };
            ends.iter().any(|end| self.is_with_others(&dir, *end, known))
        })
    }

    /// The answer of a kernel pass over all open files; `None` if there is none.
    fn told_of(
        &self,
        process: ProcessId,
        ends: &[End],
        all: &[Option<Vec<End>>],
        known: &HashSet<u32>,
    ) -> Option<bool> {
        let wires: Vec<Stdio> = ends.iter().map(|end| Stdio::Pipe(end.inode)).collect();
        let others = || all.iter().flatten().flatten().map(|end| Stdio::Pipe(end.inode)).collect();
        let told = self.ask_passes(|passes| {
            passes.ask(&wires, &others, |open| {
                let (mut by, mut hidden, mut hung_up) = (Vec::new(), false, true);
                for end in ends {
                    let wire = Stdio::Pipe(end.inode);
                    let told = match end.side {
                        Side::Reads => pass::judge_pipe(open, wire, end.side, &[process]),
                        Side::Writes => pass::judge_output(open, wire, &[process]),
                    };
                    hung_up &= told == Told::HungUp;
                    match told {
                        Told::HungUp => {}
                        Told::Held { by: holders, unseen } => {
                            by.extend(holders);
                            hidden |= unseen;
                        }
                        // The copy had this end a moment ago.
                        Told::Lost(_) | Told::Unknown => hidden = true,
                    }
                }
                if hung_up { Told::HungUp } else { Told::Held { by, unseen: hidden } }
            })
        })?;
        self.is_held_by_others(told, known)
    }

    /// Does the same for a unix socket that has a peer. The code does not ask whether an unseen process
    /// shares a peer's descriptor, because a multi-threaded reader that waits in read(2) looks the same.
    pub(super) fn told_of_socket(
        &self,
        process: ProcessId,
        inode: u64,
        known: &HashSet<u32>,
    ) -> Option<bool> {
        let wire = Stdio::Socket(inode);
        let told = self.ask_passes(|passes| {
            passes.ask(&[wire], &Vec::new, |open| match pass::judge_socket(open, wire, &[process]) {
                Told::Held { by, .. } if !by.is_empty() => Told::Held { by, unseen: false },
                told => told,
            })
        })?;
        self.is_held_by_others(told, known)
    }

    fn is_held_by_others(&self, told: Result<Told, String>, known: &HashSet<u32>) -> Option<bool> {
        match told.inspect_err(|why| tracing::debug!("no pass over the open files: {why}")).ok()? {
            Told::HungUp => Some(false),
            Told::Held { by, unseen: false } => {
                let others: HashSet<ProcessId> =
                    by.into_iter().filter(|holder| !known.contains(&holder.pid)).collect();
                // The dead agent itself may still be closing its files.
                let (holders, missing) = holders::describe(&self.proc, others.into_iter().collect());
                Some(missing || !holders.is_empty())
            }
            Told::Held { .. } | Told::Lost(_) | Told::Unknown => Some(true),
        }
    }

    /// The same question for one end, answered from /proc.
    fn is_with_others(&self, dir: &ProcessDir, end: End, known: &HashSet<u32>) -> bool {
        for age in [Age::Fresh, Age::New] {
            let holders = match pipe::ask(dir, end.number, end.inode, end.side) {
                Ok(Some(Said::HungUp)) => return false,
                Ok(Some(Said::Held(None))) => {
                    let wire = Stdio::Pipe(end.inode);
                    let ask = |index: &holders::Index| {
                        let others = index.on(wire).map(|(pid, _)| pid).filter(|pid| !known.contains(pid));
                        let leaving = others.into_iter().any(|pid| self.is_leaving(pid));
                        (index.holders(&self.proc, wire, end.side), leaving, index.blind.is_some())
                    };
                    match self.with_index(age, ask) {
                        Ok((_, _, true)) | Err(_) => return true,
                        Ok((holders, true, false)) if holders.is_empty() => return false,
                        Ok((holders, ..)) => holders,
                    }
                }
                Ok(Some(Said::Held(Some(fifo)))) => {
                    match holders::fifo_holders(&self.proc, end.inode, &fifo, end.side) {
                        Ok(holders) => holders,
                        Err(_) => return true,
                    }
                }
                Ok(Some(Said::Waits) | None) | Err(_) => return true,
            };
            if holders.iter().any(|holder| !known.contains(&holder.process.pid)) {
                return true;
            }
            if !holders.is_empty() {
                return false;
            }
        }
        // /proc shows no process that holds it. A descriptor may be in flight inside a socket.
        true
    }
}
