//! What an exec record says about the new image.

use std::os::unix::fs::PermissionsExt as _;

use orphand_core::model::{ExitStatus, Image, ProcessEvent, ProcessId, Stdio};

use crate::stage::{Play, execs, exits, play};

/// The one exec of a process.
#[track_caller]
fn exec(play: &Play, of: ProcessId) -> (ProcessId, u32, u32, &Image, [Stdio; 3]) {
    let found = execs(&play.events, of);
    assert_eq!(found.len(), 1, "execs of {of} in {:#?}", play.events);
    match found[0] {
        ProcessEvent::Exec { parent, uid, sid, image, stdio, .. } => (*parent, *uid, *sid, image, *stdio),
        _ => unreachable!(),
    }
}

#[test]
#[ignore = "needs root and a kernel: cargo xtask test runs it"]
fn file_arguments_and_streams() {
    let play = play(
        r#"
def inode(fd): return os.fstat(fd).st_ino
import socket
a, b = socket.socketpair(); r, w = os.pipe()
if os.fork() == 0:
    os.dup2(a.fileno(), 0); null = os.open("/dev/null", os.O_WRONLY); os.dup2(null, 2)
    say("child", stdin=inode(0), stdout=inode(1))
    os.execv("/bin/sh", ["sh", "-c", "exit 5", "", "zwölf", b"\xff\xfe"])
wait()
"#,
    );
    let child = play.truth.id("child");
    let (parent, uid, sid, image, stdio) = exec(&play, child);
    assert_eq!(parent, play.root);
    assert_eq!((uid, sid), (play.truth.number("child", "uid"), play.truth.number("child", "sid")));
    assert_eq!(image.exe, "/bin/sh");
    assert_eq!(image.argv, ["sh", "-c", "exit 5", "", "zwölf", "\u{fffd}\u{fffd}"]);
    assert!(!image.argv_truncated);
    let inode = |key| u64::from(play.truth.number("child", key));
    assert_eq!(stdio, [Stdio::Socket(inode("stdin")), Stdio::Pipe(inode("stdout")), Stdio::Null]);
    assert_eq!(exits(&play.events, child), [ExitStatus::Code(5)]);
}

#[test]
#[ignore = "needs root and a kernel: cargo xtask test runs it"]
fn closed_streams_files_and_terminals() {
    let play = play(
        r#"
import pty
master, slave = pty.openpty()
if os.fork() == 0:
    say("child"); os.close(0); os.dup2(os.open("/etc/passwd", os.O_RDONLY), 1); os.dup2(slave, 2)
    os.execv("/bin/true", ["true"])
wait()
"#,
    );
    // /etc/passwd was opened as descriptor 0 too, close-on-exec.
    let (.., stdio) = exec(&play, play.truth.id("child"));
    assert_eq!(stdio, [Stdio::Closed, Stdio::File, Stdio::Terminal]);
}

/// A background job of a shell without a terminal, whatever it does about SIGINT from then on. A handler is none.
#[test]
#[ignore = "needs root and a kernel: cargo xtask test runs it"]
fn what_is_ignored_at_its_beginning() {
    let play = play(
        r#"
handled = lambda *_: None
for name, hangup, interrupt in (
    ("interrupt", handled, signal.SIG_IGN), ("hangup", signal.SIG_IGN, signal.SIG_DFL), ("both", signal.SIG_IGN, signal.SIG_IGN),
    ("handles", handled, handled), ("default", signal.SIG_DFL, signal.SIG_DFL),
):
    if os.fork() == 0:
        signal.signal(signal.SIGHUP, hangup); signal.signal(signal.SIGINT, interrupt); say(name)
        os.execv("/bin/true", ["true"])
    wait()
"#,
    );
    let began = ["interrupt", "hangup", "both", "handles", "default"].map(|name| {
        match execs(&play.events, play.truth.id(name))[..] {
            [ProcessEvent::Exec { ignored, .. }] => [ignored.interrupt, ignored.hangup],
            ref other => panic!("{other:?}"),
        }
    });
    assert_eq!(began, [[true, false], [false, true], [true, true], [false, false], [false, false]]);
}

#[test]
#[ignore = "needs root and a kernel: cargo xtask test runs it"]
fn nothing_open_and_no_arguments_to_speak_of() {
    let play = play(
        r#"
if os.fork() == 0:
    say("child"); os.close(0); os.close(1); os.close(2)
    libc.execv(b"/bin/true", (ctypes.c_char_p * 2)(b"", None))
wait()
"#,
    );
    let (_, _, _, image, stdio) = exec(&play, play.truth.id("child"));
    assert_eq!(stdio, [Stdio::Closed; 3]);
    assert_eq!((image.argv.as_slice(), image.argv_truncated), ([String::new()].as_slice(), false));
}

#[test]
#[ignore = "needs root and a kernel: cargo xtask test runs it"]
fn long_arguments_are_cut_and_say_so() {
    let play = play(
        r#"
for n in (1021, 1022, 100000):
    if os.fork() == 0:
        say(f"child {n}"); os.execv("/bin/true", ["t", "x" * n])
    wait()
"#,
    );
    for (n, copied, cut) in [(1021, 1021, false), (1022, 1022, true), (100_000, 1022, true)] {
        let (_, _, _, image, _) = exec(&play, play.truth.id(&format!("child {n}")));
        assert_eq!(image.argv, ["t", &"x".repeat(copied)], "{n}");
        assert_eq!(image.argv_truncated, cut, "{n}");
    }
}

#[test]
#[ignore = "needs root and a kernel: cargo xtask test runs it"]
fn a_script_is_its_interpreter_with_the_script_as_argument() {
    let dir = tempfile::tempdir().unwrap();
    let script = dir.path().join("tool");
    std::fs::write(&script, "#!/bin/sh\nexit 8\n").unwrap();
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    let script = script.to_str().unwrap();
    let play = play(&format!(
        r#"
if os.fork() == 0:
    say("child"); os.execv("{script}", ["tool", "arg"])
wait()
"#
    ));
    let (_, _, _, image, _) = exec(&play, play.truth.id("child"));
    assert_eq!(image.exe, "/bin/sh");
    assert_eq!(image.argv, ["/bin/sh", script, "arg"]);
}

#[test]
#[ignore = "needs root and a kernel: cargo xtask test runs it"]
fn by_a_thread_that_is_not_the_leader() {
    let play = play(
        r#"
if os.fork() == 0:
    say("child")
    threading.Thread(target=lambda: os.execv("/bin/sh", ["sh", "-c", "exit 11"])).start()
    time.sleep(60)
wait()
"#,
    );
    let child = play.truth.id("child");
    let (parent, ..) = exec(&play, child);
    assert_eq!(parent, play.root);
    assert_eq!(exits(&play.events, child), [ExitStatus::Code(11)]);
}

#[test]
#[ignore = "needs root and a kernel: cargo xtask test runs it"]
fn the_parent_is_the_adopter_once_the_creator_is_dead() {
    let play = play(
        r#"
libc.prctl(36, 1, 0, 0, 0)   # PR_SET_CHILD_SUBREAPER
if os.fork() == 0:
    middle = os.getpid()
    if os.fork() == 0:
        while os.getppid() == middle: time.sleep(0.001)
        say("child", ppid=os.getppid()); os.execv("/bin/true", ["true"])
    os._exit(0)
wait(); wait()
"#,
    );
    assert_eq!(play.truth.number("child", "ppid"), play.root.pid);
    let (parent, ..) = exec(&play, play.truth.id("child"));
    assert_eq!(parent, play.root);
}

#[test]
#[ignore = "needs root and a kernel: cargo xtask test runs it"]
fn the_user_is_the_real_one() {
    let play = play(
        r#"
if os.fork() == 0:
    os.setresuid(65534, 0, 0); say("child"); os.execv("/bin/true", ["true"])
wait()
"#,
    );
    let (_, uid, ..) = exec(&play, play.truth.id("child"));
    assert_eq!(uid, 65534);
    assert_eq!(play.truth.number("child", "uid"), 65534);
}
