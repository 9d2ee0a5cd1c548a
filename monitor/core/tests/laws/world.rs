//! The actors: who starts agents and servers in the model world, and what else goes on there.
//!
//! Every act is a sequence of system calls during which the daemon may wake; what the actor meant goes into
//! [`Truth`]. An act that is impossible (the host of a server is dead) does nothing.

use std::time::Duration;

use orphand_core::{
    model::{ExitStatus, Policy, ProcessId},
    recognise::{Candidate, Rules},
};

use crate::{
    files::{End, Files},
    host::{Host, Manners},
    kernel::{Conduct, Kernel},
    launch::Launch,
    programs::{self, Program},
    records::Records,
    truth::{Service, Truth},
};

/// Numbers that must be free before an act of several processes begins, so that it is never left half done.
pub const ROOM: usize = 16;

pub const INIT: ProcessId = ProcessId { pid: 1, start: 1 };

/// The hosts of servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgentKind {
    /// One process, by rule.
    Claude,
    /// Launcher and native program; the inner one works.
    Codex,
    /// The same image twice.
    Gemini,
    /// A gateway below the service manager.
    Hermes,
    Openclaw,
    /// Home-made hosts that no rule knows.
    Python,
    Node,
    /// One whose exec is not even reported.
    Strange,
}

impl AgentKind {
    pub const ALL: [Self; 8] = [
        Self::Claude,
        Self::Codex,
        Self::Gemini,
        Self::Hermes,
        Self::Openclaw,
        Self::Python,
        Self::Node,
        Self::Strange,
    ];

    pub fn programs(self) -> &'static [&'static Program] {
        match self {
            Self::Claude => &[&programs::CLAUDE],
            Self::Codex => &[&programs::CODEX_LAUNCHER, &programs::CODEX],
            Self::Gemini => &[&programs::GEMINI, &programs::GEMINI],
            Self::Hermes => &[&programs::HERMES],
            Self::Openclaw => &[&programs::OPENCLAW],
            Self::Python => &[&programs::PYTHON_HOST],
            Self::Node => &[&programs::NODE_HOST],
            Self::Strange => &[&programs::STRANGE_HOST],
        }
    }

    pub fn by_rule(self) -> bool {
        !matches!(self, Self::Python | Self::Node | Self::Strange)
    }

    fn gateway(self) -> bool {
        matches!(self, Self::Hermes | Self::Openclaw)
    }
}

/// The world and its daemon.
pub struct World {
    pub host: Host,
    /// A login shell on a terminal.
    pub shell: ProcessId,
    pub inetd: ProcessId,
    /// Everybody who hosts servers, the dead included.
    pub hosts: Vec<ProcessId>,
    /// The launchers of agents that are two processes.
    pub launchers: Vec<ProcessId>,
    /// Forked workers of hosts.
    pub workers: Vec<ProcessId>,
    /// Everybody else who may have to do with a server.
    pub strangers: Vec<ProcessId>,
}

impl World {
    /// A host with a login shell, inetd and the daemon (not yet started).
    pub fn new(policy: Policy, manners: Manners, space: u32) -> Self {
        let mut kernel = Kernel::new(space, Records::new(candidates(&Rules::default())));
        let mut begin = |parent, program, uid, files: Files| {
            let id = kernel.fork(parent).unwrap_or_default();
            if let Some(p) = kernel.get_mut(id) {
                (p.uid, p.files) = (uid, files);
            }
            kernel.exec(id, program, Conduct::default());
            kernel.setsid(id);
            id
        };
        let daemon = begin(INIT, &programs::ORPHAND, 0, Files::on_null());
        let inetd = begin(INIT, &programs::INETD, 0, Files::on_null());
        let shell = begin(inetd, &programs::BASH, 1000, Files::on_terminal());
        let truth =
            Truth { ourselves: vec![daemon, INIT], other_uids: policy.other_uids, ..Truth::default() };
        Self {
            host: Host::new(kernel, truth, policy, manners),
            shell,
            inetd,
            hosts: Vec::new(),
            launchers: Vec::new(),
            workers: Vec::new(),
            strangers: Vec::new(),
        }
    }

    /// A world of usual size whose daemon runs and reaps.
    pub fn running() -> Self {
        let mut world = Self::new(Policy::default(), Manners::default(), 400);
        world.host.start();
        world
    }

    pub fn elapse(&mut self, seconds: u64) {
        self.host.elapse(Duration::from_secs(seconds));
    }

    pub fn fork(&mut self, creator: ProcessId) -> Option<ProcessId> {
        let child = self.host.kernel.fork(creator);
        self.host.breathe();
        child
    }

    pub fn exec(&mut self, id: ProcessId, program: &Program, conduct: Conduct) {
        self.host.kernel.exec(id, program, conduct);
        self.host.breathe();
    }

    pub fn exit(&mut self, id: ProcessId, status: ExitStatus) {
        self.host.truth.may_leave_heirs(&self.host.kernel, id, status);
        self.host.kernel.exit(id, status);
        self.host.breathe();
    }

    pub fn kill(&mut self, id: ProcessId) {
        self.exit(id, ExitStatus::Signal(9));
    }

    pub fn setsid(&mut self, id: ProcessId) {
        self.host.kernel.setsid(id);
        self.host.breathe();
    }

    /// A child with another program and its standard streams on /dev/null.
    pub fn spawn(&mut self, creator: ProcessId, program: &Program, conduct: Conduct) -> Option<ProcessId> {
        let child = self.fork(creator)?;
        self.host.kernel.get_mut(child)?;
        for number in 0..3 {
            self.host.kernel.open(child, number, End::Null, false);
        }
        self.exec(child, program, conduct);
        Some(child)
    }

    /// Starts a tool whose creator reads what it prints.
    pub fn tool(&mut self, creator: ProcessId, program: &Program) -> Option<ProcessId> {
        let child = self.fork(creator)?;
        let kernel = &mut self.host.kernel;
        let (from, to) = kernel.pipe(creator);
        kernel.get_mut(child)?.files.null_streams();
        kernel.get_mut(creator)?.files.open_anywhere(from, true);
        kernel.open(child, 1, to, false);
        self.exec(child, program, Conduct::default());
        Some(child)
    }

    /// Starts an agent below `parent` (the login shell's terminal) or the service manager; tells the process
    /// that works.
    pub fn agent(&mut self, kind: AgentKind, parent: Option<ProcessId>) -> Option<ProcessId> {
        if self.host.kernel.room() < ROOM {
            return None;
        }
        let mut at = parent.unwrap_or(if kind.gateway() { INIT } else { self.shell });
        let programs = kind.programs();
        for (i, program) in programs.iter().enumerate() {
            let inner = i + 1 == programs.len();
            at = self.fork(at)?;
            if kind.gateway() {
                self.host.kernel.get_mut(at)?.uid = 1000;
            }
            let conduct = Conduct { waits: !inner, ..Conduct::default() };
            self.exec(at, program, conduct);
            if kind.by_rule() {
                self.host.truth.agents.insert(at);
            }
            if !inner {
                self.launchers.push(at);
            }
        }
        if kind.gateway() {
            self.setsid(at);
        }
        self.hosts.push(at);
        Some(at)
    }

    /// Starts a server for `owner` on a wire of its own; tells its place among the services.
    pub fn server(&mut self, owner: ProcessId, launch: Launch) -> Option<usize> {
        let (chain, wires, go_between) = self.launch(owner, launch)?;
        self.host.truth.heads.extend(chain.first());
        self.host.truth.services.push(Service {
            chain,
            wires,
            owner: Some(owner),
            maker: owner,
            former: Vec::new(),
            above: None,
            patrons: Vec::new(),
            of_worker: false,
            moved: launch.moves_wire,
            mute: false,
            over: false,
            go_between,
            bridged: false,
            behind: Vec::new(),
            found_silent: false,
            found_over: false,
            found_ownerless: false,
        });
        Some(self.host.truth.services.len() - 1)
    }

    /// The same by somebody who is no agent: a shell of `above`, a steward.
    pub fn unowned_server(
        &mut self,
        maker: ProcessId,
        above: Option<ProcessId>,
        launch: Launch,
    ) -> Option<usize> {
        let place = self.server(maker, launch)?;
        let service = self.host.truth.services.get_mut(place)?;
        (service.owner, service.above) = (None, above);
        Some(place)
    }

    /// The host lets go of its end of a server's wire: a graceful close.
    pub fn hang_up(&mut self, place: usize) {
        let Some(service) = self.host.truth.services.get(place) else { return };
        let (owner, [stdin, _]) = (service.owner, service.wires);
        if let (Some(owner), Some(end)) = (owner, self.host.kernel.opposite(stdin)) {
            self.host.kernel.close(owner, end);
            self.host.breathe();
        }
    }

    /// The owner lets go of both wires of the server, as a client that closes it.
    pub fn let_go(&mut self, place: usize) {
        self.hang_up(place);
        let Some(service) = self.host.truth.services.get(place) else { return };
        let (owner, [_, stdout]) = (service.owner, service.wires);
        if let (Some(owner), Some(end)) = (owner, self.host.kernel.opposite(stdout)) {
            self.host.kernel.close(owner, end);
        }
    }

    /// The host's end is handed to an older process that goes on talking to the server.
    pub fn hand_over(&mut self, place: usize, to: ProcessId) -> bool {
        let Some(service) = self.host.truth.services.get(place) else { return false };
        let end = self.host.kernel.opposite(service.wires[0]);
        let holds = service.owner.is_some_and(|o| end.is_some_and(|e| holds(&self.host.kernel, o, e)));
        if !holds || to.start >= service.head().start || !self.host.kernel.alive(to) {
            return false;
        }
        if let (Some(p), Some(end)) = (self.host.kernel.get_mut(to), end) {
            p.files.open_anywhere(end, true);
        }
        self.host.truth.services[place].patrons.push(to);
        true
    }

    /// The agent forks itself into the background and ends; its copy works on.
    pub fn background(&mut self, agent: ProcessId, twice: bool) -> Option<ProcessId> {
        if self.host.kernel.room() < ROOM {
            return None;
        }
        let mut copy = self.fork(agent)?;
        self.setsid(copy);
        if twice {
            let second = self.fork(copy)?;
            self.exit(copy, ExitStatus::Code(0));
            copy = second;
        }
        if self.host.truth.agents.contains(&agent) {
            self.host.truth.agents.insert(copy);
        }
        let now = self.host.kernel.now();
        let mut unheard = self.host.truth.unheard.contains(&agent);
        for service in self.host.truth.services.iter_mut().filter(|s| s.owner == Some(agent)) {
            let born = self.host.kernel.history.get(&service.head()).map(|p| p.born);
            unheard |= born.is_some_and(|b| now < b + Duration::from_millis(100));
            service.former.push(agent);
            service.owner = Some(copy);
        }
        if unheard && !self.host.truth.agents.contains(&agent) {
            self.host.truth.unheard.insert(copy);
        }
        self.hosts.push(copy);
        self.exit(agent, ExitStatus::Code(0));
        Some(copy)
    }

    /// A program that forks itself into the background and leaves a sanctuary behind: tmux, conmon.
    pub fn sanctuary(&mut self, below: ProcessId, program: &Program) -> Option<ProcessId> {
        if self.host.kernel.room() < ROOM {
            return None;
        }
        let client = self.spawn(below, program, Conduct::default())?;
        self.host.truth.sanctuaries.insert(client);
        let server = self.fork(client)?;
        self.setsid(server);
        self.exit(client, ExitStatus::Code(0));
        self.spawn(server, &programs::BASH, Conduct::default());
        Some(server)
    }

    /// A browser with two helpers in a session of its own. What started it reads its messages, unless it let it go.
    pub fn browser(&mut self, below: ProcessId, tied: bool) -> Option<ProcessId> {
        let main = self.fork(below)?;
        let kernel = &mut self.host.kernel;
        let (from, to) = kernel.pipe(below);
        kernel.get_mut(main)?.files.null_streams();
        if tied {
            kernel.get_mut(below)?.files.open_anywhere(from, true);
            kernel.open(main, 2, to, false);
        }
        self.exec(main, &programs::CHROMIUM, Conduct::default());
        self.setsid(main);
        for _ in 0..2 {
            self.fork(main)?;
        }
        Some(main)
    }

    /// Unrelated processes that come and go, so that numbers are used up.
    pub fn storm(&mut self, processes: u32) {
        for _ in 0..processes {
            if let Some(child) = self.spawn(self.shell, &programs::CC, Conduct::default()) {
                self.exit(child, ExitStatus::Code(0));
            }
        }
    }
}

fn holds(kernel: &Kernel, id: ProcessId, end: End) -> bool {
    kernel.get(id).is_some_and(|p| p.files.has(end))
}

/// What the rules want to hear of.
fn candidates(rules: &Rules) -> Vec<Candidate> {
    let known = rules.candidates();
    if known.is_empty() { programs::candidates() } else { known }
}
