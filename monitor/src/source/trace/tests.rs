//! Traces: whole, cut, broken, foreign, newer, empty; and disks that are full.

use std::{
    fs,
    io::{self, Cursor},
    num::NonZeroU32,
    os::unix::fs::PermissionsExt,
    path::Path,
    time::Duration,
};

use proptest::prelude::*;

use super::*;
use orphand_core::model::{
    AlertRule, Answer, Asked, BootTime, ExitStatus, Found, Ignored, Image, Input, Losses, Mode, Policy,
    ProcessEvent, ProcessId, ReleaseRequest, ServerFacts, Signal, SignalError, Snapshot, SnapshotProcess,
    Stdio, TRACE_FORMAT, TraceEntry, TraceHeader, Work,
    scene::{self, End, Endpoint, ProcessRow, Scene, Side, Unread},
};

fn header() -> TraceHeader {
    TraceHeader {
        format: TRACE_FORMAT,
        version: "0.1.0".to_owned(),
        kernel: "6.18.5".to_owned(),
        realtime_offset_ns: -42,
        policy: policy(),
        ourselves: vec![ProcessId::new(7, 70)],
    }
}

fn policy() -> Policy {
    Policy {
        sessions: None,
        engines: Vec::new(),
        recognise_protocol: true,
        mode: Mode::Observe,
        decided_by: Some("alice".to_owned()),
        found: Found::End,
        grace: Duration::from_secs(10),
        abandoned_grace: Duration::from_secs(30),
        work_grace: Duration::from_secs(300),
        term_timeout: Duration::from_millis(1_500),
        other_uids: true,
        rules: "[[exempt]]\nname = \"x\"\nprogram = \"x\"\n".to_owned(),
        alerts: vec![AlertRule::try_from("rate of claude > 3 in 1m".to_owned()).unwrap()],
    }
}

fn image() -> Image {
    Image {
        exe: "/usr/bin/node".to_owned(),
        argv: vec!["nodeä\n".to_owned(), "serve".to_owned()],
        argv_truncated: true,
    }
}

/// One of every input.
fn inputs() -> Vec<Input> {
    let id = ProcessId::new(12, 345);
    let at = BootTime(u64::MAX);
    let event = |event| Input::Process { event };
    let seen = SnapshotProcess { id, parent: Some(id), image: image(), ..SnapshotProcess::default() };
    let end = |holder| End { endpoint: 0, holder, side: Side::Writes, numbers: vec![1], beyond: true };
    let scene = Scene {
        processes: vec![ProcessRow { process: id, image: image(), full: true, ..ProcessRow::default() }],
        endpoints: vec![Endpoint::Pipe { inode: 7, named: true }, Endpoint::Trace],
        ends: vec![end(scene::Holder::Process(id)), end(scene::Holder::Anybody)],
        unread: vec![Unread { process: Some(id), why: "x".to_owned() }],
    };
    let facts = ServerFacts { scene, ..ServerFacts::default() };
    let hung_up = ServerFacts::default();
    vec![
        event(ProcessEvent::Fork { at, creator: id, thread: NonZeroU32::new(7), child: id, uid: 0, sid: 1 }),
        event(ProcessEvent::Exec {
            at,
            process: id,
            parent: id,
            uid: 0,
            sid: 1,
            image: image(),
            stdio: [Stdio::Pipe(u64::MAX), Stdio::Null, Stdio::Socket(3)],
            ignored: Ignored { interrupt: true, hangup: true },
        }),
        event(ProcessEvent::Exit { at, process: id, status: ExitStatus::Signal(9) }),
        event(ProcessEvent::Setsid { at, process: id, sid: 12 }),
        Input::Lost { losses: Losses { fork: 1, ..Losses::default() } },
        Input::Snapshot {
            snapshot: Snapshot { horizon: at, processes: vec![seen.clone()], unread: vec![7] },
        },
        Input::Answered { token: 1, answer: Answer::Memory { processes: Vec::new() } },
        Input::Answered { token: 2, answer: Answer::Process { process: Some(seen) } },
        Input::Answered { token: 3, answer: Answer::Process { process: None } },
        Input::Answered { token: 4, answer: Answer::Server { facts } },
        Input::Answered { token: 5, answer: Answer::Server { facts: hung_up } },
        Input::Signalled { process: id, signal: Signal::Term, error: None },
        Input::Signalled {
            process: id,
            signal: Signal::Kill,
            error: Some(SignalError::System { errno: 1, message: "pidfd".to_owned() }),
        },
        Input::Signalled { process: id, signal: Signal::Kill, error: Some(SignalError::Gone) },
        Input::Signalled {
            process: id,
            signal: Signal::Term,
            error: Some(SignalError::Unsure { message: "another user".to_owned() }),
        },
        Input::Gone { process: id },
        Input::Ready { kernel: "6.18.5".to_owned(), hooks: vec!["fork".to_owned()] },
        Input::Configured { policy: policy() },
        Input::Release { request: ReleaseRequest { targets: vec![Asked::Id(id)], session: None }, user: 7 },
        Input::Woke { slept: std::time::Duration::from_millis(1500) },
        Input::Stop,
        event(ProcessEvent::ThreadExit { at, process: id, thread: NonZeroU32::MIN }),
        Input::Answered {
            token: 6,
            answer: Answer::Work { processes: vec![Work { process: id, ..Work::default() }] },
        },
    ]
}

fn write(path: &Path) -> Vec<TraceEntry> {
    let mut writer = TraceWriter::create(path, &header()).unwrap();
    let entries: Vec<TraceEntry> =
        inputs().into_iter().zip(1..).map(|(input, n)| TraceEntry { at: BootTime(n), input }).collect();
    for entry in &entries {
        writer.record(entry.at, &entry.input);
    }
    assert!(writer.file.is_some());
    entries
}

fn read(bytes: impl Into<Vec<u8>>) -> anyhow::Result<(Vec<TraceEntry>, Option<anyhow::Error>)> {
    let reader = TraceReader::new(Path::new("t.orphtrace"), Cursor::new(bytes.into()))?;
    let (mut entries, mut error) = (Vec::new(), None);
    for entry in reader {
        assert!(error.is_none(), "nothing follows an error");
        match entry {
            Ok(entry) => entries.push(entry),
            Err(found) => error = Some(found),
        }
    }
    Ok((entries, error))
}

#[track_caller]
fn fails(bytes: impl Into<Vec<u8>>, line: &str) {
    assert_eq!(read(bytes).err().unwrap().to_string(), line);
}

#[test]
fn what_is_recorded_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.orphtrace");
    let entries = write(&path);
    let reader = TraceReader::open(&path).unwrap();
    assert_eq!(reader.header(), &header());
    assert_eq!(reader.collect::<Result<Vec<_>, _>>().unwrap(), entries);
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    insta::assert_snapshot!(fs::read_to_string(&path).unwrap());
}

#[test]
fn a_trace_may_be_cut_anywhere() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.orphtrace");
    let entries = write(&path);
    let whole = fs::read(&path).unwrap();
    let header_end = whole.iter().position(|b| *b == b'\n').unwrap() + 1;
    for end in header_end..whole.len() {
        let (found, error) = read(&whole[..end]).unwrap();
        assert_eq!(found[..], entries[..found.len()]);
        let lines = whole[header_end..end].split(|b| *b == b'\n').count() - 1;
        match error {
            // Cut at the end of a line, or just before its line feed.
            None => assert!(found.len() == lines || whole[end] == b'\n'),
            Some(error) => {
                let line = lines + 2;
                assert_eq!(found.len(), lines);
                assert_eq!(
                    error.to_string(),
                    format!("t.orphtrace ends in the middle of line {line}: the recording was cut off there")
                );
            }
        }
    }
}

#[test]
fn what_is_no_trace_is_told() {
    fails("", "t.orphtrace is empty: not a trace; record one with `orphand run --record FILE`");
    for foreign in ["\n", "hello\n", "{\"a\":1}\n", "\u{7f}ELF", "{\"event\":\"ready\",\"seq\":1}\n"] {
        fails(foreign, "t.orphtrace is not a trace of orphand; record one with `orphand run --record FILE`");
    }
    fails(
        vec![0xff; 5_000_000],
        "t.orphtrace is not a trace of orphand; record one with `orphand run --record FILE`",
    );
    fails(
        "{\"orphand_trace\":10,\"other\":true}\n",
        "t.orphtrace has format 10, this orphand reads 9: replay it with the version that recorded it",
    );
    fails(
        "{\"orphand_trace\":2,\"other\":true}\n",
        "t.orphtrace has format 2, this orphand reads 9: replay it with the version that recorded it",
    );
    fails(
        "{\"orphand_trace\":9,",
        "t.orphtrace ends in the middle of line 1: the recording was cut off there",
    );
    fails(
        "{\"orphand_trace\":9}\n",
        "t.orphtrace, line 1: missing field `version` at line 1 column 19; the trace is damaged",
    );
}

#[test]
fn a_broken_line_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.orphtrace");
    let entries = write(&path);
    let whole = fs::read_to_string(&path).unwrap();
    let lines: Vec<&str> = whole.lines().collect();
    for broken in ["nonsense", "", "{\"at\":1}", "{\"at\":1,\"input\":\"unheard_of\"}"] {
        let text = format!("{}\n{}\n{broken}\n{}\n", lines[0], lines[1], lines[2]);
        let (found, error) = read(text).unwrap();
        assert_eq!(found, entries[..1]);
        let error = error.unwrap().to_string();
        assert!(
            error.starts_with("t.orphtrace, line 3: ") && error.ends_with("; the trace is damaged"),
            "{error}"
        );
        assert_eq!(error.lines().count(), 1);
    }
}

#[test]
fn a_missing_file_is_told() {
    let error = TraceReader::open(Path::new("/nonexistent/t")).err().unwrap().to_string();
    assert_eq!(
        error,
        "cannot open the trace /nonexistent/t: No such file or directory (os error 2); record one with `orphand run --record FILE`"
    );
    let error = TraceWriter::create(Path::new("/nonexistent/t"), &header()).err().unwrap().to_string();
    assert_eq!(error, "cannot create the trace /nonexistent/t: No such file or directory (os error 2)");
    let error = TraceReader::open(Path::new("/")).err().unwrap().to_string();
    assert_eq!(
        error,
        "cannot read the trace / at line 1: Is a directory (os error 21); record one with `orphand run --record FILE`"
    );
}

#[test]
fn an_older_trace_gives_way_another_file_does_not() {
    let dir = tempfile::tempdir().unwrap();
    let (old, other) = (dir.path().join("old"), dir.path().join("other"));
    fs::write(&old, "{\"orphand_trace\":2,\"rest\":\"of a long old trace\"}\n".repeat(1_000)).unwrap();
    fs::write(&other, "precious\n").unwrap();
    let entries = write(&old);
    assert_eq!(TraceReader::open(&old).unwrap().count(), entries.len());
    let error = TraceWriter::create(&other, &header()).err().unwrap();
    assert!(error.to_string().contains("exists and is not a trace"), "{error}");
    assert_eq!(fs::read_to_string(&other).unwrap(), "precious\n");
}

/// A disk that is full from the `room`th byte on.
struct Disk {
    room: usize,
}

impl std::io::Write for Disk {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.room == 0 {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let written = bytes.len().min(self.room);
        self.room -= written;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_full_disk_ends_the_recording_and_nothing_else() {
    let mut writer = TraceWriter::new(Path::new("t"), Disk { room: 1_000 }, &header()).unwrap();
    let input = Input::Ready { kernel: "x".repeat(200), hooks: Vec::new() };
    for n in 0..10 {
        writer.record(BootTime(n * 2_000_000_000), &input);
    }
    assert!(writer.file.is_none());
    writer.flush();
    writer.record(BootTime(0), &input);
    let error = TraceWriter::create(Path::new("/dev/full"), &header()).err().unwrap().to_string();
    assert_eq!(error, "cannot create the trace /dev/full: No space left on device (os error 28)");
}

#[test]
fn whoever_reads_a_pipe_late_gets_all_of_it_and_holds_nobody_up() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("pipe");
    rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    let input = Input::Ready { kernel: "x".repeat(100_000), hooks: Vec::new() };
    let mut writer = TraceWriter::create(&path, &header()).unwrap();
    (0..20).for_each(|n| writer.record(BootTime(n), &input));
    assert!(writer.file.is_some());
    let file = fs::File::open(&path).unwrap();
    let reader = std::thread::spawn(move || io::read_to_string(file).unwrap());
    drop(writer);
    assert_eq!(reader.join().unwrap().lines().count(), 21);
    let mut writer = TraceWriter::create(&path, &header()).unwrap();
    let ended = (0..1000).find(|n| {
        writer.record(BootTime(*n), &input);
        writer.file.is_none()
    });
    assert!(ended.is_some_and(|n| (160..180).contains(&n)), "{ended:?}");
}

#[test]
fn what_is_recorded_gets_into_the_file_in_time() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.orphtrace");
    let mut writer = TraceWriter::create(&path, &header()).unwrap();
    let lines = || fs::read_to_string(&path).unwrap().lines().count();
    assert_eq!(lines(), 1, "the header is there at once");
    writer.record(BootTime(5_000_000_000), &Input::Stop);
    assert_eq!(lines(), 2);
    writer.record(BootTime(5_500_000_000), &Input::Stop);
    assert_eq!(lines(), 2, "not every line is a system call");
    writer.record(BootTime(6_000_000_000), &Input::Stop);
    assert_eq!(lines(), 4);
    writer.record(BootTime(6_000_000_000), &Input::Stop);
    writer.flush();
    assert_eq!(lines(), 5);
}

proptest! {
    /// No bytes make the reader panic or go on for ever.
    #[test]
    fn any_bytes_end(bytes in prop::collection::vec(any::<u8>(), 0..400), behind_a_header in any::<bool>()) {
        let mut file = Vec::new();
        if behind_a_header {
            file = serde_json::to_vec(&header()).unwrap();
            file.push(b'\n');
        }
        file.extend(bytes);
        if let Ok((entries, _)) = read(file) {
            prop_assert!(entries.len() <= 400);
        }
    }
}
