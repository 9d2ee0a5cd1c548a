use std::process::{Command, Stdio as Std};

use super::*;
use crate::probe::tests::{Started, facts, id, look};

/// A sibling that holds the write end of a wire and listens on a port, which it prints.
const LISTENS: &str = "import os, socket, subprocess, sys, time
s = socket.create_server(('127.0.0.1', 0)); a = len(sys.argv) > 1 and os.fork() == 0
if len(sys.argv) > 1 and not a: s.close()
else: print(s.getsockname()[1], os.getpid(), flush=True)
k = [s.accept()] if a or len(sys.argv) < 2 else []
time.sleep(600)";

/// For each holder of the server's standard input, whether it is reported to have clients.
fn has_clients(server: &Started, siblings: &[ProcessId]) -> Vec<bool> {
    let found = look(&Subject {
        processes: vec![server.id()],
        stdin: server.wire(),
        siblings: siblings.to_vec(),
        ..Subject::default()
    });
    let WireState::Held { holders, .. } = found.stdin else { panic!("{:?}", found.stdin) };
    let others = holders.iter().filter(|holder| holder.process != crate::probe::tests::ourselves());
    others.map(|holder| holder.clients).collect()
}

#[test]
fn a_sibling_that_has_a_client_may_use_the_wire_for_it() {
    let (reader, writer) = std::io::pipe().unwrap();
    let server = Started::sleeper(reader);
    // The sibling's standard error is the other end of the wire.
    let (sibling, line) =
        Started::line_of(Command::new("python3").args(["-c", LISTENS]).stdin(Std::null()).stderr(writer));
    let port: u16 = line.split(' ').next().unwrap().parse().unwrap();
    assert_eq!(has_clients(&server, &[sibling.id()]), [false]);
    let _client = std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
    assert_eq!(has_clients(&server, &[sibling.id()]), [true]);
    assert_eq!(has_clients(&server, &[]), [false], "asked of siblings only");
    let of_the_server = facts(&[server.id(), sibling.id()], server.wire());
    let WireState::Held { holders, .. } = of_the_server.stdin else { panic!() };
    assert!(holders.iter().all(|holder| !holder.clients), "asked of others only");
}

#[test]
fn what_belongs_to_a_sibling_counts_for_it() {
    let (reader, writer) = std::io::pipe().unwrap();
    let server = Started::sleeper(reader);
    let (sibling, line) = Started::line_of(
        Command::new("python3").args(["-c", LISTENS, "forks"]).stdin(Std::null()).stderr(writer),
    );
    let (port, child) = line.split_once(' ').unwrap();
    let child = id(child.parse().unwrap());
    let siblings = [sibling.id(), child];
    assert_eq!(has_clients(&server, &siblings), [false; 2]);
    let _client = std::net::TcpStream::connect(("127.0.0.1", port.parse::<u16>().unwrap())).unwrap();
    assert_eq!(has_clients(&server, &siblings), [true; 2]);
    crate::probe::tests::end(child);
}

#[test]
fn a_sibling_that_opted_out_or_whose_own_wire_somebody_holds_may_use_the_wire() {
    let own_wire = || std::io::pipe().unwrap();
    for (opted_out, held) in [(false, false), (true, false), (false, true)] {
        let (reader, writer) = std::io::pipe().unwrap();
        let server = Started::sleeper(reader);
        let (far, near) = own_wire();
        let mut command = Command::new("sleep");
        command.arg("600").stdin(far).stdout(Std::null()).stderr(writer);
        if opted_out {
            command.env("ORPHAND_OPT_OUT", "1");
        }
        let sibling = Started::new(&mut command);
        drop(command);
        // Held by the test itself, which is no sibling.
        let _near = held.then_some(near);
        assert_eq!(has_clients(&server, &[sibling.id()]), [opted_out || held], "{opted_out} {held}");
    }
}

#[test]
fn a_sibling_whose_own_wire_cannot_be_told_may_use_the_wire() {
    // A socket with no other end: whether anybody talks through it nobody can say.
    let lone = || std::os::fd::OwnedFd::from(std::os::unix::net::UnixDatagram::unbound().unwrap());
    for (stdin, used) in [(Std::null(), false), (Std::from(lone()), true)] {
        let (reader, writer) = std::io::pipe().unwrap();
        let server = Started::sleeper(reader);
        let mut command = Command::new("sleep");
        command.arg("600").stdin(stdin).stdout(Std::null()).stderr(writer);
        let sibling = Started::new(&mut command);
        drop(command);
        assert_eq!(has_clients(&server, &[sibling.id()]), [used]);
    }
}
