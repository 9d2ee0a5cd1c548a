//! Tests of channels.

use std::{
    os::{
        fd::AsRawFd,
        unix::{
            net::{UnixListener, UnixStream},
            process::CommandExt as _,
        },
    },
    process::{Command, Stdio as Std},
};

use crate::probe::tests::{Started, facts, look, ourselves};
use orphand_core::model::{Stdio, Subject};

use super::super::tests::serves;

/// A server that takes descriptor `fd` of ours as its `number`.
pub(in super::super) fn with_ours(fd: &impl AsRawFd, number: u32) -> Started {
    Started::line_of(&mut taking_ours(fd, number)).0
}

fn taking_ours(fd: &impl AsRawFd, number: u32) -> Command {
    let script = format!(
        "import ctypes, os, time; libc = ctypes.CDLL(None); pidfd = os.pidfd_open({})
fd = libc.syscall(438, pidfd, {}, 0); os.dup2(fd, {number}); os.close(fd) if fd != {number} else None
os.close(pidfd); print(flush=True); time.sleep(600)",
        std::process::id(),
        fd.as_raw_fd(),
    );
    let mut command = Command::new("/usr/bin/python3");
    command.args(["-c", &script]).stdin(Std::null());
    command
}

#[test]
fn a_pair_of_sockets_is_a_channel_while_somebody_has_its_other_end() {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let server = with_ours(&theirs, 9);
    drop(theirs);
    assert!(serves(&server));
    drop(ours);
    assert!(!serves(&server));
}

#[test]
fn a_standard_stream_and_a_wire_are_no_channels() {
    let (_ours, theirs) = UnixStream::pair().unwrap();
    let server = with_ours(&theirs, 2);
    assert!(!serves(&server));
    let moved = with_ours(&theirs, 9);
    let wire = Stdio::Socket(rustix::fs::fstat(&theirs).unwrap().st_ino);
    assert!(!facts(&[moved.id()], wire).processes[0].sockets.clients);
}

#[test]
fn a_connection_that_the_server_began_counts_if_it_leads_to_the_living_owner() {
    let dir = tempfile::tempdir().unwrap();
    let listener = UnixListener::bind(dir.path().join("s")).unwrap();
    let connection = UnixStream::connect(dir.path().join("s")).unwrap();
    let _accepted = listener.accept().unwrap();
    let server = with_ours(&connection, 9);
    drop(connection);
    assert!(!serves(&server));
    let subject =
        |owner| look(&Subject { processes: vec![server.id()], owner: Some(owner), ..Default::default() });
    let other = Started::sleeper(Std::null());
    assert!(!subject(other.id()).processes[0].sockets.clients);
    assert!(subject(ourselves()).processes[0].sockets.clients);
}

/// The owner's end of another server's wire, inherited, leads to a sibling that nobody uses.
#[test]
fn a_pair_is_no_channel_while_only_an_unused_sibling_has_its_other_end() {
    let (one, other) = UnixStream::pair().unwrap();
    let (server, sibling) = (with_ours(&one, 9), with_ours(&other, 8));
    drop((one, other));
    let used = |siblings: &[&Started]| {
        let siblings = siblings.iter().map(|one| one.id()).collect();
        let subject = Subject { processes: vec![server.id()], siblings, ..Default::default() };
        look(&subject).processes[0].sockets.clients
    };
    assert!(used(&[]));
    assert!(!used(&[&sibling]));
    // The twin has opted out, so it stays, and may use the server.
    let (one, other) = UnixStream::pair().unwrap();
    let server = with_ours(&one, 9);
    let stays = Started::line_of(taking_ours(&other, 8).env("ORPHAND_OPT_OUT", "1")).0;
    drop((one, other));
    let subject = Subject { processes: vec![server.id()], siblings: vec![stays.id()], ..Default::default() };
    assert!(look(&subject).processes[0].sockets.clients);
}

#[test]
fn a_server_that_is_named_like_a_client_of_containers_has_channels() {
    let (_ours, theirs) = UnixStream::pair().unwrap();
    let server = Started::line_of(taking_ours(&theirs, 9).arg0("/opt/mcp-server-docker")).0;
    drop(theirs);
    assert!(serves(&server));
}
