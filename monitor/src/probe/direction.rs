//! Which side of a TCP connection began it, where the listener that would tell is closed.
//!
//! Whoever connects takes a port of the range that the system gives out, and finds somebody who listens. Where that does not decide,
//! the other side began: a server is rather thought to be in use once too often.

use std::{
    cell::OnceCell,
    collections::HashSet,
    fs::File,
    io::Read,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

use crate::host::{ProcessDir, port_range};

/// Address and port; an IPv4 address that an IPv6 socket sees is that IPv4 address.
pub(super) type End = (IpAddr, u16);

/// Bytes read of the lists of addresses. What is behind them counts as unknown.
const LIST_MAX: u64 = 4 * 1024 * 1024;

/// A network namespace: what is needed to tell who began a connection there. Read when it is asked for.
pub(super) struct Network<'a> {
    /// A process in it.
    dir: &'a ProcessDir,
    /// Whether it is our own.
    is_ours: bool,
    /// All who listen there, whoever they are.
    listeners: Vec<End>,
    addresses: OnceCell<Option<HashSet<IpAddr>>>,
    range: OnceCell<Option<(u16, u16)>>,
}

impl<'a> Network<'a> {
    pub fn new(dir: &'a ProcessDir, is_ours: bool, listeners: Vec<End>) -> Self {
        Self { dir, is_ours, listeners, addresses: OnceCell::new(), range: OnceCell::new() }
    }

    /// Whether the connection was certainly begun on the side of `local`.
    pub fn is_outgoing(&self, local: End, remote: End) -> bool {
        if self.listeners.iter().any(|listener| accepts(*listener, local)) {
            return false;
        }
        match self.has(remote.0) {
            Some(true) => self.listeners.iter().any(|listener| accepts(*listener, remote)),
            Some(false) => self.gives_out(local.1) == Some(true) && self.gives_out(remote.1) == Some(false),
            None => false,
        }
    }

    /// Whether it is an address of this host there; nothing where that cannot be told.
    pub fn has(&self, address: IpAddr) -> Option<bool> {
        if address.is_loopback() {
            return Some(true);
        }
        let known = self.addresses.get_or_init(|| self.read_addresses());
        Some(known.as_ref()?.contains(&address))
    }

    /// Whether the system gives this port to who asks for any; nothing where that cannot be told.
    pub fn gives_out(&self, port: u16) -> Option<bool> {
        let read = || {
            let namespace = if self.is_ours { None } else { Some(self.dir.open_file("ns/net").ok()?) };
            port_range(namespace).ok()
        };
        let (first, last) = (*self.range.get_or_init(read))?;
        Some((first..=last).contains(&port))
    }

    fn read_addresses(&self) -> Option<HashSet<IpAddr>> {
        let read = |path| {
            let mut text = String::new();
            let file = File::from(self.dir.open_file(path).ok()?);
            let size = file.take(LIST_MAX).read_to_string(&mut text).ok()?;
            (u64::try_from(size).ok()? < LIST_MAX).then_some(text)
        };
        let mut found: HashSet<IpAddr> = ipv4(&read("net/fib_trie")?).map(IpAddr::V4).collect();
        // A kernel without IPv6 has no such file, and no such address.
        found.extend(read("net/if_inet6").iter().flat_map(|text| ipv6(text)).map(IpAddr::V6));
        Some(found)
    }
}

/// Whether a connection to `end` gets to a socket that listens at `listener`.
pub(super) fn accepts(listener: End, end: End) -> bool {
    let (address, port) = listener;
    let any = match address {
        IpAddr::V4(address) => address.is_unspecified() && end.0.is_ipv4(),
        IpAddr::V6(address) => address.is_unspecified(),
    };
    port == end.1 && (any || address == end.0)
}

/// The host's own addresses in `fib_trie`: a line `|-- ADDRESS`, below it what that is.
fn ipv4(text: &str) -> impl Iterator<Item = Ipv4Addr> {
    let mut address = None;
    text.lines().filter_map(move |line| {
        let line = line.trim_start();
        if let Some(leaf) = line.strip_prefix("|-- ") {
            address = leaf.parse().ok();
        }
        line.starts_with("/32 host LOCAL").then_some(address).flatten()
    })
}

/// Those in `if_inet6`: 32 digits at the beginning of each line.
fn ipv6(text: &str) -> impl Iterator<Item = Ipv6Addr> {
    text.lines().filter_map(|line| Some(u128::from_str_radix(line.get(..32)?, 16).ok()?.into()))
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;
    use crate::host::Proc;

    fn end(text: &str) -> End {
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
            assert_eq!(accepts(end(listener), end(to)), yes, "{listener} {to}");
        }
    }

    #[test]
    fn addresses_are_read() {
        let trie = "Main:\n  +-- 0.0.0.0/0 3 0 5\n     |-- 0.0.0.0\n        /0 universe UNICAST\n     |-- 127.0.0.0\n        \
                    /8 host LOCAL\n        |-- 192.0.2.2\n           /32 host LOCAL\n        |-- 192.0.2.255\n           /32 link BROADCAST\n";
        assert_eq!(ipv4(trie).collect::<Vec<_>>(), [Ipv4Addr::new(192, 0, 2, 2)]);
        let list = "00000000000000000000000000000001 01 80 10 80       lo\nshort\n";
        assert_eq!(ipv6(list).collect::<Vec<_>>(), [Ipv6Addr::LOCALHOST]);
    }

    #[test]
    fn our_own_namespace() {
        let proc = Proc::system().unwrap();
        let dir = proc.process(std::process::id()).unwrap();
        let network = Network::new(&dir, true, Vec::new());
        assert_eq!(network.has(Ipv4Addr::new(127, 0, 0, 9).into()), Some(true));
        // Documentation's own: nobody has it.
        assert_eq!(network.has(Ipv4Addr::new(203, 0, 113, 9).into()), Some(false));
        // What the system gives out is in the range that it gives out.
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        assert_eq!(network.gives_out(stream.local_addr().unwrap().port()), Some(true));
        assert_eq!(network.gives_out(443), Some(false));
    }

    #[test]
    fn who_began_it() {
        let proc = Proc::system().unwrap();
        let dir = proc.process(std::process::id()).unwrap();
        let network = Network::new(&dir, true, vec![end("127.0.0.1:8080"), end("0.0.0.0:22")]);
        network.range.set(Some((32768, 60999))).unwrap();
        for (local, remote, outgoing) in [
            ("127.0.0.1:40000", "127.0.0.1:8080", true),
            ("127.0.0.1:8080", "127.0.0.1:40000", false),
            // Nobody listens there any more: it may have begun on either side.
            ("127.0.0.1:40000", "127.0.0.1:40001", false),
            ("127.0.0.1:3000", "127.0.0.1:40001", false),
            ("192.0.2.77:40000", "203.0.113.9:443", true),
            ("192.0.2.77:443", "203.0.113.9:40000", false),
            ("192.0.2.77:40000", "203.0.113.9:40001", false),
            // Somebody listens at this end.
            ("192.0.2.77:22", "203.0.113.9:443", false),
        ] {
            assert_eq!(network.is_outgoing(end(local), end(remote)), outgoing, "{local} {remote}");
        }
        // Without the lists nothing is certain.
        let blind = Network::new(&dir, true, Vec::new());
        blind.addresses.set(None).unwrap();
        assert!(!blind.is_outgoing(end("192.0.2.77:40000"), end("203.0.113.9:443")));
    }
}
