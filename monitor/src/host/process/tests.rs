//! A directory of /proc, of real processes.

use std::process::Stdio as Std;

use nix::libc;

use super::*;
use crate::{host::Proc, probe::tests::Started};

#[test]
fn arguments_end_with_nul_and_titles_leave_nuls_behind() {
    assert_eq!(split_argv(b"node\0server.js\0"), ["node", "server.js"]);
    assert_eq!(split_argv(b"npm exec @scope/x --flag"), ["npm exec @scope/x --flag"]);
    assert_eq!(split_argv(b"title of its own\0\0\0\0"), ["title of its own"]);
    assert_eq!(split_argv(b"a\0\0b\0"), ["a", "", "b"]);
    assert_eq!(split_argv(b"\xff\0"), ["\u{fffd}"]);
    assert!(split_argv(b"").is_empty());
    assert!(split_argv(b"\0\0").is_empty());
}

#[test]
fn users_have_numbers_inside() {
    let map = "         0     100000      65536\n     65536       1000          1\n";
    assert_eq!(
        [100_000, 165_535, 165_536, 1000, 0].map(|uid| mapped(map, uid)),
        [Some(0), Some(65_535), None, Some(65_536), None]
    );
    assert_eq!(mapped("0 0 4294967295\n", 54_321), Some(54_321));
    assert_eq!(mapped("", 0), None);
    assert_eq!(mapped("x y z", 0), None);
}

#[test]
fn our_own_directory() {
    let dir = Proc::system().unwrap().process(std::process::id()).unwrap();
    assert!(dir.still_alive());
    assert_eq!(dir.uid().unwrap(), rustix::process::getuid().as_raw());
    assert_eq!(dir.gid().unwrap(), rustix::process::getgid().as_raw());
    assert!(dir.uid_inside(dir.uid().unwrap()).unwrap().is_some());
    assert!(dir.file_inside(b"/proc/../proc/version").is_ok());
    assert_eq!(dir.file_inside(b"nowhere/at/all").unwrap_err(), Errno::NOENT);
    assert_eq!(dir.image().argv, std::env::args().collect::<Vec<_>>());
    assert_eq!(dir.image().exe, std::env::current_exe().unwrap().to_string_lossy());
    assert!(dir.used().unwrap().rss_bytes > 100 * 4096);
    assert!(!dir.has_environment(b"ORPHAND_OPT_OUT=1"));
}

#[test]
fn a_directory_never_answers_for_another_process() {
    let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
    let dir = Proc::system().unwrap().process(child.id()).unwrap();
    assert!(dir.still_alive());
    child.kill().unwrap();
    child.wait().unwrap();
    // Gone, whoever gets the number.
    assert!(!dir.still_alive());
    assert_eq!(dir.uid(), Err(Errno::SRCH));
    assert_eq!(dir.image(), Image::default());
}

#[test]
fn a_process_whose_leader_exited_is_read_through_a_living_thread() {
    // The main thread ends by itself; the process lives on in the other one.
    let script = "import ctypes, threading, sys\n\
                  threading.Thread(target=sys.stdin.read).start()\n\
                  print(flush=True)\n\
                  ctypes.CDLL(None).syscall(60, 0)";
    let mut child = std::process::Command::new("python3")
        .args(["-c", script])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(child.stdout.take().unwrap()), &mut line)
        .unwrap();
    let proc = Proc::system().unwrap();
    let dir = loop {
        let dir = proc.process(child.id()).unwrap();
        if dir.stat().leader_exited() {
            break dir;
        }
        std::thread::yield_now();
    };
    assert!(dir.stat().is_alive());
    assert!(dir.image().exe.contains("python"));
    assert!(dir.image().argv.first().unwrap().ends_with("python3"));
    assert!(matches!(dir.stdio(), [Stdio::Pipe(_), Stdio::Pipe(_), _]));
    assert!(dir.used().unwrap().rss_bytes > 100 * 4096);
    assert!(!dir.fd_table().unwrap().fds.is_empty());
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn an_executable_that_was_replaced_is_stale() {
    for (link, expected) in [
        (&b"/usr/bin/node"[..], ("/usr/bin/node", false)),
        (b"/usr/bin/node (deleted)", ("/usr/bin/node", true)),
        (b"/memfd:runc_cloned (deleted)", ("/memfd:runc_cloned", false)),
        (b"", ("", false)),
    ] {
        let (path, stale) = executable(link);
        assert_eq!((path.as_str(), stale), expected);
    }
    let folder = tempfile::tempdir().unwrap();
    let [program, next] = ["program", "next"].map(|name| folder.path().join(name));
    for path in [&program, &next] {
        std::fs::copy("/bin/sleep", path).unwrap();
    }
    let mut child = std::process::Command::new(&program).arg("60").spawn().unwrap();
    let dir = Proc::system().unwrap().process(child.id()).unwrap();
    assert!(!dir.has_stale_binary());
    std::fs::rename(&next, &program).unwrap();
    assert!(dir.has_stale_binary() && dir.program().stale_binary);
    assert_eq!(dir.exe(), program.to_string_lossy());
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(!dir.has_stale_binary(), "it is gone");
}

#[test]
fn titles_are_told_from_arguments() {
    for (command, expected) in [
        (&b"node\0server.js\0"[..], true),
        (b"conport-mcp\0", true),
        (b"my server: idle", false),
        (b"my server: idle\0\0\0\0", false),
        (b"\0", false),
        (b"", false),
    ] {
        assert_eq!(is_as_started(command), expected, "{command:?}");
    }
}

fn is_traced(process: &Started) -> bool {
    !Proc::system().unwrap().process(process.0.id()).unwrap().tracers().unwrap().is_empty()
}

/// Traces the process with this number until standard input ends (`PTRACE_SEIZE`, which does not stop the
/// process).
fn tracer(of: u32, thread: bool) -> Started {
    let seize = format!(
        "import ctypes, sys, threading, time
def seize():
    ok = ctypes.CDLL(None, use_errno=True).ptrace(0x4206, {of}, None, None) == 0
    print('seized' if ok else 'refused', flush=True)
    time.sleep(600)
"
    );
    let run = if thread { "threading.Thread(target=seize).start()" } else { "seize()" };
    let (tracer, line) = Started::python(&format!("{seize}{run}"), Std::null());
    assert_eq!(line, "seized");
    tracer
}

#[test]
#[ignore = "needs root: cargo xtask test runs it"]
fn a_debugger_is_seen_until_it_lets_go() {
    let server = Started::sleeper(Std::null());
    assert!(!is_traced(&server));
    for thread in [false, true] {
        let mut debugger = tracer(server.0.id(), thread);
        assert!(is_traced(&server));
        debugger.end();
        assert!(!is_traced(&server));
    }
}

#[test]
#[ignore = "needs root: cargo xtask test runs it"]
fn a_traced_thread_is_enough() {
    let script = "import threading, time
t = threading.Thread(target=time.sleep, args=(600,)); t.start(); print(t.native_id, flush=True); time.sleep(600)";
    let (server, tid) = Started::python(script, Std::null());
    assert!(!is_traced(&server));
    let _tracer = tracer(tid.parse().unwrap(), false);
    assert!(is_traced(&server));
}

#[test]
fn the_dead_cannot_be_read() {
    let mut dead = Started::sleeper(Std::null());
    let dir = Proc::system().unwrap().process(dead.0.id()).unwrap();
    assert_eq!(dir.tracers(), Ok(Vec::new()));
    dead.end();
    assert!(dir.tracers().is_err());
}

#[test]
#[ignore = "needs root: cargo xtask test runs it"]
fn a_long_list_of_groups_hides_nothing() {
    // Members of a large directory are in hundreds of groups with long numbers.
    let groups: Vec<String> = (4_000_000_000_u32..).take(600).map(|group| group.to_string()).collect();
    let mut command = std::process::Command::new("setpriv");
    let mut child =
        command.arg(format!("--groups={}", groups.join(","))).args(["sleep", "60"]).spawn().unwrap();
    let dir = Proc::system().unwrap().process(child.id()).unwrap();
    while dir.image().argv.first().is_none_or(|program| program != "sleep") {
        std::thread::yield_now();
    }
    // Whoever runs this in the background ignores SIGINT, or SIGHUP.
    let ignored = |dir: &ProcessDir| {
        let signals = dir.signals()?;
        Ok::<_, Errno>([libc::SIGHUP, libc::SIGINT, libc::SIGTERM].map(|signal| signals.ignores(signal)))
    };
    let ours = ignored(&Proc::system().unwrap().process(std::process::id()).unwrap()).unwrap();
    let found = (ignored(&dir), dir.pid_inside().is_ok());
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(found, (Ok(ours), true));
}
