//! Real processes that have not read yet, and that read everything afterwards.

use std::{
    fs,
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    os::{
        fd::{AsFd, AsRawFd},
        unix::{
            fs::MetadataExt,
            net::{UnixDatagram, UnixStream},
        },
    },
    process::{Command, Stdio as Std},
    time::{Duration, Instant},
};

use rustix::{
    net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, sendmsg, socketpair},
    pipe::{PipeFlags, pipe_with},
    process::{Pid, Signal, kill_process},
};

use super::*;
use crate::probe::{
    pipe::{self, Said},
    tests::Started,
};
use orphand_core::model::{OwnEnd, ProcessId, scene::Side};

const INITIALIZE: &[u8] = br#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"host","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
"#;

fn mcp() -> FirstMessage {
    FirstMessage::Mcp { client: Some("host".to_owned()) }
}

/// A process that stops itself, and copies its input to its output when it continues.
struct Reader(Started);

impl Reader {
    fn start(stdin: impl Into<Std>) -> Self {
        let mut command = Command::new("sh");
        command.args(["-c", "kill -STOP $$; exec cat"]).stdin(stdin).stdout(Std::piped());
        let reader = Self(Started::new(&mut command));
        let stat = format!("/proc/{}/stat", reader.0.0.id());
        while !fs::read_to_string(&stat).unwrap().contains(") T ") {
            std::thread::yield_now();
        }
        reader
    }

    fn end(&self) -> OwnEnd {
        OwnEnd { process: self.0.id(), stdin: self.0.wire() }
    }

    fn says(&self) -> FirstMessage {
        look(self.end())
    }

    /// Lets it read; returns what it got.
    fn gets(mut self) -> Vec<u8> {
        drop(self.0.0.stdin.take());
        let pid = Pid::from_raw(self.0.id().pid.cast_signed()).unwrap();
        kill_process(pid, Signal::CONT).unwrap();
        let mut got = Vec::new();
        self.0.0.stdout.take().unwrap().read_to_end(&mut got).unwrap();
        got
    }
}

fn look(OwnEnd { process, stdin }: OwnEnd) -> FirstMessage {
    Probe::new().unwrap().first_message(&[process], stdin)
}

/// How many descriptors of ours are open on this inode, if they are open for reading.
fn ours(inode: u64) -> usize {
    let fds = fs::read_dir("/proc/self/fd").unwrap().flatten();
    let is_reader =
        |path: &std::path::Path| fs::symlink_metadata(path).is_ok_and(|link| link.mode() & 0o400 != 0);
    fds.filter(|fd| fs::metadata(fd.path()).is_ok_and(|file| file.ino() == inode) && is_reader(&fd.path()))
        .count()
}

fn inode(wire: Stdio) -> u64 {
    match wire {
        Stdio::Pipe(inode) | Stdio::Socket(inode) => inode,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_message_in_a_pipe_is_read_and_stays_there() {
    let mut reader = Reader::start(Std::piped());
    assert_eq!(reader.says(), FirstMessage::Nothing);
    let (head, rest) = INITIALIZE.split_at(40);
    let wire = reader.0.0.stdin.as_mut().unwrap();
    wire.write_all(head).unwrap();
    assert_eq!(reader.says(), FirstMessage::Nothing, "it is not whole");
    reader.0.0.stdin.as_mut().unwrap().write_all(rest).unwrap();
    for _ in 0..3 {
        assert_eq!(reader.says(), mcp());
    }
    assert_eq!(ours(inode(reader.end().stdin)), 0, "a duplicate is left");
    assert_eq!(reader.gets(), INITIALIZE);
}

#[test]
fn a_message_in_a_socket_is_read_and_stays_there() {
    let (mut ours_end, theirs) = UnixStream::pair().unwrap();
    let reader = Reader::start(std::os::fd::OwnedFd::from(theirs));
    assert_eq!(reader.says(), FirstMessage::Nothing);
    // A descriptor that comes with the message: nobody takes it out.
    let file = tempfile::tempfile().unwrap();
    let passed = [file.as_fd()];
    let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    assert!(control.push(SendAncillaryMessage::ScmRights(&passed)));
    let (head, rest) = INITIALIZE.split_at(40);
    sendmsg(&ours_end, &[std::io::IoSlice::new(head)], &mut control, SendFlags::empty()).unwrap();
    assert_eq!(reader.says(), FirstMessage::Nothing, "it is not whole");
    assert_eq!(ours(file.metadata().unwrap().ino()), 1, "a descriptor was received");
    assert_eq!(ours(inode(reader.end().stdin)), 0, "a duplicate is left");
    ours_end.write_all(rest).unwrap();
    ours_end.shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(reader.gets(), INITIALIZE);

    let (mut ours_end, theirs) = UnixStream::pair().unwrap();
    let reader = Reader::start(std::os::fd::OwnedFd::from(theirs));
    for part in INITIALIZE.chunks(50) {
        ours_end.write_all(part).unwrap();
    }
    assert_eq!(reader.says(), mcp());
    ours_end.shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(reader.says(), mcp());
    assert_eq!(reader.gets(), INITIALIZE);
}

#[test]
fn the_ends_of_a_wire_are_as_before() {
    let mut reader = Reader::start(Std::piped());
    reader.0.0.stdin.as_mut().unwrap().write_all(INITIALIZE).unwrap();
    assert_eq!(reader.says(), mcp());
    let OwnEnd { process, stdin } = reader.end();
    let dir = Probe::new().unwrap().proc.identified(process).unwrap().unwrap();
    let said = || pipe::ask(&dir, 0, inode(stdin), Side::Reads).unwrap();
    assert_eq!(said(), Some(Said::Held));
    let mut writer = reader.0.0.stdin.take().unwrap();
    // It has one reader: when that ends, nobody can read.
    reader.0.end();
    let soon = Instant::now() + Duration::from_secs(10);
    while writer.write_all(b"x").is_ok() {
        assert!(Instant::now() < soon, "somebody reads");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn packets_and_long_messages_are_read() {
    let (theirs, ours_end) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::DIRECT).unwrap();
    let reader = Reader::start(theirs);
    for part in INITIALIZE.chunks(40) {
        rustix::io::write(&ours_end, part).unwrap();
    }
    assert_eq!(reader.says(), mcp());
    drop(ours_end);
    assert_eq!(reader.gets(), INITIALIZE);

    let long = INITIALIZE.strip_suffix(b"\n").unwrap().repeat(500);
    let long = [&b"{\"a\":\""[..], &long[..MOST - 6]].concat();
    let mut reader = Reader::start(Std::piped());
    reader.0.0.stdin.as_mut().unwrap().write_all(&long).unwrap();
    assert_eq!(reader.says(), FirstMessage::Other, "the pipe is full");
    assert_eq!(reader.gets(), long);
}

#[test]
fn other_protocols_are_told() {
    for (text, expected) in [
        (&b"Content-Length: 100\r\n\r\n{"[..], FirstMessage::Other),
        (b"SSH-2.0-OpenSSH_9.2\r\n", FirstMessage::Other),
        (b"{\"seq\":0,\"type\":\"request\"}\n", FirstMessage::Other),
    ] {
        let mut reader = Reader::start(Std::piped());
        reader.0.0.stdin.as_mut().unwrap().write_all(text).unwrap();
        assert_eq!(reader.says(), expected);
    }
}

#[test]
fn a_named_fifo_is_read_without_being_opened() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("fifo");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &path,
        FileType::Fifo,
        rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
        0,
    )
    .unwrap();
    let both = fs::OpenOptions::new().read(true).write(true).open(&path).unwrap();
    let reader = Reader::start(fs::File::open(&path).unwrap());
    let mut writer = fs::OpenOptions::new().write(true).open(&path).unwrap();
    drop(both);
    assert_eq!(reader.says(), FirstMessage::Nothing);
    writer.write_all(INITIALIZE).unwrap();
    // Nobody could open it any more.
    fs::remove_file(&path).unwrap();
    assert_eq!(reader.says(), mcp());
    drop(writer);
    assert_eq!(reader.gets(), INITIALIZE);
}

/// What another test forks has copies of all descriptors until its exec.
fn settles(end: OwnEnd, expected: &FirstMessage) -> FirstMessage {
    let until = Instant::now() + Duration::from_secs(30);
    loop {
        let said = look(end);
        if said == *expected || Instant::now() > until {
            return said;
        }
    }
}

#[test]
fn an_input_is_over_if_nothing_waits_and_nobody_can_write_any_more() {
    for says in ["", "{\"a\":1}"] {
        let expected = if says.is_empty() { FirstMessage::Over } else { FirstMessage::Hook };
        let mut reader = Reader::start(Std::piped());
        let (end, mut stdin) = (reader.end(), reader.0.0.stdin.take().unwrap());
        stdin.write_all(says.as_bytes()).unwrap();
        drop(stdin);
        assert_eq!(settles(end, &expected), expected);
        let (mut ours, theirs) = UnixStream::pair().unwrap();
        let reader = Reader::start(std::os::fd::OwnedFd::from(theirs));
        ours.write_all(says.as_bytes()).unwrap();
        let end = reader.end();
        drop(ours);
        assert_eq!(settles(end, &expected), expected);
    }
}

#[test]
fn a_fifo_with_a_name_is_never_over() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("fifo");
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mknodat(rustix::fs::CWD, &path, FileType::Fifo, mode, 0).unwrap();
    let both = fs::OpenOptions::new().read(true).write(true).open(&path).unwrap();
    let reader = Reader::start(fs::File::open(&path).unwrap());
    drop(both);
    assert_eq!(reader.says(), FirstMessage::Nothing);
}

/// One that has put it to another descriptor is asked there; one that does not have it any more is asked through another one that
/// does, as long as it lives itself.
#[test]
fn a_message_that_is_not_at_the_standard_input_is_found() {
    let away = |keep: &str| {
        let (read_end, write_end) = pipe_with(PipeFlags::CLOEXEC).unwrap();
        rustix::io::write(&write_end, INITIALIZE).unwrap();
        let stdin = Stdio::Pipe(rustix::fs::fstat(&read_end).unwrap().st_ino);
        let (other, mine) = (Reader::start(read_end.try_clone().unwrap()), read_end.try_clone().unwrap());
        let script = format!(
            "import os, time\n{keep}; os.dup2(os.open('/dev/null', 0), 0); print(flush=True); time.sleep(600)"
        );
        (Started::python(&script, read_end).0, other, mine, stdin)
    };
    for (keep, alone) in [("os.dup2(0, 10)", mcp()), ("pass", FirstMessage::Unknown)] {
        let (mut first, other, mine, stdin) = away(keep);
        let says = |processes: &[ProcessId]| Probe::new().unwrap().first_message(processes, stdin);
        let (first_id, other_id) = (first.id(), other.0.id());
        assert_eq!(says(&[first_id]), alone, "{keep}");
        assert_eq!(says(&[first_id, other_id]), mcp(), "{keep}");
        // It is read: by the other one, if this one has it nowhere.
        let read = if alone == FirstMessage::Unknown { FirstMessage::Unknown } else { FirstMessage::Over };
        assert_eq!(rustix::io::read(&mine, &mut [0; 4096]), Ok(INITIALIZE.len()));
        assert_eq!(says(&[first_id, other_id]), read, "{keep}");
        first.end();
        assert_eq!(says(&[first_id, other_id]), FirstMessage::Unknown, "{keep}");
    }
}

#[test]
fn what_is_no_wire_or_another_one_is_unknown() {
    let mut reader = Reader::start(Std::piped());
    reader.0.0.stdin.as_mut().unwrap().write_all(INITIALIZE).unwrap();
    let OwnEnd { process, stdin } = reader.end();
    for end in [
        OwnEnd { process: ProcessId { start: process.start + 1, ..process }, stdin },
        OwnEnd { process, stdin: Stdio::Pipe(inode(stdin) + 1) },
        OwnEnd { process, stdin: Stdio::Socket(inode(stdin)) },
        OwnEnd { process, stdin: Stdio::Null },
        OwnEnd { process, stdin: Stdio::Closed },
    ] {
        assert_eq!(look(end), FirstMessage::Unknown, "{end:?}");
    }
    reader.0.end();
    assert_eq!(look(OwnEnd { process, stdin }), FirstMessage::Unknown);

    let (ours_end, theirs) = UnixDatagram::pair().unwrap();
    ours_end.send(INITIALIZE).unwrap();
    assert_eq!(Reader::start(std::os::fd::OwnedFd::from(theirs)).says(), FirstMessage::Unknown);
    let (ours_end, theirs) =
        socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap();
    rustix::io::write(&ours_end, INITIALIZE).unwrap();
    assert_eq!(Reader::start(theirs).says(), FirstMessage::Unknown);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut ours_end = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (theirs, _) = listener.accept().unwrap();
    ours_end.write_all(INITIALIZE).unwrap();
    assert_eq!(Reader::start(std::os::fd::OwnedFd::from(theirs)).says(), FirstMessage::Unknown);
    // The write end of a pipe.
    let (read_end, write_end) = pipe_with(PipeFlags::CLOEXEC).unwrap();
    assert_eq!(Reader::start(write_end).says(), FirstMessage::Unknown);
    assert!(read_end.as_raw_fd() > 2);
}

/// Reads into a page that nobody provides: it keeps the lock of its standard input.
const WITHHOLDS: &str = r"
import ctypes, fcntl, platform, struct
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
faults = libc.syscall(323 if platform.machine() == 'x86_64' else 282, 0)
fcntl.ioctl(faults, 0xc018aa3f, struct.pack('QQQ', 0xAA, 0, 0))
page = libc.mmap(None, 4096, 3, 0x22, -1, 0)
fcntl.ioctl(faults, 0xc020aa00, struct.pack('QQQQ', page, 4096, 1, 0))
print(flush=True)
libc.read(0, ctypes.c_void_p(page), ctypes.c_size_t(16))
";

#[test]
#[ignore = "needs root: cargo xtask test runs it"]
fn a_reader_that_keeps_the_lock_keeps_nobody_waiting() {
    let mut sockets = UnixStream::pair().unwrap();
    for is_socket in [false, true] {
        let (mut reader, _) = if is_socket {
            Started::python(WITHHOLDS, std::os::fd::OwnedFd::from(sockets.1.try_clone().unwrap()))
        } else {
            Started::python(WITHHOLDS, Std::piped())
        };
        let wire = reader.wire();
        match reader.0.stdin.as_mut() {
            Some(wire) => wire.write_all(INITIALIZE).unwrap(),
            None => sockets.0.write_all(INITIALIZE).unwrap(),
        }
        let place = format!("/proc/{}/wchan", reader.id().pid);
        while fs::read(&place).unwrap() != b"handle_userfault" {
            std::thread::yield_now();
        }
        let end = OwnEnd { process: reader.id(), stdin: wire };
        let pid = reader.id().pid;
        let is_stuck = || crate::host::stuck().iter().any(|one| one.pid == pid);
        let probe = Probe::new().unwrap();
        let hung_up = probe.answer(&orphand_core::model::About::HungUp(vec![end]));
        assert_eq!(hung_up, orphand_core::model::Answer::HungUp { processes: Vec::new() });
        assert!(!is_stuck(), "a thread waits for the lock");
        assert_eq!(pipe::has_unread(&probe.proc, &[reader.id()], wire), Some(true));
        reader.end();
    }
}
