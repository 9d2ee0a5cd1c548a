use std::{
    net::{Ipv4Addr, Ipv6Addr, TcpListener, TcpStream},
    os::unix::net::{UnixListener, UnixStream},
    process::{Command, Stdio as Std},
};

use super::*;
use crate::{
    model::Stdio,
    probe::actors::{Started, facts, id},
};

/// A server that listens, accepts everybody and says where.
const TCP: &str = "import socket, sys
s = socket.create_server((sys.argv[1], 0), family=socket.AF_INET6 if ':' in sys.argv[1] else socket.AF_INET,
    dualstack_ipv6=sys.argv[1] == '::')
print(s.getsockname()[1], flush=True)
while True: c = s.accept()[0]; c.send(b'x'); globals().setdefault('kept', []).append(c)
";

fn tcp_server(address: &str) -> (Started, u16) {
    let (server, port) =
        Started::line_of(Command::new("python3").args(["-c", TCP, address]).stdin(Std::null()));
    (server, port.parse().unwrap())
}

fn serves(server: &Started) -> bool {
    facts(&[server.id()], Stdio::Null).processes.iter().any(|p| p.sockets.clients)
}

/// A client that was accepted.
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
    assert!(!serves(&server));
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
    // Both are of one server: a browser and its driver.
    assert!(!facts(&[server.id(), other.id()], Stdio::Null).processes.iter().any(|p| p.sockets.clients));
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
u = socket.socket(socket.AF_UNIX); u.bind(sys.argv[1].replace('@', chr(0))); u.listen(); print(flush=True)
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

    // The same from /proc, where another namespace cannot be entered.
    let proc = Proc::system().unwrap();
    let dir = proc.process(server.0.id()).unwrap();
    let inside = dir.fd_table().unwrap().sockets().collect();
    assert_eq!(unix_by_name(&dir, &inside).unwrap().1, Use { listens: true, served: true });
    drop(client);
    assert!(!serves(&server));
}

#[test]
fn somebody_elses_listener_is_not_the_servers() {
    let dir = tempfile::tempdir().unwrap();
    let listener = UnixListener::bind(dir.path().join("s")).unwrap();
    let client = UnixStream::connect(dir.path().join("s")).unwrap();
    let accepted = listener.accept().unwrap();
    let server = Started::sleeper(std::os::fd::OwnedFd::from(accepted.0));
    assert!(!serves(&server));
    drop(client);
}

#[test]
#[ignore = "needs root: cargo xtask test runs it"]
fn a_server_in_another_network_namespace() {
    for (kind, with_client) in [("tcp", true), ("tcp", false), ("unix", true), ("unix", false)] {
        let script = format!(
            "import os, socket, subprocess, time
subprocess.run(['ip', 'link', 'set', 'lo', 'up'], check=True)
s = socket.create_server(('127.0.0.1', 0)) if '{kind}' == 'tcp' else socket.socket(socket.AF_UNIX)
if '{kind}' == 'unix': s.bind(chr(0) + 'orphand-test'); s.listen()
address = s.getsockname(); r, w = os.pipe(); pid = os.fork()
if pid == 0:
    s.close()
    c = socket.socket(socket.AF_INET if '{kind}' == 'tcp' else socket.AF_UNIX)
    if {client}: c.connect(address)
    os.write(w, b'x'); time.sleep(600)
os.read(r, 1)
if {client}: a = s.accept()
print(pid, flush=True); time.sleep(600)",
            client = if with_client { "True" } else { "False" }
        );
        let (server, line) = Started::line_of(
            Command::new("unshare").args(["--net", "python3", "-c", &script]).stdin(Std::null()),
        );
        let client = id(line.parse().unwrap());
        assert_eq!(serves(&server), with_client, "{kind}");
        assert!(!facts(&[server.id(), client], Stdio::Null).processes.iter().any(|p| p.sockets.clients));
        let client = rustix::process::Pid::from_raw(client.pid.cast_signed()).unwrap();
        rustix::process::kill_process(client, rustix::process::Signal::KILL).unwrap();
    }
}
