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

#[test]
fn a_pipe_without_a_name_commands_if_somebody_else_has_its_other_end() {
    use std::os::fd::AsRawFd;
    // The twin has both ends itself, as the tokens of a build tool are inherited.
    for (ends, expected) in [("r", true), ("r, w", false)] {
        let (reader, writer) = std::io::pipe().unwrap();
        // The descriptors of another process are taken by number: nothing is inherited by accident.
        let script = format!(
            "import ctypes, os, sys, time
libc = ctypes.CDLL(None); pidfd = os.pidfd_open({us})
r, w = (libc.syscall(438, pidfd, n, 0) for n in ({r}, {w}))
for n in (r, w):
    if n not in ({ends},): os.close(n)
os.close(pidfd); print(flush=True); time.sleep(600)",
            us = std::process::id(),
            r = reader.as_raw_fd(),
            w = writer.as_raw_fd(),
        );
        let (server, _) = Started::python(&script, Std::null());
        let mine = || {
            let mut uses = vec![SocketUse::default()];
            let probe = Probe::new().unwrap();
            let table = probe.proc.fd_table(server.0.id()).unwrap();
            let looked = [Looked { process: server.id(), table, in_rings: Vec::new() }];
            probe.add_fifos(&looked, &[], &Vec::new, &mut uses);
            uses[0].clients
        };
        assert_eq!(mine(), expected, "{ends}");
    }
}
