use std::{
    os::fd::OwnedFd,
    os::unix::net::UnixStream,
    process::{Command, Stdio as Std},
};

use crate::probe::tests::{Started, end, id, look, of};
use orphand_core::model::{Stdio, Subject};

fn joined(one: &Started, other: &Started) -> [bool; 2] {
    let processes = vec![one.id(), other.id()];
    let found = look(&Subject { processes, ..Subject::default() });
    let has = |process: &Started, other: &Started| match of(&found, process.id()).joined.as_slice() {
        [] => false,
        [only] => *only == other.id() || panic!("{only}"),
        more => panic!("{more:?}"),
    };
    [has(one, other), has(other, one)]
}

#[test]
fn a_pipe_joins_its_two_ends_and_not_those_who_share_one() {
    let (reader, writer) = std::io::pipe().unwrap();
    let server =
        Started::new(Command::new("sleep").arg("600").stdin(Std::null()).stdout(writer.try_clone().unwrap()));
    let twin = Started::new(Command::new("sleep").arg("600").stdin(Std::null()).stdout(writer));
    assert_eq!(joined(&server, &twin), [false, false]);
    let below = Started::sleeper(reader);
    assert_eq!(joined(&server, &below), [true, true]);
}

#[test]
fn the_other_end_may_have_any_number() {
    let script = "import os, subprocess, time
r, w = os.pipe(); c = subprocess.Popen(['sleep', '600'], stdin=r); os.close(r); print(c.pid, flush=True); time.sleep(600)";
    let (server, line) = Started::python(script, Std::null());
    let child = id(line.parse().unwrap());
    let found = look(&Subject { processes: vec![server.id(), child], ..Subject::default() });
    end(child);
    assert_eq!(of(&found, child).joined, [server.id()]);
    // The pipe is not one of its own standard streams.
    assert!(of(&found, server.id()).joined.is_empty());
}

#[test]
fn a_socket_pair_joins() {
    let (one, other) = UnixStream::pair().unwrap();
    let server = Started::sleeper(OwnedFd::from(one));
    let browser =
        Started::new(Command::new("sleep").arg("600").stdin(Std::null()).stderr(OwnedFd::from(other)));
    assert_eq!(joined(&server, &browser), [true, true]);
    let stranger = Started::sleeper(Std::null());
    assert_eq!(joined(&server, &stranger), [false, false]);
    assert!(matches!(
        look(&Subject { processes: vec![browser.id()], ..Subject::default() }).processes[0].stdio,
        [Stdio::Null, _, Stdio::Socket(_)]
    ));
}

#[test]
fn what_everybody_has_joins_nobody() {
    let tree = tempfile::tempdir().unwrap();
    let path = tree.path().join("fifo");
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    let open = || std::fs::File::options().read(true).write(true).open(&path).unwrap();
    let (one, other) = (Started::sleeper(open()), Started::sleeper(open()));
    assert_eq!(joined(&one, &other), [false, false]);
    let (one, other) = (Started::sleeper(Std::null()), Started::sleeper(Std::null()));
    assert_eq!(joined(&one, &other), [false, false]);
}
