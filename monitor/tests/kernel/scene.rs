//! The rows of a scene, against what the actors made.

use std::{collections::BTreeSet, sync::LazyLock};

use crate::{stage::options, stand::Stand};
use orphand::{
    probe::Probe,
    source::{kernel::KernelSource, kernel_side::KernelSide},
};
use orphand_core::model::{
    ProcessId, Stdio,
    scene::{Endpoint, Holder, Scene, SceneQuestion, SceneServer, Side},
};

/// The scene of one server of these processes, with these wires.
pub fn scene(processes: &[ProcessId], wires: [Stdio; 2]) -> Scene {
    ask(&SceneQuestion { servers: vec![server(processes, wires)], ..SceneQuestion::default() })
}

pub fn server(processes: &[ProcessId], [stdin, stdout]: [Stdio; 2]) -> SceneServer {
    SceneServer { processes: processes.to_vec(), stdin, stdout }
}

/// One kernel side for all tests here, which stays.
static PROBE: LazyLock<Probe> = LazyLock::new(|| {
    let source = Box::leak(Box::new(KernelSource::open(&options()).unwrap()));
    let side = source.side();
    assert!(side.holders.is_some() && side.tasks.is_some());
    Probe::new().unwrap().with_kernel(KernelSide { calls: None, ..side })
});

pub fn ask(question: &SceneQuestion) -> Scene {
    let scene = PROBE.scene(question);
    assert_eq!(scene.unread, []);
    let rows: BTreeSet<ProcessId> = scene.processes.iter().map(|row| row.process).collect();
    assert_eq!(rows.len(), scene.processes.len(), "one row for a process");
    for end in &scene.ends {
        assert!(scene.endpoint(end.endpoint).is_some());
        let is_call = matches!(scene.endpoint(end.endpoint), Some(Endpoint::Call));
        let Holder::Process(process) = end.holder else { continue };
        assert!(is_call || rows.contains(&process), "{process} holds something and has no row");
    }
    scene
}

/// Who has which end of this endpoint, with the numbers of descriptors.
pub fn ends(scene: &Scene, is_it: impl Fn(&Endpoint) -> bool) -> Vec<(Side, Holder, Vec<u32>)> {
    let of_it = |at: u32| scene.endpoint(at).is_some_and(&is_it);
    let all = scene.ends.iter().filter(|end| of_it(end.endpoint));
    let mut found: Vec<_> = all.map(|end| (end.side, end.holder, end.numbers.clone())).collect();
    found.sort();
    found
}

fn of_pipe(scene: &Scene, inode: u64) -> Vec<(Side, Holder, Vec<u32>)> {
    ends(scene, |endpoint| matches!(endpoint, Endpoint::Pipe { inode: one, .. } if *one == inode))
}

const NONE: [Stdio; 2] = [Stdio::Null, Stdio::Null];

#[test]
#[ignore = "needs root and a kernel: cargo xtask test runs it"]
fn every_holder_of_a_wire_is_told_and_who_is_exiting_holds_nothing() {
    let stand = Stand::new(
        r#"
r, w = os.pipe()
who("server", child(lambda: (os.dup2(r, 0), os.close(r), os.close(w))))
zombie = os.fork()
if zombie == 0: os._exit(0)
os.waitid(os.P_PID, zombie, os.WEXITED | os.WNOWAIT)
os.close(r)
say(pipe=ino(w), w=w)
"#,
    );
    let (server, pipe) = (stand.who("server"), stand.number("pipe"));
    let found = scene(&[server], [Stdio::Pipe(pipe), Stdio::Null]);
    assert_eq!(
        of_pipe(&found, pipe),
        [
            (Side::Reads, Holder::Process(server), vec![0]),
            (Side::Writes, Holder::Process(stand.me()), vec![stand.fd("w")]),
        ]
    );
    let (own, other) = (found.row(server).unwrap(), found.row(stand.me()).unwrap());
    assert!(own.full && !other.full);
    assert_eq!((own.parent, own.stdio[0]), (Some(stand.me()), Stdio::Pipe(pipe)));
    assert!(other.image.exe.contains("python"));
}

#[test]
#[ignore = "needs root and a kernel: cargo xtask test runs it"]
fn nobody_has_what_is_hung_up_and_anybody_what_is_in_flight() {
    let stand = Stand::new(
        r#"
r1, w1 = os.pipe(); r2, w2 = os.pipe(); r3, w3 = os.pipe()
a, b = socket.socketpair(); ids = [ino(r1), ino(r2), ino(r3)]
socket.send_fds(a, [b"x"], [w2, w3]); os.close(w1); os.close(w2)
who("server", child(lambda: (os.close(w3), a.close(), b.close())))
for r in (r1, r2, r3): os.close(r)
say(closed=ids[0], flying=ids[1], both=ids[2], r1=r1, r2=r2, r3=r3, w3=w3)
"#,
    );
    let server = stand.who("server");
    let found = scene(&[server], NONE);
    let own = |number| (Side::Reads, Holder::Process(server), vec![stand.fd(number)]);
    assert_eq!(of_pipe(&found, stand.number("closed")), [own("r1")]);
    assert_eq!(of_pipe(&found, stand.number("flying")), [own("r2"), (Side::Writes, Holder::Anybody, vec![])]);
    assert_eq!(
        of_pipe(&found, stand.number("both")),
        [own("r3"), (Side::Writes, Holder::Process(stand.me()), vec![stand.fd("w3")])]
    );
    let beyond: Vec<_> = found.ends.iter().filter(|end| end.beyond && end.side == Side::Writes).collect();
    assert_eq!(beyond.iter().map(|end| end.holder).collect::<Vec<_>>(), [Holder::Process(stand.me())]);
}

/// Its program named it, or its number says so; that of a multipath listener says it alone.
#[test]
#[ignore = "needs root and a kernel: cargo xtask test runs it"]
fn a_listener_tells_whether_somebody_chose_its_port() {
    let stand = Stand::new(
        r#"
drawn = socket.create_server(("127.0.0.1", 0)); free = drawn.getsockname()[1]
def named(first, protocol):
    for port in range(first, first + 500):
        one = socket.socket(socket.AF_INET, socket.SOCK_STREAM, protocol)
        try: one.bind(("127.0.0.1", port)); one.listen(); return one
        except OSError: one.close()
high, low, multipath = named(free + 1 if free < 60000 else free - 600, 0), named(20000, 0), named(21000, 262)
say(drawn=ino(drawn.fileno()), high=ino(high.fileno()), low=ino(low.fileno()), multipath=ino(multipath.fileno()))
"#,
    );
    let found = scene(&[stand.me()], NONE);
    let chosen = |key| {
        let wanted = stand.number(key);
        found.endpoints.iter().find_map(|endpoint| match endpoint {
            Endpoint::Open { inode, chosen, .. } if *inode == wanted => Some(*chosen),
            _ => None,
        })
    };
    let told = ["drawn", "high", "low", "multipath"].map(chosen);
    assert_eq!(told, [Some(false), Some(true), Some(true), Some(true)]);
}

/// The server closed its end, or a child that nobody has heard of has it.
#[test]
#[ignore = "needs root and a kernel: cargo xtask test runs it"]
fn a_child_that_nobody_has_heard_of_is_read_like_its_parent() {
    let stand = Stand::new(
        r#"
r, w = os.pipe(); r2, w2 = os.pipe()
box = os.memfd_create("box")
def server():
    def own(): os.write(box, json.dumps([os.getpid(), start(os.getpid())]).encode()); os.close(w); os.close(w2)
    grandchild(own); os.close(r); os.close(w); os.close(r2); os.close(w2)
who("server", child(server)); os.close(r); os.close(r2)
said["child"] = json.loads(os.pread(box, 100, 0))
say(pipe=ino(w), second=ino(w2), r=r, w=w, r2=r2, w2=w2)
"#,
    );
    let (server, child, pipe) = (stand.who("server"), stand.who("child"), stand.number("pipe"));
    let found = scene(&[server], [Stdio::Pipe(pipe), Stdio::Null]);
    let expected = |r, w| {
        [
            (Side::Reads, Holder::Process(child), vec![stand.fd(r)]),
            (Side::Writes, Holder::Process(stand.me()), vec![stand.fd(w)]),
        ]
    };
    assert_eq!(of_pipe(&found, pipe), expected("r", "w"));
    let row = found.row(child).unwrap();
    assert_eq!((row.full, row.parent), (true, Some(server)));
    assert_eq!(of_pipe(&found, stand.number("second")), expected("r2", "w2"), "its other descriptors");
}

#[test]
#[ignore = "needs root and a kernel: cargo xtask test runs it"]
fn a_fifo_has_a_name_until_it_is_removed() {
    for (keep, named) in [("True", true), ("False", false)] {
        let stand = Stand::new(&format!(
            r#"
import tempfile
path = tempfile.mkdtemp() + "/fifo"; os.mkfifo(path)
fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
who("server", child(lambda: None)); inode = ino(fd); os.close(fd)
if not {keep}: os.unlink(path)
say(fifo=inode, fd=fd)
"#
        ));
        let (server, fifo) = (stand.who("server"), stand.number("fifo"));
        let found = scene(&[server], NONE);
        let of_it = |endpoint: &&Endpoint| matches!(endpoint, Endpoint::Pipe { inode, .. } if *inode == fifo);
        assert_eq!(found.endpoints.iter().find(of_it), Some(&Endpoint::Pipe { inode: fifo, named }));
        assert_eq!(of_pipe(&found, fifo), [(Side::Reads, Holder::Process(server), vec![stand.fd("fd")])]);
    }
}

/// The twin of servers that hold each other's wires: who merely shares ends with another, as standard error is shared,
/// is not read with it, however many there are.
#[test]
#[ignore = "needs root and a kernel: cargo xtask test runs it"]
fn a_server_that_only_shares_an_end_is_not_read_with_another() {
    let stand = Stand::new(
        r#"
r1, w1 = os.pipe(); r2, w2 = os.pipe()
who("one", child(lambda: (os.close(done), os.close(w1), os.close(r2), os.close(w2))))
who("two", child(lambda: (os.close(done), os.close(w1), os.close(r1), os.close(w2))))
say(pipe=ino(r1))
"#,
    );
    let (one, two, pipe) = (stand.who("one"), stand.who("two"), stand.number("pipe"));
    let servers = vec![server(&[one], [Stdio::Pipe(pipe), Stdio::Null]), server(&[two], NONE)];
    let found = ask(&SceneQuestion { servers, ..SceneQuestion::default() });
    assert!(found.row(one).is_some_and(|row| row.full));
    assert!(!found.row(two).is_some_and(|row| row.full));
}

/// The rows of a scene without their numbers: what is an end of what, and who has it.
fn rows(scene: &Scene) -> BTreeSet<String> {
    let row = |end: &orphand_core::model::scene::End| {
        format!("{:?} {:?} {:?} {:?}", scene.endpoint(end.endpoint), end.holder, end.side, end.numbers)
    };
    scene.ends.iter().map(row).chain(scene.processes.iter().map(|row| row.process.to_string())).collect()
}

/// Servers that are due at once are read at once. Each gets what concerns it: what it would be told alone.
#[test]
#[ignore = "needs root and a kernel: cargo xtask test runs it"]
fn several_servers_are_read_in_one_moment() {
    let stand = Stand::new(
        r#"
r, w = os.pipe(); r2, w2 = os.pipe(); errors = os.pipe(); a, b = os.pipe(); c, d = os.pipe()
who("one", child(lambda: (os.dup2(errors[1], 2), os.close(r2), os.close(w), os.close(w2), os.close(c), os.close(d), os.close(b))))
who("two", child(lambda: (os.dup2(errors[1], 2), os.close(r), os.close(w), os.close(w2), os.close(c), os.close(d), os.close(a))))
who("three", child(lambda: (os.close(r), os.close(r2), os.close(w), os.close(w2), os.close(d), os.close(a), os.close(b))))
os.close(r); os.close(r2); os.close(c); os.close(a); os.close(b)
say(wire_of_one=ino(w), wire_of_two=ino(w2), wire_of_three=ino(d))
"#,
    );
    let wire = |name: &str| Stdio::Pipe(stand.number(&format!("wire_of_{name}")));
    let part = |name: &str| server(&[stand.who(name)], [wire(name), Stdio::Null]);
    let alone = |name: &str| SceneQuestion { servers: vec![part(name)], ..SceneQuestion::default() };
    // The first is judged with its sibling, with which it is connected.
    let questions = [
        SceneQuestion { servers: vec![part("one"), part("two")], ..SceneQuestion::default() },
        alone("two"),
        alone("three"),
    ];
    let together = PROBE.scenes(&questions.iter().collect::<Vec<_>>());
    for (found, question) in together.iter().zip(&questions) {
        assert_eq!(found.unread, []);
        let (found, alone) = (rows(found), rows(&ask(question)));
        assert_eq!(alone.difference(&found).collect::<Vec<_>>(), [&""; 0], "rows that are lacking");
    }
    let wires = |scene: &Scene| {
        scene.endpoints.iter().filter(|one| one.is(wire("one")) || one.is(wire("two"))).count()
    };
    assert_eq!([wires(&together[0]), wires(&together[2])], [2, 0], "what concerns others is left out");
    assert!(together[0].row(stand.who("two")).unwrap().full);
}

/// Any user decides how many descriptors of a wire there are. Whoever is due with his server is read as if it were alone.
#[test]
#[ignore = "needs root and a kernel: cargo xtask test runs it"]
fn a_wire_that_is_held_beyond_counting_hides_nobody_else() {
    let stand = Stand::new(
        r#"
a, b = socket.socketpair(); r, w = os.pipe()
who("one", child(lambda: (b.close(), os.close(r), os.close(w))))
who("two", child(lambda: (a.close(), b.close(), os.close(w))))
def many():
    a.close(); b.close(); os.close(r)
    most = min(resource.getrlimit(resource.RLIMIT_NOFILE)[0], 10000) - 100
    for _ in range(most): os.dup(w)
    for _ in range(140000 // most): grandchild(lambda: None)
child(many)
say(wire_of_one=ino(a), wire_of_two=ino(r)); a.close()
"#,
    );
    let question = |name: &str, wire: Stdio| SceneQuestion {
        servers: vec![server(&[stand.who(name)], [wire, Stdio::Null])],
        ..SceneQuestion::default()
    };
    let one = question("one", Stdio::Socket(stand.number("wire_of_one")));
    let two = question("two", Stdio::Pipe(stand.number("wire_of_two")));
    let together = PROBE.scenes(&[&one, &two]);
    assert_eq!(rows(&together[0]), rows(&ask(&one)));
    assert!(together[1].ends.iter().any(|end| end.holder == Holder::Anybody), "and nothing of his is lost");
}
