use std::{
    io::{BufRead, BufReader},
    os::unix::process::ExitStatusExt,
    process::{Child, Command, Stdio},
};

use super::*;

struct Started(Child);

impl Started {
    fn sleeper() -> Self {
        Self(Command::new("sleep").arg("600").spawn().unwrap())
    }

    fn id(&self) -> ProcessId {
        Proc::system().unwrap().process(self.0.id()).unwrap().id()
    }

    fn signal_that_ended_it(&mut self) -> Option<i32> {
        self.0.wait().unwrap().signal()
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

fn message(result: Result<(), SignalError>) -> (i32, String) {
    match result.unwrap_err() {
        SignalError::System { errno, message } => (errno, message),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_child_is_ended() {
    let mut child = Started::sleeper();
    let id = child.id();
    let reaper = Reaper::new().unwrap();
    reaper.signal(id, None, Signal::Term).unwrap();
    assert_eq!(child.signal_that_ended_it(), Some(15));
}

#[test]
fn a_child_that_ignores_the_first_signal_gets_the_second() {
    let mut child = Started(
        Command::new("sh")
            .args(["-c", "trap '' TERM; echo; while :; do read line || exec sleep 600; done"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap(),
    );
    BufReader::new(child.0.stdout.take().unwrap()).read_line(&mut String::new()).unwrap();
    let id = child.id();
    let reaper = Reaper::new().unwrap();
    reaper.signal(id, None, Signal::Term).unwrap();
    reaper.signal(id, None, Signal::Kill).unwrap();
    assert_eq!(child.signal_that_ended_it(), Some(9));
}

#[test]
fn another_birth_is_another_process() {
    let mut child = Started::sleeper();
    let ProcessId { pid, start } = child.id();
    let reaper = Reaper::new().unwrap();
    for other in [start - 1, start + 1, 0] {
        assert_eq!(reaper.signal(ProcessId::new(pid, other), None, Signal::Kill), Err(SignalError::Gone));
    }
    assert!(child.0.try_wait().unwrap().is_none());
}

#[test]
fn a_process_of_another_user_is_not_the_one_that_was_judged() {
    let mut child = Started::sleeper();
    let id = child.id();
    let ours = rustix::process::getuid().as_raw();
    let reaper = Reaper::new().unwrap();
    let error = reaper.signal(id, Some(ours + 1), Signal::Kill).unwrap_err();
    let message = format!("{id} is user {ours}'s and was user {}'s", ours + 1);
    assert_eq!(error, SignalError::Unsure { message });
    assert!(child.0.try_wait().unwrap().is_none());
    reaper.signal(id, Some(ours), Signal::Term).unwrap();
    assert!(child.signal_that_ended_it().is_some());
}

#[test]
fn who_ends_between_aim_and_signal_is_gone() {
    let mut child = Started::sleeper();
    let id = child.id();
    let reaper = Reaper::new().unwrap();
    let aim = reaper.aim(id).unwrap();
    child.0.kill().unwrap();
    child.0.wait().unwrap();
    assert_eq!(reaper.fire(&aim, None, Signal::Kill), Err(SignalError::Gone));
}

#[test]
fn the_dead_are_gone_before_and_after_the_wait() {
    let mut child = Started::sleeper();
    let id = child.id();
    child.0.kill().unwrap();
    let zombie = || std::fs::read_to_string(format!("/proc/{}/stat", id.pid)).unwrap().contains(") Z ");
    while !zombie() {
        std::thread::yield_now();
    }
    let reaper = Reaper::new().unwrap();
    assert_eq!(reaper.signal(id, None, Signal::Term), Err(SignalError::Gone));
    child.0.wait().unwrap();
    assert_eq!(reaper.signal(id, None, Signal::Term), Err(SignalError::Gone));
}

const INSIDE: &str = "ORPHAND_TEST_INSIDE_PID_NAMESPACE";

/// In a PID namespace of its own, where the test can have numbers assigned again.
#[test]
#[ignore = "needs root: cargo xtask test runs it"]
fn a_number_given_out_again_is_safe() {
    let module = module_path!().split_once("::").unwrap().1;
    let inside = format!("{module}::a_pending_kill_does_not_reach_who_got_the_number");
    let run = Command::new("unshare")
        .args(["--pid", "--fork", "--mount-proc"])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", &inside, "--nocapture", "--test-threads=1"])
        .env(INSIDE, "1")
        .output()
        .unwrap();
    let output = String::from_utf8_lossy(&run.stdout);
    assert!(run.status.success() && output.contains("reused 3 times"), "{output}{:?}", run.stderr);
}

#[test]
fn a_pending_kill_does_not_reach_who_got_the_number() {
    if std::env::var_os(INSIDE).is_none() {
        return;
    }
    for is_signalled in [true, false, true] {
        let reaper = Reaper::new().unwrap();
        let mut first = Started::sleeper();
        let id = first.id();
        if is_signalled {
            reaper.signal(id, None, Signal::Term).unwrap();
        }
        first.0.kill().unwrap();
        first.0.wait().unwrap();
        // /proc cannot tell apart two processes that start in the same hundredth of a second: wait for the
        // next one.
        while crate::os::clock::now().ticks() <= id.start + 1 {
            std::thread::yield_now();
        }
        std::fs::write("/proc/sys/kernel/ns_last_pid", (id.pid - 1).to_string()).unwrap();
        let mut second = Started::sleeper();
        assert_eq!(second.id().pid, id.pid);
        assert_eq!(reaper.signal(id, None, Signal::Kill), Err(SignalError::Gone));
        assert_eq!(reaper.signal(id, None, Signal::Kill), Err(SignalError::Gone));
        assert!(second.0.try_wait().unwrap().is_none());
        reaper.signal(second.id(), None, Signal::Kill).unwrap();
    }
    println!("reused 3 times");
}

#[test]
fn who_is_never_signalled() {
    let reaper = Reaper::new().unwrap();
    let proc = Proc::system().unwrap();
    let of = |pid| proc.process(pid).unwrap().id();
    let ours = of(std::process::id());
    let parent = of(rustix::process::getppid().unwrap().as_raw_pid().unsigned_abs());
    for (id, why) in [
        (ProcessId::new(0, 0), "no process"),
        (ProcessId::new(u32::MAX, 0), "no process"),
        (of(1), "pid 1"),
        (ours, "orphand or an ancestor of it"),
        (parent, "orphand or an ancestor of it"),
    ] {
        let (errno, message) = message(reaper.signal(id, None, Signal::Term));
        assert_eq!((errno, message), (Errno::PERM.raw_os_error(), format!("refused: {id} is {why}")));
    }
}

#[test]
fn a_kernel_thread_is_never_signalled() {
    let proc = Proc::system().unwrap();
    let kernel = proc.pids().unwrap().into_iter().filter_map(|pid| proc.process(pid).ok());
    // The youngest: the oldest, kthreadd, may be an ancestor of ours if the kernel itself started us.
    let kernel = kernel.filter(|dir| dir.stat().is_kernel_thread()).max_by_key(|dir| dir.id().pid);
    let kernel = kernel.expect("the initial PID namespace, which has kernel threads");
    let reaper = Reaper::new().unwrap();
    assert!(message(reaper.signal(kernel.id(), None, Signal::Term)).1.ends_with("is a kernel thread"));
}

#[test]
fn a_thread_is_no_process() {
    let mut child = Started(
        Command::new("python3")
            .args(["-c", "import threading, sys\nt = threading.Thread(target=sys.stdin.read); t.start()\nprint(t.native_id, flush=True)"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap(),
    );
    let mut line = String::new();
    BufReader::new(child.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let thread = Proc::system().unwrap().process(line.trim().parse().unwrap()).unwrap().id();
    let reaper = Reaper::new().unwrap();
    assert!(message(reaper.signal(thread, None, Signal::Kill)).1.ends_with("is a thread, not a process"));
    assert!(child.0.try_wait().unwrap().is_none());
}

#[test]
fn what_the_system_refuses_is_told() {
    assert_eq!(failed("x", Errno::SRCH), SignalError::Gone);
    for errno in [Errno::MFILE, Errno::NFILE, Errno::NOMEM, Errno::AGAIN] {
        assert!(matches!(failed("pidfd_open", errno), SignalError::NoRoom { .. }), "{errno}");
    }
    let SignalError::System { errno, message } = failed("pidfd_send_signal", Errno::PERM) else { panic!() };
    assert_eq!(errno, 1);
    assert_eq!(message, "pidfd_send_signal: Operation not permitted (os error 1)");
}

#[test]
fn nothing_is_signalled_that_is_not_seen_in_the_scope() {
    let mut child = Started::sleeper();
    let id = child.id();
    let scope = "no-control-group-is-called-so".parse().unwrap();
    let reaper = Reaper::new().unwrap();
    let aim = reaper.aim(id).unwrap();
    child.0.kill().unwrap();
    child.0.wait().unwrap();
    let reaper = reaper.within(Some(scope));
    assert!(
        matches!(reaper.fire(&aim, None, Signal::Kill), Err(SignalError::Unsure { .. })),
        "it cannot be read"
    );
    let mut child = Started::sleeper();
    let (errno, why) = message(reaper.signal(child.id(), None, Signal::Kill));
    assert_eq!((errno, why.contains("outside of the scope")), (Errno::PERM.raw_os_error(), true), "{why}");
    assert!(child.0.try_wait().unwrap().is_none());
}
