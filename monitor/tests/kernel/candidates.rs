//! Which execs of processes nobody follows are reported, and what follows from it.

use std::{os::unix::fs::symlink, path::PathBuf};

use orphand::source::kernel::{KernelOptions, KernelSource};
use orphand_core::{
    model::{ProcessEvent, ProcessId, Tracking},
    recognise::Candidate,
};
use tempfile::TempDir;

use crate::stage::{Actor, drain_until, drain_until_exit, execs, exits, forks, options, python, subject};

/// The interpreter under a name of the test's own, so that tests do not see each other's actors.
fn named(name: &str) -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(name);
    symlink(python(), &path).unwrap();
    (dir, path)
}

fn watching(comm: &str, needs_wire: bool) -> KernelSource {
    let candidates = vec![Candidate { comm: comm.to_owned(), needs_wire }];
    KernelSource::open(&KernelOptions { candidates, ..options() }).unwrap()
}

/// A stranger starts `file`; the stranger is followed by nobody.
fn stranger(file: &std::path::Path, how: &str) -> (ProcessId, ProcessId, Vec<ProcessEvent>) {
    let comm: String = file.file_name().unwrap().to_str().unwrap().chars().take(15).collect();
    let mut source = watching(&comm, how == "needs_wire" || how == "needs_wire on null");
    let stdin = if how.ends_with("on null") { "subprocess.DEVNULL" } else { "subprocess.PIPE" };
    let script = format!(
        r#"
p = subprocess.Popen(["{}", "-c", "import os; os.read(0, 1); os.fork() or os._exit(0); os.wait(); os._exit(2)"], stdin={stdin})
say("child", child=p.pid, born=start(p.pid))
if p.stdin: p.stdin.close()
p.wait()
"#,
        file.display()
    );
    let actor = Actor::wait_for_the_word(&script);
    let parent = actor.id;
    let (truth, _) = actor.run();
    let line = truth.line("child");
    let child = ProcessId::new(truth.number("child", "child"), line["born"].as_u64().unwrap());
    // The barrier: a followed process that lives and dies after it.
    let barrier = Actor::wait_for_the_word("");
    let last = barrier.id;
    assert!(source.members.track(last, Tracking::Member).unwrap().is_followed());
    barrier.run();
    let events = drain_until_exit(&mut source, last).into_iter().filter(|e| subject(e) != last).collect();
    (parent, child, events)
}

#[test]
#[ignore = "needs root and a kernel: cargo xtask test runs it"]
fn a_candidate_is_reported_with_what_it_forks_and_its_parents_exit() {
    let (_dir, file) = named("orphand-t1-long-name-of-more-than-15-bytes");
    let (parent, child, events) = stranger(&file, "always");
    assert_eq!(execs(&events, child).len(), 1, "{events:#?}");
    match execs(&events, child)[0] {
        ProcessEvent::Exec { parent: p, .. } => assert_eq!(*p, parent),
        _ => unreachable!(),
    }
    assert_eq!(forks(&events), 1, "{events:#?}");
    assert_eq!(exits(&events, child).len(), 1);
    assert_eq!(exits(&events, parent).len(), 1, "the parent is watched");
}

#[test]
#[ignore = "needs root and a kernel: cargo xtask test runs it"]
fn any_other_program_is_not() {
    let (_dir, other) = named("orphand-x2");
    let mut source = watching("orphand-t2", false);
    let barrier = Actor::called(other.to_str().unwrap(), "subprocess.run([sys.executable, '-c', ''])");
    let id = barrier.id;
    barrier.run();
    let mine = |e: &ProcessEvent| subject(e) == id;
    let mut events = Vec::new();
    source.drain(|e| events.push(e));
    assert!(!events.iter().any(mine), "{events:#?}");
}

#[test]
#[ignore = "needs root and a kernel: cargo xtask test runs it"]
fn one_that_needs_a_wire_is_reported_with_it_only() {
    let (_dir, file) = named("orphand-t3");
    let (_, child, events) = stranger(&file, "needs_wire");
    assert_eq!(execs(&events, child).len(), 1, "{events:#?}");
    let (parent, child, events) = stranger(&file, "needs_wire on null");
    assert!(execs(&events, child).is_empty(), "{events:#?}");
    assert!(exits(&events, parent).is_empty(), "its parent is not watched either: {events:#?}");
}

#[test]
#[ignore = "needs root and a kernel: cargo xtask test runs it"]
fn a_name_with_mcp_in_it_is_always_one() {
    let (_dir, file) = named("orphand-MCP-t4");
    let mut source = KernelSource::open(&KernelOptions { mcp_names: true, ..options() }).unwrap();
    let actor = Actor::called(file.to_str().unwrap(), "");
    let id = actor.id;
    actor.run();
    let events = drain_until_exit(&mut source, id);
    assert_eq!(execs(&events, id).len(), 1, "{events:#?}");
}

/// What one does that forks `n` children, is judged in between, and forks `n` more.
fn judged(
    verdict: impl FnOnce(&mut KernelSource, ProcessId),
) -> (ProcessId, Vec<ProcessEvent>, Vec<ProcessEvent>) {
    let (_dir, file) = named("orphand-t5");
    let mut source = watching("orphand-t5", false);
    let mut actor = Actor::called(
        file.to_str().unwrap(),
        r#"
r, w = os.pipe()
kid = os.fork()
if kid == 0:
    os.read(r, 1)                       # after the verdict on its parent
    os.fork() or os._exit(0)
    os._exit(0)
os.fork() or os._exit(0)
os.write(2, b"") ; say("forked")
go()
os.write(w, b"x")
for _ in range(2): wait()
os.fork() or os._exit(0)
wait()
"#,
    );
    let id = actor.id;
    actor.word();
    // Both forks are in the ring when the second child's exit is.
    let mut before = Vec::new();
    drain_until(&mut source, &mut before, |events| {
        events.iter().any(|e| matches!(e, ProcessEvent::Exit { .. }))
    });
    verdict(&mut source, id);
    actor.word();
    actor.finish();
    let barrier = Actor::wait_for_the_word("");
    let last = barrier.id;
    assert!(source.members.track(last, Tracking::Member).unwrap().is_followed());
    barrier.run();
    let after = drain_until_exit(&mut source, last).into_iter().filter(|e| subject(e) != last).collect();
    (id, before, after)
}

#[test]
#[ignore = "needs root and a kernel: cargo xtask test runs it"]
fn confirmed_it_goes_on_with_all_below_it() {
    let (id, before, after) =
        judged(|source, id| assert!(source.members.track(id, Tracking::Agent).unwrap().is_followed()));
    assert_eq!(forks(&before), 2, "{before:#?}");
    assert_eq!(forks(&after), 2, "its own, and its child's: {after:#?}");
    assert_eq!(exits(&after, id).len(), 1);
}

#[test]
#[ignore = "needs root and a kernel: cargo xtask test runs it"]
fn refused_it_is_forgotten_with_all_below_it() {
    let (_, before, after) = judged(|source, id| source.members.untrack(id.pid).unwrap());
    assert_eq!(forks(&before), 2, "{before:#?}");
    // The parent of the candidate is this test: nothing else is left.
    assert!(after.is_empty(), "{after:#?}");
}

#[test]
#[ignore = "needs root and a kernel: cargo xtask test runs it"]
fn a_dead_process_is_not_followed() {
    let mut source = KernelSource::open(&options()).unwrap();
    let actor = Actor::wait_for_the_word("");
    let id = actor.id;
    actor.run();
    assert!(!source.members.track(id, Tracking::Member).unwrap().is_followed());
    let me = orphand::host::identity::identity(std::process::id()).unwrap();
    assert!(
        !source.members.track(ProcessId::new(me.pid, me.start + 1), Tracking::Member).unwrap().is_followed(),
        "another birth"
    );
    assert!(source.members.track(me, Tracking::Member).unwrap().is_followed());
    source.members.untrack(me.pid).unwrap();
}

#[test]
#[ignore = "needs root and a kernel: cargo xtask test runs it"]
fn what_a_service_manager_starts_is_reported_whatever_it_is() {
    let (_dir, file) = named("orphand-m1");
    let script = format!(
        r#"
p = subprocess.Popen(["{}", "-c", "import os; os.fork() or os._exit(0); os.wait()"])
say("child", child=p.pid, born=start(p.pid))
p.wait()
os.fork() or os._exit(0)                # its own forks are nobody's business
wait()
"#,
        file.display()
    );
    for is_manager in [true, false] {
        let mut source = KernelSource::open(&options()).unwrap();
        let actor = Actor::wait_for_the_word(&script);
        let manager = actor.id;
        if is_manager {
            assert!(source.members.track(manager, Tracking::Manager).unwrap().is_followed());
        }
        let (truth, _) = actor.run();
        let born = truth.line("child")["born"].as_u64().unwrap();
        let child = ProcessId::new(truth.number("child", "child"), born);
        let barrier = Actor::wait_for_the_word("");
        let last = barrier.id;
        assert!(source.members.track(last, Tracking::Member).unwrap().is_followed());
        barrier.run();
        let mut events = drain_until_exit(&mut source, last);
        events.retain(|e| subject(e) != last);
        if !is_manager {
            assert!(events.is_empty(), "{events:#?}");
            continue;
        }
        assert_eq!(execs(&events, child).len(), 1, "{events:#?}");
        assert_eq!(exits(&events, child).len(), 1);
        assert_eq!(exits(&events, manager).len(), 1);
        assert_eq!(forks(&events), 1, "the child's, not the manager's: {events:#?}");
    }
}
