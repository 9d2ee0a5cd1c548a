//! What the processes of a server do with sockets of their own. A server that has a client is in use, no
//! matter which agent started it.
//!
//! A client of a process is a peer that is connected to one of its sockets from elsewhere, waits to be
//! accepted, or was connected a moment ago (`TIME_WAIT` of a port that the process listens on). It counts
//! whether or not the listener is still open. A connection that the process began is not a client. Where the
//! code cannot tell who began a connection, it counts as a client. A client that belongs to the server itself
//! (a driver at the debugging port of its browser) is reported separately.
//!
//! A pair of unix sockets without names, on a descriptor of its own, is a channel that somebody made beside the
//! wires, and who has its other end may use it. A connection that the server began counts, too, if the living owner
//! has its other end.
//!
//! For some sockets nobody can tell whether they have clients. The code then assumes that they have. Short
//! connections to a unix socket leave a trace only on the file that the socket is bound to
//! (`ProcessDir::is_untouched`). If the file was touched, the socket counts as one with clients, unless the
//! server still has a connection there that it made itself. A socket whose name has no file counts as one
//! with clients too. The senders of datagrams are not visible anywhere. A UDP socket without a peer has
//! clients if it is bound to an address, or to a port that the system did not choose. A unix datagram socket
//! that is bound to a name has clients, unless its file shows that nobody ever sent to it. Multicast DNS
//! (port 5353 of any address, or of a group) does not count: each browser has it open, and a query there goes
//! to every host.
//!
//! The code inspects network namespaces one by one, but only those that the processes live in.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    io,
    net::IpAddr,
};

use rustix::io::Errno;

use super::{
    direction::{Network, accepts},
    fork_server,
    other_sockets::{self, Kind},
    server::Looked,
};
use crate::host::{
    Endpoint, InternetSocket, Proc, ProcessDir, TableError, Target, TcpState, UnixSocket, UnixSocketLine,
    UnixSockets,
};
use orphand_core::model::{ProcessId, SocketUse, Stdio};

/// The sockets of a server's processes, and what they are used for.
#[derive(Debug, Default)]
pub(super) struct Uses {
    /// What each process does with its sockets.
    pub each: Vec<SocketUse>,
    /// The unix sockets of the processes, as far as they could be listed.
    pub unix: Vec<UnixSocket>,
    /// Why the answer is incomplete; `None` if it is complete.
    pub blind: Option<String>,
}

/// What is known of the sockets at the other ends of those of a server.
#[derive(Clone, Copy)]
pub(super) struct Beside<'a> {
    /// The wires of the server. They are asked about elsewhere.
    pub wires: &'a [Stdio],
    /// The sockets of the owner, if it lives.
    pub hosts: &'a HashSet<u64>,
    /// Tells which of these sockets belong to servers of the same owner that nobody uses.
    pub siblings: &'a dyn Fn(&HashSet<u64>) -> HashSet<u64>,
}

/// Inspects the sockets of these processes.
pub(super) fn of(proc: &Proc, looked: &[Looked], beside: &Beside<'_>) -> Uses {
    let mut found = Found::new(proc, looked, *beside);
    let (mut unix, mut blind) = (Vec::new(), None);
    let networks = networks(proc, looked).unwrap_or_else(|why| {
        blind = Some(why);
        BTreeMap::new()
    });
    let inodes: HashSet<u64> = found.owners.keys().copied().collect();
    for (dir, is_ours) in networks.into_values() {
        let sockets = if is_ours {
            UnixSockets::here()
        } else {
            dir.network_namespace().map_err(io::Error::from).and_then(UnixSockets::inside)
        };
        let asked = sockets.and_then(|mut sockets| {
            let among = sockets.among(&inodes)?;
            let channels = found.channels(&mut sockets, &among)?;
            Ok((among, channels))
        });
        let known: HashSet<u64> = match asked {
            Ok((sockets, channels)) => {
                for (inode, peer) in channels {
                    found.served(inode, Some(peer));
                }
                let visited: HashSet<&[u8]> = sockets.iter().filter_map(|s| found.visited(s)).collect();
                for socket in &sockets {
                    let by_itself = socket.name.as_deref().is_some_and(|name| visited.contains(name));
                    found.add_unix(socket, by_itself);
                }
                let known = sockets.iter().map(|socket| socket.inode).collect();
                unix.extend(sockets);
                known
            }
            // Entering another namespace takes CAP_SYS_ADMIN. Without it, /proc lists the sockets but not
            // their peers.
            Err(error) => match found.add_unix_by_name(&dir) {
                Ok(known) => known,
                Err(other) => {
                    blind.get_or_insert(format!(
                        "cannot list the unix sockets that {} uses: {error}; {other}",
                        dir.id()
                    ));
                    HashSet::new()
                }
            },
        };
        if inodes.iter().any(|inode| !known.contains(inode))
            && let Err(error) = found.add_internet(&dir, is_ours, &known)
        {
            blind.get_or_insert(format!("cannot list the connections that {} uses: {error}", dir.id()));
        }
    }
    Uses { each: found.each, unix, blind }
}

/// The network namespaces of the processes that have sockets: one process in each, and whether the namespace
/// is our own.
fn networks(proc: &Proc, looked: &[Looked]) -> Result<BTreeMap<Vec<u8>, (ProcessDir, bool)>, String> {
    let mut networks = BTreeMap::new();
    for one in looked.iter().filter(|one| one.table.sockets().next().is_some() || !one.in_rings.is_empty()) {
        let found = proc
            .identified(one.process)
            .and_then(|dir| dir.map(|dir| dir.network().map(|network| (network, dir))).transpose());
        match found {
            Ok(Some((network, dir))) => _ = networks.entry(network).or_insert((dir, false)),
            Ok(None) | Err(Errno::NOENT | Errno::SRCH) => {}
            Err(errno) => {
                return Err(format!("cannot read the network namespace of {}: {errno}", one.process));
            }
        }
    }
    if !networks.is_empty() {
        let ours =
            proc.our_network().map_err(|errno| format!("cannot read our network namespace: {errno}"))?;
        if let Some((_, is_ours)) = networks.get_mut(&ours) {
            *is_ours = true;
        }
    }
    Ok(networks)
}

/// The results collected so far.
struct Found<'a> {
    proc: &'a Proc,
    processes: Vec<ProcessId>,
    /// The processes that have a socket open, by inode number of the socket.
    owners: HashMap<u64, Vec<usize>>,
    /// The wires, and the sockets that are a standard stream of one of them.
    standard: HashSet<u64>,
    beside: Beside<'a>,
    looked: &'a [Looked],
    each: Vec<SocketUse>,
}

impl<'a> Found<'a> {
    fn new(proc: &'a Proc, looked: &'a [Looked], beside: Beside<'a>) -> Self {
        let mut owners: HashMap<u64, Vec<usize>> = HashMap::new();
        let mut standard: HashSet<u64> = beside.wires.iter().filter_map(|wire| socket(*wire)).collect();
        for (at, one) in looked.iter().enumerate() {
            standard.extend(one.table.fds.iter().filter(|fd| fd.number <= 2).filter_map(
                |fd| match fd.target {
                    Target::Socket(inode) => Some(inode),
                    _ => None,
                },
            ));
            for inode in one.table.sockets().chain(one.in_rings.iter().copied()) {
                let of_it = owners.entry(inode).or_default();
                // A process may have two descriptors of one socket.
                if of_it.last() != Some(&at) {
                    of_it.push(at);
                }
            }
        }
        let processes = looked.iter().map(|one| one.process).collect();
        let each = vec![SocketUse::default(); looked.len()];
        Self { proc, processes, owners, standard, beside, looked, each }
    }

    fn owners(&self, inode: u64) -> Vec<usize> {
        self.owners.get(&inode).cloned().unwrap_or_default()
    }

    fn listens(&mut self, inode: u64) {
        for at in self.owners(inode) {
            if let Some(facts) = self.each.get_mut(at) {
                facts.listens = true;
            }
        }
    }

    /// Records that the processes with the socket `inode` have a client. The client is the process with the
    /// socket `other`, if that socket is on this host.
    fn served(&mut self, inode: u64, other: Option<u64>) {
        let clients = other.and_then(|other| self.owners.get(&other)).cloned();
        for at in self.owners(inode) {
            let Some(facts) = self.each.get_mut(at) else { continue };
            match &clients {
                None => facts.clients = true,
                Some(clients) => {
                    for client in clients.iter().filter(|client| **client != at) {
                        let process = self.processes.get(*client).copied().unwrap_or_default();
                        if !facts.inside.contains(&process) {
                            facts.inside.push(process);
                        }
                    }
                }
            }
        }
    }

    /// The path at which this socket was accepted, if a process of the server itself has the other end.
    fn visited<'s>(&self, socket: &'s UnixSocket) -> Option<&'s [u8]> {
        let path = socket.name.as_deref().filter(|name| !name.starts_with(&[0]) && !socket.listens)?;
        let inside = socket.connection && socket.peer.is_some_and(|peer| self.owners.contains_key(&peer));
        inside.then_some(path)
    }

    /// Adds a socket that anybody may connect to or send to. Only the file that it is bound to shows whether
    /// anybody did. `by_itself` means that the server still has a connection that it made itself, which
    /// explains why the file was touched. Of a fork server's listener its pipe tells who may use it.
    fn add_bound(&mut self, socket: &UnixSocket, by_itself: bool) {
        self.listens(socket.inode);
        let untouched = by_itself
            || self.is_fork_servers(socket.inode)
            || self.owners(socket.inode).into_iter().any(|at| {
                let process = self.processes.get(at).copied().unwrap_or_default();
                self.proc.identified(process).is_ok_and(|dir| dir.is_some_and(|dir| dir.is_untouched(socket)))
            });
        if !untouched {
            self.served(socket.inode, None);
        }
    }

    /// Whether only fork servers have this socket, which is their listener.
    fn is_fork_servers(&self, inode: u64) -> bool {
        let found = |at: &usize| fork_server::of(self.proc, self.looked.get(*at)?);
        self.owners(inode).iter().all(|at| found(at).is_some_and(|found| found.listener == inode))
    }

    fn add_unix(&mut self, socket: &UnixSocket, by_itself: bool) {
        if socket.listens {
            self.add_bound(socket, by_itself);
            for client in socket.waiting.iter().filter(|client| **client != 0) {
                self.served(socket.inode, Some(*client));
            }
        } else if socket.name.is_some() {
            // An accepted socket keeps the name of its listener, even after the listener is closed.
            match socket.peer {
                // Only its peer can send to a datagram socket that is connected.
                Some(peer) if peer != 0 && (socket.connection || !socket.is_named_by_the_system()) => {
                    self.served(socket.inode, Some(peer));
                }
                None if !socket.connection && !socket.is_named_by_the_system() => {
                    self.add_bound(socket, false);
                }
                _ => {}
            }
        }
    }

    /// Does the same from `/proc/PID/net/unix`, and returns the unix sockets listed there. That file does not
    /// tell the peer, so any process may be connected.
    fn add_unix_by_name(&mut self, dir: &ProcessDir) -> Result<HashSet<u64>, TableError> {
        let sockets = dir.unix_sockets()?;
        for socket in sockets.iter().filter(|socket| socket.is_named) {
            match socket.state {
                UnixSocketLine::CONNECTED => self.served(socket.inode, None),
                // With a name it is a listener or a datagram socket. This table does not tell which file the
                // name is.
                UnixSocketLine::UNCONNECTED => {
                    self.listens(socket.inode);
                    self.served(socket.inode, None);
                }
                _ => {}
            }
        }
        Ok(sockets.iter().map(|socket| socket.inode).collect())
    }

    fn add_internet(
        &mut self,
        dir: &ProcessDir,
        is_ours: bool,
        known: &HashSet<u64>,
    ) -> Result<(), TableError> {
        let entries = dir.tcp_sockets()?;
        let datagrams = dir.udp_sockets()?;
        let in_tables =
            entries.iter().chain(&datagrams).map(|entry| entry.inode).chain(known.iter().copied());
        let listed = in_tables.chain(self.standard.iter().copied()).collect();
        for (inode, kind) in other_sockets::of(self.proc, self.looked, &listed) {
            if kind == Kind::Open {
                self.listens(inode);
            }
            self.served(inode, None);
        }
        let listening = |entry: &&InternetSocket| entry.state == TcpState::Listen;
        let listeners: Vec<(Endpoint, u64)> =
            entries.iter().filter(listening).map(|entry| (entry.local, entry.inode)).collect();
        let network = Network::new(dir, is_ours, listeners.iter().map(|(end, _)| *end).collect());
        self.add_tcp(&entries, &listeners, &network);
        let unconnected = |entry: &&InternetSocket| entry.remote.1 == 0;
        let open = datagrams.iter().filter(unconnected).map(|entry| entry.local).collect();
        let of_datagrams = Network::new(dir, is_ours, open);
        for entry in &datagrams {
            if !self.owners.contains_key(&entry.inode) {
                continue;
            }
            let (address, port) = entry.local;
            if !unconnected(&entry) {
                // Whether it was bound and then connected to who asked first, only the ports can tell.
                let is_addressed = datagrams
                    .iter()
                    .any(|other| other.remote == entry.local && accepts(other.local, entry.remote));
                if !of_datagrams.asks(entry.local, entry.remote, is_addressed) {
                    self.served(entry.inode, None);
                }
                continue;
            }
            let open_to_others = !address.is_unspecified() || network.gives_out(port) != Some(true);
            if open_to_others {
                self.listens(entry.inode);
                if !is_multicast_dns(address, port) {
                    self.served(entry.inode, None);
                }
            }
        }
        Ok(())
    }

    fn add_tcp(&mut self, entries: &[InternetSocket], listeners: &[(Endpoint, u64)], network: &Network<'_>) {
        let ours: Vec<(Endpoint, u64)> =
            listeners.iter().filter(|(_, inode)| self.owners.contains_key(inode)).copied().collect();
        for (_, inode) in &ours {
            self.listens(*inode);
        }
        let ends = |e: &InternetSocket| (e.local, e.remote);
        let begun =
            |e: &&InternetSocket| !matches!(e.state, TcpState::Listen | TcpState::Close | TcpState::SynSent);
        // If the other end is on this host, the table has the connection a second time, as seen from that
        // end.
        let held: HashMap<_, _> =
            entries.iter().filter(begun).filter(|e| e.inode != 0).map(|e| (ends(e), e.inode)).collect();
        for entry in entries.iter().filter(begun) {
            let (local, remote) = ends(entry);
            let other = held.get(&(remote, local)).copied();
            let to: Vec<u64> = ours
                .iter()
                .filter(|(listener, _)| accepts(*listener, local))
                .map(|(_, inode)| *inode)
                .collect();
            if self.owners.contains_key(&entry.inode) {
                let to_host = other.is_some_and(|other| self.beside.hosts.contains(&other));
                if to_host || !to.is_empty() || !network.is_outgoing(local, remote) {
                    self.served(entry.inode, other);
                }
                continue;
            }
            // The connection is closed, not accepted yet, or shared with the listener: it belongs to the
            // owners of the port.
            for inode in to {
                self.served(inode, other);
            }
            if entry.state == TcpState::TimeWait && network.has(remote.0) != Some(false) {
                for (_, inode) in ours.iter().filter(|(listener, _)| accepts(*listener, remote)) {
                    self.served(*inode, None);
                }
            }
        }
    }
}

const fn socket(wire: Stdio) -> Option<u64> {
    match wire {
        Stdio::Socket(inode) => Some(inode),
        _ => None,
    }
}

/// Whether this is the address of multicast DNS. Each browser has a socket there that is open to everybody.
fn is_multicast_dns(address: IpAddr, port: u16) -> bool {
    port == 5353 && (address.is_unspecified() || address.is_multicast())
}

mod channels;
#[cfg(test)]
mod tests;
