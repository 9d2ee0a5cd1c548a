//! What processes block: the TCP ports on which they listen, the files that they hold locked, and the lock files and
//! pid files that they have open for writing. Names only: no file is opened.

use std::collections::{BTreeMap, BTreeSet};

use rustix::io::Errno;

use crate::host::{FdTable, Proc, ProcessDir, Target, TcpState};
use orphand_core::model::{Holdings, ProcessId};

/// The most processes that are read.
const PROCESSES: usize = 64;
/// The most descriptors of files that are looked at, of each process.
const FILES: usize = 1024;
/// The most names of each kind that are told.
const NAMES: usize = 16;

pub fn holdings(proc: &Proc, processes: &[ProcessId]) -> Holdings {
    names(proc, processes, true, NAMES)
}

/// The TCP ports on which these processes listen.
pub fn ports(proc: &Proc, processes: &[ProcessId]) -> Vec<String> {
    names(proc, processes, false, NAMES).listens
}

fn names(proc: &Proc, processes: &[ProcessId], with_locks: bool, most: usize) -> Holdings {
    let (mut sockets, mut locks) = (BTreeMap::<Vec<u8>, Sockets>::new(), BTreeSet::new());
    for process in processes.iter().take(PROCESSES) {
        let Ok(Some(dir)) = proc.identified(*process) else { continue };
        let Ok(table) = dir.fd_table() else { continue };
        if with_locks && let Ok(found) = locked(&dir, &table) {
            locks.extend(found);
        }
        if table.sockets().next().is_some()
            && let Ok(network) = dir.link("ns/net")
        {
            let of_network =
                sockets.entry(network).or_insert_with(|| Sockets { dir, inodes: BTreeSet::new() });
            of_network.inodes.extend(table.sockets());
        }
    }
    let listens: BTreeSet<String> = sockets.values().flat_map(listening).collect();
    Holdings {
        listens: listens.into_iter().take(most).collect(),
        locks: locks.into_iter().take(most).collect(),
    }
}

/// The sockets of processes in one network namespace, and one of these processes.
struct Sockets {
    dir: ProcessDir,
    inodes: BTreeSet<u64>,
}

fn listening(sockets: &Sockets) -> Vec<String> {
    let all = sockets.dir.tcp_sockets().unwrap_or_default();
    let own = all.iter().filter(|one| one.state == TcpState::Listen && sockets.inodes.contains(&one.inode));
    own.map(|one| std::net::SocketAddr::from(one.local).to_string()).collect()
}

/// The names of the files that a process holds locked, or of which the name says that they are there to lock.
fn locked(dir: &ProcessDir, table: &FdTable) -> Result<Vec<String>, Errno> {
    let fds = dir.fd_dir()?;
    let files = table.fds.iter().filter_map(|fd| match &fd.target {
        Target::Path(path) if fd.target.is_stored() => Some((fd.number, path)),
        _ => None,
    });
    let is_held = |(number, path): &(u32, &Vec<u8>)| {
        let by_name = path.ends_with(b".lock") || path.ends_with(b".pid");
        fds.is_locked(*number) || (by_name && fds.access(*number).is_some_and(|access| access.write))
    };
    let held = files.take(FILES).filter(is_held);
    Ok(held.map(|(_, path)| String::from_utf8_lossy(path).into_owned()).collect())
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn ports_and_locks_are_told_and_nothing_else() {
        let proc = Proc::system().unwrap();
        let ours = proc.process(std::process::id()).unwrap().id();
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        let open = |name: &str| std::fs::File::create(path(name)).unwrap();
        let (plain, locked, by_name) = (open("plain"), open("locked"), open("it.pid"));
        let read_only = std::fs::File::open(path("it.pid")).unwrap();
        locked.lock().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        // Other tests listen, too.
        let all = || names(&proc, &[ours], true, usize::MAX);
        let found = all();
        assert!(found.listens.contains(&address), "{found:?}");
        let told = |name: &str| found.locks.iter().any(|one| *one == path(name).to_string_lossy());
        assert!(told("locked") && told("it.pid"), "{found:?}");
        assert!(!told("plain"), "{found:?}");
        // Without them nothing is told.
        drop((plain, locked, by_name, read_only, listener));
        let after = all();
        assert!(!after.listens.contains(&address), "{after:?}");
        assert!(
            !after
                .locks
                .iter()
                .any(|one| found.locks.contains(one) && one.starts_with(&*dir.path().to_string_lossy()))
        );
        // Another process that had the number has nothing.
        let other = ProcessId { start: ours.start + 1, ..ours };
        assert_eq!(holdings(&proc, &[other]), Holdings::default());
    }
}
