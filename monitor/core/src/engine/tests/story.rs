//! A simulated host for tests: a test sets the answers before the engine asks.

use std::{
    collections::{BTreeMap, BTreeSet},
    num::NonZeroU32,
    time::Duration,
};

use super::story_scene::{Copy, Outside, ProcessFacts, SocketUse, WireState};
use crate::{
    engine::Engine,
    model::{
        About, AgentHints, Answer, BootTime, Branch, Effect, ExitStatus, Fact, FirstMessage, FoundHints,
        Ignored, Image, Input, Notice, Policy, ProcessEvent, ProcessId, Signal, SignalError, Snapshot,
        SnapshotProcess, Stdio, UnitFacts, Whereabouts, Work,
    },
};

pub const CLAUDE: &[&str] = &["claude", "--resume"];
pub const SERVER: &[&str] = &["node", "/srv/node_modules/.bin/mcp-server-filesystem", "/srv"];
pub const BRIDGE: &[&str] = &["node", "/srv/node_modules/.bin/supergateway", "--stdio", "x"];
pub const WIRE: [Stdio; 3] = [Stdio::Pipe(1), Stdio::Pipe(2), Stdio::Null];
pub const TERMINAL: [Stdio; 3] = [Stdio::Terminal; 3];

/// Every process is born in the tick of its number.
pub fn id(pid: u32) -> ProcessId {
    ProcessId::new(pid, u64::from(pid))
}

pub fn image(argv: &[&str]) -> Image {
    let argv: Vec<String> = argv.iter().map(ToString::to_string).collect();
    Image { exe: argv[0].clone(), argv, argv_truncated: false }
}

pub fn seen(pid: u32, parent: u32, argv: &[&str], stdio: [Stdio; 3]) -> SnapshotProcess {
    SnapshotProcess {
        id: id(pid),
        parent: Some(id(parent)),
        image: image(argv),
        stdio,
        ..SnapshotProcess::default()
    }
}

#[derive(Default)]
pub struct Story {
    pub engine: Engine,
    pub now: BootTime,
    /// What an inspection of a server finds. Its processes are filled in.
    pub facts: Outside,
    /// How each process of a server uses sockets.
    pub sockets: SocketUse,
    /// What an inspection finds about single processes, in place of what is set for all.
    pub apart: BTreeMap<u32, ProcessFacts>,
    /// The ids of the sessions that servers were started for, by pid.
    pub sessions: BTreeMap<u32, String>,
    /// By what a person recognises each server, by the pid of its head.
    pub hints: BTreeMap<u32, FoundHints>,
    /// By what a person recognises an agent.
    pub agent_hints: Option<AgentHints>,
    /// What forked copies of an agent do.
    pub copies: Vec<Copy>,
    /// Where each process works; a process without an entry cannot be read.
    pub places: BTreeMap<u32, Whereabouts>,
    /// Of which processes it was asked where they work.
    pub places_asked: Vec<u32>,
    /// Where every process is among services and scopes; absent if that cannot be read.
    pub place: Option<String>,
    /// What the host says about branches that an agent left, by the pid of the head, if it is not as set for all.
    pub branches: BTreeMap<u32, Branch>,
    /// The CPU time of each process, in milliseconds.
    pub cpu_ms: u64,
    /// The real user id that the servers run as.
    pub uid: u32,
    /// The resident memory of each process, in bytes.
    pub rss_bytes: u64,
    /// What /proc says about a creator.
    pub creator: Option<SnapshotProcess>,
    /// Whether the units of all servers are being stopped.
    pub stopping: bool,
    /// The slices above every process.
    pub slices: Vec<String>,
    /// The units that processes run in, by pid.
    pub units: BTreeMap<u32, UnitFacts>,
    /// Processes that have run a program.
    pub(super) ran: BTreeSet<u32>,
    /// Those that begin with SIGINT ignored.
    pub in_background: BTreeSet<u32>,
    /// Those that begin with SIGHUP ignored.
    pub below_nohup: BTreeSet<u32>,
    /// Processes that have exited when a question about them is answered.
    pub gone: BTreeSet<u32>,
    /// The errno(3) value that every signal fails with.
    pub errno: Option<i32>,
    /// Whether there is no room to send a signal.
    pub no_room: bool,
    /// Signals that are not sent at the first attempt, because the process may be another one.
    pub unsure: BTreeSet<(u32, Signal)>,
    /// The user id that was to be compared, for each signal.
    pub users: Vec<Option<u32>>,
    /// Processes that exit after SIGTERM. SIGKILL ends nothing here; a test must report the exit.
    pub polite: BTreeSet<u32>,
    /// What the server's processes have done, by pid; those without an entry cannot be read.
    pub work: BTreeMap<u32, Work>,
    /// Threads whose end is reported, by process and number.
    pub followed: Vec<(u32, u32)>,
    /// Answers to inspections that were computed and not passed in yet, if answers are late.
    pub late: Option<Vec<(u64, Answer)>>,
    /// Servers whose standard input is hung up, by the pid of the main process.
    pub hung_up: BTreeSet<u32>,
    /// When hung-up wires were asked for, and about how many servers.
    pub wire_looks: Vec<(BootTime, usize)>,
    /// What is said first to each process, by pid.
    pub messages: BTreeMap<u32, FirstMessage>,
    /// The command lines of which it was asked whether settings declare them.
    pub lines_asked: Vec<Vec<Vec<String>>>,
    /// The names under which settings declare processes.
    pub declared: BTreeMap<u32, String>,
    /// When it was asked what is said first to which process.
    pub message_looks: Vec<(BootTime, u32)>,
    /// When an inspection of a server was asked for.
    pub looks: Vec<BootTime>,
    pub signals: Vec<(u32, Signal, BootTime)>,
    /// The containers that were to be stopped.
    pub stops: Vec<String>,
    /// Why no container can be stopped.
    pub stop_error: Option<String>,
    /// When it was asked which container a client works for.
    pub containers_asked: Vec<(BootTime, u32)>,
    /// Whether the second look finds that something changed.
    pub container_changes: bool,
    /// How many inputs were handled.
    handled: usize,
    /// Containers that were not stopped because of that.
    pub stops_refused: Vec<String>,
    pub resyncs: u32,
    pub notices: Vec<Notice>,
    /// The facts that were to be stored.
    pub facts_persisted: Vec<Fact>,
}

impl Story {
    pub fn new(policy: Policy) -> Self {
        let now = BootTime::default() + Duration::from_secs(1000);
        Self { engine: Engine::new(policy, Vec::new()).unwrap(), now, ..Self::default() }
    }

    /// Agent 20 lives, and was told of.
    pub fn with_agent() -> Self {
        let mut story = Self::new(Policy::default());
        story.exec(20, 10, CLAUDE, TERMINAL);
        assert_eq!(story.told(), ["agent_started"]);
        story
    }

    /// Agent 20 has a server, 30. No process holds the other end of its wire.
    pub fn agent_with_server(policy: Policy) -> Self {
        let mut story = Self::new(policy);
        story.exec(20, 10, CLAUDE, TERMINAL);
        story.start(20, 30, SERVER, WIRE);
        assert_eq!(story.told(), ["agent_started", "server_started"]);
        story
    }

    pub fn hand_in(&mut self, input: Input) {
        self.handle(input);
        self.carry_out();
    }

    fn handle(&mut self, input: Input) {
        self.engine.handle(self.now, input);
        self.handled += 1;
        // A check costs as much as the square of the processes. With many of them it is made now and then.
        if self.handled.is_multiple_of(1 + (self.engine.processes() / 50).pow(2)) {
            assert_eq!(crate::invariants::broken(&self.engine), Vec::<String>::new());
        }
    }

    fn carry_out(&mut self) {
        while let Some(effect) = self.engine.poll_effect() {
            match effect {
                Effect::Persist { fact, .. } => self.facts_persisted.push(*fact),
                Effect::Emit { notice, .. } => self.notices.push(*notice),
                Effect::Ask { token, about, .. } => {
                    let may_wait = matches!(
                        &about,
                        About::Server(_)
                            | About::Stop { .. }
                            | About::Container(_)
                            | About::FirstMessage { .. }
                            | About::Declared { .. }
                            | About::HungUp(_)
                    );
                    let answer = self.answer(about);
                    if let Some(late) = self.late.as_mut().filter(|_| may_wait) {
                        late.push((token, answer));
                        continue;
                    }
                    self.handle(Input::Answered { token, answer });
                }
                Effect::Signal { process, signal, uid } => {
                    self.users.push(uid);
                    self.signals.push((process.pid, signal, self.now));
                    let refusal = |errno| SignalError::System { errno, message: "refused".to_owned() };
                    let unsure = self.unsure.remove(&(process.pid, signal));
                    let doubt = unsure.then(|| SignalError::Unsure { message: "another user".to_owned() });
                    let full = || SignalError::NoRoom { message: "pidfd_open: too many".to_owned() };
                    let error = doubt.or(self.errno.map(refusal)).or_else(|| self.no_room.then(full));
                    let sent = error.is_none();
                    self.handle(Input::Signalled { process, signal, error });
                    if sent && self.polite.contains(&process.pid) {
                        self.end(process.pid);
                    }
                }
                Effect::FollowThread { process, thread, .. } => {
                    self.followed.push((process.pid, thread.get()));
                }
                Effect::Resync => self.resyncs += 1,
                Effect::Track { .. } | Effect::Untrack { .. } => {}
            }
        }
    }

    pub(super) fn work_of(&self, processes: &[ProcessId]) -> Vec<Work> {
        // In a story that is not about work nobody works.
        let rests = self.work.is_empty().then(Work::default);
        let of = |process: &ProcessId| {
            let work = self.work.get(&process.pid).copied().or(rests)?;
            Some(Work { process: *process, ..work })
        };
        processes.iter().filter_map(of).collect()
    }

    /// Passes in the late answers: to look took the time until now.
    pub fn answer_late(&mut self) {
        self.answer_after(Duration::ZERO);
    }

    /// The same; the answers have waited this long since the look began.
    pub fn answer_after(&mut self, waited: Duration) {
        for (token, mut answer) in self.late.replace(Vec::new()).into_iter().flatten() {
            if let Answer::Server { facts } = &mut answer {
                let waited = u64::try_from(waited.as_nanos()).unwrap();
                facts.began = Some(BootTime(self.now.0 - waited));
            }
            self.hand_in(Input::Answered { token, answer });
        }
    }

    pub fn fork(&mut self, creator: u32, child: u32) {
        let (creator, child) = (id(creator), id(child));
        self.hand_in(Input::Process {
            event: ProcessEvent::Fork { at: self.now, creator, thread: None, child, uid: 0, sid: 0 },
        });
    }

    /// A fork by a thread that is not the leading one.
    pub fn fork_by(&mut self, thread: u32, creator: u32, child: u32) {
        let (creator, child, thread) = (id(creator), id(child), NonZeroU32::new(thread));
        self.hand_in(Input::Process {
            event: ProcessEvent::Fork { at: self.now, creator, thread, child, uid: 0, sid: 0 },
        });
    }

    /// A thread that started a server exits.
    pub fn end_thread(&mut self, process: u32, thread: u32) {
        let thread = NonZeroU32::new(thread).unwrap();
        let event = ProcessEvent::ThreadExit { at: self.now, process: id(process), thread };
        self.hand_in(Input::Process { event });
    }

    /// A process is forked and runs a program.
    pub fn start(&mut self, parent: u32, pid: u32, argv: &[&str], stdio: [Stdio; 3]) {
        self.fork(parent, pid);
        self.exec(pid, parent, argv, stdio);
    }

    pub fn exec(&mut self, pid: u32, parent: u32, argv: &[&str], stdio: [Stdio; 3]) {
        self.exec_as(0, pid, parent, argv, stdio);
    }

    pub fn exec_as(&mut self, uid: u32, pid: u32, parent: u32, argv: &[&str], stdio: [Stdio; 3]) {
        self.exec_at(self.now, uid, pid, parent, argv, stdio);
    }

    /// The same; the record says when it was, which may be before now.
    pub fn exec_at(
        &mut self,
        at: BootTime,
        uid: u32,
        pid: u32,
        parent: u32,
        argv: &[&str],
        stdio: [Stdio; 3],
    ) {
        let (process, parent, image) = (id(pid), id(parent), image(argv));
        self.ran.insert(pid);
        let [interrupt, hangup] = [&self.in_background, &self.below_nohup].map(|all| all.contains(&pid));
        let ignored = Ignored { interrupt, hangup };
        let event = ProcessEvent::Exec { at, process, parent, uid, sid: 0, image, stdio, ignored };
        self.hand_in(Input::Process { event });
    }

    pub fn setsid(&mut self, pid: u32) {
        let event = ProcessEvent::Setsid { at: self.now, process: id(pid), sid: pid };
        self.hand_in(Input::Process { event });
    }

    /// A process exits.
    pub fn end(&mut self, pid: u32) {
        self.end_with(pid, ExitStatus::Signal(9));
    }

    pub fn end_with(&mut self, pid: u32, status: ExitStatus) {
        self.hand_in(Input::Process { event: ProcessEvent::Exit { at: self.now, process: id(pid), status } });
    }

    pub fn snapshot(&mut self, processes: Vec<SnapshotProcess>) {
        self.hand_in(Input::Snapshot {
            snapshot: Snapshot { horizon: self.now, processes, ..Snapshot::default() },
        });
    }

    /// Lets time pass. Timers of the engine go off when they are due.
    pub fn pass(&mut self, time: Duration) {
        let until = self.now + time;
        while let Some(due) = self.engine.poll_timeout().filter(|due| *due <= until) {
            self.now = self.now.max(due);
            self.hand_in(Input::Timeout);
        }
        self.now = until;
    }

    pub fn pass_secs(&mut self, seconds: u64) {
        self.pass(Duration::from_secs(seconds));
    }

    /// What was reported since the last call: each event, and its guards or another detail that identifies it.
    pub fn told(&mut self) -> Vec<String> {
        self.notices.drain(..).map(|notice| line(&notice)).collect()
    }

    /// The first event of this name since then, as it is written.
    pub fn event(&self, name: &str) -> serde_json::Value {
        let events = self.notices.iter().map(|notice| serde_json::to_value(notice).unwrap());
        events.into_iter().find(|event| event["event"] == name).unwrap_or_default()
    }

    /// Nobody holds the wires any more.
    pub fn hang_up(&mut self) {
        (self.facts.stdin, self.facts.stdout) = (WireState::HungUp, WireState::HungUp);
    }

    /// The signals sent since the last call.
    pub fn sent(&mut self) -> Vec<(u32, Signal)> {
        self.signals.drain(..).map(|(pid, signal, _)| (pid, signal)).collect()
    }
}

fn line(notice: &Notice) -> String {
    let json = serde_json::to_value(notice).unwrap();
    let mut line = json["event"].as_str().unwrap().to_owned();
    let words = |key: &str| json[key].as_array().cloned().unwrap_or_default();
    let guards = [words("doubts"), words("guards")].concat();
    let guards = guards.iter().filter_map(|g| g.as_str());
    let rest = [&json["reason"], &json["signal"]].into_iter().filter_map(|v| v.as_str());
    for word in guards.chain(rest) {
        line = format!("{line} {word}");
    }
    line
}
