//! An unproven server from the engine to everything that tells of it: no alert, no orphan in any gauge, none in the store. And its
//! twin: once nobody holds it any more it is an orphan, and all of them say so.

#![expect(clippy::unwrap_used, reason = "what a test relies on is checked by it")]

use std::{convert::Infallible, path::Path, time::Duration};

use orphand::{
    driver::{Driver, EffectHandler},
    sink::{
        metrics::{Exposition, Metrics},
        wall_clock::WallClock,
    },
    store::{Limits, StoreWriter, history},
};
use orphand_core::{
    engine::{Engine, Settings},
    model::{
        About, AlertRule, Answer, BootTime, Effect, ExitStatus, Fact, FirstMessage, History, HistoryQuery,
        Image, Input, Mode, Notice, ProcessEvent, ProcessId, ServerFacts, Status, Stdio, Watched,
        scene::{self, End, Endpoint, ProcessRow, Scene, Side},
    },
};

const BOOT: &str = "boot";
const AGENT: u32 = 20;
const SERVER: u32 = 30;
const HOLDER: u32 = 90;

fn id(pid: u32) -> ProcessId {
    ProcessId::new(pid, u64::from(pid))
}

fn image(argv: &[&str]) -> Image {
    let argv: Vec<String> = argv.iter().map(ToString::to_string).collect();
    Image { exe: argv.first().cloned().unwrap_or_default(), argv, argv_truncated: false }
}

fn alert(name: &str, on: Watched) -> AlertRule {
    AlertRule {
        name: name.to_owned(),
        on,
        above: 0,
        agent: None,
        within: Duration::from_secs(3600),
        hold: Duration::ZERO,
        cooldown: Duration::ZERO,
    }
}

/// A daemon without a kernel: an engine, and the sinks that count.
struct World {
    driver: Driver,
    outside: Outside,
}

struct Outside {
    now: BootTime,
    /// Who holds the other end of the standard input.
    holder: Option<ProcessId>,
    metrics: Metrics,
    store: StoreWriter,
    told: Vec<Notice>,
    signalled: Vec<ProcessId>,
}

impl World {
    /// An observer: what is an orphan stays, and can be looked at.
    fn new(dir: &Path) -> Self {
        let alerts =
            vec![alert("any", Watched::Orphans), alert("memory", Watched::Rss), alert("new", Watched::Rate)];
        let settings = Settings { mode: Mode::Observe, alerts, ..Settings::default() };
        let outside = Outside {
            now: BootTime::default() + Duration::from_secs(1000),
            holder: None,
            metrics: Metrics::new(WallClock::default()),
            store: StoreWriter::open(dir, BOOT, 0, Limits::default()).unwrap().0,
            told: Vec::new(),
            signalled: Vec::new(),
        };
        Self { driver: Driver::new(Engine::new(settings), None), outside }
    }

    fn happens(&mut self, event: ProcessEvent) {
        self.hand_in(Input::Process { event });
    }

    fn hand_in(&mut self, input: Input) {
        self.driver.feed_at(self.outside.now, input);
        self.driver.perform(&mut self.outside).unwrap();
    }

    fn pass(&mut self, seconds: u64) {
        let until = self.outside.now + Duration::from_secs(seconds);
        while let Some(due) = self.driver.due().filter(|due| *due <= until) {
            self.outside.now = self.outside.now.max(due);
            self.hand_in(Input::Timeout);
        }
        self.outside.now = until;
    }

    /// The events since the last call, by name.
    fn told(&mut self) -> Vec<String> {
        let name = |notice: Notice| {
            let json = serde_json::to_value(notice).unwrap();
            json.get("event").and_then(|event| event.as_str()).unwrap().to_owned()
        };
        self.outside.told.drain(..).map(name).collect()
    }

    /// The value of a series, by the beginning of its line.
    fn sum(&self, series: &str) -> f64 {
        let status = Status { report: self.driver.engine().report(), ..Status::default() };
        let text = self.outside.metrics.render(Some(&status), Exposition::Text);
        let value = |line: &str| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap();
        text.lines().filter(|line| line.starts_with(series)).map(value).sum()
    }
}

impl EffectHandler for Outside {
    type Error = Infallible;

    fn carry_out(&mut self, driver: &mut Driver, effect: Effect) -> Result<(), Infallible> {
        match effect {
            Effect::Emit { notice, .. } => {
                self.metrics.observe(&notice);
                self.told.push(*notice);
            }
            Effect::Persist { at, fact } => self.store.remember(at, &fact),
            Effect::Ask { token, about } => {
                let answer = self.answer(about);
                driver.feed_at(self.now, Input::Answered { token, answer });
            }
            Effect::Signal { process, .. } => self.signalled.push(process),
            _ => {}
        }
        Ok(())
    }

    fn finish(&mut self) {
        self.store.try_commit().unwrap();
    }
}

impl Outside {
    fn answer(&self, about: About) -> Answer {
        match about {
            About::Memory(_) => Answer::Memory { processes: Vec::new() },
            About::Leftovers { .. } => Answer::Leftovers { branches: Vec::new() },
            About::Whereabouts(_) => Answer::Whereabouts { place: None },
            About::Container { .. } => Answer::Container { found: None },
            About::Hints { .. } => Answer::Hints { found: None },
            About::Stop { .. } => Answer::Stopped { error: Some("no engine".to_owned()), changed: false },
            About::Process(_) => Answer::Process { process: None },
            About::Session(_) => Answer::Session { id: None },
            About::HungUp(_) => Answer::HungUp { processes: Vec::new() },
            About::FirstMessage { .. } | About::Declared { .. } => {
                Answer::FirstMessage { message: FirstMessage::Nothing }
            }
            About::Work(_) => Answer::Work { processes: Vec::new() },
            About::Copies { .. } => Answer::Copies { copies: Vec::new() },
            About::Server(subject) => {
                let row = |process| ProcessRow {
                    process,
                    rss_bytes: 4_000_000,
                    full: subject.processes.contains(&process),
                    ..ProcessRow::default()
                };
                let end = |holder, side| End {
                    endpoint: 0,
                    holder: scene::Holder::Process(holder),
                    side,
                    numbers: vec![0],
                    beyond: false,
                };
                let own = subject.processes.iter().map(|process| end(*process, Side::Reads));
                let scene = Scene {
                    processes: subject.processes.iter().copied().chain(self.holder).map(row).collect(),
                    endpoints: vec![Endpoint::Pipe { inode: 1, named: false }],
                    ends: own.chain(self.holder.map(|holder| end(holder, Side::Writes))).collect(),
                    unread: Vec::new(),
                };
                let facts = ServerFacts { scene, ..ServerFacts::default() };
                Answer::Server { facts }
            }
        }
    }
}

fn past(dir: &Path) -> History {
    let boot_id = Some(BOOT.to_owned());
    history::history(dir, &HistoryQuery { boot_id, ..HistoryQuery::default() }).unwrap()
}

#[test]
fn it_is_no_orphan_to_anybody_until_it_is_one() {
    let dir = tempfile::tempdir().unwrap();
    let mut world = World::new(dir.path());
    let wire = [Stdio::Pipe(1), Stdio::Pipe(2), Stdio::Null];
    let at = world.outside.now;
    let exec = |pid, parent, argv: &[&str], stdio| {
        let (process, parent, image) = (id(pid), id(parent), image(argv));
        ProcessEvent::Exec { at, process, parent, uid: 0, sid: 0, image, stdio }
    };
    world.happens(exec(AGENT, 10, &["claude"], [Stdio::Terminal; 3]));
    world.happens(ProcessEvent::Fork {
        at,
        creator: id(AGENT),
        thread: None,
        child: id(SERVER),
        uid: 0,
        sid: 0,
    });
    world.happens(exec(
        SERVER,
        AGENT,
        &["node", "/srv/node_modules/.bin/mcp-server-filesystem", "/srv"],
        wire,
    ));
    world.outside.holder = Some(id(HOLDER));
    world.happens(ProcessEvent::Exit { at, process: id(AGENT), status: ExitStatus::Signal(9) });
    world.pass(600);

    let told = world.told();
    assert!(told.contains(&"orphan_unproven".to_owned()), "{told:?}");
    for event in ["orphan_detected", "orphan_spared", "alert"] {
        assert!(!told.contains(&event.to_owned()), "{told:?}");
    }
    assert!((world.sum("orphand_unproven{agent=\"claude\",doubt=\"wire_held\"}") - 1.0).abs() < 0.1);
    for none in ["orphand_orphans", "orphand_orphan_", "orphand_orphans_detected_total", "orphand_spared"] {
        assert!(world.sum(none).abs() < 0.1, "{none}");
    }
    let sum = past(dir.path()).sum();
    assert_eq!((sum.servers, sum.orphans, sum.unproven, sum.unproven_left), (1, 0, 1, 1));

    // Nobody holds it any more.
    world.outside.holder = None;
    world.pass(700);
    let told = world.told();
    assert_eq!(told.iter().filter(|event| *event == "alert").count(), 3, "{told:?}");
    assert!(told.contains(&"orphan_detected".to_owned()), "{told:?}");
    assert!(world.sum("orphand_unproven").abs() < 0.1);
    assert!((world.sum("orphand_orphans{") - 1.0).abs() < 0.1);
    let sum = past(dir.path()).sum();
    assert_eq!((sum.orphans, sum.left, sum.unproven), (1, 1, 0));
    assert_eq!(world.outside.signalled, [], "it only looks");
}

/// The next daemon is told of it as of one whose owner has just gone.
#[test]
fn the_next_daemon_judges_it_anew() {
    let dir = tempfile::tempdir().unwrap();
    let mut world = World::new(dir.path());
    let server = id(SERVER);
    let doubts = vec![orphand_core::model::Doubt::WireHeld];
    let fact = Fact::Unproven { server, evidence: Vec::new(), doubts, rss_bytes: 1 };
    world.outside.store.remember(world.outside.now, &fact);
    world.outside.store.try_commit().unwrap();
    drop(world);
    let known = StoreWriter::open(dir.path(), BOOT, 0, Limits::default()).unwrap().2;
    let told: Vec<_> = known.servers.iter().map(|one| (one.server.id, one.orphan)).collect();
    assert_eq!(told, [(server, None)]);
}
