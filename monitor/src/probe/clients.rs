//! What the processes of a server do with sockets of their own: whoever has a client is in use, whoever owned it.
//!
//! A client is who is connected to a socket of a process from elsewhere, or waits to be accepted, or was connected a moment ago
//! (`TIME_WAIT` of a port that the process listens on), whether or not the listener is still open. A connection that the process
//! began is none; where that cannot be told it is one. A client that is of the server itself (a browser's debugging port and its
//! driver) is told of apart.
//!
//! Of some sockets nobody can tell whether they have clients: then they have. Short connections to a unix socket leave no trace but in
//! the file that it is bound to (`ProcessDir::is_untouched`): who ever connected makes it one with clients, unless the server has a
//! connection there that it made itself; and so does a name without a file. Who sends datagrams is nowhere to be seen: a UDP socket without a
//! peer that is bound to an address, or to a port that the system did not give out by itself, has clients; likewise a unix datagram
//! socket that was bound to a name, unless its file shows that nobody ever sent to it. Multicast DNS is none (port 5353 of any
//! address, or of a group): each browser has it open, and who asks there asks everybody.
//!
//! Network namespaces are looked at one by one: those that the processes live in.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    io,
    net::IpAddr,
};

use rustix::io::Errno;

use super::{
    direction::{Network, accepts},
    server::Looked,
};
use crate::host::{
    Endpoint, InternetSocket, Proc, ProcessDir, TableError, TcpState, UnixSocket, UnixSocketLine, UnixSockets,
};
use orphand_core::model::{ProcessId, SocketUse};

/// What the processes of a server do with sockets.
#[derive(Debug, Default)]
pub(super) struct Uses {
    /// For each process what it does.
    pub each: Vec<SocketUse>,
    /// The unix sockets they have, where those could be listed.
    pub unix: Vec<UnixSocket>,
    /// Why that is not all, if it is not.
    pub blind: Option<String>,
}

/// What these processes do with sockets.
pub(super) fn of(proc: &Proc, looked: &[Looked]) -> Uses {
    let mut found = Found::new(proc, looked);
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
        let known: HashSet<u64> = match sockets.and_then(|mut sockets| sockets.among(&inodes)) {
            Ok(sockets) => {
                let visited: HashSet<&[u8]> = sockets.iter().filter_map(|s| found.visited(s)).collect();
                for socket in &sockets {
                    let by_itself = socket.name.as_deref().is_some_and(|name| visited.contains(name));
                    found.add_unix(socket, by_itself);
                }
                let known = sockets.iter().map(|socket| socket.inode).collect();
                unix.extend(sockets);
                known
            }
            // Without CAP_SYS_ADMIN nobody enters another namespace: /proc shows it without the peers.
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
            && let Err(error) = found.add_internet(&dir, is_ours)
        {
            blind.get_or_insert(format!("cannot list the connections that {} uses: {error}", dir.id()));
        }
    }
    Uses { each: found.each, unix, blind }
}

/// The namespaces that those with sockets live in: a process in each, and whether it is our own.
fn networks(proc: &Proc, looked: &[Looked]) -> Result<BTreeMap<Vec<u8>, (ProcessDir, bool)>, String> {
    let mut networks = BTreeMap::new();
    for one in looked.iter().filter(|one| one.table.sockets().next().is_some()) {
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

/// What has been found so far.
struct Found<'a> {
    proc: &'a Proc,
    processes: Vec<ProcessId>,
    /// Which of the processes have a socket open, by inode number.
    owners: HashMap<u64, Vec<usize>>,
    each: Vec<SocketUse>,
}

impl<'a> Found<'a> {
    fn new(proc: &'a Proc, looked: &[Looked]) -> Self {
        let mut owners: HashMap<u64, Vec<usize>> = HashMap::new();
        for (at, one) in looked.iter().enumerate() {
            for inode in one.table.sockets() {
                let of_it = owners.entry(inode).or_default();
                // A process may have it twice.
                if of_it.last() != Some(&at) {
                    of_it.push(at);
                }
            }
        }
        let processes = looked.iter().map(|one| one.process).collect();
        Self { proc, processes, owners, each: vec![SocketUse::default(); looked.len()] }
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

    /// Those that have the socket `inode` have a client: whoever has the socket `other`, if that is on this host.
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

    /// The path at which this socket was accepted, if a process of the server itself is at the other end.
    fn visited<'s>(&self, socket: &'s UnixSocket) -> Option<&'s [u8]> {
        let path = socket.name.as_deref().filter(|name| !name.starts_with(&[0]) && !socket.listens)?;
        let inside = socket.connection && socket.peer.is_some_and(|peer| self.owners.contains_key(&peer));
        inside.then_some(path)
    }

    /// Anybody may connect or send to it; whether anybody does only the file that it is bound to can tell. `by_itself`: a
    /// connection that the server made itself, and still has, says why that file was touched.
    fn add_bound(&mut self, socket: &UnixSocket, by_itself: bool) {
        self.listens(socket.inode);
        let untouched = by_itself
            || self.owners(socket.inode).into_iter().any(|at| {
                let process = self.processes.get(at).copied().unwrap_or_default();
                self.proc.identified(process).is_ok_and(|dir| dir.is_some_and(|dir| dir.is_untouched(socket)))
            });
        if !untouched {
            self.served(socket.inode, None);
        }
    }

    fn add_unix(&mut self, socket: &UnixSocket, by_itself: bool) {
        if socket.listens {
            self.add_bound(socket, by_itself);
            for client in socket.waiting.iter().filter(|client| **client != 0) {
                self.served(socket.inode, Some(*client));
            }
        } else if socket.name.is_some() {
            // An accepted socket has its listener's name, whatever became of the listener.
            match socket.peer {
                Some(peer) if socket.connection && peer != 0 => self.served(socket.inode, Some(peer)),
                None if !socket.connection && !socket.is_named_by_the_system() => {
                    self.add_bound(socket, false);
                }
                _ => {}
            }
        }
    }

    /// The same from `/proc/PID/net/unix`; the unix sockets there. Who is connected is not told there: it may be anybody.
    fn add_unix_by_name(&mut self, dir: &ProcessDir) -> Result<HashSet<u64>, TableError> {
        let sockets = dir.unix_sockets()?;
        for socket in sockets.iter().filter(|socket| socket.is_named) {
            match socket.state {
                UnixSocketLine::CONNECTED => self.served(socket.inode, None),
                // With a name it is a listener, or a datagram socket; which file that is cannot be told here.
                UnixSocketLine::UNCONNECTED => {
                    self.listens(socket.inode);
                    self.served(socket.inode, None);
                }
                _ => {}
            }
        }
        Ok(sockets.iter().map(|socket| socket.inode).collect())
    }

    fn add_internet(&mut self, dir: &ProcessDir, is_ours: bool) -> Result<(), TableError> {
        let entries = dir.tcp_sockets()?;
        let listening = |entry: &&InternetSocket| entry.state == TcpState::Listen;
        let listeners: Vec<(Endpoint, u64)> =
            entries.iter().filter(listening).map(|entry| (entry.local, entry.inode)).collect();
        let network = Network::new(dir, is_ours, listeners.iter().map(|(end, _)| *end).collect());
        self.add_tcp(&entries, &listeners, &network);
        let unconnected = |entry: &InternetSocket| entry.remote.1 == 0;
        for entry in dir.udp_sockets()?.into_iter().filter(unconnected) {
            let (address, port) = entry.local;
            let open_to_others = !address.is_unspecified() || network.gives_out(port) != Some(true);
            if open_to_others && self.owners.contains_key(&entry.inode) {
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
        // The other end, if it is on this host, is the connection seen from there.
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
                if !to.is_empty() || !network.is_outgoing(local, remote) {
                    self.served(entry.inode, other);
                }
                continue;
            }
            // Nobody's any more, nobody's yet, or of one who shares the listener: of whom the port is.
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

/// Whether it is where names are asked for on the local network: open to everybody in each browser.
fn is_multicast_dns(address: IpAddr, port: u16) -> bool {
    port == 5353 && (address.is_unspecified() || address.is_multicast())
}

#[cfg(test)]
mod tests;
