//! Whether a server serves clients through a listening socket of its own: such a one is in use, whoever owned it.
//!
//! What counts is a connection to a socket that a process of the server listens on, whose other end is not in the
//! server itself (a browser's debugging port with its own driver does not count). Clients that wait to be accepted
//! count. Network namespaces are looked at one by one; a connection made outside the server to elsewhere never counts.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    fs::File,
    io,
    net::{IpAddr, SocketAddr},
};

use procfs::{
    FromBufRead, FromReadSI, current_system_info,
    net::{TcpNetEntries, TcpNetEntry, TcpState, UnixNetEntries, UnixState},
};
use rustix::io::Errno;

use crate::{
    host::{FdTable, Proc, ProcessDir, UnixSocket, UnixSockets},
    model::ProcessId,
};

/// What a server does with sockets of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Use {
    /// It listens on one.
    pub listens: bool,
    /// It has a client there.
    pub served: bool,
}

/// What the server whose open files these are does with sockets of its own; or why that cannot be told.
pub(super) fn any(proc: &Proc, server: &[(ProcessId, FdTable)]) -> Result<Use, String> {
    let inside: HashSet<u64> = server.iter().flat_map(|(_, table)| table.sockets()).collect();
    let mut networks = BTreeMap::new();
    for (process, table) in server {
        if table.sockets().next().is_some()
            && let Ok(Some(dir)) = proc.identified(*process)
            && let Ok(network) = dir.network()
        {
            networks.entry(network).or_insert(dir);
        }
    }
    let mut found = Use::default();
    if networks.is_empty() {
        return Ok(found);
    }
    let ours = proc.our_network().map_err(|errno| format!("cannot read our network namespace: {errno}"))?;
    for (network, dir) in networks {
        let sockets = if network == ours {
            UnixSockets::here()
        } else {
            dir.open_file("ns/net").map_err(io::Error::from).and_then(UnixSockets::inside)
        };
        let (unix, here) = match sockets.and_then(|mut sockets| sockets.among(&inside)) {
            Ok(sockets) => {
                let known = sockets.iter().map(|socket| socket.inode).collect();
                (known, unix_use(&sockets, &inside))
            }
            // Without CAP_SYS_ADMIN nobody enters another namespace: /proc shows it without the peers.
            Err(error) => unix_by_name(&dir, &inside).map_err(|other| {
                format!("cannot list the unix sockets that {} uses: {error}; {other}", dir.id())
            })?,
        };
        found.add(here);
        let others: HashSet<u64> = inside.difference(&unix).copied().collect();
        if !others.is_empty() {
            let entries = tcp(&dir)
                .map_err(|error| format!("cannot list the connections that {} uses: {error}", dir.id()))?;
            found.add(tcp_use(&entries, &others));
        }
    }
    Ok(found)
}

impl Use {
    fn add(&mut self, other: Self) {
        self.listens |= other.listens;
        self.served |= other.served;
    }
}

fn unix_use(sockets: &[UnixSocket], inside: &HashSet<u64>) -> Use {
    let ours = || sockets.iter().filter(|socket| inside.contains(&socket.inode));
    let listeners: Vec<_> = ours().filter(|socket| socket.listens).collect();
    let is_client = |inode: &u64| *inode != 0 && !inside.contains(inode);
    let served = listeners.iter().any(|listener| listener.waiting.iter().any(is_client))
        || ours().filter(|socket| !socket.listens && socket.connection).any(|socket| {
            // An accepted socket has its listener's name.
            listeners.iter().any(|listener| listener.name == socket.name)
                && socket.peer.is_some_and(|p| is_client(&p))
        });
    Use { listens: !listeners.is_empty(), served }
}

/// The same from `/proc/PID/net/unix`: the unix sockets there, and whether one of ours is connected under a name that
/// one of ours listens on. By whom is not told there; any connection counts.
fn unix_by_name(dir: &ProcessDir, inside: &HashSet<u64>) -> Result<(HashSet<u64>, Use), String> {
    let file = dir.open_file("net/unix").map_err(|errno| errno.to_string())?;
    let sockets =
        UnixNetEntries::from_buf_read(io::BufReader::new(File::from(file))).map_err(|e| e.to_string())?.0;
    let ours = || sockets.iter().filter(|socket| inside.contains(&socket.inode) && socket.path.is_some());
    // `SS_UNCONNECTED` with a name is a listener, or a datagram socket: that one has no connections.
    let listeners = || ours().filter(|socket| socket.state == UnixState::UNCONNECTED);
    let served = listeners().any(|listener| {
        ours().any(|socket| socket.state == UnixState::CONNECTED && socket.path == listener.path)
    });
    let found = Use { listens: listeners().next().is_some(), served };
    Ok((sockets.iter().map(|socket| socket.inode).collect(), found))
}

fn tcp(dir: &ProcessDir) -> Result<Vec<TcpNetEntry>, String> {
    let mut entries = Vec::new();
    for table in ["net/tcp", "net/tcp6"] {
        match dir.open_file(table) {
            Ok(file) => {
                let found = TcpNetEntries::from_read(File::from(file), current_system_info());
                entries.extend(found.map_err(|error| error.to_string())?.0);
            }
            // A kernel without IPv6; or the process has ended and serves nobody.
            Err(Errno::NOENT | Errno::SRCH) => {}
            Err(errno) => return Err(errno.to_string()),
        }
    }
    Ok(entries)
}

fn tcp_use(entries: &[TcpNetEntry], inside: &HashSet<u64>) -> Use {
    let listeners: Vec<_> = entries
        .iter()
        .filter(|entry| entry.state == TcpState::Listen && inside.contains(&entry.inode))
        .map(|entry| plain(entry.local_address))
        .collect();
    if listeners.is_empty() {
        return Use::default();
    }
    let accepts = |local: (IpAddr, u16)| {
        listeners.iter().any(|&(ip, port)| port == local.1 && (ip.is_unspecified() || ip == local.0))
    };
    let connected = || entries.iter().filter(|entry| entry.state == TcpState::Established);
    let held: HashMap<_, _> =
        connected().map(|e| ((plain(e.local_address), plain(e.remote_address)), e.inode)).collect();
    let served = connected().any(|entry| {
        let (local, remote) = (plain(entry.local_address), plain(entry.remote_address));
        // The other end, if it is on this host, is the connection seen from there.
        accepts(local) && !held.get(&(remote, local)).is_some_and(|other| inside.contains(other))
    });
    Use { listens: true, served }
}

/// Address and port; an IPv4 address that an IPv6 socket sees is that IPv4 address.
fn plain(address: SocketAddr) -> (IpAddr, u16) {
    (address.ip().to_canonical(), address.port())
}

#[cfg(test)]
#[path = "clients_tests.rs"]
mod tests;
