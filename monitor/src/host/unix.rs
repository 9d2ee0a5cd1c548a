//! Reads the kernel's list of unix sockets through `sock_diag(7)`, which names the peer of each socket. The
//! query has no effect on the sockets.

use std::{collections::HashSet, io, os::fd::AsFd};

use netlink_packet_core::{Emitable, NLM_F_DUMP};
use netlink_packet_sock_diag::{
    SockDiagMessage, TCP_LISTEN,
    constants::{SOCK_SEQPACKET, SOCK_STREAM},
    unix::{
        ShowFlags, StateFlags, UnixRequest, UnixResponse,
        nlas::{Nla, UnixDiagName, Vfs},
    },
};
use netlink_sys::Socket;
use rustix::{
    fs::makedev,
    io::Errno,
    thread::{CapabilitySet, LinkNameSpaceType, move_into_link_name_space},
};

use super::diag;
use crate::os::{apart, capabilities};

/// A unix socket that listens or is connected.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnixSocket {
    pub inode: u64,
    /// The peer's inode number. `Some(0)`: the peer was closed, or waits to be accepted. `None`: the socket
    /// has no peer.
    pub peer: Option<u64>,
    /// The sides that are shut down: 1 receiving, 2 sending, 3 both (`SHUTDOWN_MASK`).
    pub shutdown: u8,
    pub listens: bool,
    /// Whether it is connection-oriented (stream or seqpacket).
    pub connection: bool,
    /// The name that it is bound to: a path, or a NUL followed by bytes of the abstract namespace. An
    /// accepted socket has the name of its listener.
    pub name: Option<Vec<u8>>,
    /// The file that the socket or its listener was bound to: the lower 32 bits of the inode number, and
    /// the device in the encoding of stat(2).
    pub file: Option<(u32, u64)>,
    pub waiting: Vec<u64>,
}

impl UnixSocket {
    /// Whether its peer was closed. Both conditions are needed. A peer may shut down one or both sides and
    /// stay open. And before a connection is accepted, the client's peer has no inode number.
    pub fn hung_up(&self) -> bool {
        self.connection && self.peer == Some(0) && self.shutdown == 3
    }

    /// Whether the kernel chose its name: five hexadecimal digits in the abstract namespace
    /// (`unix_autobind()`). Such a socket receives only answers to what it sent itself.
    pub fn is_named_by_the_system(&self) -> bool {
        let digits = self.name.as_deref().and_then(|name| name.strip_prefix(&[0]));
        digits.is_some_and(|digits| digits.len() == 5 && digits.iter().all(u8::is_ascii_hexdigit))
    }
}

/// A netlink socket to the kernel for the unix sockets of one network namespace. It queries the namespace
/// in which it was created, not the one in which it is used.
pub struct UnixSockets {
    socket: Socket,
}

/// Runs `work` in another network namespace, on a thread of its own: a netlink socket stays in the namespace in which it was
/// created, and /proc/sys shows that of the thread.
fn within<T: Send>(
    namespace: &(impl AsFd + Sync),
    work: impl FnOnce() -> io::Result<T> + Send,
) -> io::Result<T> {
    apart(|| {
        // Without the capability the kernel refuses what follows.
        let _raised = capabilities::raise(CapabilitySet::SYS_ADMIN);
        move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))?;
        work()
    })
}

/// The local ports that outgoing connections use (`ip_local_port_range`), first and last, of the given
/// network namespace, or of our own.
pub fn port_range(namespace: Option<impl AsFd + Sync>) -> io::Result<(u16, u16)> {
    let read = || std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range");
    let text = match namespace {
        Some(namespace) => within(&namespace, read)?,
        None => read()?,
    };
    let mut ports = text.split_ascii_whitespace().filter_map(|port| port.parse().ok());
    ports.next().zip(ports.next()).ok_or_else(|| io::Error::other("ip_local_port_range says something odd"))
}

impl UnixSockets {
    /// Opens a query socket for our own network namespace.
    pub fn here() -> io::Result<Self> {
        let mut sockets = Self { socket: diag::open()? };
        // The kernel makes no larger packet than anybody has read before (`max_recvmsg_len` of netlink_dump()), the first one included.
        sockets.find(1)?;
        Ok(sockets)
    }

    /// Opens a query socket for another network namespace, given as an open `/proc/PID/ns/net`. Needs
    /// `CAP_SYS_ADMIN`.
    pub fn inside(namespace: impl AsFd + Sync) -> io::Result<Self> {
        within(&namespace, Self::here)
    }

    /// All that are wanted of this network namespace: any user may have a million.
    pub fn all(&mut self, is_wanted: impl Fn(&UnixSocket) -> bool) -> io::Result<Vec<UnixSocket>> {
        let mut found = Vec::new();
        self.ask(0, NLM_F_DUMP, |socket| found.extend(Some(socket).filter(&is_wanted)))?;
        Ok(found)
    }

    /// The unix sockets of this network namespace whose inode numbers are in `inodes`. A few are queried
    /// one by one, because the full list of a busy host has thousands of entries.
    pub fn among(&mut self, inodes: &HashSet<u64>) -> io::Result<Vec<UnixSocket>> {
        const HANDFUL: usize = 64;
        if inodes.len() > HANDFUL {
            return self.all(|socket| inodes.contains(&socket.inode));
        }
        let mut found = Vec::new();
        for inode in inodes {
            found.extend(self.find(*inode)?);
        }
        Ok(found)
    }

    /// The socket with this inode number, if it is in this network namespace.
    pub fn find(&mut self, inode: u64) -> io::Result<Option<UnixSocket>> {
        let Ok(inode) = u32::try_from(inode) else { return Ok(None) };
        let mut found = None;
        match self.ask(inode, 0, |socket| found = Some(socket)) {
            Ok(()) => Ok(found),
            Err(error) if error.raw_os_error() == Some(Errno::NOENT.raw_os_error()) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn ask(&mut self, inode: u32, flags: u16, mut found: impl FnMut(UnixSocket)) -> io::Result<()> {
        let show_flags = ShowFlags::NAME | ShowFlags::VFS | ShowFlags::PEER | ShowFlags::ICONS;
        let request = UnixRequest { state_flags: StateFlags::all(), inode, show_flags, cookie: [0xff; 8] };
        diag::ask(&self.socket, SockDiagMessage::UnixRequest(request), flags, |told| {
            if let SockDiagMessage::UnixResponse(response) = told {
                found(UnixSocket::from(*response));
            }
        })
    }
}

impl From<UnixResponse> for UnixSocket {
    fn from(response: UnixResponse) -> Self {
        let mut socket = Self {
            inode: response.header.inode.into(),
            listens: response.header.state == TCP_LISTEN,
            connection: matches!(response.header.kind, SOCK_STREAM | SOCK_SEQPACKET),
            ..Self::default()
        };
        for nla in response.nlas {
            match nla {
                Nla::Peer(inode) => socket.peer = Some(inode.into()),
                Nla::Vfs(file) => socket.file = bound_to(&file),
                Nla::Shutdown(sides) => socket.shutdown = sides,
                Nla::PendingConnections(inodes) => {
                    socket.waiting = inodes.into_iter().map(u64::from).collect();
                }
                Nla::Name(UnixDiagName::Pathname(path)) => socket.name = Some(path.into_encoded_bytes()),
                Nla::Name(UnixDiagName::Abstract(name)) => {
                    socket.name = Some([&[0], name.as_slice()].concat());
                }
                _ => {}
            }
        }
        socket
    }
}

/// Decodes `struct unix_diag_vfs`: the inode number, and the device in the kernel's encoding (`MKDEV()`).
/// The library's type has no readable fields, so the function serializes it and parses the bytes.
fn bound_to(file: &Vfs) -> Option<(u32, u64)> {
    let mut bytes = [0; 8];
    file.emit(&mut bytes);
    let (inode, device) = bytes.split_first_chunk()?;
    let device = u32::from_ne_bytes(device.try_into().ok()?);
    Some((u32::from_ne_bytes(*inode), makedev(device >> 20, device & 0xf_ffff)))
}

#[cfg(test)]
mod tests {
    use std::{
        net::Shutdown,
        os::{
            fd::AsRawFd,
            unix::fs::MetadataExt,
            unix::net::{UnixListener, UnixStream},
        },
    };

    use super::*;

    fn inode(fd: &impl AsRawFd) -> u64 {
        let link = std::fs::read_link(format!("/proc/self/fd/{}", fd.as_raw_fd())).unwrap();
        link.to_str().unwrap().trim_start_matches("socket:[").trim_end_matches(']').parse().unwrap()
    }

    #[test]
    fn a_pair_knows_its_peer_until_it_is_closed() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let mut sockets = UnixSockets::here().unwrap();
        let found = sockets.find(inode(&ours)).unwrap().unwrap();
        assert_eq!((found.peer, found.hung_up()), (Some(inode(&theirs)), false));

        // One side is shut down, then both sides: the peer is still open.
        theirs.shutdown(Shutdown::Write).unwrap();
        assert!(!sockets.find(inode(&ours)).unwrap().unwrap().hung_up());
        ours.shutdown(Shutdown::Write).unwrap();
        let found = sockets.find(inode(&ours)).unwrap().unwrap();
        assert_eq!((found.shutdown, found.hung_up()), (3, false));

        drop(theirs);
        assert!(sockets.find(inode(&ours)).unwrap().unwrap().hung_up());
        let gone = inode(&ours);
        drop(ours);
        assert_eq!(sockets.find(gone).unwrap(), None);
    }

    #[test]
    fn names_that_the_system_gives() {
        let named = |name: &[u8]| UnixSocket { name: Some(name.to_vec()), ..UnixSocket::default() };
        assert!(named(b"\x0000a1f").is_named_by_the_system());
        for name in [&b"\0bus"[..], b"\x0000a1g", b"\x0000a1f0", b"00a1f", b""] {
            assert!(!named(name).is_named_by_the_system());
        }
    }

    /// A user who lets that many wait hides no sockets of others, which are behind it in the list.
    #[test]
    fn a_listener_at_which_thousands_wait_does_not_end_the_list() {
        let dir = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(dir.path().join("s")).unwrap();
        rustix::net::listen(&listener, 4096).unwrap();
        for _ in 0..4000 {
            UnixStream::connect(dir.path().join("s")).unwrap();
        }
        let all = UnixSockets::here().unwrap().all(|_| true).unwrap();
        let found = all.iter().find(|s| s.inode == inode(&listener));
        assert_eq!(found.map(|listener| listener.waiting.len()), Some(4000));
    }

    #[test]
    fn the_list_has_names_and_those_who_wait() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s");
        let listener = UnixListener::bind(&path).unwrap();
        let client = UnixStream::connect(&path).unwrap();
        let all = UnixSockets::here().unwrap().all(|_| true).unwrap();
        let found = all.iter().find(|s| s.inode == inode(&listener)).unwrap();
        assert!(found.listens);
        assert_eq!(found.name.as_deref(), Some(path.as_os_str().as_encoded_bytes()));
        assert_eq!(found.waiting, [inode(&client)]);
        let file = std::fs::metadata(&path).unwrap();
        let (low, device) = found.file.unwrap();
        assert_eq!((u64::from(low), device), (file.ino() & 0xffff_ffff, file.dev()));
    }
}
