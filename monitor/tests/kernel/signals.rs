//! Who sends a signal that ends a followed process. One that ends nobody, and one to anybody else, is not reported.

use monitor_common::Counter;
use orphand::source::kernel::KernelSource;
use orphand_core::model::{ExitStatus, KilledBy, Killer, ProcessEvent, ProcessId};

use crate::stage::{Play, exits, options, play, play_on, subject};

/// What was sent to this process, in order.
fn signals(play: &Play, of: ProcessId) -> Vec<(u8, Killer)> {
    let signal = |event: &ProcessEvent| match event {
        ProcessEvent::Signal { process, signal, killer, .. } if *process == of => {
            Some((*signal, Killer::clone(killer)))
        }
        _ => None,
    };
    play.events.iter().filter_map(signal).collect()
}

/// The only signal to this process, which ended by it afterwards.
#[track_caller]
fn killer(play: &Play, what: &str) -> (u8, Killer) {
    let process = play.truth.id(what);
    let [(signal, killer)] =
        signals(play, process).try_into().unwrap_or_else(|all| panic!("{what}: {all:?}"));
    assert_eq!(exits(&play.events, process), [ExitStatus::Signal(signal)], "{what}");
    let mut of_it = play.events.iter().filter(|event| subject(event) == process);
    assert!(
        matches!(of_it.next_back(), Some(ProcessEvent::Exit { .. })),
        "{what}: the signal comes before the exit"
    );
    (signal, killer)
}

/// `victim()` waits for its end; `ends()` waits for that of a child.
const PRELUDE: &str = r#"
import resource
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
def child(what, f):
    r, w = os.pipe(); pid = os.fork()
    if pid == 0:
        os.close(r); say(what); f(lambda: os.write(w, b"x")); os._exit(0)
    os.close(w); os.read(r, 1); os.close(r)
    return pid
def victim(ready): ready(); time.sleep(60)
def end(pid): os.waitpid(pid, 0)
"#;

#[test]
#[ignore = "needs root and a kernel: cargo xtask test runs it"]
fn a_process_is_named_with_its_user() {
    let play = play(&format!(
        "{PRELUDE}{}",
        r#"
pid = child("killed", victim)
def murder(ready):
    open("/proc/self/comm", "w").write("mur der"); say("murderer"); os.kill(pid, 9); ready()
end(child("x", murder)); end(pid)
def as_user(ready): os.setresuid(4711, 4711, 4711); victim(ready)
pid = child("of a user", as_user)
def by_user(ready): os.setresuid(4711, 4711, 4711); say("user"); os.kill(pid, 15); ready()
end(child("y", by_user)); end(pid)
pid = child("queued", victim)
def queue(ready):
    say("queuer"); libc.sigqueue(pid, 12, None); ready()
end(child("z", queue)); end(pid)
def thread(ready):
    threading.Thread(target=time.sleep, args=(60,), daemon=True).start(); victim(ready)
pid = child("threads", thread)
# One of its threads is meant.
tid = [int(t) for t in os.listdir(f"/proc/{pid}/task") if int(t) != pid][0]
say("root"); libc.syscall(234, pid, tid, 1); end(pid)
"#
    ));
    let by = |what: &str| {
        let id = play.truth.id(what);
        (Some(id.pid), Some(id.start), KilledBy::Process)
    };
    let told = |killer: &Killer| (killer.pid, killer.start, killer.by);
    for (victim, murderer, signal, uid) in [
        ("killed", "murderer", 9, 0),
        ("of a user", "user", 15, 4711),
        ("queued", "queuer", 12, 0),
        ("threads", "root", 1, 0),
    ] {
        let (number, killer) = killer(&play, victim);
        assert_eq!((number, told(&killer), killer.uid), (signal, by(murderer), Some(uid)), "{victim}");
    }
    assert_eq!(killer(&play, "killed").1.program.as_deref(), Some("mur der"));
}

#[test]
#[ignore = "needs root and a kernel: cargo xtask test runs it"]
fn itself_and_the_kernel_are_told_apart() {
    let play = play(&format!(
        "{PRELUDE}{}",
        r#"
def broken(ready):
    signal.signal(signal.SIGPIPE, signal.SIG_DFL); r, w = os.pipe(); os.close(r); os.write(w, b"x")
def fault(ready): ctypes.string_at(0)
def timer(ready): signal.setitimer(signal.ITIMER_REAL, 0.01); time.sleep(60)
for what, f in dict(
    abort=lambda ready: os.abort(), kill=lambda ready: os.kill(os.getpid(), 9),
    fault=fault, pipe=broken, timer=timer,
).items(): end(child(what, f))
# The parent's end.
def orphaned(ready): libc.prctl(1, 10); victim(ready)
libc.prctl(36, 1)   # adopt it
def parent(ready): child("tied", orphaned); say("parent"); ready(); os._exit(0)
end(child("w", parent)); wait()
"#
    ));
    for (what, signal, by) in [
        ("abort", 6, KilledBy::Itself),
        ("kill", 9, KilledBy::Itself),
        ("fault", 11, KilledBy::Kernel),
        ("pipe", 13, KilledBy::Kernel),
        ("timer", 14, KilledBy::Kernel),
    ] {
        assert_eq!(killer(&play, what), (signal, Killer::of(by)), "{what}");
    }
    let (signal, tied) = killer(&play, "tied");
    let parent = play.truth.id("parent");
    assert_eq!(
        (signal, tied.by, tied.pid, tied.start),
        (10, KilledBy::Process, Some(parent.pid), Some(parent.start))
    );
}

#[test]
#[ignore = "needs root and a kernel: cargo xtask test runs it"]
fn what_ends_nobody_is_not_reported() {
    let mut source = KernelSource::open(&options()).unwrap();
    let mut stranger = std::process::Command::new("sleep").arg("60").spawn().unwrap();
    let play = play_on(
        &mut source,
        &format!(
            "{PRELUDE}
stranger = {}
{}",
            stranger.id(),
            r#"
os.kill(stranger, 10)
def deaf(ready):
    signal.signal(15, lambda *a: None); signal.signal(1, signal.SIG_IGN); say("deaf")
    ready(); os.read(stop, 1)
stop, go_on = os.pipe()
pid = child("x", deaf)
for n in (15, 1, signal.SIGSTOP, signal.SIGCONT, signal.SIGURG, signal.SIGWINCH, signal.SIGCHLD, 0): os.kill(pid, n)
os.write(go_on, b"x"); end(pid)
"#
        ),
    );
    let _ = stranger.wait();
    assert_eq!(exits(&play.events, play.truth.id("deaf")), [ExitStatus::Code(0)]);
    let any = play.events.iter().find(|event| matches!(event, ProcessEvent::Signal { .. }));
    assert_eq!(any, None);
    assert_eq!(source.counters().unwrap().get(Counter::SignalProduced), 0, "a stranger's neither");
    assert!(
        source.hooks().iter().any(|hook| hook == "raw_tracepoint:signal_generate"),
        "{:?}",
        source.hooks()
    );
}

/// A control group with 24 MB of memory, and a process that takes more.
#[test]
#[ignore = "needs root and a kernel: cargo xtask test runs it"]
fn when_memory_runs_out_the_kernel_says_so() {
    let play = play(&format!(
        "{PRELUDE}{}",
        r#"
old = "/sys/fs/cgroup/memory"
base, limit = (old, "memory.limit_in_bytes") if os.path.exists(old) else ("/sys/fs/cgroup", "memory.max")
group = f"{base}/orphand-oom-{os.getpid()}"
os.mkdir(group); open(f"{group}/{limit}", "w").write(str(24 << 20))
def hungry(ready):
    open(f"{group}/cgroup.procs", "w").write(str(os.getpid()))
    b"x" * (256 << 20)
end(child("hungry", hungry)); os.rmdir(group)
"#
    ));
    let hungry = play.truth.id("hungry");
    assert_eq!(exits(&play.events, hungry), [ExitStatus::Signal(9)]);
    // First that the kernel sent it, and why with its end.
    let told = signals(&play, hungry);
    assert_eq!(told.last(), Some(&(9, Killer::of(KilledBy::OutOfMemory))), "{told:?}");
    assert_eq!(told.first(), Some(&(9, Killer::of(KilledBy::Kernel))), "{told:?}");
}
