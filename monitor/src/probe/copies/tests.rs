use std::{
    net::{TcpListener, TcpStream, UdpSocket},
    os::{fd::OwnedFd, unix::net::UnixStream},
    process::Stdio as Std,
};

use super::*;
use crate::os::forks_of_tests::calm;
use crate::probe::tests::{Started, facts, ourselves, world};
use orphand_core::model::Subject;

/// Whether a copy with this descriptor is reported as connected, where only these two processes and the test
/// are visible.
fn connected(copy: &Started, other: &Started, among: &[ProcessId]) -> bool {
    let (_tree, probe) = world(&[ourselves(), copy.id(), other.id()]);
    let found = calm(|| probe.copies(&[copy.id()], among));
    assert_eq!(found.len(), 1);
    found[0].connected
}

fn copies(copies: &[ProcessId], among: &[ProcessId]) -> Vec<CopyFacts> {
    let probe = Probe::new().unwrap();
    calm(|| probe.copies(copies, among))
}

#[test]
fn a_copy_without_sockets_is_not_connected() {
    let copy = Started::bare(Std::null(), Std::null(), Std::null());
    let found = copies(&[copy.id()], &[]);
    let [CopyFacts { process, sid, connected: false, work: Some(work) }] = found[..] else {
        panic!("{found:?}")
    };
    assert_eq!((process, sid), (copy.id(), crate::probe::tests::our_session()));
    assert!(work.cpu_ns > 0 && work.read_bytes > 0);
}

#[test]
fn what_leads_to_the_network_counts() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    for socket in [OwnedFd::from(listener), OwnedFd::from(client), OwnedFd::from(udp)] {
        let copy = Started::bare(socket, Std::null(), Std::null());
        assert!(copies(&[copy.id()], &[ourselves()])[0].connected);
    }
}

#[test]
fn a_pair_counts_by_who_has_its_other_half() {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let copy = Started::bare(OwnedFd::from(theirs), Std::null(), Std::null());
    let mut server = Started::bare(OwnedFd::from(ours.try_clone().unwrap()), Std::null(), Std::null());
    // The test process has it too.
    assert!(connected(&copy, &server, &[server.id()]));
    assert!(!connected(&copy, &server, &[server.id(), ourselves()]));
    drop(ours);
    assert!(!connected(&copy, &server, &[server.id()]));
    assert!(connected(&copy, &server, &[]));
    server.end();
    assert!(!copies(&[copy.id()], &[])[0].connected, "hung up");
}

#[test]
fn both_halves_among_copies_are_no_connection() {
    let (one, other) = UnixStream::pair().unwrap();
    let copies = [
        Started::bare(OwnedFd::from(one), Std::null(), Std::null()),
        Started::bare(OwnedFd::from(other), Std::null(), Std::null()),
    ];
    let ids = [copies[0].id(), copies[1].id()];
    let (_tree, probe) = world(&ids);
    assert!(calm(|| probe.copies(&ids, &[])).iter().all(|copy| !copy.connected));
    assert!(calm(|| probe.copies(&ids[..1], &[])).iter().all(|copy| copy.connected));
}

#[test]
fn a_pipe_counts_by_who_has_its_other_end() {
    for waits_for_work in [true, false] {
        let (reader, writer) = std::io::pipe().unwrap();
        let (own, theirs): (OwnedFd, OwnedFd) =
            if waits_for_work { (reader.into(), writer.into()) } else { (writer.into(), reader.into()) };
        // The write end counts on descriptor 0 too: that is not output.
        let copy = Started::bare(own, Std::null(), Std::null());
        let mut server = Started::bare(theirs.try_clone().unwrap(), Std::null(), Std::null());
        assert!(connected(&copy, &server, &[server.id()]), "we have it, too");
        assert!(!connected(&copy, &server, &[server.id(), ourselves()]));
        drop(theirs);
        assert!(!connected(&copy, &server, &[server.id()]));
        assert!(connected(&copy, &server, &[]));
        server.end();
        assert!(!copies(&[copy.id()], &[])[0].connected, "hung up");
    }
}

#[test]
fn a_queue_among_copies_is_none() {
    let (reader, writer) = std::io::pipe().unwrap();
    let copies =
        [Started::bare(reader, Std::null(), Std::null()), Started::bare(writer, Std::null(), Std::null())];
    let ids = [copies[0].id(), copies[1].id()];
    let (_tree, probe) = world(&ids);
    assert!(calm(|| probe.copies(&ids, &[])).iter().all(|copy| !copy.connected));
    assert!(calm(|| probe.copies(&ids[..1], &[])).iter().all(|copy| copy.connected));
}

#[test]
fn inherited_output_is_no_connection() {
    let (reader, writer) = std::io::pipe().unwrap();
    let (journal, ours) = UnixStream::pair().unwrap();
    let is_connected = |copy: &Started| copies(&[copy.id()], &[])[0].connected;
    let pipe = || writer.try_clone().unwrap();
    let socket = || OwnedFd::from(journal.try_clone().unwrap());
    assert!(!is_connected(&Started::bare(Std::null(), pipe(), pipe())));
    assert!(!is_connected(&Started::bare(Std::null(), socket(), socket())));
    assert!(is_connected(&Started::bare(socket(), socket(), socket())));
    assert!(is_connected(&Started::bare(Std::null(), reader.try_clone().unwrap(), pipe())), "it reads it");
    drop((reader, ours));
}

#[test]
fn a_named_fifo_counts_as_a_pipe() {
    use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat, open};
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("fifo");
    mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    let copy = Started::bare(
        open(&path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty()).unwrap(),
        Std::null(),
        Std::null(),
    );
    let writer = open(&path, OFlags::WRONLY | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty()).unwrap();
    assert!(copies(&[copy.id()], &[])[0].connected);
    assert!(!copies(&[copy.id()], &[ourselves()])[0].connected);
    drop(writer);
    assert!(copies(&[copy.id()], &[])[0].connected, "whoever knows its name may write to it");
    std::fs::remove_file(&path).unwrap();
    assert!(!copies(&[copy.id()], &[])[0].connected, "hung up");
}

#[test]
fn a_unix_listener_counts() {
    let dir = tempfile::tempdir().unwrap();
    let listener = std::os::unix::net::UnixListener::bind(dir.path().join("s")).unwrap();
    let copy = Started::bare(OwnedFd::from(listener), Std::null(), Std::null());
    assert!(copies(&[copy.id()], &[])[0].connected);
}

#[test]
fn who_does_something_is_seen_to() {
    let script = "import sys, time; print(flush=True)
for line in sys.stdin: sum(range(100000)); print(flush=True)";
    let mut copy = Started::new(
        std::process::Command::new("python3")
            .args(["-u", "-c", script])
            .stdin(Std::piped())
            .stdout(Std::piped()),
    );
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(copy.0.stdout.take().unwrap()));
    lines.next().unwrap().unwrap();
    let probe = Probe::new().unwrap();
    // It waits for its next line and changes nothing any more.
    while probe.proc.process(copy.0.id()).unwrap().stat().state != b'S' {
        std::thread::yield_now();
    }
    let now = || probe.copies(&[copy.id()], &[])[0].work.unwrap();
    // It is shown as waiting a moment before it stops running.
    let (mut before, begun) = (now(), std::time::Instant::now());
    while std::mem::replace(&mut before, now()) != before {
        assert!(begun.elapsed().as_secs() < 20, "it does not rest");
    }
    std::io::Write::write_all(&mut copy.0.stdin.as_ref().unwrap(), b"x\n").unwrap();
    lines.next().unwrap().unwrap();
    let after = now();
    assert!(after.cpu_ns > before.cpu_ns && after.read_bytes > before.read_bytes, "{before:?} {after:?}");
}

#[test]
fn the_dead_are_left_out_and_servers_tell_of_their_copies() {
    let (server, mut copy) = (
        Started::bare(Std::null(), Std::null(), Std::null()),
        Started::bare(Std::null(), Std::null(), Std::null()),
    );
    let subject = Subject { processes: vec![server.id()], copies: vec![copy.id()], ..Subject::default() };
    let found = Probe::new().unwrap().facts(&subject, &Vec::new).copies;
    assert_eq!(found.iter().map(|copy| copy.process).collect::<Vec<_>>(), [copy.id()]);
    assert!(facts(&[server.id()], orphand_core::model::Stdio::Null).copies.is_empty());
    copy.end();
    assert!(Probe::new().unwrap().facts(&subject, &Vec::new).copies.is_empty());
}

/// The loop asks: a user's copies with thousands of files each must not keep it.
#[test]
fn copies_with_more_files_than_are_looked_at_count_as_connected() {
    let script = "import os, resource
resource.setrlimit(resource.RLIMIT_NOFILE, (4096, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
os.closerange(3, 4096)
os.dup2(0, 4000)
os.execvp('sleep', ['sleep', 'infinity'])";
    let sleeper = || {
        let mut command = std::process::Command::new("python3");
        let command = command.args(["-c", script]).stdin(Std::null()).stdout(Std::null());
        let one = Started::new(command.stderr(Std::null()));
        one.until_asleep();
        one
    };
    let many: Vec<_> = (0..5).map(|_| sleeper()).collect();
    let few = Started::bare(Std::null(), Std::null(), Std::null());
    let ids: Vec<_> = many.iter().chain([&few]).map(Started::id).collect();
    let shown = |found: &[CopyFacts]| -> Vec<(bool, bool)> {
        found.iter().map(|copy| (copy.connected, copy.work.is_some())).collect()
    };
    let (looked_at, beyond) = ((false, true), (true, true));
    assert_eq!(shown(&copies(&ids, &[])), [[looked_at; 4].as_slice(), &[beyond; 2]].concat());
    assert_eq!(shown(&copies(&ids[4..], &[])), [looked_at; 2]);
}
