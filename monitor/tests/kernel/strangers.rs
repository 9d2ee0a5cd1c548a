//! Programs that no rule knows: their exec is reported if their parent made both wires for them.

use std::os::unix::fs::symlink;

use orphand::source::kernel::{KernelOptions, KernelSource};
use orphand_core::model::{ProcessId, Tracking};

use crate::stage::{Actor, drain_until_exit, execs, options, python};

/// Starts a program on each kind of streams, and one that starts another on its own.
const SCRIPT: &str = r#"
import socket
null, pipe = subprocess.DEVNULL, subprocess.PIPE
ours, theirs = socket.socketpair()
out = open("/dev/null", "w")
def child(what, argv=["/bin/true"], **streams):
    p = subprocess.Popen(argv, **streams)
    say(what, child=p.pid, born=start(p.pid))
    p.communicate()
child("pipes", stdin=pipe, stdout=pipe)
child("one socket", stdin=theirs, stdout=theirs)
child("socket and pipe", stdin=theirs, stdout=pipe)
child("no wire in", stdin=null, stdout=pipe)
child("no wire out", stdin=pipe, stdout=out)
child("closed", stdin=pipe, stdout=pipe, preexec_fn=lambda: os.close(0))
child("handed on", stdin=None, stdout=None)
child("handed on in", stdin=None, stdout=pipe)
child("handed on out", stdin=pipe, stdout=None)
"#;

const NEW_WIRES: [&str; 3] = ["pipes", "one socket", "socket and pipe"];
const OTHERS: [&str; 6] =
    ["no wire in", "no wire out", "closed", "handed on", "handed on in", "handed on out"];

/// Which of the programs are reported if a process of this name starts them.
fn reported(name: &str, wired_strangers: bool) -> Vec<&'static str> {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join(name);
    symlink(python(), &file).unwrap();
    // It has two wires itself: it starts before the programs are attached.
    let actor = Actor::called(file.to_str().unwrap(), SCRIPT);
    let mut source = KernelSource::open(&KernelOptions { wired_strangers, ..options() }).unwrap();
    let (truth, _) = actor.run();
    let barrier = Actor::wait_for_the_word("");
    let last = barrier.id;
    assert!(source.members.track(last, Tracking::Member).unwrap().is_followed());
    barrier.run();
    let events = drain_until_exit(&mut source, last);
    let seen = |what: &&str| {
        let born = truth.line(what)["born"].as_u64().unwrap();
        !execs(&events, ProcessId::new(truth.number(what, "child"), born)).is_empty()
    };
    NEW_WIRES.into_iter().chain(OTHERS).filter(seen).collect()
}

#[test]
#[ignore = "needs root and a kernel: cargo xtask test runs it"]
fn one_on_wires_that_its_parent_made_is_reported() {
    assert_eq!(reported("orphand-host", true), NEW_WIRES);
}

#[test]
#[ignore = "needs root and a kernel: cargo xtask test runs it"]
fn in_a_pipeline_of_a_shell_it_is_not() {
    assert_eq!(reported("bash", true), [""; 0]);
}

#[test]
#[ignore = "needs root and a kernel: cargo xtask test runs it"]
fn where_it_is_switched_off_none_is() {
    assert_eq!(reported("orphand-host", false), [""; 0]);
}
