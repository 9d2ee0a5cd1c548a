//! Which side began a TCP connection, for connections whose listener is closed (an open listener would tell) and whose
//! beginning was not seen, and which side of connected UDP sockets asks the other.
//!
//! The side that connects uses a port of the range that the system assigns, and its peer is a listener. Of a peer on another host
//! only a port that no system assigns, or that services have, tells so. A UDP socket
//! that is open to all is no listener: that of a client mostly is so, too. Anybody may listen at the port of a client, at an
//! address that is still free: so the listener must be of the user who has the other end, or of root. Where this does not
//! decide, the code assumes that the other side began the connection. It prefers the error that takes an unused server for one
//! in use.

use std::{
    cell::OnceCell,
    collections::{HashMap, HashSet},
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

use crate::host::{Endpoint, ProcessDir, port_range};

/// Ports below this one are assigned by no system.
const PRIVILEGED: u16 = 1024;
/// Ports of databases, queues, proxies and collectors that servers speak to on other hosts. Each one is a port that a gateway which
/// translates addresses may draw for a client, at odds of 1 to 64,000.
const SERVICES: [u16; 16] =
    [1433, 1521, 3306, 4317, 4318, 5432, 5671, 5672, 6379, 6380, 8080, 8125, 8443, 9092, 9200, 27017];

/// A network namespace, with the facts that tell who began a connection in it. Each fact is read when it is
/// first needed.
pub(crate) struct Network<'a> {
    dir: &'a ProcessDir,
    is_ours: bool,
    /// The endpoints of all listeners in the namespace, of any process, and the user of each: one may have hundreds of thousands.
    listeners: HashMap<Endpoint, u32>,
    addresses: OnceCell<Option<HashSet<IpAddr>>>,
    range: OnceCell<Option<(u16, u16)>>,
}

impl<'a> Network<'a> {
    pub fn new(dir: &'a ProcessDir, is_ours: bool, listeners: HashMap<Endpoint, u32>) -> Self {
        Self { dir, is_ours, listeners, addresses: OnceCell::new(), range: OnceCell::new() }
    }

    pub fn listens(&self, local: Endpoint) -> bool {
        reached(local).any(|listener| self.listeners.contains_key(&listener))
    }

    /// Whether a program of this user, or of root, listens there; `None` is anybody.
    fn listens_for(&self, end: Endpoint, user: Option<u32>) -> bool {
        let mut users = reached(end).filter_map(|listener| self.listeners.get(&listener));
        users.any(|listens| user.is_none_or(|user| [0, user].contains(listens)))
    }

    /// Whether it is certain that the side of `local` began the connection. `user`: who has the socket at the other side, if it is
    /// on this host and open.
    pub fn is_outgoing(&self, local: Endpoint, remote: Endpoint, user: Option<u32>) -> bool {
        if self.listens(local) {
            return false;
        }
        match self.has(remote.0) {
            Some(true) => self.listens_for(remote, user) && self.gives_out(local.1) == Some(true),
            Some(false) => self.ports_say_outgoing(local, remote),
            None => false,
        }
    }

    /// Whether it is certain that the side of `local`, a connected UDP socket, asks the other side. No other socket is open
    /// to all at its port, as that of a service with one socket for each client would be, and no socket at `remote` is
    /// connected to it (`is_addressed`), because a service waits for everybody.
    pub fn asks(&self, local: Endpoint, remote: Endpoint, is_addressed: bool) -> bool {
        !is_addressed && !self.listens(local) && self.ports_say_outgoing(local, remote)
    }

    /// Whether the local port was assigned by the system, and the other is one that its owner chose. Which ports another
    /// host, or what translates its addresses, assigns, nobody knows: macOS and Windows draw from other ranges than this host.
    fn ports_say_outgoing(&self, local: Endpoint, remote: Endpoint) -> bool {
        let is_chosen = remote.1 < PRIVILEGED || SERVICES.contains(&remote.1);
        is_chosen && self.gives_out(local.1) == Some(true) && self.gives_out(remote.1) == Some(false)
    }

    /// Whether the address belongs to this host in this namespace; `None` if that is unknown.
    pub fn has(&self, address: IpAddr) -> Option<bool> {
        if address.is_loopback() {
            return Some(true);
        }
        let known = self.addresses.get_or_init(|| Some(self.dir.addresses()?.into_iter().collect()));
        Some(known.as_ref()?.contains(&address))
    }

    /// Whether the port is in the range that the system assigns to sockets that ask for any port; `None` if
    /// unknown.
    pub fn gives_out(&self, port: u16) -> Option<bool> {
        let read = || {
            let namespace = if self.is_ours { None } else { Some(self.dir.open_file("ns/net").ok()?) };
            port_range(namespace).ok()
        };
        let (first, last) = (*self.range.get_or_init(read))?;
        Some((first..=last).contains(&port))
    }
}

/// Where a socket may listen that a connection to `end` reaches.
pub(crate) fn reached(end: Endpoint) -> impl Iterator<Item = Endpoint> {
    let of_version_4 = end.0.is_ipv4().then_some(Ipv4Addr::UNSPECIFIED.into());
    let all = [Some(end.0), Some(Ipv6Addr::UNSPECIFIED.into()), of_version_4];
    all.into_iter().flatten().map(move |address| (address, end.1))
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, TcpListener, TcpStream};

    use super::*;
    use crate::host::Proc;

    fn end(text: &str) -> Endpoint {
        let address: std::net::SocketAddr = text.parse().unwrap();
        (address.ip(), address.port())
    }

    #[test]
    fn who_accepts_what() {
        for (listener, to, yes) in [
            ("127.0.0.1:80", "127.0.0.1:80", true),
            ("127.0.0.1:80", "127.0.0.2:80", false),
            ("127.0.0.1:80", "127.0.0.1:81", false),
            ("0.0.0.0:80", "192.0.2.1:80", true),
            ("0.0.0.0:80", "[::1]:80", false),
            ("[::]:80", "192.0.2.1:80", true),
            ("[::]:80", "[::1]:80", true),
        ] {
            assert_eq!(reached(end(to)).any(|one| one == end(listener)), yes, "{listener} {to}");
        }
    }

    #[test]
    fn our_own_namespace() {
        let proc = Proc::system().unwrap();
        let dir = proc.process(std::process::id()).unwrap();
        let network = Network::new(&dir, true, HashMap::new());
        assert_eq!(network.has(Ipv4Addr::new(127, 0, 0, 9).into()), Some(true));
        // An address reserved for documentation: no host has it.
        assert_eq!(network.has(Ipv4Addr::new(203, 0, 113, 9).into()), Some(false));
        // A port that the system assigned is in the range that it assigns from.
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        assert_eq!(network.gives_out(stream.local_addr().unwrap().port()), Some(true));
        assert_eq!(network.gives_out(443), Some(false));
    }

    #[test]
    fn who_began_it() {
        let proc = Proc::system().unwrap();
        let dir = proc.process(std::process::id()).unwrap();
        let network =
            Network::new(&dir, true, [(end("127.0.0.1:8080"), 1000), (end("0.0.0.0:22"), 0)].into());
        network.range.set(Some((32768, 60999))).unwrap();
        for (local, remote, outgoing) in [
            ("127.0.0.1:40000", "127.0.0.1:8080", true),
            ("127.0.0.1:8080", "127.0.0.1:40000", false),
            // No process listens at either end any more: either side may have begun it.
            ("127.0.0.1:40000", "127.0.0.1:40001", false),
            ("127.0.0.1:3000", "127.0.0.1:40001", false),
            ("192.0.2.77:40000", "203.0.113.9:443", true),
            ("192.0.2.77:443", "203.0.113.9:40000", false),
            ("192.0.2.77:40000", "203.0.113.9:5432", true),
            ("192.0.2.77:40000", "203.0.113.9:40001", false),
            // Outside of our range, and in that of the other host, or of what translates its addresses.
            ("192.0.2.77:40000", "203.0.113.9:62000", false),
            ("192.0.2.77:40000", "203.0.113.9:20000", false),
            // A process listens at this end.
            ("192.0.2.77:22", "203.0.113.9:443", false),
        ] {
            assert_eq!(
                network.is_outgoing(end(local), end(remote), Some(1000)),
                outgoing,
                "{local} {remote}"
            );
        }
        // Who listens at the port of another user's client made no connection of his.
        for (remote, user, outgoing) in [
            ("127.0.0.1:8080", Some(1001), false),
            ("127.0.0.1:8080", None, true),
            ("127.0.0.1:22", Some(1001), true),
        ] {
            let is_outgoing = network.is_outgoing(end("127.0.0.1:40000"), end(remote), user);
            assert_eq!(is_outgoing, outgoing, "{remote} {user:?}");
        }
        // Of datagrams the ports tell, on this host and elsewhere.
        for (local, remote, is_addressed, asks) in [
            ("127.0.0.1:40000", "127.0.0.1:8125", false, true),
            ("127.0.0.1:40000", "127.0.0.1:8125", true, false),
            ("127.0.0.1:40000", "127.0.0.1:40001", false, false),
            ("127.0.0.1:3000", "127.0.0.1:8125", false, false),
            ("127.0.0.1:8080", "127.0.0.1:40001", false, false),
            ("192.0.2.77:40000", "203.0.113.9:443", false, true),
            ("192.0.2.77:40000", "203.0.113.9:62000", false, false),
            ("192.0.2.77:22", "203.0.113.9:443", false, false),
        ] {
            assert_eq!(network.asks(end(local), end(remote), is_addressed), asks, "{local} {remote}");
        }
        // Without the lists, nothing is certain.
        let blind = Network::new(&dir, true, HashMap::new());
        blind.addresses.set(None).unwrap();
        assert!(!blind.is_outgoing(end("192.0.2.77:40000"), end("203.0.113.9:443"), None));
    }
}
