use std::process::{Command, Stdio as Std};

use super::*;
use crate::probe::tests::{Started, facts, look, of, world};
use orphand_core::model::Subject;

/// A FIFO in a directory of its own.
fn fifo() -> (tempfile::TempDir, std::path::PathBuf) {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("commands");
    mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    (dir, path)
}

/// Python that opens the FIFO in this way and keeps running; the number is the FIFO's inode number.
fn opened(path: &std::path::Path, flags: &str) -> (Started, u64) {
    let script = format!(
        "import os, sys, time; f = os.open(sys.argv[1], os.{flags}); print(os.fstat(f).st_ino, flush=True); time.sleep(600)"
    );
    let (started, line) =
        Started::line_of(Command::new("python3").args(["-c", &script]).arg(path).stdin(Std::null()));
    (started, line.parse().unwrap())
}

fn is_commanded(server: &Started) -> bool {
    facts(&[server.id()], Stdio::Null).processes[0].sockets.clients
}

#[test]
fn who_can_write_to_it_is_a_client() {
    let (_dir, path) = fifo();
    let (server, _) = opened(&path, "O_RDONLY | os.O_NONBLOCK");
    let (mut person, _) = opened(&path, "O_WRONLY");
    assert!(is_commanded(&server));
    // A writer of the server itself is reported separately.
    let (_tree, probe) = world(&[server.id(), person.id()]);
    let subject = Subject { processes: vec![server.id(), person.id()], ..Subject::default() };
    let found = probe.facts(&subject, &Vec::new);
    assert_eq!(of(&found, server.id()).sockets.inside, [person.id()]);
    person.end();
    assert!(!is_commanded(&server), "nobody has its write end");
}

#[test]
fn a_wire_is_none_and_neither_is_what_it_writes() {
    let (_dir, path) = fifo();
    let (server, inode) = opened(&path, "O_RDONLY | os.O_NONBLOCK");
    let (person, _) = opened(&path, "O_WRONLY");
    let wire = Stdio::Pipe(inode);
    let found = look(&Subject { processes: vec![server.id()], stdin: wire, ..Subject::default() });
    assert!(!found.processes[0].sockets.clients);
    assert!(!is_commanded(&person), "it writes to it");
}
