//! Tests of what clients a server has.

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr, TcpListener, TcpStream},
    os::unix::net::{UnixListener, UnixStream},
    process::{Command, Stdio as Std},
};

use super::{channels::tests::with_ours, *};
use crate::probe::tests::{Started, facts, id};
use orphand_core::model::Stdio;

/// A server that listens, accepts every connection and prints its address.
const TCP: &str = "import socket, sys
s = socket.create_server((sys.argv[1], 0), family=socket.AF_INET6 if ':' in sys.argv[1] else socket.AF_INET,
    dualstack_ipv6=sys.argv[1] == '::')
print(s.getsockname()[1], flush=True)
while True: c = s.accept()[0]; c.send(b'x'); globals().setdefault('kept', []).append(c)
";

/// A server on a port that was unused a moment ago. The system assigns ports again while old connections
/// remain there.
fn tcp_server(address: &str) -> (Started, u16) {
    let start = || {
        let mut command = Command::new("python3");
        let (server, port) = Started::line_of(command.args(["-c", TCP, address]).stdin(Std::null()));
        (server, port.parse().unwrap())
    };
    (0..16).map(|_| start()).find(|(server, _)| !serves(server)).unwrap()
}

pub(super) fn serves(server: &Started) -> bool {
    facts(&[server.id()], Stdio::Null).processes.iter().any(|p| p.sockets.clients)
}

/// A client whose connection was accepted.
fn client(ip: impl Into<IpAddr>, port: u16) -> TcpStream {
    let mut stream = TcpStream::connect((ip.into(), port)).unwrap();
    io::Read::read_exact(&mut stream, &mut [0]).unwrap();
    stream
}

#[test]
fn a_tcp_server_is_in_use_while_it_has_a_client() {
    let (server, port) = tcp_server("127.0.0.1");
    assert!(!serves(&server));
    assert!(facts(&[server.id()], Stdio::Null).processes[0].sockets.listens);
    let client = client(Ipv4Addr::LOCALHOST, port);
    assert!(serves(&server));
    drop(client);
    assert!(serves(&server), "a moment ago");
}

#[test]
fn who_was_connected_a_moment_ago_counts_on_either_side() {
    // The side that closes first keeps the TIME_WAIT.
    for closes_first in ["server", "client"] {
        let script = "import socket, sys, time; s = socket.create_server(('127.0.0.1', 0))
print(s.getsockname()[1], flush=True); c = s.accept()[0]
if sys.argv[1] == 'client': c.recv(1)
c.close(); print('closed', flush=True); time.sleep(600)";
        let start = || {
            let mut command = Command::new("python3");
            let mut server = Started::new(
                command.args(["-c", script, closes_first]).stdin(Std::null()).stdout(Std::piped()),
            );
            let mut lines = io::BufRead::lines(io::BufReader::new(server.0.stdout.take().unwrap()));
            let port: u16 = lines.next().unwrap().unwrap().parse().unwrap();
            (server, lines, port)
        };
        // As for `tcp_server`: old connections may remain at a port that is assigned again.
        let (server, mut lines, port) =
            (0..16).map(|_| start()).find(|(server, ..)| !serves(server)).unwrap();
        let mut client = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
        if closes_first == "server" {
            assert_eq!(io::Read::read(&mut client, &mut [0]).unwrap(), 0);
        }
        drop(client);
        assert_eq!(lines.next().unwrap().unwrap(), "closed");
        assert!(serves(&server), "{closes_first}");
    }
}

#[test]
fn a_client_stays_one_when_the_listener_is_closed() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s");
    let script = "import socket, sys, time
s = socket.create_server(('127.0.0.1', 0)) if sys.argv[1] == 'tcp' else socket.socket(socket.AF_UNIX)
if sys.argv[1] == 'unix': s.bind(sys.argv[2]); s.listen()
print(s.getsockname()[1] if sys.argv[1] == 'tcp' else 0, flush=True); c = s.accept()[0]; s.close(); c.send(b'x'); time.sleep(600)";
    for kind in ["tcp", "unix"] {
        let (server, port) = Started::line_of(
            Command::new("python3").args(["-c", script, kind]).arg(&path).stdin(Std::null()),
        );
        if kind == "tcp" {
            let client = client(Ipv4Addr::LOCALHOST, port.parse().unwrap());
            assert!(serves(&server), "{kind}");
            drop(client);
        } else {
            let mut client = UnixStream::connect(&path).unwrap();
            io::Read::read_exact(&mut client, &mut [0]).unwrap();
            assert!(serves(&server), "{kind}");
            drop(client);
            // The listener, which had the traces, is closed.
            assert!(!serves(&server), "{kind}");
        }
        assert!(!facts(&[server.id()], Stdio::Null).processes[0].sockets.listens);
    }
}

#[test]
fn a_socket_that_anybody_may_send_to_has_clients() {
    let script = "import socket, sys, time; u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
u.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1); u.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
u.bind((sys.argv[1], int(sys.argv[2])))
if sys.argv[3:]: u.connect(('127.0.0.1', int(sys.argv[3])))
print(flush=True); time.sleep(600)";
    let free = (1024..32000).find(|port| std::net::UdpSocket::bind((Ipv4Addr::LOCALHOST, *port)).is_ok());
    let free = free.unwrap().to_string();
    for (arguments, listens, clients) in [
        (&["127.0.0.1", &*free][..], true, true),
        (&["0.0.0.0", &free], true, true),
        (&["127.0.0.1", "0"], true, true),
        // A port that the system assigned, as for a query to a name server.
        (&["0.0.0.0", "0"], false, false),
        // Bound to a port of its own choice, and then connected: perhaps to who asked first.
        (&["127.0.0.1", &free, "9"], false, true),
        // Multicast DNS is no client. A socket at one specific address is a name server of its own.
        (&["0.0.0.0", "5353"], true, false),
        (&["224.0.0.251", "5353"], true, false),
        (&["127.0.0.1", "5353"], true, true),
    ] {
        let mut command = Command::new("python3");
        let (server, _) = Started::line_of(command.args(["-c", script]).args(arguments).stdin(Std::null()));
        let found = facts(&[server.id()], Stdio::Null).processes[0].sockets.clone();
        assert_eq!(found, SocketUse { listens, clients, inside: Vec::new() }, "{arguments:?}");
    }
}

#[test]
fn a_unix_datagram_socket_has_clients_once_somebody_has_sent_to_it() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s");
    let script = "import socket, sys, time; u = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
u.bind(sys.argv[1].replace('@', chr(0))); time.sleep(0.02); print(flush=True); time.sleep(600)";
    let bound = |name: &std::ffi::OsStr| {
        Started::line_of(Command::new("python3").args(["-c", script]).arg(name).stdin(Std::null())).0
    };
    let server = bound(path.as_os_str());
    assert!(!serves(&server));
    let client = std::os::unix::net::UnixDatagram::unbound().unwrap();
    client.send_to(b"x", &path).unwrap();
    drop(client);
    assert!(serves(&server));
    // An abstract name keeps no traces. The system assigns an empty name, as for a sender that wants answers.
    assert!(serves(&bound("@orphand-test-datagram".as_ref())));
    assert!(!serves(&bound("".as_ref())));
}

#[test]
fn an_ipv6_server_serves_ipv4_clients_too() {
    if TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).is_err() {
        return;
    }
    let (server, port) = tcp_server("::");
    assert!(!serves(&server));
    let one = client(Ipv4Addr::LOCALHOST, port);
    assert!(serves(&server));
    drop(one);
    let _other = client(Ipv6Addr::LOCALHOST, port);
    assert!(serves(&server));
}

#[test]
fn a_client_that_is_of_the_server_does_not_count() {
    let script = "import socket, time; s = socket.create_server(('127.0.0.1', 0))
c = socket.create_connection(s.getsockname()); a = s.accept(); print(flush=True); time.sleep(600)";
    let (server, _) = Started::python(script, Std::null());
    assert!(!serves(&server));
}

#[test]
fn a_connection_to_elsewhere_is_no_client() {
    let (other, port) = tcp_server("127.0.0.1");
    let script = format!(
        "import socket, time; c = socket.create_connection(('127.0.0.1', {port})); c.recv(1); print(flush=True); time.sleep(600)"
    );
    let (server, _) = Started::python(&script, Std::null());
    assert!(!serves(&server));
    assert!(serves(&other));
    // Both belong to one server: a browser and its driver.
    let found = facts(&[server.id(), other.id()], Stdio::Null);
    assert!(!found.processes.iter().any(|p| p.sockets.clients));
    assert_eq!(of_them(&found, other.id()).inside, [server.id()]);
    assert_eq!(of_them(&found, server.id()), &SocketUse::default());
}

fn of_them(facts: &orphand_core::model::ServerFacts, process: ProcessId) -> &SocketUse {
    &crate::probe::tests::of(facts, process).sockets
}

#[test]
fn a_client_that_waits_counts() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s");
    let script = "import socket, sys, time
t = socket.create_server(('127.0.0.1', 0)); u = socket.socket(socket.AF_UNIX); u.bind(sys.argv[1]); u.listen()
print(t.getsockname()[1], flush=True); time.sleep(600)";
    let (server, port) =
        Started::line_of(Command::new("python3").args(["-c", script]).arg(&path).stdin(Std::null()));
    assert!(!serves(&server));
    let waiting = UnixStream::connect(&path).unwrap();
    assert!(serves(&server));
    drop(waiting);
    let _waiting = TcpStream::connect((Ipv4Addr::LOCALHOST, port.parse().unwrap())).unwrap();
    assert!(serves(&server));
}

const UNIX: &str = "import socket, sys, time
u = socket.socket(socket.AF_UNIX); u.bind(sys.argv[1].replace('@', chr(0))); u.listen(); time.sleep(0.02); print(flush=True)
while True: c = u.accept()[0]; c.send(b'x'); globals().setdefault('kept', []).append(c)";

#[test]
fn a_unix_server_is_in_use_while_it_has_a_client() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s");
    let (server, _) =
        Started::line_of(Command::new("python3").args(["-c", UNIX]).arg(&path).stdin(Std::null()));
    assert!(!serves(&server));
    assert!(facts(&[server.id()], Stdio::Null).processes[0].sockets.listens);
    let mut client = UnixStream::connect(&path).unwrap();
    io::Read::read_exact(&mut client, &mut [0]).unwrap();
    assert!(serves(&server));

    // The same from /proc, where the code cannot enter another namespace.
    let proc = Proc::system().unwrap();
    let dir = proc.process(server.0.id()).unwrap();
    let (table, none) = (dir.fd_table().unwrap(), HashSet::new());
    let looked = [Looked { process: server.id(), table, in_rings: Vec::new() }];
    let beside = Beside { wires: &[], hosts: &none, siblings: &|_| HashSet::new() };
    let mut found = Found::new(&proc, &looked, beside);
    found.add_unix_by_name(&dir).unwrap();
    assert_eq!(found.each, [SocketUse { listens: true, clients: true, inside: Vec::new() }]);
    drop(client);
    assert!(serves(&server), "when that was nobody can tell");
}

#[test]
fn of_an_abstract_name_nobody_can_tell() {
    let name = format!("@orphand-test-{}", std::process::id());
    let (server, _) = Started::line_of(Command::new("python3").args(["-c", UNIX, &name]).stdin(Std::null()));
    assert!(serves(&server));
}

#[test]
fn an_accepted_socket_has_a_client_whoever_accepted_it() {
    let dir = tempfile::tempdir().unwrap();
    let listener = UnixListener::bind(dir.path().join("s")).unwrap();
    let client = UnixStream::connect(dir.path().join("s")).unwrap();
    let accepted = listener.accept().unwrap();
    let server = Started::sleeper(std::os::fd::OwnedFd::from(accepted.0));
    assert!(serves(&server));
    assert!(!facts(&[server.id()], Stdio::Null).processes[0].sockets.listens);
    drop(client);
    assert!(!serves(&server));
}

#[test]
#[ignore = "needs root: cargo xtask test runs it"]
fn a_server_in_another_network_namespace() {
    for (kind, with_client) in [("tcp", true), ("tcp", false), ("unix", true), ("unix", false)] {
        let dir = tempfile::tempdir().unwrap();
        let script = format!(
            "import fcntl, os, socket, struct, time
# Turns the loopback interface on: SIOCSIFFLAGS with IFF_UP, see netdevice(7).
fcntl.ioctl(socket.socket(), 0x8914, struct.pack('16sh14x', b'lo', 1))
s = socket.create_server(('127.0.0.1', 0)) if '{kind}' == 'tcp' else socket.socket(socket.AF_UNIX)
if '{kind}' == 'unix': s.bind('{path}'); s.listen(); time.sleep(0.02)
address = s.getsockname(); r, w = os.pipe(); pid = os.fork()
if pid == 0:
    s.close()
    c = socket.socket(socket.AF_INET if '{kind}' == 'tcp' else socket.AF_UNIX)
    if {client}: c.connect(address)
    os.write(w, b'x'); time.sleep(600)
os.read(r, 1)
if {client}: a = s.accept()
print(pid, flush=True); time.sleep(600)",
            client = if with_client { "True" } else { "False" },
            path = dir.path().join("s").display(),
        );
        let (server, line) = Started::line_of(
            Command::new("unshare").args(["--net", "python3", "-c", &script]).stdin(Std::null()),
        );
        let client = id(line.parse().unwrap());
        assert_eq!(serves(&server), with_client, "{kind}");
        // A client of the server itself does not count, and explains why the file of a unix socket was
        // touched.
        let found = facts(&[server.id(), client], Stdio::Null);
        assert!(!found.processes.iter().any(|p| p.sockets.clients), "{kind}");
        let client = rustix::process::Pid::from_raw(client.pid.cast_signed()).unwrap();
        rustix::process::kill_process(client, rustix::process::Signal::KILL).unwrap();
    }
}

#[test]
fn a_udp_socket_that_was_connected_to_who_asked_has_a_client() {
    use std::net::UdpSocket;
    let bind = |port| UdpSocket::bind((Ipv4Addr::LOCALHOST, port));
    let (asked, client) = (bind(0).unwrap(), bind(0).unwrap());
    asked.connect(client.local_addr().unwrap()).unwrap();
    // The client's own socket is open to all, as sendto(2) leaves it; then it is connected.
    assert!(serves(&with_ours(&asked, 9)));
    client.connect(asked.local_addr().unwrap()).unwrap();
    assert!(serves(&with_ours(&asked, 9)));
    // The twin asks a service, at a port that its owner chose. Whether that lives makes no difference.
    let service = (20000..32000).find_map(|port| bind(port).ok()).unwrap();
    let address = service.local_addr().unwrap();
    asked.connect(address).unwrap();
    assert!(!serves(&with_ours(&asked, 9)));
    // What is connected to the server alone is no service.
    service.connect(asked.local_addr().unwrap()).unwrap();
    assert!(serves(&with_ours(&asked, 9)));
    drop(service);
    assert!(!serves(&with_ours(&asked, 9)));
}

#[test]
#[ignore = "needs root: cargo xtask test runs it"]
fn sockets_of_another_network_are_asked_themselves() {
    let script = |what: &str| {
        format!(
            "import os, socket, sys, time, ctypes
s = socket.create_server(('127.0.0.1', 0)); c = socket.create_connection(s.getsockname()); a = s.accept()[0]
n = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0); u = socket.socket()
keep = {what}
for name in 'scanu':
    if globals()[name] not in keep: globals()[name].close()
ctypes.CDLL(None).unshare(0x40000000); print(flush=True); time.sleep(600)"
        )
    };
    for (what, [listens, clients]) in
        [("[a, c]", [false, true]), ("[s]", [true, true]), ("[n, u]", [false, false])]
    {
        let (server, _) = Started::python(&script(what), Std::null());
        let found = facts(&[server.id()], Stdio::Null).processes[0].sockets.clone();
        assert_eq!([found.listens, found.clients], [listens, clients], "{what}");
    }
}
