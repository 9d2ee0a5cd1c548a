//! Who calls a followed process over TCP.

use std::{
    collections::BTreeSet,
    io::{Read as _, Write as _},
    net::{Ipv6Addr, SocketAddr, TcpStream},
};

use orphand::{
    host::Proc,
    source::{
        kernel::{KernelOptions, KernelSource},
        kernel_side::Caller,
    },
};
use orphand_core::model::Tracking;

use crate::stage::{Actor, id, options};

/// Servers, each in a process of its own, and one that calls: who hangs up has served the call.
const SERVERS: &str = r#"
import socket
def serve(what, family, host):
    s = socket.socket(family); s.bind((host, 0)); s.listen(); port = s.getsockname()[1]
    if os.fork() == 0:
        say(what, port=port)
        while True:
            c = s.accept()[0]
            try: what in ("reset by a stranger", "called by a stranger like a relative elsewhere") and c.recv(1)
            except ConnectionResetError: pass
            c.close()
    s.close(); return port
four, six = socket.AF_INET, socket.AF_INET6
for what in ("silent", "called by a stranger", "reset by a stranger"): serve(what, four, "127.0.0.1")
masked = serve("called by a stranger like a relative elsewhere", four, "127.0.0.1")
serve("called by a stranger over IPv6", six, "::1")
ports = [serve("called by a relative", four, "127.0.0.1"), serve("called by a relative from elsewhere", four, "127.0.0.1"),
    serve("called by several", six, "::"), serve("called by one that ended, too", four, "127.0.0.1"),
    serve("called by a job of many", four, "127.0.0.1"), serve("called now", four, "127.0.0.1"),
    serve("called by children", four, "127.0.0.1"), serve("called by an agent", four, "127.0.0.1"),
    serve("called by too many", four, "127.0.0.1")]
say("relative")
held = socket.create_connection(("127.0.0.1", ports[5]))
socket.create_connection(("127.0.0.1", ports[0])).recv(1)
socket.create_connection(("127.0.0.1", ports[1]), source_address=("127.0.0.2", 0)).recv(1)
socket.create_connection(("127.0.0.1", ports[2])).recv(1)
def another(host, port, lives, apart=False):
    told, tell = os.pipe()
    if os.fork() == 0:
        # Nobody's child.
        parent = os.getpid()
        if apart and os.fork(): os._exit(0)
        while apart and os.getppid() == parent: time.sleep(0.001)
        socket.create_connection((host, port)).recv(1)
        if lives: say("another"); os.write(tell, b"x"); time.sleep(1000)
        os._exit(0)
    os.read(told, 1) if lives else wait()
    apart and wait()
another("::1", ports[2], True)
for lives in (False, True): another("127.0.0.1", ports[3], lives)
socket.create_connection(("127.0.0.1", ports[3])).recv(1)
for apart in (False, True):
    for _ in range(5): another("127.0.0.1", ports[8 if apart else 4], True, apart)
for _ in range(6): another("127.0.0.1", ports[6], False)
told, tell = os.pipe()
if os.fork() == 0:
    say("agent"); go()
    socket.create_connection(("127.0.0.1", ports[7])).recv(1); os.write(tell, b"x"); time.sleep(1000)
os.read(told, 1); say("done"); go()
# A network of its own: CLONE_NEWNET, SIOCSIFFLAGS with IFF_UP.
import fcntl, struct
assert libc.unshare(0x40000000) == 0
fcntl.ioctl(socket.socket(four), 0x8914, struct.pack("16sh", b"lo", 1))
there = socket.create_server(("127.0.0.1", masked))
like = socket.create_connection(("127.0.0.1", masked), source_address=("127.0.0.1", int(sys.stdin.readline())))
say("masked"); go(); os.kill(0, 9)
"#;

/// Its calls. Births are told in clock ticks: what is started from now on is younger than the hook.
pub(crate) fn calls_of(source: &KernelSource) -> std::sync::Arc<orphand::source::calls::Calls> {
    let calls = source.side().calls.unwrap();
    std::thread::sleep(std::time::Duration::from_millis(20));
    calls
}

/// A followed group that has played this, and what it said until it was done.
pub(crate) fn played(source: &mut KernelSource, script: &str) -> (Actor, Vec<serde_json::Value>) {
    let mut actor = Actor::wait_for_the_word(&format!("os.setsid()\n{script}"));
    assert!(source.members.track(actor.id, Tracking::Member).unwrap().is_followed());
    actor.word();
    let mut lines = vec![actor.line()];
    while lines.last().unwrap()["what"] != "done" {
        lines.push(actor.line());
    }
    (actor, lines)
}

/// Of this test.
pub(crate) fn network() -> u32 {
    let own = Proc::system().unwrap().process(std::process::id()).unwrap();
    own.network().unwrap()
}

#[test]
#[ignore = "needs root and a kernel: cargo xtask test runs it"]
fn every_caller_is_somebody() {
    let mut source = KernelSource::open(&options()).unwrap();
    let calls = calls_of(&source);
    // A group of its own: it ends all that it started.
    let mut actor = Actor::wait_for_the_word(&format!("os.setsid()\n{SERVERS}"));
    assert!(source.members.track(actor.id, Tracking::Member).unwrap().is_followed());
    actor.word();
    let mut lines = Vec::new();
    while lines.last().is_none_or(|line: &serde_json::Value| line["what"] != "done") {
        let line = actor.line();
        if line["what"] == "agent" {
            assert!(source.members.track(id(&line), Tracking::Agent).unwrap().is_followed());
            actor.word();
        }
        lines.push(line);
    }
    let line = |what: &str| lines.iter().find(|line| line["what"] == what).unwrap();
    let port = |what| u16::try_from(line(what)["port"].as_u64().unwrap()).unwrap();
    let call = |to: SocketAddr| TcpStream::connect(to).unwrap().read(&mut [0]).unwrap();
    call(([127, 0, 0, 1], port("called by a stranger")).into());
    call((Ipv6Addr::LOCALHOST, port("called by a stranger over IPv6")).into());
    let reset = TcpStream::connect(("127.0.0.1", port("reset by a stranger"))).unwrap();
    rustix::net::sockopt::set_socket_linger(&reset, Some(std::time::Duration::ZERO)).unwrap();
    drop(reset);
    let mut masked =
        TcpStream::connect(("127.0.0.1", port("called by a stranger like a relative elsewhere"))).unwrap();
    actor.tell(&format!("x{}\n", masked.local_addr().unwrap().port()));
    assert_eq!(actor.line()["what"], "masked");
    masked.write_all(b"x").unwrap();
    assert_eq!(masked.read(&mut [0]).unwrap(), 0);
    let caller = |by, head| Caller::Process { by, above: [head, 0, 0, head, 0], lately: true };
    let head = id(line("relative")).pid;
    let relative = caller(id(line("relative")), 0);
    let others = lines.iter().filter(|line| line["what"] == "another").map(id);
    let others: Vec<Caller> =
        others.enumerate().map(|(place, by)| caller(by, if place < 7 { head } else { 0 })).collect();
    let (server, network) = (|what| id(line(what)), network());
    for (what, callers) in [
        ("silent", &[][..]),
        ("called by a stranger", &[Caller::Anybody]),
        // What a relative calls in a network of its own is another port.
        ("called by a stranger like a relative elsewhere", &[Caller::Anybody]),
        ("called by a stranger over IPv6", &[Caller::Anybody]),
        ("called by a relative", &[relative]),
        ("called by a relative from elsewhere", &[relative]),
        ("called now", &[relative]),
        ("called by an agent", &[caller(id(line("agent")), 0)]),
        ("called by several", &[relative, others[0]]),
        // The place of the one that ended is that of another one of the same job.
        ("called by one that ended, too", &[others[1], relative]),
        // The fifth has the place of another one.
        ("called by a job of many", &[others[3], others[4], others[5], others[6]]),
        // The fifth is one of those that live.
        (
            "called by too many",
            &[Caller::Anybody, Caller::Unknown, others[7], others[8], others[9], others[10]],
        ),
        ("reset by a stranger", &[Caller::Anybody]),
    ] {
        let told: BTreeSet<Caller> =
            calls.of(network, port(what), server(what), false).unwrap().into_iter().collect();
        assert_eq!(told, callers.iter().copied().collect(), "{what}");
    }
    let told = calls.of(network, port("called by children"), server("called by children"), false).unwrap();
    assert!(
        matches!(told[..], [Caller::Process { above, lately: true, .. }] if above == [head, 0, 0, head, 0]),
        "{told:?}"
    );
    let ourselves = orphand::host::identity::identity(std::process::id()).unwrap();
    assert_eq!(
        calls.of(network, port("silent"), ourselves, false).unwrap(),
        [Caller::Unknown],
        "older than the hook"
    );
    actor.word();
    actor.finish();
    assert_eq!(source.errors().unwrap()["call_dropped"], 0);
}

/// Shells that start jobs and end. Each job calls by a child of a child.
const LEFT: &str = r#"
import socket
def serve(what):
    s = socket.create_server(("127.0.0.1", 0)); port = s.getsockname()[1]
    if os.fork() == 0:
        say(what, port=port)
        while True: s.accept()[0].close()
    s.close(); return port
def call(port, depth=1):
    if os.fork() == 0:
        if depth: call(port, depth - 1)
        else: socket.create_connection(("127.0.0.1", port)).recv(1)
        os._exit(0)
    wait()
for what, jobs, live in ("left", 1, True), ("left by many", 5, True), ("ended", 3, False):
    port = serve(what)
    if os.fork() == 0:
        for _ in range(jobs):
            told, tell = os.pipe()
            if os.fork() == 0:
                call(port); say(f"job of {what}"); os.write(tell, b"x")
                live and time.sleep(1000); os._exit(0)
            os.read(told, 1); live or wait()
        os._exit(0)
    wait()
for what, depth in ("through seven levels", 6), ("through nine levels", 8): call(serve(what), depth)
say("done"); go(); os.kill(0, 9)
"#;

#[test]
#[ignore = "needs root and a kernel: cargo xtask test runs it"]
fn the_call_of_one_that_has_ended_is_of_the_nearest_that_lives() {
    let mut source = KernelSource::open(&options()).unwrap();
    let calls = calls_of(&source);
    let (mut actor, lines) = played(&mut source, LEFT);
    let all = |what: &str| lines.iter().filter(|line| line["what"] == what).collect::<Vec<_>>();
    // The second process above each caller: the first one has ended, and so has the third.
    let callers = |what: &str| {
        let port = u16::try_from(all(what)[0]["port"].as_u64().unwrap()).unwrap();
        let told = calls.of(network(), port, id(all(what)[0]), false).unwrap();
        let second = |caller: &Caller| match caller {
            Caller::Process { above: [_, second, third, head, 0], .. } => {
                assert!(*third != 0 && *head == actor.id.pid, "{told:?}");
                *second
            }
            other => panic!("{other:?}"),
        };
        told.iter().map(second).collect::<BTreeSet<_>>()
    };
    let jobs = |what: &str| all(what).iter().map(|line| id(line).pid).collect::<Vec<_>>();
    assert!(callers("left").into_iter().eq(jobs("job of left")));
    let (many, kept) = (jobs("job of left by many"), callers("left by many"));
    assert_eq!((many.len(), kept.len()), (5, 4), "the fifth has the place of another one of the same job");
    assert!(kept.contains(&many[4]) && kept.iter().all(|job| many.contains(job)), "{kept:?} of {many:?}");
    assert_eq!(callers("ended").len(), 1, "who lives stands for all of them");
    // Whose job it is may call again.
    for (what, expected) in [("through seven levels", actor.id.pid), ("through nine levels", 0)] {
        let port = u16::try_from(all(what)[0]["port"].as_u64().unwrap()).unwrap();
        let told = calls.of(network(), port, id(all(what)[0]), false).unwrap();
        assert_eq!(told.contains(&Caller::Unknown), expected == 0, "{what}: {told:?}");
        let head = told.iter().find_map(|caller| match caller {
            Caller::Process { above: [_, _, _, head, 0], .. } => Some(*head),
            _ => None,
        });
        assert_eq!(head, Some(expected), "{what}");
    }
    actor.word();
    actor.finish();
    assert_eq!(source.errors().unwrap()["call_dropped"], 0);
}

/// Two servers, of which the second one's port finds no room.
const TWO: &str = r#"
import socket
for what in ("first", "second"):
    s = socket.create_server(("127.0.0.1", 0)); say(what, port=s.getsockname()[1]); s.accept()[0].close()
go(); os.kill(0, 9)
"#;

#[test]
#[ignore = "needs root and a kernel: cargo xtask test runs it"]
fn after_a_call_that_finds_no_room_nobody_knows_who_called() {
    let mut source = KernelSource::open(&KernelOptions { called: 1, ..options() }).unwrap();
    let calls = calls_of(&source);
    let mut actor = Actor::wait_for_the_word(&format!("os.setsid()\n{TWO}"));
    assert!(source.members.track(actor.id, Tracking::Member).unwrap().is_followed());
    actor.word();
    let mut line = serde_json::Value::Null;
    for told in [&[Caller::Anybody][..], &[Caller::Unknown]] {
        line = actor.line();
        let port = u16::try_from(line["port"].as_u64().unwrap()).unwrap();
        assert_eq!(TcpStream::connect(("127.0.0.1", port)).unwrap().read(&mut [0]).unwrap(), 0);
        assert_eq!(calls.of(network(), port, id(&line), false).unwrap(), told);
    }
    assert_eq!(calls.of(network(), 1, id(&line), false).unwrap(), [Caller::Unknown], "of no port");
    assert!(source.errors().unwrap()["call_dropped"] > 0);
    actor.word();
    actor.finish();
}

/// A user may leave the daemon's control group without memory, and a hook cannot wait for any.
#[test]
#[ignore = "needs root and a kernel: cargo xtask test runs it"]
fn the_memory_for_calls_is_there_from_the_start() {
    let _source = KernelSource::open(&options()).unwrap();
    let infos = std::fs::read_dir("/proc/self/fdinfo").unwrap();
    let infos = infos.filter_map(|info| std::fs::read_to_string(info.unwrap().path()).ok());
    let size = format!("value_size:\t{}\n", size_of::<monitor_common::CallRecord>());
    let called: Vec<String> = infos.filter(|info| info.contains(&size)).collect();
    assert!(!called.is_empty() && called.iter().all(|info| info.contains("map_flags:\t0x0\n")), "{called:?}");
}

/// A server, and processes that begin connections at its port number and end when nobody is followed who closes them.
const IMPOSTORS: &str = r#"
import resource, socket
resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
server = socket.create_server(("127.0.0.1", 0)); port = server.getsockname()[1]
say("server", port=port); go()
# Of IPv6: what accepts has memory of another kind.
there = socket.create_server(("::", 0), family=socket.AF_INET6, backlog=4096, dualstack_ipv6=True)
for cpu in os.sched_getaffinity(0):
    ended, end = os.pipe()
    if os.fork() == 0:
        # Nobody's child: of those whose creator is followed the end is seen.
        if os.fork() == 0:
            os.sched_setaffinity(0, [cpu]); kept = []
            for i in range(1000):
                call = socket.socket(); call.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                call.bind(("127.0.0.2", port)); call.connect((f"127.{cpu}.{1 + i // 250}.{1 + i % 250}", there.getsockname()[1]))
                kept += [call, there.accept()[0]]
        os._exit(0)
    os.wait(); os.close(end); os.read(ended, 1)
say("made"); server.accept()[0].close(); say("served"); go(); os.kill(0, 9)
"#;

#[test]
#[ignore = "needs root and a kernel: cargo xtask test runs it"]
fn a_call_is_seen_whatever_its_memory_was_before() {
    let mut source = KernelSource::open(&options()).unwrap();
    let calls = calls_of(&source);
    let mut actor = Actor::wait_for_the_word(&format!("os.setsid()\n{IMPOSTORS}"));
    assert!(source.members.track(actor.id, Tracking::Member).unwrap().is_followed());
    actor.word();
    let server = actor.line();
    let port = u16::try_from(server["port"].as_u64().unwrap()).unwrap();
    actor.word();
    assert_eq!(actor.line()["what"], "made");
    assert_eq!(TcpStream::connect(("127.0.0.1", port)).unwrap().read(&mut [0]).unwrap(), 0);
    assert_eq!(actor.line()["what"], "served");
    assert_eq!(calls.of(network(), port, id(&server), false).unwrap(), [Caller::Anybody]);
    actor.word();
    actor.finish();
}
