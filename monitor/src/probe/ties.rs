//! Which processes of a server are joined by their standard streams: one process holds the other end of a
//! stream of another.
//!
//! Anonymous pipes and unix sockets join processes. A named FIFO does not, because any process that knows the
//! name can open it.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::server::Looked;
use crate::host::{Proc, Target, UnixSocket};
use orphand_core::model::ProcessId;

/// The most joined processes that are reported for each process.
const JOINED_MAX: usize = 64;

/// For each process in `looked`, the other processes that hold the other end of its descriptors 0 to 2.
/// `unix` are the unix sockets of these processes.
pub(super) fn joined(proc: &Proc, looked: &[Looked], unix: &[UnixSocket]) -> Vec<Vec<ProcessId>> {
    let streams = |one: &Looked| -> Vec<Target> {
        let standard = one.table.fds.iter().filter(|fd| fd.number <= 2);
        standard.map(|fd| fd.target.clone()).filter(|target| !matches!(target, Target::Path(_))).collect()
    };
    let of_all: Vec<Target> = looked.iter().flat_map(streams).collect();
    let pipes: HashSet<u64> = of_all.iter().filter_map(pipe).collect();
    let ends = pipe_ends(proc, looked, &pipes);
    let peers: HashMap<u64, u64> = unix
        .iter()
        .filter_map(|socket| Some((socket.inode, socket.peer.filter(|peer| *peer != 0)?)))
        .collect();
    let mut sockets: HashMap<u64, Vec<ProcessId>> = HashMap::new();
    for one in looked {
        for inode in one.table.sockets() {
            sockets.entry(inode).or_default().push(one.process);
        }
    }
    let of_one = |one: &Looked| {
        let mut found = BTreeSet::new();
        for end in ends.iter().filter(|end| end.process == one.process && end.number <= 2) {
            let opposite = ends.iter().filter(|other| {
                other.inode == end.inode && ((end.read && other.write) || (end.write && other.read))
            });
            found.extend(opposite.map(|other| other.process));
        }
        for target in streams(one) {
            if let Target::Socket(inode) = target
                && let Some(peer) = peers.get(&inode)
            {
                found.extend(sockets.get(peer).into_iter().flatten().copied());
            }
        }
        found.remove(&one.process);
        found.into_iter().take(JOINED_MAX).collect()
    };
    looked.iter().map(of_one).collect()
}

fn pipe(target: &Target) -> Option<u64> {
    match target {
        Target::Pipe(inode) => Some(*inode),
        _ => None,
    }
}

/// An end of a pipe that a process has.
struct End {
    process: ProcessId,
    number: u32,
    inode: u64,
    read: bool,
    write: bool,
}

/// All ends of these pipes in these processes. An end that is closed during the inspection joins no
/// processes.
fn pipe_ends(proc: &Proc, looked: &[Looked], pipes: &HashSet<u64>) -> Vec<End> {
    let mut ends = Vec::new();
    if pipes.is_empty() || looked.len() < 2 {
        return ends;
    }
    for one in looked {
        let mut here = one
            .table
            .fds
            .iter()
            .filter_map(|fd| Some((fd.number, pipe(&fd.target).filter(|inode| pipes.contains(inode))?)))
            .peekable();
        if here.peek().is_none() {
            continue;
        }
        let Ok(Some(dir)) = proc.identified(one.process) else { continue };
        let Ok(fds) = dir.fd_dir() else { continue };
        for (number, inode) in here {
            if let Some(access) = fds.access(number)
                && fds.target(number) == Some(Target::Pipe(inode))
            {
                let process = one.process;
                ends.push(End { process, number, inode, read: access.read, write: access.write });
            }
        }
    }
    ends
}

#[cfg(test)]
mod tests;
