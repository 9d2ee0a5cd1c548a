//! Finds the wire (the stdio connection of a server) that version 2 of Python's mcp package has moved off
//! descriptor 0.
//!
//! While such a server serves, descriptor 0 is /dev/null, and descriptor 1 is the same file as standard
//! error. The wire is the lowest other descriptor that is a read-only pipe or a connected unnamed socket,
//! and whose other end is neither in the process itself (the self-pipe of an event loop) nor in a
//! descendant (the child of a bridge). This rule was right for 28 of 28 observed servers. It does not say
//! whether the process is a server.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::{Access, Fd, Proc, ProcessDir, Seen, Target, UnixSockets};
use orphand_core::model::{Share, SnapshotProcess, Stdio};

/// A server has tens of descriptors, and few descendants. Any user decides how many a process has, and the start waits for what is
/// read of them: in larger tables, below larger families, and when so many descriptors were read for a user, no wire is sought.
const TABLE: u32 = 1024;
const DESCENDANTS: usize = 64;
const OF_USER: usize = 64 * 1024;

/// Sets standard input and output of all processes that have moved their wires. `pairs` are all pairs of process and parent.
pub fn mend_moved_wires(proc: &Proc, seen: &mut [Seen], pairs: &[(u32, u32)]) {
    let (children, mut read) = (children(pairs), BTreeMap::new());
    for Seen { process, .. } in seen.iter_mut().filter(|seen| may_have_moved(&seen.process)) {
        let read = read.entry(Share::of(process.uid)).or_default();
        if let Ok(Some(dir)) = proc.identified(process.id)
            && let Some(wires) = find(proc, &dir, &children, read)
        {
            let [stdin, stdout, _] = &mut process.stdio;
            [*stdin, *stdout] = wires;
        }
    }
}

fn may_have_moved(process: &SnapshotProcess) -> bool {
    let base = |path: &str| path.rsplit('/').next().is_some_and(is_python);
    process.stdio[0] == Stdio::Null
        && (base(&process.image.exe) || process.image.argv.first().is_some_and(|program| base(program)))
}

/// Whether this is the file name of a Python: `python`, `python3`, `python3.12`, `pypy3.10`.
fn is_python(name: &str) -> bool {
    name.strip_prefix("python")
        .or_else(|| name.strip_prefix("pypy"))
        .is_some_and(|version| version.bytes().all(|b| b.is_ascii_digit() || b == b'.'))
}

/// The children of each process, given all pairs of process and parent.
pub(super) fn children(pairs: &[(u32, u32)]) -> HashMap<u32, Vec<u32>> {
    let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
    for &(pid, parent) in pairs {
        children.entry(parent).or_default().push(pid);
    }
    children
}

/// The descendants of `pid`; not all of them if there are more than `most`.
pub(super) fn below(pid: u32, children: &HashMap<u32, Vec<u32>>, most: usize) -> Vec<u32> {
    let (mut found, mut known) = (vec![pid], HashSet::from([pid]));
    let mut next = 0;
    while let Some(parent) = found.get(next).filter(|_| found.len() <= most.saturating_add(1)) {
        next += 1;
        found.extend(children.get(parent).into_iter().flatten().filter(|pid| known.insert(**pid)));
    }
    found.split_off(1)
}

/// The moved wires of the process in `dir`: standard input and output. `read` is how many descriptors were read for its user.
fn find(
    proc: &Proc,
    dir: &ProcessDir,
    children: &HashMap<u32, Vec<u32>>,
    read: &mut usize,
) -> Option<[Stdio; 2]> {
    let mut of = |dir: &ProcessDir| {
        if *read > OF_USER || dir.table_size().ok()? > TABLE {
            return None;
        }
        // One that has just ended has none.
        let table = dir.fd_table().unwrap_or_default();
        *read += table.fds.len();
        Some(table)
    };
    let table = of(dir)?;
    if table.target(1)? != table.target(2)? {
        return None;
    }
    let below = below(dir.id().pid, children, DESCENDANTS);
    if below.len() > DESCENDANTS {
        return None;
    }
    let mut inside = vec![(table.clone(), dir.fd_dir().ok()?)];
    for below in below.into_iter().filter_map(|pid| proc.process(pid).ok()) {
        let table = of(&below)?;
        inside.extend(below.fd_dir().ok().map(|fds| (table, fds)));
    }
    // The pipe ends and sockets that the process and its descendants hold.
    let (mut writers, mut readers) = (HashSet::new(), HashSet::new());
    let mut sockets: HashSet<u64> = HashSet::new();
    for (table, fds) in inside {
        sockets.extend(table.sockets());
        for fd in &table.fds {
            if let Target::Pipe(inode) = fd.target {
                // One that cannot be told counts as both.
                let access = fds.access(fd.number).unwrap_or(Access { read: true, write: true });
                writers.extend(access.write.then_some(inode));
                readers.extend(access.read.then_some(inode));
            }
        }
    }
    let mut diag = None;
    let moved = |fd: &&Fd| fd.number > 2;
    let stdin = table.fds.iter().filter(moved).find_map(|fd| match fd.target {
        Target::Pipe(inode) => (!writers.contains(&inode)).then_some(Stdio::Pipe(inode)),
        Target::Socket(inode) => {
            if diag.is_none() {
                diag = Some(UnixSockets::here().ok()?);
            }
            is_outward(diag.as_mut()?, inode, &sockets).then_some(Stdio::Socket(inode))
        }
        Target::Path(_) => None,
    })?;
    let Stdio::Pipe(_) = stdin else { return Some([stdin, stdin]) };
    // Standard output is the one pipe that no inside process reads. With several candidates it cannot be
    // told apart, so standard output is reported to be the same as standard input.
    let outward = |fd: &Fd| match fd.target {
        Target::Pipe(inode) if writers.contains(&inode) && !readers.contains(&inode) => Some(inode),
        _ => None,
    };
    let outward: HashSet<u64> = table.fds.iter().filter(moved).filter_map(outward).collect();
    let mut outward = outward.into_iter();
    let stdout = outward.next().filter(|_| outward.next().is_none()).map_or(stdin, Stdio::Pipe);
    Some([stdin, stdout])
}

/// Whether the socket is one half of an unnamed pair whose other half is not among `inside`. A connection
/// to a daemon (the daemon's end has a name), a client that a listener accepted, or a datagram socket to a
/// log is no wire.
fn is_outward(diag: &mut UnixSockets, inode: u64, inside: &HashSet<u64>) -> bool {
    let Ok(Some(socket)) = diag.find(inode) else { return false };
    let Some(peer) = socket.peer.filter(|_| socket.connection && socket.name.is_none()) else { return false };
    // 0: the peer was closed, so no inside process holds it.
    peer == 0
        || (!inside.contains(&peer) && diag.find(peer).is_ok_and(|p| p.is_some_and(|p| p.name.is_none())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn python_names() {
        for name in ["python", "python3", "python3.12", "pypy3"] {
            assert!(is_python(name), "{name}");
        }
        for name in ["pythonista", "python-build", "ipython", "node"] {
            assert!(!is_python(name), "{name}");
        }
    }

    #[test]
    fn below_is_all_the_way_down_and_ends_in_a_loop() {
        let children = children(&[(2, 1), (3, 2), (4, 3), (5, 9), (9, 5)]);
        assert_eq!(below(2, &children, 64), [3, 4]);
        assert_eq!(below(5, &children, 64), [9]);
        assert!(below(4, &children, 64).is_empty());
        assert_eq!(below(1, &children, 1), [2, 3], "that there are more than one is known");
    }
}
