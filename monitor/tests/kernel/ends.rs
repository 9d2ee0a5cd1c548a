//! How processes end: once, with the status the parent is told.

use orphand_core::model::ExitStatus;

use crate::stage::{exits, forks, play};

#[test]
#[ignore = "needs root and a kernel: cargo xtask test runs it"]
fn by_code_and_by_signal() {
    let play = play(
        r#"
for code in (0, 1, 255):
    if os.fork() == 0:
        say(f"code {code}"); os._exit(code)
    wait()
for name in ("SIGKILL", "SIGTERM", "SIGSEGV"):
    if os.fork() == 0:
        import resource; resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        say(name); os.kill(os.getpid(), getattr(signal, name)); time.sleep(60)
    wait()
"#,
    );
    for code in [0, 1, 255] {
        assert_eq!(exits(&play.events, play.truth.id(&format!("code {code}"))), [ExitStatus::Code(code)]);
    }
    for (name, number) in [("SIGKILL", 9), ("SIGTERM", 15), ("SIGSEGV", 11)] {
        assert_eq!(exits(&play.events, play.truth.id(name)), [ExitStatus::Signal(number)]);
    }
}

#[test]
#[ignore = "needs root and a kernel: cargo xtask test runs it"]
fn not_before_the_last_thread() {
    let play = play(
        r#"
if os.fork() == 0:
    def work():
        me = os.getpid()
        while stat(me)[0] != "Z": time.sleep(0.001)   # the leader has ended
        if os.fork() == 0:
            say("late"); os._exit(0)
        wait(); say("leaderless"); os._exit(9)
    threading.Thread(target=work).start()
    libc.syscall(60, 0)                               # exit(2): this thread only
wait()
"#,
    );
    let process = play.truth.id("leaderless");
    assert_eq!(exits(&play.events, process), [ExitStatus::Code(9)]);
    // It was followed until its last thread ended.
    let late = play.truth.id("late");
    assert_eq!(crate::stage::fork_of(&play.events, late).0, process);
    let at = |id| play.events.iter().position(|e| crate::stage::subject(e) == id && exits_here(e)).unwrap();
    assert!(at(late) < at(process));
}

const fn exits_here(event: &orphand_core::model::ProcessEvent) -> bool {
    matches!(event, orphand_core::model::ProcessEvent::Exit { .. })
}

#[test]
#[ignore = "needs root and a kernel: cargo xtask test runs it"]
fn once_even_if_all_threads_end_together() {
    let play = play(
        r"
for n in range(40):
    if os.fork() == 0:
        def spin():
            while True: time.sleep(0)
        for _ in range(8): threading.Thread(target=spin, daemon=True).start()
        if n % 2: os.kill(os.getpid(), signal.SIGKILL)
        os._exit(n)
    wait()
",
    );
    let ends = play.events.iter().filter(|e| exits_here(e)).count();
    assert_eq!((forks(&play.events), ends), (40, 41));
}

#[test]
#[ignore = "needs root and a kernel: cargo xtask test runs it"]
fn all_threads_by_exit_2() {
    // No exit_group(2): the last thread's code is not the process's, the leader's is.
    let play = play(
        r#"
if os.fork() == 0:
    say("child")
    done = threading.Event()
    def work():
        me = os.getpid()
        while stat(me)[0] != "Z": time.sleep(0.001)
        libc.syscall(60, 21)
    threading.Thread(target=work).start()
    libc.syscall(60, 20)
pid, status = wait(); say("root", status=os.waitstatus_to_exitcode(status))
"#,
    );
    let code = u8::try_from(play.truth.number("root", "status")).unwrap();
    assert_eq!(exits(&play.events, play.truth.id("child")), [ExitStatus::Code(code)]);
}
