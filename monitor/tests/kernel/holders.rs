//! Who holds a pipe or a socket, against what the actors made.

use std::{
    collections::BTreeSet,
    fs::File,
    os::unix::fs::MetadataExt as _,
    path::PathBuf,
    time::{Duration, Instant},
};

use crate::{stage::options, stand::Stand};
use orphand::source::{
    holders::HOOK,
    kernel::{KernelOptions, KernelSource},
    kernel_side::{Beside, KernelSide, OpenEnd},
};
use orphand_core::model::{ProcessId, Stdio};

/// A kernel side and its passes.
pub struct Look {
    side: KernelSide,
    _source: KernelSource,
}

impl Look {
    pub fn new(options: &KernelOptions) -> Self {
        let source = KernelSource::open(options).unwrap();
        assert!(source.hooks().iter().any(|hook| hook == HOOK), "{:?}", source.hooks());
        Self { side: source.side(), _source: source }
    }

    pub fn at(&mut self, wanted: &[Stdio]) -> Vec<OpenEnd> {
        self.side.pass(wanted, &Beside::default()).unwrap()
    }
}

fn pass(wanted: &[Stdio]) -> Vec<OpenEnd> {
    Look::new(&options()).at(wanted)
}

pub fn pipe(stand: &Stand, key: &str) -> Stdio {
    Stdio::Pipe(stand.number(key))
}

fn socket(stand: &Stand, key: &str) -> Stdio {
    Stdio::Socket(stand.number(key))
}

/// Who holds the writing ends, by descriptor.
pub fn writers(ends: &[OpenEnd]) -> Vec<(ProcessId, u32)> {
    let mut found: Vec<_> =
        ends.iter().filter(|end| end.access.write).map(|end| (end.process, end.number)).collect();
    found.sort_unstable();
    found
}

pub fn sorted<T: Ord>(mut all: Vec<T>) -> Vec<T> {
    all.sort();
    all
}

#[test]
#[ignore = "needs root and a kernel: cargo xtask test runs it"]
fn copies_by_fork_and_by_dup_are_one_description() {
    let stand = Stand::new(
        r#"
r, w = os.pipe(); d = os.dup(w)
own = os.open(f"/proc/self/fd/{w}", os.O_WRONLY)   # opened anew: a description of its own
who("one", child(lambda: os.close(own))); who("two", child(lambda: (os.close(r), os.close(d), os.close(own))))
say(pipe=ino(r), r=r, w=w, d=d, own=own)
"#,
    );
    let ends = pass(&[pipe(&stand, "pipe")]);
    let (me, one, two) = (stand.me(), stand.who("one"), stand.who("two"));
    let (r, w, d, own) = (stand.fd("r"), stand.fd("w"), stand.fd("d"), stand.fd("own"));
    assert_eq!(
        writers(&ends),
        sorted(vec![(me, w), (me, d), (me, own), (one, w), (one, d), (two, w)]),
        "{ends:#?}"
    );
    let readers: Vec<_> =
        ends.iter().filter(|end| end.access.read).map(|end| (end.process, end.number)).collect();
    assert_eq!(sorted(readers), sorted(vec![(me, r), (one, r)]));
    assert!(ends.iter().all(|end| end.of == pipe(&stand, "pipe") && end.peer.is_none()));
    assert!(ends.iter().all(|end| (end.readers, end.writers) == (1, 2)));
    let files = |of: &dyn Fn(&&OpenEnd) -> bool| {
        ends.iter().filter(of).map(|end| (end.file, end.references)).collect::<BTreeSet<_>>()
    };
    let reading = files(&|end| end.access.read);
    let shared = files(&|end| end.access.write && end.number != own);
    let single = files(&|end| end.number == own);
    let all = [reading, shared, single].map(|found| (found.len(), found.first().copied().unwrap()));
    assert_eq!(all.map(|(files, (_, references))| (files, references)), [(1, 2), (1, 5), (1, 1)]);
    assert_eq!(all.map(|(_, (file, _))| file).into_iter().collect::<BTreeSet<_>>().len(), 3);
}

#[test]
#[ignore = "needs root and a kernel: cargo xtask test runs it"]
fn an_end_in_flight_is_in_no_table_and_counts() {
    let stand = Stand::new(
        r#"
a, b = socket.socketpair()
r, w = os.pipe(); kept_r, kept_w = os.pipe()
socket.send_fds(a, [b"x"], [w, kept_w]); os.close(w)
say(gone=ino(r), kept=ino(kept_r), r=r, kept_r=kept_r, kept_w=kept_w)
"#,
    );
    let gone = pass(&[pipe(&stand, "gone")]);
    let [end] = &gone[..] else { panic!("{gone:#?}") };
    assert_eq!((end.process, end.number, end.access.read), (stand.me(), stand.fd("r"), true));
    assert_eq!((end.readers, end.writers, end.references), (1, 1, 1));

    let kept = pass(&[pipe(&stand, "kept")]);
    assert_eq!(writers(&kept), [(stand.me(), stand.fd("kept_w"))]);
    let writer = kept.iter().find(|end| end.access.write).unwrap();
    assert_eq!((writer.references, writer.writers), (2, 1), "one descriptor, and one in flight");
}

#[test]
#[ignore = "needs root and a kernel: cargo xtask test runs it"]
fn a_file_that_is_registered_with_io_uring_counts() {
    let stand = Stand::new(
        r#"
r, w = os.pipe()
ring = libc.syscall(425, 4, ctypes.create_string_buffer(120))                  # io_uring_setup
files = array.array("i", [w])
done = libc.syscall(427, ring, 2, ctypes.c_void_p(files.buffer_info()[0]), 1)  # IORING_REGISTER_FILES
os.close(w)
say(pipe=ino(r), ring=max(ring, 0), failed=-done)
"#,
    );
    assert!(stand.number("ring") > 0 && stand.number("failed") == 0, "io_uring is switched off here");
    let ends = pass(&[pipe(&stand, "pipe")]);
    let [end] = &ends[..] else { panic!("{ends:#?}") };
    assert_eq!((end.access.write, end.readers, end.writers), (false, 1, 1));
}

#[test]
#[ignore = "needs root and a kernel: cargo xtask test runs it"]
fn a_table_of_a_thread_is_its_processs_and_one_of_threads_is_told_once() {
    let own = Stand::new(
        r"
r, w = os.pipe(); ready = threading.Event()
def work():
    libc.unshare(0x400); ready.set(); until_the_end()   # CLONE_FILES
threading.Thread(target=work, daemon=True).start(); ready.wait()
os.close(w)
say(pipe=ino(r), w=w)
",
    );
    let ends = pass(&[pipe(&own, "pipe")]);
    assert_eq!(writers(&ends), [(own.me(), own.fd("w"))], "{ends:#?}");
    let readers: Vec<_> = ends.iter().filter(|end| end.access.read).collect();
    assert!(readers.len() == 2 && readers.iter().all(|end| end.references == 2), "{ends:#?}");

    let leaderless = Stand::new(
        r#"
r, w = os.pipe(); me = os.getpid(); who("me")
def leader(): return open(f"/proc/{me}/stat").read().rsplit(") ", 1)[1][0]
def work():
    while leader() != "Z": time.sleep(0.001)
    say(pipe=ino(r), w=w); os.read(0, 1); os._exit(0)
threading.Thread(target=lambda: time.sleep(3600), daemon=True).start()
threading.Thread(target=work, daemon=True).start()
libc.syscall(60, 0)                                     # exit(2): this thread only
"#,
    );
    let ends = pass(&[pipe(&leaderless, "pipe")]);
    assert_eq!(writers(&ends), [(leaderless.who("me"), leaderless.fd("w"))], "{ends:#?}");
    assert!(ends.iter().all(|end| end.references == 1));
}

#[test]
#[ignore = "needs root and a kernel: cargo xtask test runs it"]
fn a_table_of_two_processes_counts_for_both() {
    let stand = Stand::new(
        r#"
r, w = os.pipe(); a, b = socket.socketpair(); me = os.getpid()
socket.send_fds(a, [b"x"], [w])
pid = libc.syscall(56, 0x400 | signal.SIGCHLD, 0, 0, 0, 0)   # clone(CLONE_FILES)
if pid == 0:
    while os.getppid() == me: time.sleep(0.01)
    os._exit(0)
who("other", pid)
say(pipe=ino(r), w=w)
"#,
    );
    let ends = pass(&[pipe(&stand, "pipe")]);
    let w = stand.fd("w");
    assert_eq!(writers(&ends), sorted(vec![(stand.me(), w), (stand.who("other"), w)]), "{ends:#?}");
    for end in &ends {
        // What is in flight does not hide behind the table that counts once.
        assert_eq!(end.references, if end.access.write { 3 } else { 2 }, "{end:?}");
    }
}

#[test]
#[ignore = "needs root and a kernel: cargo xtask test runs it"]
fn other_namespaces_hide_nothing() {
    let stand = Stand::new(
        r#"
r, w = os.pipe()
libc.unshare(0x20000000)                                      # PID namespace
def inside():
    assert libc.unshare(0x20000) == 0                         # mount namespace, whose mounts stay in it
    assert libc.mount(b"none", b"/", None, 0x44000, None) == 0
    assert libc.mount(b"none", b"/proc", b"proc", 0, None) == 0
who("inside", child(inside))
os.close(w)
say(pipe=ino(r), w=w)
"#,
    );
    let ends = pass(&[pipe(&stand, "pipe")]);
    assert_eq!(writers(&ends), [(stand.who("inside"), stand.fd("w"))], "{ends:#?}");
}

#[test]
#[ignore = "needs root and a kernel: cargo xtask test runs it"]
fn socket_pairs_tell_their_peers() {
    let stand = Stand::new(
        r#"
a, b = socket.socketpair(); c, d = socket.socketpair(); e, f = socket.socketpair()
listener = socket.socket(socket.AF_UNIX); listener.bind(""); listener.listen()
client = socket.socket(socket.AF_UNIX); client.connect(listener.getsockname())
closed = ino(c.fileno()); d.close()
flying = ino(f.fileno()); socket.send_fds(a, [b"x"], [f.fileno()]); f.close()
tcp = socket.create_server(("127.0.0.1", 0))
names = dict(a=a, b=b, e=e, client=client, listener=listener, tcp=tcp)
say(c=closed, f=flying, **{name: ino(s.fileno()) for name, s in names.items()})
"#,
    );
    let wanted = ["a", "c", "f", "client", "listener", "tcp"].map(|key| socket(&stand, key));
    let ends = pass(&wanted);
    let find = |key: &str| ends.iter().filter(|end| end.of == socket(&stand, key)).collect::<Vec<_>>();
    let one = |key: &str| match find(key)[..] {
        [end] => end.peer,
        _ => panic!("{key}: {ends:#?}"),
    };
    assert_eq!((one("a"), one("b")), (Some(stand.number("b")), Some(stand.number("a"))));
    assert_eq!(one("c"), Some(0), "its peer was closed");
    assert_eq!(one("client"), Some(0), "not accepted yet");
    assert_eq!((one("listener"), one("tcp")), (None, None));
    // In no table, and yet somebody's peer.
    assert_eq!((find("f").len(), one("e")), (0, Some(stand.number("f"))));
    assert!(ends.iter().all(|end| end.process == stand.me() && end.access.read && end.access.write));
}

#[test]
#[ignore = "needs root and a kernel: cargo xtask test runs it"]
fn a_fifo_with_a_name_is_on_another_device() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("fifo");
    let stand = Stand::new(&format!(
        r#"
os.mkfifo("{0}")
fifo = os.open("{0}", os.O_RDWR); name = os.open("{0}", os.O_PATH); r, w = os.pipe()
say(fifo=ino(fifo), pipe=ino(r), both=fifo, name=name)
"#,
        path.display()
    ));
    let ends = pass(&[pipe(&stand, "fifo"), pipe(&stand, "pipe")]);
    let device = |of| ends.iter().filter(|end| end.of == of).map(|end| end.device).collect::<BTreeSet<_>>();
    let told = dir.path().metadata().unwrap().dev();
    let dev = rustix::fs::major(told) << 20 | rustix::fs::minor(told);
    assert_eq!(device(pipe(&stand, "fifo")), BTreeSet::from([dev]));
    assert_eq!(device(pipe(&stand, "pipe")).len(), 1);
    assert!(!device(pipe(&stand, "pipe")).contains(&dev));
    let of_fifo: Vec<_> = ends.iter().filter(|end| end.of == pipe(&stand, "fifo")).collect();
    let shown: Vec<_> =
        of_fifo.iter().map(|end| (end.number, end.access.read, end.access.write, end.writers)).collect();
    assert_eq!(
        sorted(shown),
        sorted(vec![(stand.fd("both"), true, true, 1), (stand.fd("name"), false, false, 1)])
    );
}

#[test]
#[ignore = "needs root and a kernel: cargo xtask test runs it"]
fn who_is_stuck_on_its_way_to_execve_is_told_and_does_not_delay() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("fifo");
    // The child waits in open(2), the parent in vfork(2), uninterruptibly.
    let stand = Stand::new(&format!(
        r#"
os.mkfifo("{0}")
r, w = os.pipe(); os.set_inheritable(w, True)
say(pipe=ino(r), w=w)
os.posix_spawn("/bin/true", ["true"], {{}}, file_actions=[(os.POSIX_SPAWN_OPEN, 0, "{0}", os.O_RDONLY, 0)])
"#,
        path.display()
    ));
    let let_go = LetGo(path);
    let mut look = Look::new(&options());
    let begin = Instant::now();
    let ends = loop {
        let ends = look.at(&[pipe(&stand, "pipe")]);
        if writers(&ends).len() == 2 {
            break ends;
        }
        assert!(begin.elapsed() < Duration::from_secs(20), "{ends:#?}");
        std::thread::yield_now();
    };
    assert!(writers(&ends).iter().all(|(_, number)| *number == stand.fd("w")));
    let begin = Instant::now();
    look.at(&[pipe(&stand, "pipe")]);
    assert!(begin.elapsed() < Duration::from_secs(5));
    drop(let_go);
}

/// Who waits for a FIFO's other side goes on when it is dropped.
struct LetGo(PathBuf);

impl Drop for LetGo {
    fn drop(&mut self) {
        // Both sides: it waits for nobody itself.
        let _ = File::options().read(true).write(true).open(&self.0);
    }
}
