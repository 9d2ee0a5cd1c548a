use std::{
    io::{Read, Write},
    os::{fd::OwnedFd, unix::net::UnixStream},
    process::{Command, Stdio as Std},
};

use super::*;
use crate::probe::actors::{Started, facts, holders, id, our_session, ourselves};

#[test]
fn a_pipe_is_held_until_its_writer_closes_it() {
    let mut server = Started::sleeper(Std::piped());
    let wire = server.wire();
    assert_eq!(holders(&server, wire), Some(vec![ourselves()]));
    drop(server.0.stdin.take());
    assert_eq!(holders(&server, wire), None);
}

#[test]
fn a_pipe_with_unread_input_is_hung_up_all_the_same() {
    let mut server = Started::sleeper(Std::piped());
    let wire = server.wire();
    server.0.stdin.take().unwrap().write_all(b"unread").unwrap();
    assert_eq!(holders(&server, wire), None);
}

#[test]
fn a_sibling_that_inherited_the_write_end_holds_it() {
    let (reader, writer) = std::io::pipe().unwrap();
    let server = Started::sleeper(reader);
    // A forked worker of the agent: the write end is one of its descriptors.
    let mut sibling = Started::new(Command::new("sleep").arg("600").stdout(writer));
    let wire = server.wire();
    assert_eq!(holders(&server, wire), Some(vec![sibling.id()]));
    sibling.end();
    assert_eq!(holders(&server, wire), None);
}

#[test]
fn the_oldest_holder_comes_first_and_its_image_is_told() {
    let mut server = Started::sleeper(Std::piped());
    let writer = OwnedFd::from(server.0.stdin.take().unwrap());
    let sibling = Started::new(Command::new("sleep").arg("601").stdout(writer.try_clone().unwrap()));
    let WireState::Held(found) = facts(&[server.id()], server.wire()).wire else { panic!() };
    let (us, it) = (&found[0], &found[1]);
    assert_eq!((us.process, it.process), (ourselves(), sibling.id()));
    assert_eq!(it.image.argv, ["sleep", "601"]);
    assert_eq!(us.uid, rustix::process::getuid().as_raw());
    assert_eq!(us.sid, our_session());
}

#[test]
fn a_socket_pair_is_held_until_its_peer_is_closed() {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let server = Started::sleeper(OwnedFd::from(theirs));
    let wire = server.wire();
    assert!(matches!(wire, Stdio::Socket(_)));
    assert_eq!(holders(&server, wire), Some(vec![ourselves()]));
    ours.shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(holders(&server, wire), Some(vec![ourselves()]));
    drop(ours);
    assert_eq!(holders(&server, wire), None);
}

#[test]
fn a_node_host_holds_its_servers_and_its_death_hangs_them_up() {
    // Node makes a socket pair for each standard stream.
    let script =
        "const c = require('child_process').spawn('sleep', ['600'], {stdio: ['pipe', 'ignore', 'ignore']});
        console.log(c.pid); setInterval(() => {}, 60000)";
    let (mut host, line) = Started::line_of(Command::new("node").args(["-e", script]).stdin(Std::null()));
    let server = id(line.parse().unwrap());
    let wire = Probe::new().unwrap().proc.process(server.pid).unwrap().stdio()[0];
    let WireState::Held(found) = facts(&[server], wire).wire else { panic!() };
    assert_eq!(found.iter().map(|h| h.process).collect::<Vec<_>>(), [host.id()]);
    host.end();
    assert_eq!(facts(&[server], wire).wire, WireState::HungUp);
    let sleeper = Pid::from_raw(server.pid.cast_signed()).unwrap();
    rustix::process::kill_process(sleeper, rustix::process::Signal::KILL).unwrap();
}

#[test]
fn a_wire_that_was_moved_is_asked_where_it_is() {
    let script = "import os, sys, time; os.dup2(0, 9); os.dup2(os.open('/dev/null', 0), 0); print(flush=True); time.sleep(600)";
    let (reader, writer) = std::io::pipe().unwrap();
    let inode = rustix::fs::fstat(&reader).unwrap().st_ino;
    let (server, _) = Started::python(script, reader);
    assert_eq!(server.wire(), Stdio::Null);
    assert_eq!(holders(&server, Stdio::Pipe(inode)), Some(vec![ourselves()]));
    drop(writer);
    assert_eq!(holders(&server, Stdio::Pipe(inode)), None);
}

#[test]
fn a_wire_the_server_has_closed_is_hung_up_once_nobody_has_it() {
    let (reader, writer) = std::io::pipe().unwrap();
    let server = Started::sleeper(Std::null());
    let pipe = Stdio::Pipe(rustix::fs::fstat(&reader).unwrap().st_ino);
    assert_eq!(holders(&server, pipe), Some(vec![ourselves()]));
    // The read end is with somebody who is not of the server.
    drop(writer);
    assert_eq!(holders(&server, pipe), None);
    drop(reader);
    let (one, other) = UnixStream::pair().unwrap();
    let socket = Stdio::Socket(rustix::fs::fstat(&one).unwrap().st_ino);
    drop((one, other));
    for wire in [pipe, socket] {
        let probe = Probe::new().unwrap();
        let sight = probe.wire(wire, &[(server.id(), FdTable::default())]);
        // Where a process keeps its files from root (a hardened pid 1), it might have it.
        let hidden = holders::Index::take(&probe.proc).unwrap().blind.is_some();
        assert_eq!(sight, Sight::clear(if hidden { WireState::Unknown } else { WireState::HungUp }));
    }
}

#[test]
fn a_fifo_with_a_name_is_asked_through_a_duplicate() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("fifo");
    rustix::fs::mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    let both = std::fs::File::options().read(true).write(true).open(&path).unwrap();
    let server = Started::sleeper(std::fs::File::open(&path).unwrap());
    let writer = std::fs::File::options().write(true).open(&path).unwrap();
    drop(both);
    let wire = server.wire();
    assert!(matches!(wire, Stdio::Pipe(_)));
    assert_eq!(holders(&server, wire), Some(vec![ourselves()]));
    drop(writer);
    assert_eq!(holders(&server, wire), None);
    // Asking again changes nothing.
    assert_eq!(holders(&server, wire), None);
}

#[test]
fn a_stdin_that_is_no_wire_is_unknown() {
    let server = Started::sleeper(Std::null());
    assert_eq!(facts(&[server.id()], server.wire()).wire, WireState::Unknown);
}

#[test]
fn asking_a_thousand_times_disturbs_nobody() {
    let mut server = Started::new(Command::new("cat").stdin(Std::piped()).stdout(Std::piped()));
    let (wire, probe) = (server.wire(), Probe::new().unwrap());
    let table = [(server.id(), probe.proc.fd_table(server.0.id()).unwrap())];
    let (mut to, mut from) = (server.0.stdin.take().unwrap(), server.0.stdout.take().unwrap());
    for round in 0..1000_u32 {
        assert!(matches!(probe.wire(wire, &table).state, WireState::Held(_)));
        to.write_all(&round.to_le_bytes()).unwrap();
        let mut back = [0; 4];
        from.read_exact(&mut back).unwrap();
        assert_eq!(u32::from_le_bytes(back), round);
    }
    drop(to);
    assert!(server.0.wait().unwrap().success());
}

#[test]
fn what_cannot_be_read_is_no_proof() {
    let tree = tempfile::tempdir().unwrap();
    std::fs::create_dir(tree.path().join("7")).unwrap();
    std::fs::write(tree.path().join("7/fd"), "no directory").unwrap();
    let mut probe = Probe::new().unwrap();
    probe.proc = crate::host::Proc::at(tree.path()).unwrap();
    // The server has no wire; whether another has, cannot be told.
    assert_eq!(probe.wire(Stdio::Pipe(u64::MAX), &[]), Sight::clear(WireState::Unknown));
    // It has one, and who is at its other end cannot be told.
    let why = Some("the open files of process 7 cannot be read".into());
    assert_eq!(probe.held(Stdio::Pipe(u64::MAX)), Sight { state: WireState::Held(vec![]), blind: why });
}

#[test]
#[ignore = "needs root: cargo xtask test runs it"]
fn a_socket_pair_of_another_network_namespace() {
    let script = "import socket, subprocess, time
a, b = socket.socketpair(); c = subprocess.Popen(['sleep', '600'], stdin=b, stdout=subprocess.DEVNULL); b.close()
print(c.pid, flush=True); time.sleep(600)";
    let (mut host, line) = Started::line_of(Command::new("unshare").args(["--net", "python3", "-c", script]));
    let server = id(line.parse().unwrap());
    let wire = Probe::new().unwrap().proc.process(server.pid).unwrap().stdio()[0];
    let WireState::Held(found) = facts(&[server], wire).wire else { panic!() };
    assert_eq!(found.iter().map(|h| h.process).collect::<Vec<_>>(), [host.id()]);
    host.end();
    assert_eq!(facts(&[server], wire).wire, WireState::HungUp);
    let sleeper = Pid::from_raw(server.pid.cast_signed()).unwrap();
    rustix::process::kill_process(sleeper, rustix::process::Signal::KILL).unwrap();
}
