//! The pure core alone: events a second over ten million of them, and memory for each living process.
//!
//! The history is made up as it goes, outside of the measured time: an agent's servers fork, exec and lose
//! children without end, now and then an agent ends and another one begins.

use std::{fs, hint::black_box};

use divan::{Bencher, counter::ItemsCount};
use orphand_core::{
    engine::Engine,
    model::{Answer, BootTime, Effect, ExitStatus, Ignored, Image, Input, ProcessEvent, ProcessId, Stdio},
};

const AGENTS: usize = 50;
const SERVERS: usize = 10;
/// Children of servers that live at a time.
const CHILDREN: usize = 5_000;
/// Events handed in between two looks at the clock.
const BATCH: usize = 100_000;
/// Batches: ten million events in all.
const BATCHES: u32 = 100;
/// Processes of which the memory is measured.
const CROWD: usize = 500_000;

fn main() {
    let before = resident_bytes();
    let mut engine = Engine::default();
    let mut history = History::default();
    for _ in 0..AGENTS {
        history.begin_agent();
    }
    while history.children.len() < CROWD {
        history.begin_child(false);
        hand_in(&mut engine, history.made.drain(..));
    }
    let living = engine.processes();
    let bytes = resident_bytes().saturating_sub(before);
    println!("memory: {} bytes for each of {living} living processes", bytes / living.max(1) as u64);
    drop(engine);
    divan::main();
}

#[divan::bench(sample_count = BATCHES, sample_size = 1)]
fn ten_million_events(bencher: Bencher<'_, '_>) {
    let mut engine = Engine::default();
    let mut history = History::default();
    for _ in 0..AGENTS {
        history.begin_agent();
    }
    hand_in(&mut engine, history.made.drain(..));
    bencher
        .counter(ItemsCount::new(BATCH))
        .with_inputs(|| history.batch())
        .bench_local_values(|batch| hand_in(&mut engine, batch.into_iter()));
}

/// Hands events in, and does what the daemon does with effects: questions are answered at once.
fn hand_in(engine: &mut Engine, events: impl Iterator<Item = ProcessEvent>) {
    for event in events {
        let now = event.at();
        engine.handle(now, Input::Process { event });
        while let Some(effect) = engine.poll_effect() {
            if let Effect::Ask { token, .. } = effect {
                let answer = Answer::Memory { processes: Vec::new() };
                engine.handle(now, Input::Answered { token, answer });
            } else {
                black_box(effect);
            }
        }
        if engine.poll_timeout().is_some_and(|due| due <= now) {
            engine.handle(now, Input::Timeout);
        }
    }
}

/// A history that never ends.
#[derive(Default)]
struct History {
    made: Vec<ProcessEvent>,
    now: u64,
    pid: u32,
    dice: u64,
    agents: Vec<ProcessId>,
    servers: Vec<(ProcessId, ProcessId)>,
    children: Vec<ProcessId>,
}

impl History {
    fn batch(&mut self) -> Vec<ProcessEvent> {
        while self.made.len() < BATCH {
            if self.roll(20_000) == 0 {
                self.end_agent();
                self.begin_agent();
            } else if self.children.len() < CHILDREN {
                let exec = self.roll(3) == 0;
                self.begin_child(exec);
            } else {
                let which = self.roll(self.children.len());
                let child = self.children.swap_remove(which);
                self.exit(child);
            }
        }
        std::mem::take(&mut self.made)
    }

    fn begin_agent(&mut self) {
        let shell = self.process();
        let agent = self.process();
        self.exec(agent, shell, &["claude", "--resume"], [Stdio::Terminal; 3]);
        self.agents.push(agent);
        for n in 0..SERVERS as u64 {
            let server = self.fork(agent);
            let wire = Stdio::Socket(self.now * 100 + n);
            self.exec(
                server,
                agent,
                &["node", "/srv/node_modules/.bin/mcp-server-filesystem", "/srv"],
                [wire, wire, Stdio::Null],
            );
            self.servers.push((server, agent));
        }
    }

    /// An agent's servers end with it, as most do.
    fn end_agent(&mut self) {
        let which = self.roll(self.agents.len());
        let agent = self.agents.swap_remove(which);
        self.exit(agent);
        let (ended, rest) = self.servers.drain(..).partition(|(_, owner)| *owner == agent);
        self.servers = rest;
        let ended: Vec<(ProcessId, ProcessId)> = ended;
        for (server, _) in ended {
            self.exit(server);
        }
    }

    fn begin_child(&mut self, exec: bool) {
        let which = self.roll(self.servers.len());
        let Some(&(server, _)) = self.servers.get(which) else { return };
        let child = self.fork(server);
        if exec {
            self.exec(child, server, &["git", "status", "--porcelain"], [Stdio::Null; 3]);
        }
        self.children.push(child);
    }

    fn fork(&mut self, creator: ProcessId) -> ProcessId {
        let child = self.process();
        self.made.push(ProcessEvent::Fork {
            at: BootTime(self.now),
            creator,
            thread: None,
            child,
            uid: 1000,
            sid: 1,
        });
        child
    }

    fn exec(&mut self, process: ProcessId, parent: ProcessId, argv: &[&str], stdio: [Stdio; 3]) {
        let image = Image {
            exe: format!("/usr/bin/{}", argv.first().copied().unwrap_or_default()),
            argv: argv.iter().map(|&arg| arg.to_owned()).collect(),
            argv_truncated: false,
        };
        let at = BootTime(self.now);
        let (uid, ignored) = (1000, Ignored::default());
        let event = ProcessEvent::Exec { at, process, parent, uid, sid: 1, image, stdio, ignored };
        self.made.push(event);
    }

    fn exit(&mut self, process: ProcessId) {
        self.now += 1_000;
        self.made.push(ProcessEvent::Exit { at: BootTime(self.now), process, status: ExitStatus::Code(0) });
    }

    /// A new identity; numbers are used again after four million births, as by the kernel.
    fn process(&mut self) -> ProcessId {
        self.now += 1_000;
        self.pid = self.pid % 4_194_303 + 1;
        ProcessId::new(self.pid, BootTime(self.now).ticks())
    }

    /// A number below `sides`; the same ones in every run (Knuth's MMIX generator).
    fn roll(&mut self, sides: usize) -> usize {
        self.dice = self.dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.dice >> 33).unwrap_or(0) % sides.max(1)
    }
}

/// Resident memory of this process, `/proc/self/statm`.
fn resident_bytes() -> u64 {
    let statm = fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: u64 = statm.split(' ').nth(1).and_then(|field| field.parse().ok()).unwrap_or(0);
    pages * rustix::param::page_size() as u64
}
