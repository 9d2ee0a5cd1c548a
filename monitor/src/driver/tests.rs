//! What holds for every host: the order of effects, the time of inputs, the recording.

use std::{
    io::{self, Cursor, Write},
    path::Path,
    sync::{Arc, Mutex},
    time::Duration,
};

use super::{Driver, EffectHandler, replay};
use crate::source::trace::{TraceReader, TraceWriter};
use orphand_core::{
    engine::Engine,
    model::{
        About, Answer, BootTime, Effect, ExitStatus, FirstMessage, Ignored, Image, Input, Policy,
        ProcessEvent, ProcessId, Stdio, TRACE_FORMAT, TraceEntry, TraceHeader,
    },
};

const AGENT: ProcessId = ProcessId::new(20, 20);
const SERVER: ProcessId = ProcessId::new(30, 30);

/// What was recorded.
#[derive(Clone, Default)]
struct Tape(Arc<Mutex<Vec<u8>>>);

impl Write for Tape {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Notes what it is called for; fails at the effect with this name.
#[derive(Default)]
struct Host {
    calls: Vec<String>,
    fails_at: Option<&'static str>,
}

impl Host {
    fn call(&mut self, name: &str) -> anyhow::Result<()> {
        self.calls.push(name.to_owned());
        anyhow::ensure!(self.fails_at != Some(name), "{name}");
        Ok(())
    }

    fn take(&mut self) -> Vec<String> {
        std::mem::take(&mut self.calls)
    }
}

impl EffectHandler for Host {
    fn carry_out(&mut self, driver: &mut Driver, effect: Effect) -> anyhow::Result<()> {
        match effect {
            Effect::Emit { notice, .. } => {
                let json = serde_json::to_value(&*notice).unwrap();
                self.call(json["event"].as_str().unwrap())
            }
            Effect::Ask { token, about, .. } => {
                driver.feed(Input::Answered { token, answer: nothing(&about) });
                self.call("ask")
            }
            Effect::Track { .. } => self.call("track"),
            _ => Ok(()),
        }
    }

    fn finish(&mut self) {
        self.calls.push("finish".to_owned());
    }
}

fn nothing(about: &About) -> Answer {
    match about {
        About::Memory(_) => Answer::Memory { processes: Vec::new() },
        About::Leftovers(_) => Answer::Leftovers { branches: Vec::new() },
        About::HungUp(_) => Answer::HungUp { processes: Vec::new() },
        About::FirstMessage { .. } | About::Declared { .. } => {
            Answer::FirstMessage { message: FirstMessage::Nothing }
        }
        About::Work(_) => Answer::Work { processes: Vec::new() },
        About::Copies { .. } => Answer::Copies { copies: Vec::new() },
        About::Process(_) | About::Server(_) | About::Session(_) => Answer::Process { process: None },
        About::Whereabouts(_) => Answer::Whereabouts { place: None },
        About::Container(_) => Answer::Container { found: None },
        About::Hints { .. } => Answer::Hints { found: None },
        About::Stop { .. } => Answer::Stopped { error: None, changed: false },
    }
}

fn at(seconds: u64) -> BootTime {
    BootTime::default() + Duration::from_secs(seconds)
}

fn recorded() -> (Driver, Tape) {
    let header = TraceHeader {
        format: TRACE_FORMAT,
        version: String::new(),
        kernel: String::new(),
        realtime_offset_ns: 0,
        policy: Policy::default(),
        ourselves: Vec::new(),
    };
    let tape = Tape::default();
    let trace = TraceWriter::new(Path::new("tape"), tape.clone(), &header).unwrap();
    (Driver::new(Engine::default(), Some(trace)), tape)
}

fn entries(mut driver: Driver, tape: &Tape) -> Vec<TraceEntry> {
    driver.flush_trace();
    let bytes = tape.0.lock().unwrap().clone();
    TraceReader::new(Path::new("tape"), Cursor::new(bytes)).unwrap().map(Result::unwrap).collect()
}

fn exec(process: ProcessId, parent: ProcessId, argv: &[&str], stdio: Stdio) -> Input {
    let argv: Vec<String> = argv.iter().map(ToString::to_string).collect();
    let image = Image { exe: argv[0].clone(), argv, argv_truncated: false };
    let stdio = [stdio, stdio, Stdio::Null];
    let ignored = Ignored::default();
    Input::Process {
        event: ProcessEvent::Exec { at: at(1), process, parent, uid: 0, sid: 0, image, stdio, ignored },
    }
}

/// An agent with a server; the agent is killed.
fn orphaned(driver: &mut Driver, host: &mut Host) {
    let process = |event| Input::Process { event };
    let inputs = [
        exec(AGENT, ProcessId::new(10, 10), &["claude"], Stdio::Terminal),
        process(ProcessEvent::Fork {
            at: at(1),
            creator: AGENT,
            thread: None,
            child: SERVER,
            uid: 0,
            sid: 0,
        }),
        exec(SERVER, AGENT, &["node", "/srv/node_modules/.bin/mcp-server-filesystem"], Stdio::Pipe(1)),
        process(ProcessEvent::Exit { at: at(1), process: AGENT, status: ExitStatus::Signal(9) }),
    ];
    for input in inputs {
        driver.handle(host, input).unwrap();
    }
}

#[test]
fn time_never_goes_back() {
    let (mut driver, tape) = recorded();
    for seconds in [7, 9, 8, 3, 10] {
        driver.feed_at(at(seconds), Input::Timeout);
    }
    assert_eq!(driver.last(), at(10));
    let times: Vec<BootTime> = entries(driver, &tape).into_iter().map(|entry| entry.at).collect();
    assert_eq!(times, [7, 9, 9, 9, 10].map(at));
}

#[test]
fn a_recording_is_replayed_at_its_own_times() {
    let entry = |seconds, input| Ok(TraceEntry { at: at(seconds), input });
    let mut told = Vec::new();
    let trace = [entry(9, Input::Timeout), entry(8, Input::Stop), entry(9, Input::Stop)];
    replay(trace, Engine::default(), |at, _| {
        told.push(at);
        anyhow::bail!("enough")
    })
    .unwrap_err();
    assert_eq!(told, [at(8)], "once it has heard enough it is told nothing more");
}

#[test]
fn every_input_is_recorded_those_of_effects_included() {
    let (mut driver, tape) = recorded();
    let mut host = Host::default();
    orphaned(&mut driver, &mut host);
    let asked = host.calls.iter().filter(|call| *call == "ask").count();
    let recorded = entries(driver, &tape);
    let answered = recorded.iter().filter(|entry| matches!(entry.input, Input::Answered { .. })).count();
    assert!(asked > 0);
    assert_eq!((answered, recorded.len()), (asked, 4 + asked));
}

#[test]
fn effects_are_carried_out_until_none_is_left() {
    let mut driver = Driver::new(Engine::default(), None);
    let mut host = Host::default();
    orphaned(&mut driver, &mut host);
    // What the exit of the agent causes is told after the answer about the memory of its servers.
    let calls = host.take();
    let place = |name: &str| calls.iter().rposition(|call| call == name).unwrap();
    assert!(place("ask") < place("agent_exited") && place("agent_exited") < place("finish"), "{calls:?}");
    assert_eq!(calls.iter().filter(|call| *call == "finish").count(), 4, "{calls:?}");
}

#[test]
fn what_fails_leaves_the_rest_for_the_next_time() {
    let mut driver = Driver::new(Engine::default(), None);
    let mut host = Host { fails_at: Some("track"), ..Host::default() };
    let input = exec(AGENT, ProcessId::new(10, 10), &["claude"], Stdio::Terminal);
    assert_eq!(driver.handle(&mut host, input).unwrap_err().to_string(), "track");
    assert!(!host.take().contains(&"finish".to_owned()));
    host.fails_at = None;
    driver.perform(&mut host).unwrap();
    assert_eq!(host.take().last().map(String::as_str), Some("finish"));
}

#[test]
fn a_deadline_comes_when_it_is_due_and_not_before() {
    let mut driver = Driver::new(Engine::default(), None);
    let mut host = Host::default();
    orphaned(&mut driver, &mut host);
    host.take();
    let due = driver.due().unwrap();
    assert!(!driver.pass_time(BootTime(due.0 - 1)));
    driver.perform(&mut host).unwrap();
    assert_eq!(host.take(), ["finish"]);
    assert!(driver.pass_time(due));
    driver.perform(&mut host).unwrap();
    assert!(host.take().contains(&"ask".to_owned()), "the server is inspected");
}
