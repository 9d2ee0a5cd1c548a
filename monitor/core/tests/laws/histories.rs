//! Random stories: lists of acts, chosen so that every list means something and shrinks to a shorter one.
//!
//! An act names its actors by a number that is taken modulo those present; with nobody present it does nothing.

use std::time::Duration;

use crate::{
    files::End,
    host::Manners,
    kernel::Conduct,
    launch::Launch,
    programs::{self, Recipe},
    using::Use,
    world::{AgentKind, World},
};
use orphand_core::model::{ExitStatus, Mode, Policy, ProcessId};

/// What grows below a server.
#[derive(Clone, Copy, Debug)]
pub enum Growth {
    /// Tied to it.
    Browser,
    /// The same, let go.
    Daemon,
    Helper,
    Multiplexer,
    Conmon,
    /// An agent with a server of its own.
    Agent,
    /// A server behind a bridge: part of the server in front.
    Bridged,
    /// A copy of it that goes into the background and closes its streams.
    Fork,
}

/// One thing that somebody does.
#[derive(Clone, Copy, Debug)]
pub enum Act {
    Agent(AgentKind),
    /// An agent below another one: a shell tool runs it.
    AgentBelow(AgentKind, u8),
    /// An agent in a terminal of a multiplexer.
    AgentInMultiplexer(AgentKind),
    Server(u8, Launch),
    /// A server on a pipe that a shell made: below an agent or at the prompt.
    ShellServer(Option<u8>, Recipe),
    /// A server at the other end of a remote shell.
    RemoteServer(Recipe),
    /// A server on a terminal, or with a service's null input: no wire.
    Wireless(bool),
    Grow(u8, Growth),
    /// The host of a server ends.
    HostExits(u8, Option<u8>),
    LauncherDies(u8),
    WrapperDies(u8, u8),
    ServerEnds(u8),
    HangUp(u8),
    /// A living owner lets go of both wires.
    Abandon(u8),
    HandOver(u8, u8),
    /// Forked pool workers.
    Workers(u8, u8),
    Background(u8, bool),
    ExecsItself(u8),
    /// A shell tool's job: a development server, a build.
    Job(u8, bool),
    /// A child whose parent is its creator's parent.
    Sibling(u8),
    /// What others do with the server and its wires.
    Use(Use),
    Storm(u8),
    /// Another configuration: only to look, or to act.
    Configure(bool),
    Elapse(u16),
}

/// A story with its circumstances.
#[derive(Clone, Debug)]
pub struct Story {
    /// What happens before the daemon starts.
    pub before: Vec<Act>,
    pub acts: Vec<Act>,
    pub space: u32,
    pub lag_ms: u16,
    pub gone_first: bool,
    pub observe: bool,
    pub other_uids: bool,
    /// A kernel without passes over open files.
    pub passless: bool,
    /// Every how manieth look fails.
    pub stumbles: u8,
    /// For each record, whether it is lost.
    pub faults: Vec<bool>,
}

impl Story {
    pub fn policy(&self) -> Policy {
        let mode = if self.observe { Mode::Observe } else { Mode::Enforce };
        Policy { mode, other_uids: self.other_uids, ..Policy::default() }
    }

    pub fn manners(&self) -> Manners {
        let lag = Duration::from_millis(self.lag_ms.into());
        let (passless, stumbles) = (self.passless, self.stumbles);
        Manners { lag, gone_first: self.gone_first, passless, stumbles, ..Manners::default() }
    }

    /// The world at the beginning, and after `prepare` had a hand in it the end, settled.
    pub fn play(&self, prepare: impl FnOnce(&mut World)) -> World {
        let mut world = World::new(self.policy(), self.manners(), self.space);
        prepare(&mut world);
        for act in &self.before {
            act.play(&mut world);
        }
        world.host.start();
        world.host.kernel.records.faults = self.faults.iter().copied().collect();
        for act in &self.acts {
            act.play(&mut world);
        }
        world.host.kernel.records.faults.clear();
        world.host.settle();
        world
    }
}

impl Act {
    #[expect(clippy::too_many_lines, reason = "one arm an act")]
    pub fn play(self, world: &mut World) -> Option<()> {
        match self {
            Self::Agent(kind) => world.agent(kind, None).map(drop),
            Self::AgentBelow(kind, host) => {
                let tool = world.spawn(world.living_host(host)?, &programs::TOOL, Conduct::default())?;
                world.agent(kind, Some(tool)).map(drop)
            }
            Self::AgentInMultiplexer(kind) => {
                let tmux = world.sanctuary(world.shell, &programs::TMUX)?;
                let shell = world.spawn(tmux, &programs::BASH, Conduct::default())?;
                world.agent(kind, Some(shell)).map(drop)
            }
            Self::Server(host, launch) => world.server(world.living_host(host)?, launch).map(drop),
            Self::ShellServer(below, recipe) => {
                let above = below.and_then(|host| world.living_host(host));
                let by_rule = above.filter(|a| world.host.truth.agents.contains(a));
                let maker = match above {
                    Some(agent) => world.spawn(agent, &programs::TOOL, Conduct::default())?,
                    None => world.shell,
                };
                let place =
                    world.unowned_server(maker, by_rule.or(above), Launch { recipe, ..Launch::default() });
                place.map(drop)
            }
            Self::RemoteServer(recipe) => {
                let launch = Launch { recipe, socket: true, ..Launch::default() };
                world.unowned_server(world.inetd, None, launch).map(drop)
            }
            Self::Wireless(terminal) => {
                let server = world.fork(world.shell)?;
                if !terminal {
                    world.host.kernel.open(server, 0, End::Null, false);
                }
                for step in Recipe::Console.steps() {
                    if let programs::Step::Exec(program) = step {
                        world.exec(server, program, Conduct::default());
                    }
                }
                Some(())
            }
            Self::Grow(place, growth) => world.grow(world.living_leaf(place)?, growth),
            Self::HostExits(host, code) => {
                let status = code.map_or(ExitStatus::Signal(9), ExitStatus::Code);
                world.exit(world.living_host(host)?, status);
                Some(())
            }
            Self::LauncherDies(n) => {
                let launcher = pick(&world.launchers, n)?;
                world.kill(launcher);
                Some(())
            }
            Self::WrapperDies(place, link) => {
                let place = world.place(place)?;
                let chain = world.host.truth.services[place].chain.clone();
                let wrapper = pick(&chain[..chain.len() - 1], link)?;
                world.kill(wrapper);
                Some(())
            }
            Self::ServerEnds(place) => {
                let leaf = world.living_leaf(place)?;
                world.exit(leaf, ExitStatus::Code(0));
                Some(())
            }
            Self::HangUp(place) => {
                let place = world.place(place)?;
                world.hang_up(place);
                Some(())
            }
            Self::Abandon(place) => {
                let place = world.place(place)?;
                world.let_go(place);
                Some(())
            }
            Self::HandOver(place, to) => {
                let place = world.place(place)?;
                let to = world.living_host(to)?;
                world.hand_over(place, to);
                Some(())
            }
            Self::Workers(host, count) => {
                for _ in 0..=count % 3 {
                    let worker = world.fork(world.living_host(host)?)?;
                    world.workers.push(worker);
                }
                Some(())
            }
            Self::Background(host, twice) => world.background(world.living_host(host)?, twice).map(drop),
            Self::ExecsItself(host) => {
                let host = world.living_host(host)?;
                world.exec_itself(host);
                Some(())
            }
            Self::Job(host, detached) => {
                let tool = world.spawn(world.living_host(host)?, &programs::TOOL, Conduct::default())?;
                let job = world.spawn(tool, &programs::VITE, Conduct::default())?;
                world.strangers.push(job);
                if detached {
                    world.setsid(job);
                    world.exit(tool, ExitStatus::Code(0));
                }
                Some(())
            }
            Self::Sibling(host) => {
                let child = world.host.kernel.fork_sibling(world.living_host(host)?)?;
                world.host.breathe();
                world.exec(child, &programs::VITE, Conduct::default());
                Some(())
            }
            Self::Use(deed) => deed.play(world),
            Self::Storm(count) => {
                world.storm(u32::from(count) % 64);
                Some(())
            }
            Self::Configure(observe) => {
                if world.host.running {
                    world.host.configure(if observe { Mode::Observe } else { Mode::Enforce });
                }
                Some(())
            }
            Self::Elapse(ms) => {
                world.host.elapse(Duration::from_millis(ms.into()));
                Some(())
            }
        }
    }
}

pub fn pick<T: Copy>(from: &[T], n: u8) -> Option<T> {
    from.get(usize::from(n).checked_rem(from.len())?).copied()
}

impl World {
    pub fn living_host(&self, n: u8) -> Option<ProcessId> {
        let living: Vec<ProcessId> =
            self.hosts.iter().copied().filter(|h| self.host.kernel.alive(*h)).collect();
        pick(&living, n)
    }

    pub fn place(&self, n: u8) -> Option<usize> {
        let places: Vec<usize> = (0..self.host.truth.services.len()).collect();
        pick(&places, n)
    }

    pub fn living_leaf(&self, n: u8) -> Option<ProcessId> {
        let leaf = self.host.truth.services[self.place(n)?].leaf();
        self.host.kernel.alive(leaf).then_some(leaf)
    }

    pub fn grow(&mut self, leaf: ProcessId, growth: Growth) -> Option<()> {
        match growth {
            Growth::Browser => self.browser(leaf, true).map(drop),
            Growth::Daemon => self.browser(leaf, false).map(drop),
            Growth::Helper => self.tool(leaf, &programs::GIT).map(drop),
            Growth::Multiplexer => self.sanctuary(leaf, &programs::TMUX).map(drop),
            Growth::Conmon => self.sanctuary(leaf, &programs::CONMON).map(drop),
            Growth::Agent => {
                let tool = self.spawn(leaf, &programs::TOOL, Conduct::default())?;
                let agent = self.agent(AgentKind::Claude, Some(tool))?;
                self.server(agent, Launch::default()).map(drop)
            }
            Growth::Bridged => {
                let place = self.host.truth.services.iter().position(|s| s.leaf() == leaf)?;
                let front = &mut self.host.truth.services[place];
                // Whether what nobody can know the owner of is a server or a program of its own, nobody can know either.
                let strange = front.go_between.is_some() && !self.host.truth.agents.contains(&front.maker);
                if front.over || strange {
                    return None;
                }
                if front.owner.is_none() {
                    // A shell's job that starts a server is a program of its own.
                    front.over = true;
                    return self.server(leaf, Launch::default()).map(drop);
                }
                front.bridged = true;
                let (behind, ..) = self.launch(leaf, Launch::default())?;
                self.host.truth.services[place].behind.extend(behind);
                Some(())
            }
            Growth::Fork => {
                let daemon = self.fork(leaf)?;
                self.setsid(daemon);
                self.host.kernel.get_mut(daemon)?.files.null_streams();
                self.host.kernel.get_mut(daemon)?.files.close_on_exec();
                self.strangers.push(daemon);
                Some(())
            }
        }
    }

    /// An agent replaces itself with a new version of its program.
    pub fn exec_itself(&mut self, host: ProcessId) {
        let image = self.host.kernel.get(host).map(|p| p.image.clone());
        let again = AgentKind::ALL.into_iter().find_map(|kind| {
            let program = kind.programs().last()?;
            (Some(program.image()) == image).then_some(*program)
        });
        if let Some(program) = again {
            self.exec(host, program, Conduct::default());
        }
    }
}
