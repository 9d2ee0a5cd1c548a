//! The stage: a kernel source, actors below a root, and what was seen.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    os::unix::process::{CommandExt as _, ExitStatusExt as _},
    path::{Path, PathBuf},
    process::{Child, ChildStdout, Command, Stdio as Io},
    sync::OnceLock,
    time::{Duration, Instant},
};

use orphand::{
    host::identity::identity,
    source::kernel::{KernelOptions, KernelSource},
};
use orphand_core::model::{ExitStatus, ProcessEvent, ProcessId, SetsidHook, Tracking};
use serde_json::Value;

/// What every script begins with. `say` prints one line of truth; `go` waits for the test.
const PRELUDE: &str = r#"
import ctypes, json, os, signal, subprocess, sys, threading, time
libc = ctypes.CDLL(None, use_errno=True)
def stat(pid="self"): return open(f"/proc/{pid}/stat").read().rsplit(") ", 1)[1].split()
def start(pid="self"): return int(stat(pid)[19])
def say(what, **more):
    line = dict(what=what, pid=os.getpid(), start=start(), uid=os.getuid(), sid=os.getsid(0), **more)
    os.write(1, (json.dumps(line) + "\n").encode())
def go(): os.read(0, 1)
def wait(): return os.wait()
os.write(1, b"\n")
go()
"#;

/// The real interpreter: what is on the path may be a wrapper script.
pub fn python() -> &'static Path {
    static PYTHON: OnceLock<PathBuf> = OnceLock::new();
    PYTHON.get_or_init(|| {
        let out = Command::new("python3").args(["-c", "import sys; print(sys.executable)"]).output().unwrap();
        PathBuf::from(String::from_utf8(out.stdout).unwrap().trim())
    })
}

/// What the source of the kernel's records runs in.
pub fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

pub fn options() -> KernelOptions {
    // The tracepoint of setsid slows the whole host: only the tests of setsid use it. Nothing of what else runs here is a
    // candidate.
    KernelOptions {
        setsid: SetsidHook::None,
        mcp_names: false,
        wired_strangers: false,
        ..KernelOptions::default()
    }
}

/// A line of truth.
#[derive(Debug)]
pub struct Truth(Vec<Value>);

impl Truth {
    pub fn line(&self, what: &str) -> &Value {
        self.0.iter().find(|line| line["what"] == what).unwrap_or_else(|| panic!("no {what} in {:?}", self.0))
    }

    pub fn id(&self, what: &str) -> ProcessId {
        id(self.line(what))
    }

    pub fn number(&self, what: &str, key: &str) -> u32 {
        u32::try_from(self.line(what)[key].as_u64().unwrap()).unwrap()
    }
}

pub fn id(line: &Value) -> ProcessId {
    ProcessId::new(u32::try_from(line["pid"].as_u64().unwrap()).unwrap(), line["start"].as_u64().unwrap())
}

/// A root that waits for the word.
pub struct Actor {
    child: Child,
    said: BufReader<ChildStdout>,
    pub id: ProcessId,
}

impl Actor {
    pub fn wait_for_the_word(script: &str) -> Self {
        Self::called(python().to_str().unwrap(), script)
    }

    /// Runs the interpreter under another file name.
    pub fn called(file: &str, script: &str) -> Self {
        let mut child = Command::new(file)
            .arg0(python())
            .args(["-c", &format!("{PRELUDE}\n{script}")])
            .stdin(Io::piped())
            .stdout(Io::piped())
            .spawn()
            .unwrap();
        // Its own exec is over when it speaks, and not when it was started: vfork(2) returns before the tracepoint, and
        // before it can be read.
        let mut said = BufReader::new(child.stdout.take().unwrap());
        said.read_line(&mut String::new()).unwrap();
        let id = identity(child.id()).unwrap();
        Self { child, said, id }
    }

    /// Gives the word; the first line it says.
    pub fn run(mut self) -> (Truth, ExitStatus) {
        self.word();
        self.finish()
    }

    /// Gives the word and keeps the actor.
    pub fn word(&mut self) {
        self.tell("x");
    }

    /// Writes to its standard input.
    pub fn tell(&mut self, text: &str) {
        self.child.stdin.as_mut().unwrap().write_all(text.as_bytes()).unwrap();
    }

    /// The next line it says names a process.
    pub fn told(&mut self) -> ProcessId {
        id(&self.line())
    }

    /// The next line it says.
    pub fn line(&mut self) -> Value {
        let mut line = String::new();
        self.said.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|e| panic!("\"{line}\": {e}"))
    }

    pub fn finish(mut self) -> (Truth, ExitStatus) {
        let truth = self.said.lines().map(|line| serde_json::from_str(&line.unwrap()).unwrap()).collect();
        let status = self.child.wait().unwrap();
        let status = match status.code() {
            Some(code) => ExitStatus::Code(u8::try_from(code).unwrap()),
            None => ExitStatus::Signal(u8::try_from(status.signal().unwrap()).unwrap()),
        };
        (Truth(truth), status)
    }
}

/// What one play showed.
pub struct Play {
    pub root: ProcessId,
    pub truth: Truth,
    pub status: ExitStatus,
    pub events: Vec<ProcessEvent>,
}

/// Plays a script below a root that is followed.
pub fn play(script: &str) -> Play {
    play_on(&mut KernelSource::open(&options()).unwrap(), script)
}

pub fn play_on(source: &mut KernelSource, script: &str) -> Play {
    let actor = Actor::wait_for_the_word(script);
    let root = actor.id;
    assert!(source.members.track(root, Tracking::Member).unwrap().is_followed());
    let (truth, status) = actor.run();
    let events = drain_until_exit(source, root);
    Play { root, truth, status, events }
}

/// Drains up to and including the exit of `last`, and what is there with it.
pub fn drain_until_exit(source: &mut KernelSource, last: ProcessId) -> Vec<ProcessEvent> {
    let mut events = Vec::new();
    drain_until(source, &mut events, |events| !exits(events, last).is_empty());
    events
}

/// Drains until what came is enough.
pub fn drain_until(
    source: &mut KernelSource,
    events: &mut Vec<ProcessEvent>,
    enough: impl Fn(&[ProcessEvent]) -> bool,
) {
    let begin = Instant::now();
    while !enough(events) {
        assert!(begin.elapsed() < Duration::from_secs(20), "not enough: {events:#?}");
        source.drain(|event| events.push(event));
        std::thread::yield_now();
    }
}

pub fn exits(events: &[ProcessEvent], of: ProcessId) -> Vec<ExitStatus> {
    let exit = |e: &ProcessEvent| match e {
        ProcessEvent::Exit { process, status, .. } if *process == of => Some(*status),
        _ => None,
    };
    events.iter().filter_map(exit).collect()
}

/// Creator, user and session of the one fork of `child`.
#[track_caller]
pub fn fork_of(events: &[ProcessEvent], of: ProcessId) -> (ProcessId, u32, u32) {
    let fork = |e: &ProcessEvent| match e {
        ProcessEvent::Fork { creator, child, uid, sid, .. } if *child == of => Some((*creator, *uid, *sid)),
        _ => None,
    };
    let forks: Vec<_> = events.iter().filter_map(fork).collect();
    assert_eq!(forks.len(), 1, "forks of {of} in {events:#?}");
    forks[0]
}

pub fn execs(events: &[ProcessEvent], of: ProcessId) -> Vec<&ProcessEvent> {
    events.iter().filter(|e| matches!(e, ProcessEvent::Exec { process, .. } if *process == of)).collect()
}

pub fn forks(events: &[ProcessEvent]) -> usize {
    events.iter().filter(|e| matches!(e, ProcessEvent::Fork { .. })).count()
}

/// Which process an event is about.
pub fn subject(event: &ProcessEvent) -> ProcessId {
    match event {
        ProcessEvent::Fork { child: process, .. }
        | ProcessEvent::Exec { process, .. }
        | ProcessEvent::Exit { process, .. }
        | ProcessEvent::Setsid { process, .. }
        | ProcessEvent::ThreadExit { process, .. }
        | ProcessEvent::Signal { process, .. } => *process,
    }
}
