use std::process::Stdio as Std;

use super::*;
use crate::{host::Proc, probe::tests::Started, read::activity};

/// Whether a process that runs this script, and then `last`, counts as one that waits for nothing else.
fn rests(script: &str, last: &str) -> bool {
    let script = format!(
        "import os, select, signal, socket, struct, threading, time\n{script}\nprint(flush=True)\n{last}"
    );
    let (copy, _) = Started::python(&script, Std::null());
    let proc = Proc::system().unwrap();
    // It may have to run on for a moment until it waits.
    let look = || {
        let dir = proc.process(copy.0.id()).unwrap();
        for_nothing_else(&dir, &dir.fd_table().unwrap(), &calls(&dir).unwrap())
    };
    let dir = proc.process(copy.0.id()).unwrap();
    let threads = if script.contains("Thread(") { 2 } else { 1 };
    let waits = || {
        let tids = dir.threads().unwrap();
        let asleep =
            |tid: &u32| matches!(dir.sleeps_in(*tid), Ok(Some(call)) if call.number != nix::libc::SYS_write);
        let stopped = proc.process(copy.0.id()).unwrap().stat().state == b'T';
        stopped || (tids.len() == threads && tids.iter().all(asleep))
    };
    let begun = std::time::Instant::now();
    let mut before = u64::MAX;
    loop {
        // Nothing is told of one that is stopped.
        let now = activity::of_all(&proc, &[copy.id()]).first().map_or(0, |work| work.cpu_ns);
        if waits() && std::mem::replace(&mut before, now) == now && waits() {
            return look();
        }
        assert!(begun.elapsed().as_secs() < 20, "it does not rest");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

#[test]
fn who_waits_for_others_without_a_limit_rests() {
    for last in [
        "signal.pause()",
        "r, w = os.pipe(); os.read(r, 1)",
        "r, w = os.pipe(); select.select([r], [], [])",
        "a, b = socket.socketpair(); a.recv(1)",
        "l = socket.create_server(('127.0.0.1', 0)); l.accept()",
        "a, b = socket.socketpair(); p = select.epoll(); p.register(a, 1); p.poll()",
        "r, w = os.pipe(); p = select.poll(); p.register(r); p.poll()",
        "r, w = os.pipe(); p = select.epoll(); p.register(r); p.poll()",
        "threading.Lock().acquire() and (l := threading.Lock()).acquire() and l.acquire()",
        "t = threading.Thread(target=signal.pause); t.start(); t.join()",
    ] {
        assert!(rests("", last), "{last}");
    }
}

#[test]
fn who_goes_on_by_itself_does_not() {
    for (before, last) in [
        ("", "time.sleep(600)"),
        ("r, w = os.pipe()", "select.select([r], [], [], 600)"),
        ("r, w = os.pipe(); p = select.poll(); p.register(r)", "p.poll(600000)"),
        ("r, w = os.pipe(); p = select.epoll(); p.register(r)", "p.poll(600)"),
        ("l = threading.Lock(); l.acquire()", "l.acquire(timeout=600)"),
        ("t = threading.Thread(target=time.sleep, args=(600,)); t.start()", "t.join()"),
        (
            "a, b = socket.socketpair(); a.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack('ll', 600, 0))",
            "a.recv(1)",
        ),
        ("", "os.kill(os.getpid(), signal.SIGSTOP)"),
        // An answer of nobody knows whom, and a message of the kernel.
        ("u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); u.bind(('', 0))", "u.recv(1)"),
        (
            "u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); u.bind(('', 0))",
            "select.select([u], [], [])",
        ),
        ("n = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0); n.bind((0, 0))", "n.recv(1)"),
        ("", "signal.sigtimedwait({signal.SIGUSR1}, 600)"),
        // Which signals are awaited does not show.
        ("signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])", "signal.sigwait([signal.SIGALRM])"),
    ] {
        assert!(!rests(before, last), "{last}");
    }
}

#[test]
fn a_signal_of_the_kernel_ends_any_wait() {
    let waits = [
        "signal.pause()",
        "r, w = os.pipe(); os.read(r, 1)",
        "r, w = os.pipe(); select.select([r], [], [])",
        "l = threading.Lock(); l.acquire(); l.acquire()",
        "r, w = os.pipe(); os.wait() if os.fork() else os.close(w) or os.read(r, 1)",
    ];
    let (quiet, told) = ("signal.signal(signal.SIGUSR1, print)", |signal: &str| {
        [
            format!("signal.signal(signal.{signal}, print)"),
            format!("signal.pthread_sigmask(0, [signal.{signal}])"),
        ]
    });
    for last in waits {
        assert!(rests(quiet, last), "{last}");
        for script in [told("SIGALRM"), told("SIGIO")].as_flattened() {
            assert!(!rests(script, last), "{script}; {last}");
        }
    }
}

#[test]
fn who_waits_for_files_or_locks_does_not_rest() {
    let lock = tempfile::NamedTempFile::new().unwrap();
    rustix::fs::flock(lock.as_file(), rustix::fs::FlockOperation::LockExclusive).unwrap();
    let open = format!("import fcntl; f = open('{}')", lock.path().display());
    assert!(!rests(&open, "fcntl.flock(f, fcntl.LOCK_EX)"));
    let watched =
        "import ctypes; c = ctypes.CDLL(None); i = c.inotify_init1(0); c.inotify_add_watch(i, b'/', 0x100)";
    assert!(!rests(watched, "select.select([i], [], [])"));
    assert!(!rests(watched, "os.read(i, 100)"));
    let timer = "import ctypes, struct; c = ctypes.CDLL(None); t = c.timerfd_create(1, 0)
c.timerfd_settime(t, 0, struct.pack('qqqq', 0, 0, 600, 0), None); r, w = os.pipe()";
    assert!(!rests(timer, "select.select([r], [], [])"));
}

/// Any user may share ten thousands of pieces of memory, and wait at each.
#[test]
fn memory_beyond_counting_is_anybodys() {
    const FUTEX_WAIT: libc::c_long = 455;
    let waits = |pieces: usize, number: libc::c_long, arguments: &str| {
        let script = format!(
            "import ctypes, mmap, struct
all = [mmap.mmap(-1, 4096) for _ in range({pieces})]
word = ctypes.addressof(ctypes.c_char.from_buffer(all[0])); print(flush=True)
ctypes.CDLL(None).syscall({number}, {arguments})"
        );
        let (server, _) = Started::python(&script, Std::null());
        let dir = Proc::system().unwrap().process(server.0.id()).unwrap();
        let begun = std::time::Instant::now();
        let calls = loop {
            let calls = calls(&dir).unwrap();
            if calls.iter().flatten().any(|call| call.number == number) {
                break calls;
            }
            assert!(begun.elapsed().as_secs() < 20, "it does not wait");
        };
        places(&dir, &dir.fd_table().unwrap(), &calls, BootTime::default()).unwrap()
    };
    let vector = "struct.pack('QQII', 0, word, 2, 0), 1, 0, None, 0";
    let all = libc::SYS_futex_waitv;
    for few in [
        waits(5, all, vector),
        waits(5, FUTEX_WAIT, "ctypes.c_void_p(word), 0, ctypes.c_ulong(0xffffffff), 2, None, 0"),
    ] {
        assert!(few.memory.len() >= 5 && few.anybody.is_none(), "{few:?}");
    }
    let many = waits(1000, all, vector);
    assert!(many.memory.is_empty() && many.anybody == Some(Called::Unknown), "{many:?}");
}

/// A thread that runs may be on its way back to the terminal. The twins: all wait elsewhere, or it has no terminal but the usual
/// streams.
#[test]
fn who_runs_may_wait_at_a_terminal_that_it_opened() {
    let anybody = |script: &str, runs: bool| {
        let (server, _) =
            Started::python(&format!("{script}; print(flush=True); time.sleep(600)"), Std::null());
        let dir = Proc::system().unwrap().process(server.0.id()).unwrap();
        let asleep = SystemCall { number: libc::SYS_clock_nanosleep, arguments: [0; 6], opens_fifo: false };
        let calls = [(!runs).then_some(asleep)];
        places(&dir, &dir.fd_table().unwrap(), &calls, BootTime::default()).unwrap().anybody
    };
    let opens = "import pty, time; ends = pty.openpty()";
    assert_eq!(anybody(opens, true), Some(Called::Unknown));
    assert_eq!(anybody(opens, false), None);
    assert_eq!(anybody("import time", true), None);
}

/// Goes on as the first process of a PID namespace, where others have other numbers; it ends with who waits for it.
const IN_A_NAMESPACE: &str = "import ctypes; libc = ctypes.CDLL(None); libc.unshare(0x20000000) and exit(1)
if os.fork(): os.wait(), os._exit(0)
libc.prctl(1, signal.SIGKILL)";

/// What a process of this script, which then waits so for a child by its first thread, is said to wait for; and the child, which
/// is in a group of its own.
fn awaits(before: &str, wait: &str) -> ([bool; 2], Option<i32>, i32) {
    let script = format!(
        "import os, signal\n{before}\nr, w = os.pipe(); child = os.fork()
if not child: os.close(w); os.read(r, 1); os._exit(0)
os.setpgid(child, child)
print(flush=True); {wait}"
    );
    let (parent, _) = Started::python(&script, Std::null());
    let proc = Proc::system().unwrap();
    let child = |dir: &ProcessDir| *dir.children().unwrap().first().unwrap();
    let mut dir = proc.process(parent.0.id()).unwrap();
    if before == IN_A_NAMESPACE {
        dir = proc.process(child(&dir)).unwrap();
    }
    let begun = std::time::Instant::now();
    loop {
        let calls = calls(&dir).unwrap();
        let is_wait = |number| [libc::SYS_wait4, libc::SYS_waitid, libc::SYS_rt_sigsuspend].contains(&number);
        if calls.iter().flatten().any(|call| is_wait(call.number)) {
            let (who, awaited) = await_a_child(&proc, &dir, &calls).unwrap();
            return (who, awaited, child(&dir).cast_signed());
        }
        assert!(begun.elapsed().as_secs() < 20, "it does not wait");
    }
}

#[test]
fn the_first_thread_of_a_go_program_is_like_the_others() {
    let go = "signal.signal(signal.SIGURG, lambda *_: None)";
    for (before, first) in [("", true), (go, false)] {
        let (who, child, _) = awaits(before, "os.wait()");
        assert_eq!((who, child), ([first, !first], None));
    }
}

#[test]
fn one_child_or_one_group_is_waited_for() {
    for (wait, of_child) in [
        ("os.waitpid(child, 0)", 1),
        ("os.waitid(os.P_PID, child, os.WEXITED)", 1),
        ("os.waitid(os.P_PIDFD, os.pidfd_open(child), os.WEXITED)", 1),
        ("os.waitpid(-child, 0)", -1),
        ("os.waitid(os.P_PGID, child, os.WEXITED)", -1),
    ] {
        let (_, awaited, child) = awaits("", wait);
        assert_eq!(awaited, Some(of_child * child), "{wait}");
    }
    let any = awaits("", "os.waitid(os.P_ALL, 0, os.WEXITED)");
    assert_eq!((any.0, any.1), ([true, false], None));
}

#[test]
fn a_wait_for_a_signal_is_one_for_a_child_where_that_signal_has_a_handler() {
    let handler = "signal.signal(signal.SIGCHLD, lambda *_: None)";
    for (before, waits) in [(handler, true), ("", false)] {
        let (who, awaited, _) = awaits(before, "import ctypes; ctypes.CDLL(None).sigsuspend(bytes(128))");
        assert_eq!((who, awaited), ([waits, false], None));
    }
}

#[test]
#[ignore = "needs root: cargo xtask test runs it"]
fn in_a_pid_namespace_one_child_or_one_group_is_waited_for_by_other_numbers() {
    for (wait, of_child) in [
        ("os.waitpid(child, 0)", Some(1)),
        ("os.waitid(os.P_PIDFD, os.pidfd_open(child), os.WEXITED)", Some(1)),
        ("os.waitpid(-child, 0)", Some(-1)),
        ("os.wait()", None),
    ] {
        let (_, awaited, child) = awaits(IN_A_NAMESPACE, wait);
        assert_eq!(awaited, of_child.map(|sign| sign * child), "{wait}");
    }
}
