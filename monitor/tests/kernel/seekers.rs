//! Who wants a port for himself that another has.

use orphand::source::{
    kernel::{KernelOptions, KernelSource},
    kernel_side::Caller,
};
use orphand_core::model::SetsidHook;

use crate::{
    calls::{calls_of, network, played},
    stage::{id, options},
};

/// A server, one that would have its port and one that calls it when it could not have that; a third one would have had it, and has ended.
const SEEKERS: &str = r#"
import socket
server = socket.create_server(("127.0.0.1", 0)); port = server.getsockname()[1]
def seek(what, then):
    told, tell = os.pipe()
    if os.fork() == 0:
        server.close()
        try: socket.socket().bind(("127.0.0.1", port))
        except OSError: then(); say(what); os.write(tell, b"x")
        what != "ended" and time.sleep(1000); os._exit(0)
    os.read(told, 1); what == "ended" and wait()
if os.fork() == 0:
    say("server", port=port)
    while True: server.accept()[0].close()
seek("ended", lambda: None)
seek("seeker", lambda: None)
def calls():
    socket.create_connection(("127.0.0.1", port)).recv(1)
    try: socket.socket().bind(("127.0.0.1", port))
    except OSError: pass
seek("caller", calls)
say("done"); go(); os.kill(0, 9)
"#;

#[test]
#[ignore = "needs root and a kernel: cargo xtask test runs it"]
fn who_wants_a_port_that_another_has_knows_it() {
    for setsid in [SetsidHook::Auto, SetsidHook::Tracepoint] {
        let mut source = KernelSource::open(&KernelOptions { setsid, ..options() }).unwrap();
        assert!(source.hooks().iter().any(|hook| hook.contains("bind") || hook.contains("get_port")));
        let calls = calls_of(&source);
        let (mut actor, lines) = played(&mut source, SEEKERS);
        let line = |what: &str| lines.iter().find(|line| line["what"] == what).unwrap();
        let port = u16::try_from(line("server")["port"].as_u64().unwrap()).unwrap();
        // A stranger is not told.
        std::net::TcpListener::bind(("127.0.0.1", port)).unwrap_err();
        let told = calls.of(network(), port, id(line("server")), false).unwrap();
        // The place of one that has ended is another one's.
        assert!(!told.contains(&Caller::Seeker(id(line("ended")))), "{told:?}");
        assert!(told.contains(&Caller::Seeker(id(line("seeker")))), "{told:?}");
        let is_caller = |by: &Caller| matches!(by, Caller::Process { by, .. } if *by == id(line("caller")));
        assert!(told.len() == 2 && told.iter().any(is_caller), "{told:?}");
        actor.word();
        actor.finish();
        assert_eq!(source.errors().unwrap()["call_dropped"], 0);
    }
}

/// A server, six that want its port in a network of their own, and one that calls it here.
const ELSEWHERE: &str = r#"
import socket
server = socket.create_server(("127.0.0.1", 0)); port = server.getsockname()[1]
def apart(act):
    told, tell = os.pipe()
    if os.fork() == 0: act(); os.write(tell, b"x"); time.sleep(1000)
    os.read(told, 1)
def serve():
    if os.fork() == 0:
        say("server", port=port)
        while True: server.accept()[0].close()
def have():
    server.close(); assert libc.unshare(0x40000000) == 0
    say("elsewhere", network=os.stat("/proc/self/ns/net").st_ino)
    there = socket.socket(); there.bind(("", port)); there.listen()
    def seek():
        try: socket.socket().bind(("", port))
        except OSError: pass
    for _ in range(6): apart(seek)
def call(): socket.create_connection(("127.0.0.1", port)).recv(1); say("caller")
for act in (serve, have, call): apart(act)
say("done"); go(); os.kill(0, 9)
"#;

#[test]
#[ignore = "needs root and a kernel: cargo xtask test runs it"]
fn who_wants_a_port_in_another_network_hides_nobody_here() {
    let mut source = KernelSource::open(&KernelOptions { setsid: SetsidHook::Auto, ..options() }).unwrap();
    let calls = calls_of(&source);
    let (mut actor, lines) = played(&mut source, ELSEWHERE);
    let line = |what: &str| lines.iter().find(|line| line["what"] == what).unwrap();
    let number = |of: &str, what: &str| u32::try_from(line(of)[what].as_u64().unwrap()).unwrap();
    let port = u16::try_from(number("server", "port")).unwrap();
    let told = |network| calls.of(network, port, id(line("server")), false).unwrap();
    let here = told(network());
    assert!(matches!(&*here, [Caller::Process { by, .. }] if *by == id(line("caller"))), "{here:?}");
    // One has given its place to the caller, and others had none.
    let there = told(number("elsewhere", "network"));
    assert!(there.contains(&Caller::Unknown), "{there:?}");
    assert_eq!(there.iter().filter(|caller| matches!(caller, Caller::Seeker(_))).count(), 3, "{there:?}");
    actor.word();
    actor.finish();
    assert_eq!(source.errors().unwrap()["call_dropped"], 0);
}
