//! Sockets of a server that no table of its network namespace lists: of other families (vsock), of protocols beside
//! TCP and UDP, or of another network namespace, where they were made or received from. The socket itself is asked,
//! through a duplicate that is closed at once.

use std::{collections::HashSet, net::SocketAddr, os::fd::OwnedFd};

use rustix::{
    fs::FileType,
    io::Errno,
    net::{
        AddressFamily, Protocol, SocketAddrAny, SocketType, getpeername, getsockname, ipproto, netlink,
        sockopt::{socket_acceptconn, socket_domain, socket_protocol, socket_type},
    },
};

use super::{
    joints::Joints,
    pipe::{duplicate_any, is_file},
    process::Member,
    rows::Rows,
};
use orphand_core::model::scene::{Address, Called};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Anybody may connect to it or send to it, and no table shows who did.
    Open,
    /// It is connected, and who began the connection is not known.
    Connected,
}

/// Enters the sockets of these processes that are not `listed`, and that somebody may use.
pub(super) fn enter(rows: &mut Rows<'_>, members: &[Member], joints: &mut Joints, listed: &HashSet<u64>) {
    let mut asked = HashSet::new();
    for member in members {
        for fd in &member.table.fds {
            let Some(inode) = fd.target.socket().filter(|inode| !listed.contains(inode)) else { continue };
            if !asked.insert(inode) {
                continue;
            }
            let socket = match rows.proc.identified(member.process) {
                Ok(Some(dir)) => duplicate_any(&dir, fd.number),
                Ok(None) => continue,
                Err(errno) => Err(errno),
            };
            let kind = match socket {
                // Whether the descriptor is still this socket.
                Ok(Some(copy)) if is_file(&copy.file, FileType::Socket, inode) == Ok(true) => {
                    kind(&copy.file)
                }
                Ok(_) | Err(Errno::BADF | Errno::SRCH | Errno::NOENT) => None,
                // What cannot be asked may be in use.
                Err(_) => Some(Kind::Connected),
            };
            match kind {
                Some(Kind::Open) => joints.open(rows, inode, Address::Other, Called::Unknown),
                Some(Kind::Connected) => joints.half(rows, inode),
                None => {}
            }
        }
    }
}

/// What the socket is; `None` if nobody can use it.
fn kind(socket: &OwnedFd) -> Option<Kind> {
    const AF_ALG: AddressFamily = AddressFamily::from_raw(38);
    let family = socket_domain(socket).unwrap_or(AddressFamily::UNSPEC);
    let kind = socket_type(socket);
    let is_internet = [AddressFamily::INET, AddressFamily::INET6].contains(&family);
    let protocol = socket_protocol(socket).ok().flatten();
    let is_of = |some: &[Protocol]| protocol.is_some_and(|protocol| some.contains(&protocol));
    let nobody = match family {
        // The kernel is at the other end, except where programs talk to each other, or it asks what shall become of packets
        // of others (NFQUEUE).
        AddressFamily::NETLINK => !is_of(&[netlink::USERSOCK, netlink::NETFILTER]),
        AddressFamily::KEY | AF_ALG => true,
        // Who pings, or only sends. Any other raw socket may be how a server is asked.
        _ => is_internet && is_of(&[ipproto::ICMP, ipproto::ICMPV6, ipproto::RAW]),
    };
    if nobody {
        return None;
    }
    if socket_acceptconn(socket).unwrap_or(true) {
        return Some(Kind::Open);
    }
    let local = getsockname(socket).ok();
    if getpeername(socket).is_ok() {
        return Some(Kind::Connected);
    }
    // Datagrams are received without a connection.
    let is_bound = match family {
        AddressFamily::UNIX => local.as_ref().is_some_and(is_named),
        _ if is_internet => {
            local.and_then(|local| SocketAddr::try_from(local).ok()).is_none_or(|a| a.port() != 0)
        }
        _ => true,
    };
    // Listeners of other families have states of their own (Bluetooth), which SO_ACCEPTCONN does not know.
    let tells = is_internet || [AddressFamily::UNIX, AddressFamily::VSOCK].contains(&family);
    let is_idle = tells && [Ok(SocketType::STREAM), Ok(SocketType::SEQPACKET)].contains(&kind);
    (!is_idle && is_bound).then_some(Kind::Open)
}

fn is_named(address: &SocketAddrAny) -> bool {
    // Not decoded: Linux also gives a path of 108 bytes without a terminator, and an abstract name of no byte.
    usize::try_from(address.addr_len()).is_ok_and(|len| len > size_of::<u16>())
}

#[cfg(test)]
mod tests {
    use std::{
        io::Read as _,
        process::{Command, Stdio},
    };

    use super::*;
    use crate::host::Proc;

    /// `sun_path` has 108 bytes, and needs no terminator, unix(7).
    #[test]
    fn a_socket_may_have_the_longest_name() {
        const BIND: &str = "use Socket; socket(S, AF_UNIX, SOCK_DGRAM, 0) or die;
            length($ARGV[0]) == 0 or bind(S, pack('S a*', AF_UNIX, $ARGV[0])) or die; $| = 1; print 'x'; <STDIN>";
        let folder = tempfile::tempdir().unwrap();
        let longest = format!("{:x<108}", folder.path().join("s").display());
        for (name, is_open) in [(longest.as_str(), true), ("", false)] {
            let mut perl = Command::new("perl");
            perl.args(["-e", BIND, name]).stdin(Stdio::piped()).stdout(Stdio::piped());
            let mut child = perl.spawn().unwrap();
            child.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
            let process = Proc::system().unwrap().process(child.id()).unwrap();
            let socket = duplicate_any(&process, 3).unwrap().unwrap().file;
            assert_eq!(kind(&socket), is_open.then_some(Kind::Open), "{name:?}");
            drop(child.stdin.take());
            child.wait().unwrap();
        }
    }
}
