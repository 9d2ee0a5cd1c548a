//! Terminals, namespaces, debuggers and devices.

use super::{NONE, ask, ends, scene};
use crate::stand::Stand;
use orphand_core::model::scene::{Address, Endpoint, Holder, Scene, SceneQuestion, Side, Wait};

fn holders(scene: &Scene, of: &Endpoint) -> Vec<(Side, Holder)> {
    ends(scene, |endpoint| endpoint == of).into_iter().map(|(side, holder, _)| (side, holder)).collect()
}

#[test]
#[ignore = "needs root and a kernel: cargo xtask test runs it"]
fn who_works_in_a_terminal_depends_on_its_other_side() {
    let stand = Stand::new(
        r#"
import pty
box = os.memfd_create("box")
def there(): os.pwrite(box, json.dumps([os.getpid(), start(os.getpid())]).encode(), 0)
def server(): grandchild(there, lambda: pty.fork()[0])
who("server", child(server)); said["there"] = json.loads(os.pread(box, 100, 0)); say()
"#,
    );
    let [server, there] = ["server", "there"].map(|name| stand.who(name));
    let found = scene(&[server], NONE);
    let [offers, depends] = [(Side::Serves, server), (Side::Depends, there)];
    let expected = [offers, depends].map(|(side, process)| (side, Holder::Process(process)));
    assert_eq!(holders(&found, &Endpoint::Terminal), expected);
    assert_eq!(found.row(there).unwrap().sid, there.pid);
}

#[test]
#[ignore = "needs root and a kernel: cargo xtask test runs it"]
fn what_lives_in_a_namespace_depends_on_its_first_process() {
    let stand = Stand::new(
        r#"
assert libc.unshare(0x20000000) == 0
def first(): grandchild(lambda: None)
who("first", child(first)); say()
"#,
    );
    let first = stand.who("first");
    let found = scene(&[first], NONE);
    let [(Side::Serves, one), (Side::Depends, Holder::Process(other))] =
        holders(&found, &Endpoint::PidNamespace)[..]
    else {
        panic!("{:?}", holders(&found, &Endpoint::PidNamespace));
    };
    assert_eq!(one, Holder::Process(first));
    assert_eq!(found.row(other).unwrap().parent, Some(first));
}

#[test]
#[ignore = "needs root and a kernel: cargo xtask test runs it"]
fn a_tracer_and_whom_it_traces_are_told() {
    // Only who is named like a debugger is asked whom it traces.
    for (name, is_asked) in [("fetcher", false), ("gdb", true)] {
        let stand = Stand::new(&format!(
            r#"
who("server", child(lambda: None))
def trace(): assert libc.ptrace(0x4206, said["server"][0], None, None) == 0
who("{name}", child(trace)); say()
"#
        ));
        let [server, tracer] = ["server", name].map(|name| stand.who(name));
        let expected = [(Side::Serves, Holder::Process(tracer)), (Side::Depends, Holder::Process(server))];
        // It is a fork with the same arguments, and so named like its tracer.
        let mut found = holders(&scene(&[server], NONE), &Endpoint::Trace);
        found.retain(|end| *end != (Side::Serves, Holder::Process(server)));
        assert_eq!(found, expected);
        let expected = if is_asked { &expected[..] } else { &[] };
        assert_eq!(holders(&scene(&[tracer], NONE), &Endpoint::Trace), expected);
    }
}

#[test]
#[ignore = "needs root and a kernel: cargo xtask test runs it"]
fn anybody_may_use_a_device_that_a_process_serves() {
    for (device, serves) in [("/dev/fuse", true), ("/dev/null", false)] {
        let stand =
            Stand::new(&format!("who('server', child(lambda: os.open('{device}', os.O_RDWR))); say()"));
        let server = Holder::Process(stand.who("server"));
        let expected: &[_] = &[(Side::Serves, server), (Side::Depends, Holder::Anybody)];
        let found = holders(&scene(&[stand.who("server")], NONE), &Endpoint::Device);
        assert_eq!(found, if serves { expected } else { &[] }, "{device}");
    }
}

#[test]
#[ignore = "needs root and a kernel: cargo xtask test runs it"]
fn who_shares_the_memory_at_which_a_copy_waits_may_wake_it() {
    let stand = Stand::new(
        r#"
import multiprocessing
gate = multiprocessing.get_context("fork").Semaphore(0)
def waits():
    os.write(tell, b"x"); gate.acquire()
pid = os.fork()
if pid == 0: waits(); os._exit(0)
os.read(done, 1); who("copy", pid); say()
"#,
    );
    let (copy, me) = (stand.who("copy"), stand.me());
    let question = SceneQuestion { copies: vec![copy], ..SceneQuestion::default() };
    // It runs on for a moment until it waits.
    let found = loop {
        let found = ask(&question);
        if found.row(copy).unwrap().waits == Wait::Ends {
            break found;
        }
    };
    let memory = ends(&found, |endpoint| matches!(endpoint, Endpoint::Memory { .. }));
    let expected = [(Side::Reads, copy), (Side::Writes, copy), (Side::Writes, me)];
    let mut expected = expected.map(|(side, process)| (side, Holder::Process(process), Vec::new()));
    expected.sort();
    assert_eq!(memory, expected);
    rustix::process::kill_process(
        rustix::process::Pid::from_raw(copy.pid.cast_signed()).unwrap(),
        rustix::process::Signal::KILL,
    )
    .unwrap();
}

#[test]
#[ignore = "needs root and a kernel: cargo xtask test runs it"]
fn who_shares_an_eventfd_is_told_and_what_is_its_own_is_not() {
    let stand = Stand::new(
        r#"
shared, own = os.eventfd(0), os.eventfd(0)
who("server", child(lambda: threading.Thread(target=lambda: os.eventfd_read(own), daemon=True).start()))
os.close(own)
say(shared=shared)
"#,
    );
    let server = stand.who("server");
    let found = scene(&[server], NONE);
    let all = ends(&found, |endpoint| *endpoint == Endpoint::Shared);
    let both =
        |process, number| [Side::Near, Side::Far].map(|side| (side, Holder::Process(process), vec![number]));
    let number = stand.fd("shared");
    let mut expected = [both(server, number), both(stand.me(), number)].concat();
    expected.sort();
    assert_eq!(all, expected);
}

#[test]
#[ignore = "needs root and a kernel: cargo xtask test runs it"]
fn who_has_the_line_of_a_terminal_open_depends_on_it() {
    let stand = Stand::new(
        r#"
master, line = os.openpty()
who("server", child(lambda: os.close(line)))
os.close(master)
say(line=line)
"#,
    );
    let server = stand.who("server");
    let found = scene(&[server], NONE);
    let expected = [(Side::Serves, server), (Side::Depends, stand.me())];
    assert_eq!(
        holders(&found, &Endpoint::Terminal),
        expected.map(|(side, one)| (side, Holder::Process(one)))
    );
}

#[test]
#[ignore = "needs root and a kernel: cargo xtask test runs it"]
fn a_message_queue_is_open_to_anybody() {
    let stand = Stand::new(
        r#"
librt = ctypes.CDLL("librt.so.1")
name = f"/orphand-{os.getpid()}".encode()
queue = librt.mq_open(name, 0o102, 0o600, None)
librt.mq_unlink(name)
who("server", child(lambda: None)); say()
"#,
    );
    let server = stand.who("server");
    let found = scene(&[server], NONE);
    let all = ends(&found, |endpoint| matches!(endpoint, Endpoint::Open { by: Address::Other, .. }));
    assert_eq!(all, [(Side::Listens, Holder::Process(server), vec![])]);
}

#[test]
#[ignore = "needs root and a kernel: cargo xtask test runs it"]
fn who_is_to_end_with_its_parent_depends_on_it() {
    let stand = Stand::new(
        r#"
box = os.memfd_create("box")
def there():
    assert libc.prctl(1, signal.SIGTERM) == 0
    for fd in range(3): os.dup2(os.open("/dev/null", os.O_RDWR), fd)
    os.pwrite(box, json.dumps([os.getpid(), start(os.getpid())]).encode(), 0)
def server(): grandchild(there)
who("server", child(server)); said["there"] = json.loads(os.pread(box, 100, 0)); say()
"#,
    );
    let [server, there] = ["server", "there"].map(|name| stand.who(name));
    let found = scene(&[server], NONE);
    let expected = [(Side::Serves, server), (Side::Depends, there)];
    assert_eq!(
        holders(&found, &Endpoint::ParentDeath),
        expected.map(|(side, one)| (side, Holder::Process(one)))
    );
}
