//! Who holds a pipe or a socket, against what the actors made.

use std::{
    collections::BTreeSet,
    fs::File,
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

/// The number of a socket's file is that of a file system, which any user may have made.
#[test]
#[ignore = "needs root and a kernel: cargo xtask test runs it"]
fn who_names_the_file_of_a_socket_has_no_end_of_one() {
    let dir = tempfile::tempdir().unwrap();
    let stand = Stand::new(&format!(
        r#"
path = "{}/socket"
listener = socket.socket(socket.AF_UNIX); listener.bind(path)
by_name = os.open(path, os.O_PATH); by_descriptor = os.open(f"/proc/self/fd/{{listener.fileno()}}", os.O_PATH)
say(file=ino(by_name), listener=ino(listener.fileno()), number=listener.fileno())
"#,
        dir.path().display()
    ));
    let ends = pass(&[socket(&stand, "file"), socket(&stand, "listener")]);
    let of_stand: Vec<_> = ends.iter().filter(|end| end.process == stand.me()).collect();
    assert_eq!(of_stand.iter().map(|end| end.number).collect::<Vec<_>>(), [stand.fd("number")], "{ends:#?}");
}

/// Whoever makes a file system says which inode numbers its files have.
#[test]
#[ignore = "needs root and a kernel: cargo xtask test runs it"]
fn a_fifo_is_none_of_the_pipes_without_a_path() {
    let stand = Stand::new(
        r#"
import tempfile
path = tempfile.mkdtemp() + "/fifo"; os.mkfifo(path)
fd = os.open(path, os.O_RDWR); r, w = os.pipe()
say(fifo=os.fstat(fd).st_ino, fd=fd, pipe=ino(r), r=r, w=w)
"#,
    );
    let (fifo, pipe) = (stand.number("fifo"), stand.number("pipe"));
    let look = Look::new(&options());
    let told = |nameless: &[u64]| {
        let beside = Beside { nameless: nameless.iter().copied().collect(), ..Beside::default() };
        let ends = look.side.pass(&[Stdio::Pipe(fifo), Stdio::Pipe(pipe)], &beside).unwrap();
        ends.iter().filter(|end| end.process == stand.me()).map(|end| end.number).collect::<BTreeSet<_>>()
    };
    let [fd, r, w] = ["fd", "r", "w"].map(|key| stand.fd(key));
    assert_eq!(told(&[]), BTreeSet::from([fd, r, w]));
    assert_eq!(told(&[pipe, fifo]), BTreeSet::from([r, w]));
}

/// Whoever has the file of a memory open may map it.
#[test]
#[ignore = "needs root and a kernel: cargo xtask test runs it"]
fn who_has_a_mapped_file_open_is_told_by_device_and_number() {
    let stand = Stand::new(
        r#"
import tempfile
fd, other = os.memfd_create("ring"), os.memfd_create("other"); file = tempfile.TemporaryFile()
def told(key, fd):
    status = os.fstat(fd)
    return {key: status.st_ino, "device of " + key: os.major(status.st_dev) << 20 | os.minor(status.st_dev)}
say(fd=fd, **told("ring", fd), **told("file", file.fileno()))
"#,
    );
    let of =
        |key: &str| (u32::try_from(stand.number(&format!("device of {key}"))).unwrap(), stand.number(key));
    let (ring, file) = (of("ring"), of("file"));
    let look = Look::new(&options());
    let told = |files: &[(u32, u64)]| {
        let beside = Beside { mapped: files.iter().copied().collect(), ..Beside::default() };
        let ends = look.side.pass(&[], &beside).unwrap();
        let own = ends.iter().filter(|end| end.process == stand.me());
        own.map(|end| (end.number, end.of, (end.device, end.inode))).collect::<Vec<_>>()
    };
    let it = (stand.fd("fd"), Stdio::File, ring);
    assert_eq!(told(&[ring]), [it]);
    assert_eq!(told(&[(file.0, ring.1)]), [], "another file has this number there");
    assert_eq!(told(&[ring, (file.0, ring.1)]), [it], "both are looked for");
    assert_eq!(told(&[ring, file]).len(), 2);
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
