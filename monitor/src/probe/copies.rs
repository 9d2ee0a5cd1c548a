//! What forked copies of an agent do. A copy may do work of its own, or it may only hold the descriptors that
//! it inherited at the fork by accident.
//!
//! A copy that waits at a pipe (`pipes`) or a socket may be given work at any moment, if another process has
//! the other end. Inherited output, descriptors 1 and 2, is not a connection.
//!
//! A copy that waits for anything else (its time, a lock, a file, a terminal, a message queue) may go on by itself or
//! be given work (`waits`). Its descriptors do not show that; where it sleeps in the kernel does.

mod pipes;
mod waits;

use std::collections::{BTreeMap, HashSet};

use rustix::io::Errno;

use super::{Probe, wire::Age, work};
use crate::host::{FdTable, Target, UnixSocket, UnixSockets};
use orphand_core::model::{CopyFacts, ProcessId, Stdio};

/// Standard output and error.
const OUTPUT: [u32; 2] = [1, 2];

/// The most places for open files, of all copies together, that are looked at: those of 256 processes with few files. A
/// further copy counts as connected.
const FILES: u32 = 16_384;

impl Probe {
    /// What those of these copies do that are alive. A connection between two copies, or to a process in
    /// `among`, does not count.
    pub fn copies(&self, copies: &[ProcessId], among: &[ProcessId]) -> Vec<CopyFacts> {
        let mut found = Vec::new();
        let mut tables = Vec::new();
        // The daemon's loop asks, and a user may make thousands of copies with thousands of files each.
        let mut left = FILES;
        for &process in copies {
            match self.proc.identified(process) {
                Ok(None) => {}
                Ok(Some(dir)) if dir.stat().has_begun_to_exit() => {}
                Ok(Some(dir)) => {
                    let after = dir.places_for_files().ok().and_then(|places| left.checked_sub(places));
                    left = after.unwrap_or(left);
                    let table = after.and_then(|_| dir.fd_table().ok()).filter(|table| !table.cut);
                    let (sid, work) = (dir.stat().sid, work::work(&dir).ok());
                    if table.is_some() || dir.still_alive() {
                        tables.push(table);
                        // `connected` is assumed until the opposite is shown.
                        found.push(CopyFacts { process, sid, connected: true, work });
                    }
                }
                Err(_) => {
                    tables.push(None);
                    found.push(CopyFacts { process, connected: true, ..CopyFacts::default() });
                }
            }
        }
        let known: HashSet<u32> = copies.iter().chain(among).map(|process| process.pid).collect();
        let ends: Vec<_> =
            found.iter().zip(&tables).map(|(f, t)| pipes::ends(&self.proc, f.process, t.as_ref())).collect();
        for ((facts, table), here) in found.iter_mut().zip(&tables).zip(&ends) {
            if let (Some(table), Some(here)) = (table, here) {
                facts.connected = self.is_connected(facts.process, table, &known)
                    || self.is_at_a_pipe(facts.process, here, &ends, &known)
                    || !self.waits_for_nothing_else(facts.process, table);
            }
        }
        found
    }

    /// Whether the process has a socket that leads to another process, or that another process may connect
    /// to. Every socket that is not a unix socket counts as one, because a program makes such a socket only
    /// to communicate. A unix socket that is only the output of the process leads to the process that keeps
    /// the log, and does not count.
    fn is_connected(&self, process: ProcessId, table: &FdTable, known: &HashSet<u32>) -> bool {
        let sockets: HashSet<u64> = table.sockets().collect();
        if sockets.is_empty() {
            return false;
        }
        let Ok(unix) = self.unix_sockets(process, &sockets) else { return true };
        let is_more_than_output = |inode: u64| {
            table.fds.iter().any(|fd| fd.target == Target::Socket(inode) && !OUTPUT.contains(&fd.number))
        };
        sockets.iter().any(|inode| {
            unix.get(inode).is_none_or(|socket| {
                (socket.listens || is_more_than_output(*inode)) && self.leads_out(process, socket, known)
            })
        })
    }

    fn unix_sockets(
        &self,
        process: ProcessId,
        inodes: &HashSet<u64>,
    ) -> Result<BTreeMap<u64, UnixSocket>, std::io::Error> {
        let dir = self.proc.identified(process)?.ok_or(Errno::SRCH)?;
        let mut found = UnixSockets::here()?.among(inodes)?;
        if dir.network()? != self.proc.our_network()? {
            found.extend(UnixSockets::inside(dir.network_namespace()?)?.among(inodes)?);
        }
        Ok(found.into_iter().map(|socket| (socket.inode, socket)).collect())
    }

    fn leads_out(&self, process: ProcessId, socket: &UnixSocket, known: &HashSet<u32>) -> bool {
        if socket.listens || (!socket.connection && socket.name.is_some()) {
            return true;
        }
        match socket.peer {
            None => false,
            // A peer that waits to be accepted counts as connected; a socket that is hung up does not.
            Some(0) => socket.connection && !socket.hung_up(),
            Some(peer) => {
                if let Some(told) = self.told_of_socket(process, socket.inode, known) {
                    return told;
                }
                let holders = self.with_index(Age::Fresh, |index| {
                    let pids: Vec<u32> = index.on(Stdio::Socket(peer)).map(|(pid, _)| pid).collect();
                    (pids, index.blind.is_some())
                });
                match holders {
                    Ok((pids, false)) => {
                        pids.is_empty()
                            || pids.iter().any(|pid| !known.contains(pid) && !self.is_leaving(*pid))
                    }
                    Ok((_, true)) | Err(_) => true,
                }
            }
        }
    }

    /// Whether the process has ended or is exiting. The dead agent may still be closing its files.
    fn is_leaving(&self, pid: u32) -> bool {
        match self.proc.process(pid) {
            Ok(dir) => dir.stat().has_begun_to_exit(),
            Err(errno) => matches!(errno, Errno::NOENT | Errno::SRCH),
        }
    }
}

#[cfg(test)]
mod tests;
