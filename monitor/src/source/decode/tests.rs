//! Records made by hand, as the kernel side lays them out, and garbage.

use std::mem::offset_of;

use monitor_common::COMM_LEN;
use proptest::prelude::*;

use super::*;

/// Little pieces in memory order.
#[derive(Default)]
struct Bytes(Vec<u8>);

impl Bytes {
    fn u32(mut self, n: u32) -> Self {
        self.0.extend(n.to_ne_bytes());
        self
    }

    fn u64(mut self, n: u64) -> Self {
        self.0.extend(n.to_ne_bytes());
        self
    }

    fn header(kind: Kind, tgid: u32, at: u64, start: u64) -> Self {
        Self::default().u32(kind as u32).u32(tgid).u64(at).u64(start)
    }
}

fn exec_record(exe: &[u8], argv: &[u8], flags: u32, streams: [(u64, u32, u32); 3]) -> Vec<u8> {
    let mut bytes =
        Bytes::header(Kind::Exec, 11, 5, 30_000_000).u64(29_999_999).u32(7).u32(1000).u32(3).u32(flags);
    bytes = bytes.u32(u32::try_from(exe.len()).unwrap()).u32(u32::try_from(argv.len()).unwrap());
    for (ino, rdev, mode) in streams {
        bytes = bytes.u64(ino).u32(rdev).u32(mode);
    }
    [&bytes.0, exe, argv].concat()
}

const CLOSED: [(u64, u32, u32); 3] = [(0, 0, 0); 3];

#[test]
fn a_fork() {
    let bytes = Bytes::header(Kind::Fork, 11, 5_000_000_001, 20_000_000)
        .u64(19_999_999)
        .u32(7)
        .u32(1000)
        .u32(3)
        .u32(7);
    assert_eq!(
        decode(&bytes.0),
        Ok(ProcessEvent::Fork {
            at: BootTime(5_000_000_001),
            creator: ProcessId::new(7, 1),
            thread: None,
            child: ProcessId::new(11, 2),
            uid: 1000,
            sid: 3,
        })
    );
}

#[test]
fn a_fork_by_another_thread() {
    let mut bytes = Bytes::header(Kind::Fork, 11, 5, 0).u64(0).u32(7).u32(0).u32(0);
    bytes = bytes.u32(9);
    let Ok(ProcessEvent::Fork { thread, .. }) = decode(&bytes.0) else { panic!() };
    assert_eq!(thread, NonZeroU32::new(9));
}

fn signal_record(sender: (u64, u32, u32), kind: u32, signal: u32, comm: &[u8; COMM_LEN]) -> Bytes {
    let (start, pid, uid) = sender;
    let mut bytes = Bytes::header(Kind::Signal, 11, 5, 20_000_000).u64(start).u32(pid).u32(uid);
    bytes = bytes.u32(kind).u32(signal);
    bytes.0.extend(comm);
    bytes
}

#[test]
fn a_signal_and_its_sender() {
    let of = |sender, kind: SenderKind, signal| {
        let bytes = signal_record(sender, kind as u32, signal, b"pk\xffill\0left\0\0\0\0\0");
        let Ok(ProcessEvent::Signal { at, process, signal, killer }) = decode(&bytes.0) else { panic!() };
        assert_eq!((at, process), (BootTime(5), ProcessId::new(11, 2)));
        (signal, *killer)
    };
    let pkill = Killer {
        pid: Some(47),
        start: Some(3),
        program: Some("pk\u{fffd}ill".to_owned()),
        uid: Some(1000),
        ..Killer::of(KilledBy::Process)
    };
    assert_eq!(of((30_000_000, 47, 1000), SenderKind::Process, 15), (15, pkill));
    assert_eq!(of((20_000_000, 11, 0), SenderKind::Process, 6), (6, Killer::of(KilledBy::Itself)));
    assert_eq!(of((0, 0, 0), SenderKind::Kernel, 11), (11, Killer::of(KilledBy::Kernel)));
    assert_eq!(of((0, 0, 0), SenderKind::OutOfMemory, 9), (9, Killer::of(KilledBy::OutOfMemory)));
    let short = signal_record((0, 0, 0), 2, 9, b"0123456789abcdef").0;
    assert!(decode(&short[..short.len() - 1]).is_err());
    assert!(decode(&signal_record((0, 0, 0), 2, 900, b"0123456789abcdef").0).is_err());
}

#[test]
fn the_end_of_a_thread() {
    let bytes = Bytes::header(Kind::ThreadExit, 11, 5, 20_000_000).u32(12).u32(0);
    let (process, thread) = (ProcessId::new(11, 2), NonZeroU32::new(12).unwrap());
    assert_eq!(decode(&bytes.0), Ok(ProcessEvent::ThreadExit { at: BootTime(5), process, thread }));
    let nobody = Bytes::header(Kind::ThreadExit, 11, 5, 20_000_000).u32(0).u32(0);
    assert!(decode(&nobody.0).is_err(), "no thread has the number 0");
}

#[test]
fn an_exec() {
    let streams = [(77, 0, 0o010_600), (78, 0, 0o140_777), (4, 1 << 20 | 3, 0o020_666)];
    let bytes = exec_record(b"/usr/bin/node", b"node\0\0a b\0", flags::IGNORES_HANGUP, streams);
    let Ok(ProcessEvent::Exec { at, process, parent, uid, sid, image, stdio, ignored }) = decode(&bytes)
    else {
        panic!()
    };
    assert_eq!((at, process, parent), (BootTime(5), ProcessId::new(11, 3), ProcessId::new(7, 2)));
    assert_eq!((uid, sid), (1000, 3));
    assert_eq!(image.exe, "/usr/bin/node");
    assert_eq!(image.argv, ["node", "", "a b"]);
    assert!(!image.argv_truncated);
    assert_eq!(ignored, Ignored { hangup: true, interrupt: false });
    assert_eq!(stdio, [Stdio::Pipe(77), Stdio::Socket(78), Stdio::Null]);
}

#[test]
fn streams_by_kind() {
    let kinds = [
        ((1, 0, 0o100_644), Stdio::File),
        ((1, 136 << 20 | 5, 0o020_620), Stdio::Terminal),
        ((1, 5 << 20, 0o020_620), Stdio::Terminal),
        ((1, 1 << 20 | 5, 0o020_666), Stdio::Other),
        ((1, 0, 0o040_755), Stdio::Other),
        ((0, 0, 0), Stdio::Closed),
        // An anonymous inode (eventfd, pidfd, inotify) has no type.
        ((9, 0, 0o600), Stdio::Other),
    ];
    for (stream, wanted) in kinds {
        let bytes = exec_record(b"x", b"x\0", 0, [stream, stream, stream]);
        let Ok(ProcessEvent::Exec { stdio, .. }) = decode(&bytes) else { panic!() };
        assert_eq!(stdio, [wanted; 3], "{stream:?}");
    }
}

#[test]
fn arguments_at_their_edges() {
    let cases: [(&[u8], &[&str]); 6] = [
        (b"", &[]),
        (b"\0", &[""]),
        (b"a\0", &["a"]),
        (b"a\0\0", &["a", ""]),
        (b"a\0cut sho", &["a", "cut sho"]),
        (b"\xff\0\x1b[2J\0", &["\u{fffd}", "\u{1b}[2J"]),
    ];
    for (bytes, wanted) in cases {
        let record = exec_record(b"", bytes, flags::ARGV_TRUNCATED, CLOSED);
        let Ok(ProcessEvent::Exec { image, .. }) = decode(&record) else { panic!() };
        assert_eq!(image.argv, wanted);
        assert!(image.argv_truncated);
    }
}

#[test]
fn ends() {
    let cases = [
        (0, ExitStatus::Code(0)),
        (7 << 8, ExitStatus::Code(7)),
        (255 << 8, ExitStatus::Code(255)),
        (9, ExitStatus::Signal(9)),
        (0x8b, ExitStatus::Signal(11)),
    ];
    for (status, wanted) in cases {
        let bytes = Bytes::header(Kind::Exit, 11, 5, 0).u32(status).u32(0);
        let process = ProcessId::new(11, 0);
        assert_eq!(decode(&bytes.0), Ok(ProcessEvent::Exit { at: BootTime(5), process, status: wanted }));
    }
}

#[test]
fn a_session() {
    let bytes = Bytes::header(Kind::Setsid, 11, 5, 0).u32(11).u32(0);
    let process = ProcessId::new(11, 0);
    assert_eq!(decode(&bytes.0), Ok(ProcessEvent::Setsid { at: BootTime(5), process, sid: 11 }));
}

#[test]
fn wrong_lengths_and_kinds() {
    assert_eq!(decode(&[]), Err(DecodeError { kind: 0, len: 0 }));
    let exit = Bytes::header(Kind::Exit, 11, 5, 0);
    assert_eq!(decode(&exit.0), Err(DecodeError { kind: 3, len: 24 }));
    let unknown = Bytes::default().u32(99).u32(1).u64(0).u64(0);
    assert_eq!(decode(&unknown.0), Err(DecodeError { kind: 99, len: 24 }));
    let mut exec = exec_record(b"/bin/sh", b"sh\0", 0, CLOSED);
    exec.push(0);
    assert!(decode(&exec).is_err(), "a byte too many");
    exec.truncate(exec.len() - 2);
    assert!(decode(&exec).is_err(), "a byte too few");
}

proptest! {
    #[test]
    fn any_bytes_give_an_answer(kind in 0u32..7, bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = decode(&bytes);
        let _ = decode(&[&kind.to_ne_bytes(), &*bytes].concat());
    }

    #[test]
    fn lengths_that_lie_are_refused(exe in any::<u32>(), argv in any::<u32>()) {
        let mut bytes = exec_record(b"/bin/sh", b"sh\0", 0, CLOSED);
        bytes[offset_of!(ExecRecord, exe_len)..][..4].copy_from_slice(&exe.to_ne_bytes());
        bytes[offset_of!(ExecRecord, argv_len)..][..4].copy_from_slice(&argv.to_ne_bytes());
        let fits = u64::from(exe) + u64::from(argv) == 10;
        prop_assert_eq!(decode(&bytes).is_ok(), fits);
    }
}
