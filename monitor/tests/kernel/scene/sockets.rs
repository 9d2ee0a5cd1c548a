//! Sockets of all kinds.

use super::{NONE, ask, ends, is_open, joins, scene, server};
use crate::stand::Stand;
use orphand_core::model::{
    Stdio,
    scene::{Address, Began, Called, Endpoint, Holder, Scene, SceneQuestion, Side},
};

fn open(scene: &Scene, inode: u64) -> Option<(Address, Called)> {
    scene.endpoints.iter().find_map(|endpoint| is_open(endpoint, inode))
}

fn began(scene: &Scene, near: u64, far: u64) -> Option<Began> {
    scene.endpoints.iter().find_map(|endpoint| joins(endpoint, near, far))
}

fn holders(scene: &Scene, near: u64, far: u64) -> Vec<(Side, Holder)> {
    let all = ends(scene, |endpoint| joins(endpoint, near, far).is_some());
    all.into_iter().map(|(side, holder, _)| (side, holder)).collect()
}

#[test]
#[ignore = "needs root and a kernel: cargo xtask test runs it"]
fn a_pair_has_two_sides_until_one_is_closed() {
    let stand = Stand::new(
        r#"
a, b = socket.socketpair(); c, d = socket.socketpair(); e, f = socket.socketpair(); g, h = socket.socketpair()
who("server", child(lambda: [one.close() for one in (b, d, f, g, h)]))
ids = dict(a=ino(a), b=ino(b), c=ino(c), e=ino(e), f=ino(f)); fd = a.fileno()
socket.send_fds(g, [b"x"], [f.fileno()])
for one in (a, c, d, e, f): one.close()
say(fd=fd, bfd=b.fileno(), **ids)
"#,
    );
    let found = scene(&[stand.who("server")], NONE);
    let of = |one| stand.number(one);
    let server = Holder::Process(stand.who("server"));
    assert_eq!(began(&found, of("a"), of("b")), Some(Began::Pair));
    let all = ends(&found, |endpoint| joins(endpoint, of("a"), of("b")).is_some());
    let other = (Side::Far, Holder::Process(stand.me()), vec![stand.fd("bfd")]);
    assert_eq!(all, [(Side::Near, server, vec![stand.fd("fd")]), other]);
    // The other side was closed.
    assert_eq!(holders(&found, of("c"), 0), [(Side::Near, server)]);
    // It is on its way.
    assert_eq!(holders(&found, of("e"), of("f")), [(Side::Near, server), (Side::Far, Holder::Anybody)]);
}

#[test]
#[ignore = "needs root and a kernel: cargo xtask test runs it"]
fn names_tell_who_called() {
    let stand = Stand::new(
        r#"
import tempfile
place = tempfile.mkdtemp()
def listener(name):
    s = socket.socket(socket.AF_UNIX); s.bind(name); s.listen(); return s
def call(name):
    s = socket.socket(socket.AF_UNIX); s.connect(name); return s
silent, ours, theirs = listener(place + "/silent"), listener(place + "/ours"), listener(place + "/theirs")
hidden = listener("\0hidden-" + str(os.getpid()))
def later(path):   # a call in the clock tick in which the socket was bound leaves no trace
    while True:
        open(path + ".now", "w").close()
        if os.stat(path + ".now").st_mtime_ns > os.stat(path).st_mtime_ns: return
later(place + "/ours")
caller = call(place + "/ours"); accepted = ours.accept()[0]; waiting = call(place + "/ours")
outward = call(place + "/theirs"); inward = theirs.accept()[0]
kept = (silent, ours, hidden, accepted, outward)
who("server", child(lambda: [one.close() for one in (theirs, caller, waiting, inward)]))
ids = {k: ino(v) for k, v in dict(silent=silent, ours=ours, hidden=hidden, caller=caller, accepted=accepted, waiting=waiting,
    outward=outward, inward=inward).items()}
for one in kept: one.close()
say(**ids)
"#,
    );
    let found = scene(&[stand.who("server")], NONE);
    let of = |one| stand.number(one);
    let (server, me) = (Holder::Process(stand.who("server")), Holder::Process(stand.me()));
    for (name, called) in [("silent", Called::No), ("ours", Called::Unknown), ("hidden", Called::Unknown)] {
        assert_eq!(open(&found, of(name)), Some((Address::Unix, called)), "{name}");
        let listening = ends(&found, |endpoint| is_open(endpoint, of(name)).is_some());
        assert_eq!(listening.iter().map(|end| (end.0, end.1)).collect::<Vec<_>>(), [(Side::Listens, server)]);
    }
    for (near, far, side) in [
        (of("accepted"), of("caller"), Began::Far),
        (0, of("waiting"), Began::Far),
        (of("outward"), of("inward"), Began::Near),
    ] {
        assert_eq!(began(&found, near, far), Some(side));
        assert_eq!(holders(&found, near, far), [(Side::Near, server), (Side::Far, me)]);
    }
}

/// A call of its own explains why the file was touched; that call has a row.
#[test]
#[ignore = "needs root and a kernel: cargo xtask test runs it"]
fn a_listener_that_only_its_own_server_calls_was_not_called() {
    for (closes, called) in [("", Called::No), ("caller.close(); accepted.close()", Called::Unknown)] {
        let stand = Stand::new(&format!(
            r#"
import tempfile
path = tempfile.mkdtemp() + "/s"
def later(path):   # a call in the clock tick in which the socket was bound leaves no trace
    while True:
        open(path + ".now", "w").close()
        if os.stat(path + ".now").st_mtime_ns > os.stat(path).st_mtime_ns: return
def server():
    global kept
    listener = socket.socket(socket.AF_UNIX); listener.bind(path); listener.listen(); later(path)
    caller = socket.socket(socket.AF_UNIX); caller.connect(path); accepted = listener.accept()[0]
    os.pwrite(box, str(ino(listener)).encode(), 0); kept = (listener, caller, accepted); {closes}
box = os.memfd_create("box")
who("server", child(server)); say(listener=int(os.pread(box, 30, 0)))
"#
        ));
        let found = scene(&[stand.who("server")], NONE);
        assert_eq!(open(&found, stand.number("listener")), Some((Address::Unix, called)));
    }
}

#[test]
#[ignore = "needs root and a kernel: cargo xtask test runs it"]
fn datagrams_come_from_anybody_unless_the_socket_is_connected() {
    let stand = Stand::new(
        r#"
import tempfile
place = tempfile.mkdtemp()
def bound(name):
    s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM); s.bind(name); return s
named, log, automatic = bound(place + "/d"), bound(place + "/log"), bound("")
writer = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM); writer.connect(place + "/log")
udp, chosen, asks = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(3))
udp.bind(("127.0.0.1", 0)); chosen.bind(("0.0.0.0", 0)); asks.connect(("127.0.0.1", 53))
who("server", child(lambda: log.close()))
ids = {k: ino(v) for k, v in dict(named=named, log=log, automatic=automatic, writer=writer, udp=udp, chosen=chosen, asks=asks).items()}
for one in (named, automatic, writer, udp, chosen, asks): one.close()
say(**ids)
"#,
    );
    let found = scene(&[stand.who("server")], NONE);
    let of = |one| stand.number(one);
    assert_eq!(open(&found, of("named")), Some((Address::Unix, Called::No)));
    assert_eq!(open(&found, of("udp")), Some((Address::Udp, Called::Unknown)));
    assert_eq!((open(&found, of("automatic")), open(&found, of("chosen"))), (None, None));
    assert_eq!(began(&found, of("writer"), of("log")), Some(Began::Near));
    assert_eq!(began(&found, of("asks"), 0), Some(Began::Near));
}

#[test]
#[ignore = "needs root and a kernel: cargo xtask test runs it"]
fn a_port_tells_who_called_and_who_has() {
    let stand = Stand::new(
        r#"
def listener():
    s = socket.socket(); s.bind(("127.0.0.1", 0)); s.listen(); return s
silent, ours, left, theirs = (listener() for _ in range(4))
call = lambda to: socket.create_connection(to.getsockname())
caller, waiting, outward = call(ours), None, None
accepted = ours.accept()[0]; waiting = call(ours); outward = call(theirs); inward = theirs.accept()[0]
# Whoever closes first keeps the connection for a minute.
brief = call(left); served = left.accept()[0]; brief.close(); served.close()
kept = dict(silent=silent, ours=ours, left=left, accepted=accepted, outward=outward)
who("server", child(lambda: [one.close() for one in (theirs, caller, waiting, inward)]))
ids = {k: ino(v) for k, v in (kept | dict(caller=caller, waiting=waiting, inward=inward)).items()}
for one in kept.values(): one.close()
say(**ids)
"#,
    );
    let found = scene(&[stand.who("server")], NONE);
    let of = |one| stand.number(one);
    let (server, me) = (Holder::Process(stand.who("server")), Holder::Process(stand.me()));
    for (name, called) in [("silent", Called::No), ("ours", Called::No), ("left", Called::Yes)] {
        assert_eq!(open(&found, of(name)), Some((Address::Tcp, called)), "{name}");
    }
    for (near, far, side) in [
        (of("accepted"), of("caller"), Began::Far),
        (0, of("waiting"), Began::Far),
        (of("outward"), of("inward"), Began::Near),
    ] {
        assert_eq!(began(&found, near, far), Some(side), "{near} {far}");
        assert_eq!(holders(&found, near, far), [(Side::Near, server), (Side::Far, me)]);
    }
}

#[test]
#[ignore = "needs root and a kernel: cargo xtask test runs it"]
fn servers_that_call_each_other_have_one_row_for_a_connection() {
    let stand = Stand::new(
        r#"
listener = socket.socket(); listener.bind(("127.0.0.1", 0)); listener.listen()
caller = socket.create_connection(listener.getsockname()); accepted = listener.accept()[0]
who("one", child(lambda: caller.close())); who("two", child(lambda: (listener.close(), accepted.close())))
ids = dict(caller=ino(caller), accepted=ino(accepted))
for one in (listener, caller, accepted): one.close()
say(**ids)
"#,
    );
    let (one, two) = (stand.who("one"), stand.who("two"));
    let servers = vec![server(&[one], NONE), server(&[two], NONE)];
    let found = ask(&SceneQuestion { servers, ..SceneQuestion::default() });
    let of_it = |endpoint: &&Endpoint| match endpoint {
        Endpoint::Connection { near, far, .. } => {
            [stand.number("caller"), stand.number("accepted")].iter().all(|end| [near, far].contains(&end))
        }
        _ => false,
    };
    let rows: Vec<_> = found.endpoints.iter().filter(of_it).copied_ends();
    let [(near, far, began)] = rows[..] else { panic!("{rows:?}") };
    let by = if began == Began::Near { near } else { far };
    assert_eq!(by, stand.number("caller"));
    let sides: Vec<Holder> = holders(&found, near, far).into_iter().map(|(_, holder)| holder).collect();
    assert!(sides.contains(&Holder::Process(one)) && sides.contains(&Holder::Process(two)), "{sides:?}");
}

trait Ends {
    fn copied_ends(self) -> Vec<(u64, u64, Began)>;
}

impl<'a, I: Iterator<Item = &'a Endpoint>> Ends for I {
    fn copied_ends(self) -> Vec<(u64, u64, Began)> {
        self.filter_map(|endpoint| match endpoint {
            Endpoint::Connection { near, far, began } => Some((*near, *far, *began)),
            _ => None,
        })
        .collect()
    }
}

#[test]
#[ignore = "needs root and a kernel: cargo xtask test runs it"]
fn a_wire_that_is_a_socket_is_told_with_its_peer() {
    let stand = Stand::new(
        r#"
a, b = socket.socketpair()
who("server", child(lambda: (os.dup2(a.fileno(), 0), os.dup2(0, 1), a.close(), b.close())))
ids = dict(a=ino(a), b=ino(b)); a.close()
say(fd=b.fileno(), **ids)
"#,
    );
    let (server, wire) = (stand.who("server"), Stdio::Socket(stand.number("a")));
    let found = scene(&[server], [wire, wire]);
    let all = ends(&found, |endpoint| joins(endpoint, stand.number("a"), stand.number("b")).is_some());
    assert_eq!(
        all,
        [
            (Side::Near, Holder::Process(server), vec![0, 1]),
            (Side::Far, Holder::Process(stand.me()), vec![stand.fd("fd")]),
        ]
    );
}
