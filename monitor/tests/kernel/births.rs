//! How processes come to be: creators, identities, order.

use orphand_core::model::{ExitStatus, ProcessEvent};

use crate::stage::{exits, fork_of, forks, play, subject};

#[test]
#[ignore = "needs root and a kernel: cargo xtask test runs it"]
fn fork_without_exec() {
    let play = play(
        r#"
if os.fork() == 0:
    say("child"); os._exit(7)
wait(); say("root")
"#,
    );
    let child = play.truth.id("child");
    assert_eq!(play.truth.id("root"), play.root);
    let (creator, uid, sid) = fork_of(&play.events, child);
    assert_eq!(creator, play.root);
    assert_eq!(uid, play.truth.number("child", "uid"));
    assert_eq!(sid, play.truth.number("child", "sid"));
    assert_eq!(exits(&play.events, child), [ExitStatus::Code(7)]);
    assert_eq!(exits(&play.events, play.root), [play.status]);
}

#[test]
#[ignore = "needs root and a kernel: cargo xtask test runs it"]
fn threads_are_no_processes() {
    let play = play(
        r#"
threads = [threading.Thread(target=lambda: None) for _ in range(20)]
for t in threads: t.start()
for t in threads: t.join()
say("root")
"#,
    );
    assert_eq!(play.events.len(), 1, "{:#?}", play.events);
    assert_eq!(exits(&play.events, play.root), [ExitStatus::Code(0)]);
}

#[test]
#[ignore = "needs root and a kernel: cargo xtask test runs it"]
fn a_fork_by_a_thread_is_its_processs() {
    let play = play(
        r#"
def work():
    if os.fork() == 0:
        say("child"); os._exit(0)
    wait()
t = threading.Thread(target=work); t.start(); t.join()
"#,
    );
    assert_eq!(fork_of(&play.events, play.truth.id("child")).0, play.root);
}

#[test]
#[ignore = "needs root and a kernel: cargo xtask test runs it"]
fn double_fork_keeps_its_creator() {
    let play = play(
        r#"
if os.fork() == 0:
    say("middle"); middle = os.getpid()
    if os.fork() == 0:
        while os.getppid() == middle: time.sleep(0.001)
        say("grandchild"); os._exit(3)
    os._exit(0)
wait()
"#,
    );
    let grandchild = play.truth.id("grandchild");
    assert_eq!(fork_of(&play.events, grandchild).0, play.truth.id("middle"));
    assert_eq!(exits(&play.events, grandchild), [ExitStatus::Code(3)]);
}

#[test]
#[ignore = "needs root and a kernel: cargo xtask test runs it"]
fn clone_parent_does_not_change_who_created() {
    let play = play(
        r#"
if os.fork() == 0:
    say("caller")
    child = libc.syscall(56, 0x8000 | signal.SIGCHLD, 0, 0, 0, 0)  # clone(CLONE_PARENT)
    if child == 0:
        say("sibling", ppid=os.getppid()); os._exit(4)
    os._exit(0)
wait(); wait(); say("root")
"#,
    );
    let sibling = play.truth.id("sibling");
    // The parent is the root, the creator is not.
    assert_eq!(play.truth.number("sibling", "ppid"), play.root.pid);
    assert_eq!(fork_of(&play.events, sibling).0, play.truth.id("caller"));
    assert_eq!(exits(&play.events, sibling), [ExitStatus::Code(4)]);
}

#[test]
#[ignore = "needs root and a kernel: cargo xtask test runs it"]
fn vfork_and_posix_spawn() {
    let play = play(
        r#"
pid = os.posix_spawn(sys.executable, ["python3", "-c", "import os; os._exit(5)"], os.environ)
born = start(pid); wait(); say("spawned", child=pid, born=born)
p = subprocess.Popen([sys.executable, "-c", "import os; os._exit(6)"])
born = start(p.pid); p.wait(); say("popen", child=p.pid, born=born)
"#,
    );
    for (what, code) in [("spawned", 5), ("popen", 6)] {
        let line = play.truth.line(what);
        let pid = play.truth.number(what, "child");
        let child = orphand_core::model::ProcessId::new(pid, line["born"].as_u64().unwrap());
        assert_eq!(fork_of(&play.events, child).0, play.root);
        assert_eq!(exits(&play.events, child), [ExitStatus::Code(code)]);
        let order: Vec<_> = play.events.iter().filter(|e| subject(e) == child).map(kind).collect();
        assert_eq!(order, ["fork", "exec", "exit"]);
    }
}

#[test]
#[ignore = "needs root and a kernel: cargo xtask test runs it"]
fn records_are_in_causal_order_and_complete() {
    let play = play(
        r"
def tree(depth):
    for _ in range(3):
        if os.fork() == 0:
            if depth: tree(depth - 1)
            os._exit(0)
    for _ in range(3): wait()
tree(3)
",
    );
    // 3 + 9 + 27 + 81 processes.
    assert_eq!(forks(&play.events), 120);
    let mut alive = std::collections::HashSet::from([play.root]);
    let mut last = 0;
    for event in &play.events {
        match event {
            ProcessEvent::Fork { creator, child, .. } => {
                assert!(alive.contains(creator), "a dead creator {creator}");
                assert!(alive.insert(*child), "twice {child}");
            }
            ProcessEvent::Exit { process, .. } => assert!(alive.remove(process), "no birth of {process}"),
            other => panic!("{other:?}"),
        }
        last = last.max(event.at().0);
    }
    assert!(alive.is_empty() && last > 0, "{alive:?}");
}

fn kind(event: &ProcessEvent) -> &'static str {
    match event {
        ProcessEvent::Fork { .. } => "fork",
        ProcessEvent::Exec { .. } => "exec",
        ProcessEvent::Exit { .. } => "exit",
        ProcessEvent::Setsid { .. } => "setsid",
        ProcessEvent::ThreadExit { .. } => "thread exit",
        ProcessEvent::Signal { .. } => "signal",
    }
}
