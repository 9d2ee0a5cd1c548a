//! Tables of sockets, made up and real.

use std::{
    net::{TcpListener, TcpStream, UdpSocket},
    os::unix::{fs::MetadataExt as _, net::UnixListener},
    path::PathBuf,
};

use super::*;
use crate::host::{Proc, hastily};

#[test]
fn a_line_of_the_tables() {
    let line = "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 12345 1 0 100 0";
    let loopback: IpAddr = Ipv4Addr::LOCALHOST.into();
    let any: IpAddr = Ipv4Addr::UNSPECIFIED.into();
    assert_eq!(
        internet_socket(line),
        Some(InternetSocket {
            local: (loopback, 8080),
            remote: (any, 0),
            state: TcpState::Listen,
            user: 1000,
            inode: 12345
        })
    );
    let line = "  1: 0000000000000000FFFF00000100007F:1F90 00000000000000000000000001000000:0016 01 0:0 0:0 0 0 0 7 1";
    let found = internet_socket(line).unwrap();
    // An IPv4 address that an IPv6 socket shows.
    assert_eq!((found.local, found.remote), ((loopback, 8080), (Ipv6Addr::LOCALHOST.into(), 22)));
    assert_eq!((found.state, found.inode), (TcpState::Connected, 7));
    for bad in ["", "0:", "0: 0100007F 0:0 0A 0 0 0 0 0 1", "0: 0100007F:1F90 0100007F:1F90 0A 0 0 0 0 0"] {
        assert_eq!(internet_socket(bad), None, "{bad}");
    }
    // Characters of more than one byte are no digits.
    assert_eq!(internet_socket("0: ääää:1 00000000:0000 0A 0 0 0 0 0 1"), None);
}

#[test]
fn a_line_of_unix_sockets() {
    let line = "0000000000000000: 00000002 00000000 00010000 0001 01 16 /run/x y";
    assert_eq!(unix_socket(line), Some(UnixSocketLine { inode: 16, is_named: true, state: 1 }));
    let line = "0000000000000000: 00000003 00000000 00000000 0001 03 17";
    assert_eq!(unix_socket(line), Some(UnixSocketLine { inode: 17, is_named: false, state: 3 }));
    assert_eq!(unix_socket("0000000000000000: 00000003 00000000 00000000 0001 03"), None);
    assert_eq!(internet_socket("nonsense"), None);
}

#[test]
fn addresses_are_read() {
    let trie = "Main:\n  +-- 0.0.0.0/0 3 0 5\n     |-- 0.0.0.0\n        /0 universe UNICAST\n     |-- 127.0.0.0\n        \
                /8 host LOCAL\n        |-- 192.0.2.2\n           /32 host LOCAL\n        |-- 192.0.2.255\n           /32 link BROADCAST\n";
    assert_eq!(ipv4_addresses(trie).collect::<Vec<_>>(), [Ipv4Addr::new(192, 0, 2, 2)]);
    let list = "00000000000000000000000000000001 01 80 10 80       lo\nshort\n";
    assert_eq!(ipv6_addresses(list).collect::<Vec<_>>(), [Ipv6Addr::LOCALHOST]);
}

#[test]
fn our_own_sockets_are_listed() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let sender = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let place = tempfile::tempdir().unwrap();
    let bound = UnixListener::bind(place.path().join("s")).unwrap();
    let proc = Proc::system().unwrap();
    let own = proc.process(std::process::id()).unwrap();
    let inode = |fd: &dyn std::os::fd::AsRawFd| {
        std::fs::metadata(format!("/proc/self/fd/{}", fd.as_raw_fd())).unwrap().ino()
    };
    let tcp = own.tcp_sockets().unwrap();
    let of = |fd: &dyn std::os::fd::AsRawFd| *tcp.iter().find(|one| one.inode == inode(fd)).unwrap();
    let at = |address: std::net::SocketAddr| (address.ip(), address.port());
    assert_eq!(of(&listener).state, TcpState::Listen);
    assert_eq!(of(&client).remote, at(listener.local_addr().unwrap()));
    assert_eq!(of(&client).local, at(client.local_addr().unwrap()));
    let udp = own.udp_sockets().unwrap();
    let found = udp.iter().find(|one| one.inode == inode(&sender)).unwrap();
    assert_eq!((found.local, found.remote.1), (at(sender.local_addr().unwrap()), 0));
    let unix = own.unix_sockets().unwrap();
    let found = unix.iter().find(|one| one.inode == inode(&bound)).unwrap();
    assert_eq!((found.is_named, found.state), (true, UnixSocketLine::UNCONNECTED));
}

/// A /proc with this process alone, its number, and its folder of tables.
fn made_up() -> (tempfile::TempDir, u32, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let pid = std::process::id();
    let net = folder.path().join(pid.to_string()).join("net");
    std::fs::create_dir_all(&net).unwrap();
    let stat = std::fs::read("/proc/self/stat").unwrap();
    std::fs::write(net.with_file_name("stat"), stat).unwrap();
    (folder, pid, net)
}

#[test]
fn addresses_that_cannot_be_read_are_not_known() {
    let (folder, pid, net) = made_up();
    let addresses = || Proc::at(folder.path()).unwrap().process(pid).unwrap().addresses();
    std::fs::write(net.join("fib_trie"), "").unwrap();
    assert_eq!(addresses(), Some(Vec::new()), "a kernel without IPv6");
    std::fs::create_dir(net.join("if_inet6")).unwrap();
    assert_eq!(addresses(), None);
}

/// Anybody may fill the table that all share: whoever reads it for a process does not hold that for slow.
#[test]
fn a_long_table_is_no_cost_of_a_process() {
    let (folder, pid, net) = made_up();
    let line = "   0: 0100007F:1F90 0100007F:1F91 08 00000000:00000000 00:00000000 00000000  1000        0 0 1 0 100 0";
    let table = format!("the columns\n{}", format!("{line}\n").repeat(100_000));
    for file in ["tcp", "tcp6"] {
        std::fs::write(net.join(file), &table).unwrap();
    }
    let root = folder.path().to_owned();
    let read = move || Proc::at(&root).unwrap().process(pid).unwrap().tcp_sockets().map(|found| found.len());
    assert_eq!(hastily(read).unwrap(), 200_000);
}
