use std::{
    io::{Read, Write},
    os::{fd::OwnedFd, unix::net::UnixStream},
    process::{Command, Stdio as Std},
};

use rustix::{
    fs::{CWD, FileType, Mode},
    process::Pid,
};

use super::*;
use crate::os::forks_of_tests::calm;
use crate::probe::tests::{Started, end, facts, held_by, holders, id, look, our_session, ourselves, world};
use orphand_core::model::Subject;

/// Inspects one wire, the standard input, of a server with these processes.
fn ask(probe: &Probe, looked: &[Looked], wire: Stdio) -> Sight {
    let server =
        Wired { looked, complete: true, wires: [wire, Stdio::Null], lasting: true, others: &Vec::new };
    probe.wire(&server, Side::Reads)
}

/// The state of the standard output of this server.
fn stdout(server: &Started, wire: Stdio) -> WireState {
    look(&Subject { processes: vec![server.id()], stdout: wire, ..Subject::default() }).stdout
}

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
    // A forked worker of the agent has the write end as one of its descriptors.
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
    let WireState::Held { holders: found, .. } = facts(&[server.id()], server.wire()).stdin else { panic!() };
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
    let WireState::Held { holders: found, .. } = facts(&[server], wire).stdin else { panic!() };
    assert_eq!(found.iter().map(|h| h.process).collect::<Vec<_>>(), [host.id()]);
    host.end();
    assert_eq!(facts(&[server], wire).stdin, WireState::HungUp);
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
fn a_wire_the_server_has_closed_is_hung_up() {
    let (reader, writer) = std::io::pipe().unwrap();
    let server = Started::sleeper(Std::null());
    let state = |wire| {
        let (_tree, probe) = world(&[ourselves(), server.id()]);
        let subject = Subject { processes: vec![server.id()], stdin: wire, ..Subject::default() };
        calm(|| probe.facts(&subject, &Vec::new)).stdin
    };
    let pipe = Stdio::Pipe(rustix::fs::fstat(&reader).unwrap().st_ino);
    // Another process has both ends: no process talks to the server through them.
    assert_eq!(state(pipe), WireState::HungUp);
    drop((reader, writer));
    assert_eq!(state(pipe), WireState::HungUp);
    let (one, other) = UnixStream::pair().unwrap();
    let socket = Stdio::Socket(rustix::fs::fstat(&one).unwrap().st_ino);
    assert_eq!(state(socket), WireState::HungUp);
    drop((one, other));
    assert_eq!(state(socket), WireState::HungUp);
}

#[test]
fn a_wire_that_a_child_unheard_of_has_is_not_hung_up() {
    // The inspected process has closed it; its child has not.
    let script = "import os, subprocess, time
c = subprocess.Popen(['sleep', '600'], stdin=0); os.dup2(os.open('/dev/null', 0), 0); print(c.pid, flush=True); time.sleep(600)";
    let (reader, writer) = std::io::pipe().unwrap();
    let pipe = Stdio::Pipe(rustix::fs::fstat(&reader).unwrap().st_ino);
    let (server, line) = Started::python(script, reader);
    let child = id(line.parse().unwrap());
    let (_tree, probe) = world(&[ourselves(), server.id(), child]);
    let subject = Subject { processes: vec![server.id()], stdin: pipe, ..Subject::default() };
    let held = calm(|| probe.facts(&subject, &Vec::new)).stdin;
    end(child);
    assert_eq!(held_by(&held), Some(vec![ourselves()]));
    drop(writer);
}

#[test]
fn where_somebody_hides_his_files_he_may_have_the_wire() {
    let server = Started::sleeper(Std::null());
    let (tree, probe) = world(&[server.id()]);
    std::fs::create_dir(tree.path().join("7")).unwrap();
    std::fs::write(tree.path().join("7/fd"), "no directory").unwrap();
    let subject =
        Subject { processes: vec![server.id()], stdin: Stdio::Pipe(u64::MAX), ..Subject::default() };
    let found = probe.facts(&subject, &Vec::new);
    assert_eq!((found.stdin, found.blind), (WireState::Unknown, None));
}

#[test]
fn a_thread_with_a_table_of_its_own_may_have_the_wire() {
    // A thread calls unshare(CLONE_FILES), then the others close the wire.
    let script = "import ctypes, os, threading, time
held = threading.Event()
def keep(): ctypes.CDLL(None).unshare(0x400); held.set(); time.sleep(600)
threading.Thread(target=keep).start(); held.wait()
os.dup2(os.open('/dev/null', 0), 0); print(flush=True); time.sleep(600)";
    let (reader, _writer) = std::io::pipe().unwrap();
    let pipe = Stdio::Pipe(rustix::fs::fstat(&reader).unwrap().st_ino);
    let (server, _) = Started::python(script, reader);
    assert_eq!(facts(&[server.id()], pipe).stdin, WireState::Unknown);
}

#[test]
fn who_reads_what_the_server_writes() {
    let (reader, writer) = std::io::pipe().unwrap();
    let pipe = Stdio::Pipe(rustix::fs::fstat(&reader).unwrap().st_ino);
    let server = Started::new(Command::new("sleep").arg("600").stdin(Std::null()).stdout(writer));
    let mut sibling = Started::sleeper(reader);
    let WireState::Held { holders, unseen } = stdout(&server, pipe) else { panic!() };
    assert_eq!(holders.iter().map(|h| h.process).collect::<Vec<_>>(), [sibling.id()]);
    assert!(unseen, "/proc does not list everybody");
    sibling.end();
    assert_eq!(stdout(&server, pipe), WireState::HungUp);
    assert_eq!(stdout(&server, pipe), WireState::HungUp, "asking has not revived it");
}

#[test]
fn what_is_full_is_not_hung_up() {
    let (reader, mut writer) = std::io::pipe().unwrap();
    let pipe = Stdio::Pipe(rustix::fs::fstat(&reader).unwrap().st_ino);
    rustix::io::ioctl_fionbio(&writer, true).unwrap();
    while writer.write(&[0; 4096]).is_ok() {}
    let server = Started::new(Command::new("sleep").arg("600").stdin(Std::null()).stdout(writer));
    assert_eq!(held_by(&stdout(&server, pipe)), Some(vec![ourselves()]));
    drop(reader);
    assert_eq!(stdout(&server, pipe), WireState::HungUp);
}

#[test]
fn one_socket_may_be_both_wires() {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let theirs = OwnedFd::from(theirs);
    let server =
        Started::new(Command::new("sleep").arg("600").stdin(theirs.try_clone().unwrap()).stdout(theirs));
    let wire = server.wire();
    let subject = Subject { processes: vec![server.id()], stdin: wire, stdout: wire, ..Subject::default() };
    let found = look(&subject);
    assert_eq!(held_by(&found.stdout), Some(vec![ourselves()]));
    assert_eq!(found.stdin, found.stdout);
    drop(ours);
    let found = look(&subject);
    assert_eq!((found.stdin, found.stdout), (WireState::HungUp, WireState::HungUp));
}

#[test]
fn a_reader_in_flight_is_no_hang_up() {
    // The read end is in the queue of a socket: no process has it open.
    let script = "import os, socket, sys, time
a, b = socket.socketpair(); socket.send_fds(a, [b'x'], [0]); os.dup2(os.open('/dev/null', 0), 0)
print(flush=True); time.sleep(600)";
    let (reader, writer) = std::io::pipe().unwrap();
    let pipe = Stdio::Pipe(rustix::fs::fstat(&reader).unwrap().st_ino);
    let (mut keeper, _) = Started::python(script, reader);
    let server = Started::new(Command::new("sleep").arg("600").stdin(Std::null()).stdout(writer));
    let state = || {
        let (_tree, probe) = world(&[ourselves(), server.id(), keeper.id()]);
        let subject = Subject { processes: vec![server.id()], stdout: pipe, ..Subject::default() };
        calm(|| probe.facts(&subject, &Vec::new)).stdout
    };
    assert_eq!(state(), WireState::Held { holders: Vec::new(), unseen: true });
    keeper.end();
    assert_eq!(stdout(&server, pipe), WireState::HungUp);
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
    // No process has it open, but any process that knows the name may open it.
    let waits = WireState::Held { holders: Vec::new(), unseen: true };
    assert_eq!(facts(&[server.id()], wire).stdin, waits);
    std::fs::remove_file(&path).unwrap();
    assert_eq!(holders(&server, wire), None);
    // A repeated question changes nothing.
    assert_eq!(holders(&server, wire), None);
}

#[test]
fn a_stdin_that_is_no_wire_is_unknown() {
    let server = Started::sleeper(Std::null());
    assert_eq!(facts(&[server.id()], server.wire()).stdin, WireState::Unknown);
}

#[test]
fn asking_a_thousand_times_disturbs_nobody() {
    let mut server = Started::new(Command::new("cat").stdin(Std::piped()).stdout(Std::piped()));
    let (wire, probe) = (server.wire(), Probe::new().unwrap());
    let table = [Looked {
        process: server.id(),
        table: probe.proc.fd_table(server.0.id()).unwrap(),
        in_rings: Vec::new(),
    }];
    let (mut to, mut from) = (server.0.stdin.take().unwrap(), server.0.stdout.take().unwrap());
    for round in 0..1000_u32 {
        assert!(matches!(ask(&probe, &table, wire).state, WireState::Held { .. }));
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
    probe.proc = crate::host::Proc::at(tree.path()).unwrap().into();
    // The server has no wire. Nobody can tell whether another process has it.
    assert_eq!(ask(&probe, &[], Stdio::Pipe(u64::MAX)), Sight::clear(WireState::Unknown));
    // The server has one, but nobody can tell which process has the other end.
    let why = Some("the open files of process 7 cannot be read".into());
    assert_eq!(probe.held(Stdio::Pipe(u64::MAX), Side::Reads), Sight { blind: why, ..Sight::held(vec![]) });
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
    let WireState::Held { holders: found, .. } = facts(&[server], wire).stdin else { panic!() };
    assert_eq!(found.iter().map(|h| h.process).collect::<Vec<_>>(), [host.id()]);
    host.end();
    assert_eq!(facts(&[server], wire).stdin, WireState::HungUp);
    let sleeper = Pid::from_raw(server.pid.cast_signed()).unwrap();
    rustix::process::kill_process(sleeper, rustix::process::Signal::KILL).unwrap();
}
