//! The socket tables of a network namespace, from `/proc/PID/net`. The parsers are pure.

use std::{
    fs::File,
    io::{self, BufRead as _, BufReader},
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
};

use rustix::io::Errno;

use super::{Proc, ProcessDir};

/// Address and port. An IPv4 address that an IPv6 socket shows (`::ffff:a.b.c.d`) is converted to IPv4.
pub type Endpoint = (IpAddr, u16);

/// The state of a TCP socket, reduced to the distinctions that orphand needs: `include/net/tcp_states.h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TcpState {
    Listen,
    SynSent,
    Close,
    /// The connection has ended; the kernel keeps the port for a minute.
    TimeWait,
    /// The other side has sent all that it will: it has shut down that direction, or closed its socket.
    CloseWait,
    /// Any other state: connected, or in the middle of opening or closing.
    Connected,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InternetSocket {
    pub local: Endpoint,
    /// The remote address and port; port 0 means none.
    pub remote: Endpoint,
    /// The TCP state. It has no meaning for a UDP socket.
    pub state: TcpState,
    /// Who made it.
    pub user: u32,
    /// The inode number; 0 for a socket that no process has open.
    pub inode: u64,
}

/// A line of `net/unix`. This file does not name the peer of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnixSocketLine {
    pub inode: u64,
    pub is_named: bool,
    /// The state, include/uapi/linux/net.h: 1 is unconnected, 3 is connected.
    pub state: u8,
}

impl UnixSocketLine {
    pub const UNCONNECTED: u8 = 1;
    pub const CONNECTED: u8 = 3;
}

impl ProcessDir {
    pub fn tcp_sockets(&self) -> io::Result<Vec<InternetSocket>> {
        self.internet_sockets(["net/tcp", "net/tcp6"])
    }

    pub fn udp_sockets(&self) -> io::Result<Vec<InternetSocket>> {
        self.internet_sockets(["net/udp", "net/udp6"])
    }

    fn internet_sockets(&self, files: [&str; 2]) -> io::Result<Vec<InternetSocket>> {
        let mut sockets = Vec::new();
        for file in files {
            let read = self.each_line(file, |line| {
                let shown = || line.chars().take(200).collect::<String>();
                let odd = || io::Error::other(format!("{file} has a line that is none: {:?}", shown()));
                sockets.push(internet_socket(line).ok_or_else(odd)?);
                Ok(())
            });
            match read {
                // The kernel has no IPv6, or the process has ended.
                Err(error) if is_absent(&error) => {}
                read => read?,
            }
        }
        Ok(sockets)
    }

    /// All that are there, and what anybody there makes up: the name of a socket may be any bytes, so a user may add lines.
    pub fn unix_sockets(&self) -> io::Result<Vec<UnixSocketLine>> {
        let mut sockets = Vec::new();
        self.each_line("net/unix", |line| {
            sockets.extend(unix_socket(line));
            Ok(())
        })?;
        Ok(sockets)
    }

    /// The local addresses of its network namespace. Of the loopback range only the single addresses are
    /// listed. `None` if the list cannot be read or is longer than `ADDRESSES_MAX`.
    pub fn addresses(&self) -> Option<Vec<IpAddr>> {
        let read = |file| match self.file(file, ADDRESSES_MAX) {
            Ok((text, false)) => Some(String::from_utf8_lossy(&text).into_owned()),
            // A kernel without IPv6, or without IPv4, does not have its file. Nor has a process that ends.
            Err(Errno::NOENT) if self.still_alive() => Some(String::new()),
            _ => None,
        };
        let (ipv4, ipv6) = (read("net/fib_trie")?, read("net/if_inet6")?);
        Some(ipv4_addresses(&ipv4).map(IpAddr::V4).chain(ipv6_addresses(&ipv6).map(IpAddr::V6)).collect())
    }

    /// The lines of a table but the first, which names the columns. Users decide how many there are: one is kept at a time. The
    /// table is that of the namespace, which anybody may fill, and no process can block its reader: what it takes to read it is
    /// bounded by itself, and is no cost of this process.
    fn each_line(&self, file: &str, mut found: impl FnMut(&str) -> io::Result<()>) -> io::Result<()> {
        let mut table = BufReader::new(File::from(self.open_file(file)?));
        let mut line = Vec::new();
        table.read_until(b'\n', &mut line)?;
        for _ in 0..SOCKETS_MAX {
            line.clear();
            if table.read_until(b'\n', &mut line)? == 0 {
                return Ok(());
            }
            found(String::from_utf8_lossy(&line).trim_end_matches('\n'))?;
        }
        Err(io::Error::other(format!("{file} has {SOCKETS_MAX} lines or more")))
    }
}

/// The most lines of a table that are read: 30 MB.
const SOCKETS_MAX: usize = 1 << 19;
/// The most bytes of a list of addresses that are read.
const ADDRESSES_MAX: usize = 4 * 1024 * 1024;

fn is_absent(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::NOENT | Errno::SRCH))
}

/// The user of the process that has accepted this TCP connection of ours, if it is in our network namespace. `None` if
/// nobody there has, so far. The kernel shows the user who made the socket, that is, who accepted.
pub fn far_end_of(near: SocketAddr, far: SocketAddr) -> io::Result<Option<u32>> {
    let ends = ((far.ip(), far.port()), (near.ip(), near.port()));
    let own = Proc::system().map_err(io::Error::other)?.process(std::process::id())?;
    // A socket that nobody has accepted has no inode.
    let is_it = |one: &InternetSocket| (one.local, one.remote) == ends && one.inode != 0;
    Ok(own.tcp_sockets()?.into_iter().find(is_it).map(|one| one.user))
}

/// `0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 12345 ..` is an
/// example of a line. See `Documentation/networking/proc_net_tcp.rst`. The needed fields are at the same
/// place in all four files.
pub fn internet_socket(line: &str) -> Option<InternetSocket> {
    let mut fields = line.split_ascii_whitespace().skip(1);
    let (local, remote) = (endpoint(fields.next()?)?, endpoint(fields.next()?)?);
    let state = match u8::from_str_radix(fields.next()?, 16).ok()? {
        2 => TcpState::SynSent,
        6 => TcpState::TimeWait,
        7 => TcpState::Close,
        8 => TcpState::CloseWait,
        10 => TcpState::Listen,
        _ => TcpState::Connected,
    };
    // Skips tx and rx, timer, retransmissions; and then timeout.
    let (user, inode) = (fields.nth(3)?.parse().ok()?, fields.nth(1)?.parse().ok()?);
    Some(InternetSocket { local, remote, state, user, inode })
}

/// Parses `ADDRESS:PORT` in hexadecimal: the address in 32-bit words in the machine's byte order, the port
/// as a number.
fn endpoint(text: &str) -> Option<Endpoint> {
    let (address, port) = text.split_once(':')?;
    let words = [0, 8, 16, 24].map(|at| address.get(at..at + 8));
    let bytes = |word: Option<&str>| Some(u32::from_str_radix(word?, 16).ok()?.to_ne_bytes());
    let address: IpAddr = match address.len() {
        8 => Ipv4Addr::from(bytes(words[0])?).into(),
        32 => {
            let mut all = [0; 16];
            for (place, word) in all.chunks_exact_mut(4).zip(words) {
                place.copy_from_slice(&bytes(word)?);
            }
            Ipv6Addr::from(all).to_canonical()
        }
        _ => return None,
    };
    Some((address, u16::from_str_radix(port, 16).ok()?))
}

/// Parses a line `ADDRESS: REFERENCES PROTOCOL FLAGS TYPE STATE INODE [NAME]`.
pub fn unix_socket(line: &str) -> Option<UnixSocketLine> {
    let mut fields = line.split_ascii_whitespace().skip(5);
    let state = u8::from_str_radix(fields.next()?, 16).ok()?;
    let inode = fields.next()?.parse().ok()?;
    Some(UnixSocketLine { inode, is_named: fields.next().is_some(), state })
}

/// The host's own IPv4 addresses in `fib_trie`: a line `|-- ADDRESS`, followed by lines that give its type.
fn ipv4_addresses(text: &str) -> impl Iterator<Item = Ipv4Addr> {
    let mut address = None;
    text.lines().filter_map(move |line| {
        let line = line.trim_start();
        if let Some(leaf) = line.strip_prefix("|-- ") {
            address = leaf.parse().ok();
        }
        line.starts_with("/32 host LOCAL").then_some(address).flatten()
    })
}

/// The addresses in `if_inet6`: 32 hexadecimal digits at the start of each line.
fn ipv6_addresses(text: &str) -> impl Iterator<Item = Ipv6Addr> {
    text.lines().filter_map(|line| Some(u128::from_str_radix(line.get(..32)?, 16).ok()?.into()))
}

#[cfg(test)]
mod tests;
