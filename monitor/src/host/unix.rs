//! The kernel's list of unix sockets, `sock_diag(7)`: who is whose peer. Asking has no effect on the sockets.

use std::{collections::HashSet, io, os::fd::AsFd, thread};

use netlink_packet_core::{
    Emitable, NLM_F_DUMP, NLM_F_REQUEST, NetlinkBuffer, NetlinkHeader, NetlinkMessage, NetlinkPayload,
};
use netlink_packet_sock_diag::{
    SockDiagMessage, TCP_LISTEN,
    constants::{SOCK_SEQPACKET, SOCK_STREAM},
    unix::{
        ShowFlags, StateFlags, UnixRequest, UnixResponse,
        nlas::{Nla, UnixDiagName, Vfs},
    },
};
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_SOCK_DIAG};
use rustix::{
    fs::makedev,
    io::Errno,
    thread::{CapabilitySet, LinkNameSpaceType, capabilities, move_into_link_name_space, set_capabilities},
};

/// A unix socket that listens or is connected.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnixSocket {
    /// Its inode number.
    pub inode: u64,
    /// Its peer's inode number; 0 where the peer was closed (or waits to be accepted); absent where it has
    /// none.
    pub peer: Option<u64>,
    /// What is shut down: 1 its receiving side, 2 its sending side, 3 both (`SHUTDOWN_MASK`).
    pub shutdown: u8,
    /// Whether it waits for connections.
    pub listens: bool,
    /// Whether it keeps a connection (stream or seqpacket).
    pub connection: bool,
    /// The name it is bound to: a path, or bytes after a NUL. Accepted sockets have their listener's.
    pub name: Option<Vec<u8>>,
    /// The file that it, or its listener, was bound to: the lower half of its inode number, and its device as stat(2) has it.
    pub file: Option<(u32, u64)>,
    /// Inodes of the clients that wait to be accepted.
    pub waiting: Vec<u64>,
}

impl UnixSocket {
    /// Whether its peer was closed. Both marks are needed: a peer may shut down one side, or both, and stay;
    /// and a socket's peer has no inode before it is accepted.
    pub fn hung_up(&self) -> bool {
        self.connection && self.peer == Some(0) && self.shutdown == 3
    }

    /// Whether the system gave it its name, five digits of the abstract namespace (`unix_autobind()`): it learns what is sent in
    /// answer to what it sent itself.
    pub fn is_named_by_the_system(&self) -> bool {
        let digits = self.name.as_deref().and_then(|name| name.strip_prefix(&[0]));
        digits.is_some_and(|digits| digits.len() == 5 && digits.iter().all(u8::is_ascii_hexdigit))
    }
}

/// A line to the kernel about the unix sockets of one network namespace: that in which a socket was created,
/// not that in which it is used.
pub struct UnixSockets {
    socket: Socket,
}

/// Takes up what the daemon holds back for this (`privilege`), for this thread alone. Where it has nothing the kernel will refuse.
fn raise() {
    if let Ok(mut sets) = capabilities(None) {
        sets.effective |= sets.permitted & CapabilitySet::SYS_ADMIN;
        let _ = set_capabilities(None, sets);
    }
}

/// Does something in another network namespace. Only a thread that ends at once changes its namespace: a netlink socket keeps that of
/// its birth, and /proc/sys shows that of the thread.
fn within<T: Send>(
    namespace: &(impl AsFd + Sync),
    work: impl FnOnce() -> io::Result<T> + Send,
) -> io::Result<T> {
    thread::scope(|scope| {
        let enter = || {
            raise();
            move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))?;
            work()
        };
        thread::Builder::new()
            .spawn_scoped(scope, enter)?
            .join()
            .unwrap_or_else(|_| Err(io::Error::other("the thread that entered the namespace panicked")))
    })
}

/// The ports that connections to elsewhere start from (`ip_local_port_range`), the first and the last one: of another network
/// namespace, or of our own.
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
    /// Those of our own network namespace.
    pub fn here() -> io::Result<Self> {
        let socket = Socket::new(NETLINK_SOCK_DIAG)?;
        socket.connect(&SocketAddr::new(0, 0))?;
        Ok(Self { socket })
    }

    /// Those of another network namespace, an open `/proc/PID/ns/net`. Needs `CAP_SYS_ADMIN`.
    pub fn inside(namespace: impl AsFd + Sync) -> io::Result<Self> {
        within(&namespace, Self::here)
    }

    /// All that listen or are connected.
    pub fn all(&mut self) -> io::Result<Vec<UnixSocket>> {
        let mut found = Vec::new();
        self.ask(0, NLM_F_DUMP, |socket| found.push(socket))?;
        Ok(found)
    }

    /// Of these inode numbers those that are unix sockets in this network namespace. A handful is asked for one by one: the list of
    /// a busy host has thousands.
    pub fn among(&mut self, inodes: &HashSet<u64>) -> io::Result<Vec<UnixSocket>> {
        const HANDFUL: usize = 64;
        if inodes.len() > HANDFUL {
            let all = self.all()?;
            return Ok(all.into_iter().filter(|socket| inodes.contains(&socket.inode)).collect());
        }
        let mut found = Vec::new();
        for inode in inodes {
            found.extend(self.find(*inode)?);
        }
        Ok(found)
    }

    /// The one with this inode number, if it is in this network namespace.
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
        let mut header = NetlinkHeader::default();
        header.flags = NLM_F_REQUEST | flags;
        let mut message = NetlinkMessage::new(header, SockDiagMessage::UnixRequest(request).into());
        message.finalize();
        let mut bytes = vec![0; message.buffer_len()];
        message.serialize(&mut bytes);
        self.socket.send(&bytes, 0)?;
        loop {
            let (packet, _) = self.socket.recv_from_full()?;
            let mut rest = packet.as_slice();
            while !rest.is_empty() {
                let length = NetlinkBuffer::new_checked(rest).map_err(io::Error::other)?.length() as usize;
                match NetlinkMessage::<SockDiagMessage>::deserialize(rest).map(|m| m.payload) {
                    Ok(NetlinkPayload::InnerMessage(SockDiagMessage::UnixResponse(response))) => {
                        found(UnixSocket::from(*response));
                        if flags & NLM_F_DUMP == 0 {
                            return Ok(());
                        }
                    }
                    Ok(NetlinkPayload::Done(_)) => return Ok(()),
                    Ok(NetlinkPayload::Error(error)) => return Err(error.to_io()),
                    // A socket with a name that nobody can decode is not to hide all others.
                    Ok(_) | Err(_) => {}
                }
                // Messages are aligned to four bytes, NLMSG_ALIGN().
                rest = rest.get(length.next_multiple_of(4).max(16)..).unwrap_or_default();
            }
            if flags & NLM_F_DUMP == 0 {
                return Err(io::Error::other("sock_diag gave an answer that is none"));
            }
        }
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

/// `struct unix_diag_vfs`: inode number and device, the latter as the kernel keeps it (`MKDEV()`). The type has no fields to
/// read, but it can be written.
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

        // Only half closed, and half closed by both: the peer is there still.
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

    #[test]
    fn the_list_has_names_and_those_who_wait() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s");
        let listener = UnixListener::bind(&path).unwrap();
        let client = UnixStream::connect(&path).unwrap();
        let all = UnixSockets::here().unwrap().all().unwrap();
        let found = all.iter().find(|s| s.inode == inode(&listener)).unwrap();
        assert!(found.listens);
        assert_eq!(found.name.as_deref(), Some(path.as_os_str().as_encoded_bytes()));
        assert_eq!(found.waiting, [inode(&client)]);
        let file = std::fs::metadata(&path).unwrap();
        let (low, device) = found.file.unwrap();
        assert_eq!((u64::from(low), device), (file.ino() & 0xffff_ffff, file.dev()));
    }
}
