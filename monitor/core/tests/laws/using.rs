//! What others do with a server in random stories: descriptors go from hand to hand, workers work, clients come and go.

use orphand_core::model::{ExitStatus, ProcessId};

use crate::{
    files::End,
    histories::pick,
    kernel::Conduct,
    launch::Launch,
    programs::{self, Recipe},
    world::{ROOM, World},
};

/// Something that somebody does with a server, its wires or its owner's copies.
#[derive(Clone, Copy, Debug)]
pub enum Use {
    /// Whoever holds the other end of a wire gives a duplicate to somebody else.
    Pass {
        place: u8,
        stdin: bool,
        to: u8,
    },
    /// The same, into a socket that nobody reads yet.
    Send {
        place: u8,
        stdin: bool,
    },
    /// What was sent first is received, or lost with its socket.
    Receive {
        to: Option<u8>,
    },
    /// Somebody other than the owner closes what he has of a wire.
    LetGo {
        place: u8,
        stdin: bool,
    },
    /// The server closes its own end.
    ClosesOwn {
        place: u8,
        stdin: bool,
    },
    WorkerWorks(u8),
    /// A worker goes into a session of its own.
    WorkerLeaves {
        worker: u8,
        recorded: bool,
    },
    /// A host is killed, and a worker of it that is left does something a moment later, or nothing.
    Survivor {
        host: u8,
        deed: u8,
    },
    /// A worker starts a server of its own.
    WorkerHosts(u8),
    WorkerListens(u8),
    WorkerEnds(u8),
    /// Somebody looks at the server with a debugger.
    Traced(u8),
    /// Somebody connects to a socket of the server.
    Client(u8),
    /// One of those who pass by ends: a client, a debugger, a job.
    StrangerEnds(u8),
    /// The server's main process becomes another program.
    Becomes {
        place: u8,
        program: u8,
    },
    /// `cat x | server | cat` in a shell, below an agent or at the prompt.
    Pipeline {
        below: Option<u8>,
        recipe: Recipe,
    },
    /// A helper of a server goes into a session of its own.
    HelperLeaves {
        place: u8,
        recorded: bool,
    },
}

impl Use {
    pub fn play(self, world: &mut World) -> Option<()> {
        let done = self.happens(world);
        world.host.breathe();
        done
    }

    #[expect(clippy::too_many_lines, reason = "one arm a deed")]
    fn happens(self, world: &mut World) -> Option<()> {
        match self {
            Self::Pass { place, stdin, to } => {
                let (place, end) = world.other_end(place, stdin)?;
                let to = world.somebody(to)?;
                if world.host.kernel.pass(end, to) {
                    world.host.truth.services[place].patrons.push(to);
                }
            }
            Self::Send { place, stdin } => {
                let (_, end) = world.other_end(place, stdin)?;
                world.host.kernel.send(end);
            }
            Self::Receive { to } => {
                let to = to.and_then(|to| world.somebody(to));
                let end = world.host.kernel.receive(to)?;
                let kernel = &world.host.kernel;
                let is_its = |wires: &[End; 2]| wires.iter().any(|own| kernel.opposite(*own) == Some(end));
                for service in world.host.truth.services.iter_mut().filter(|s| is_its(&s.wires)) {
                    service.patrons.extend(to);
                }
            }
            Self::LetGo { place, stdin } => {
                let (place, end) = world.other_end(place, stdin)?;
                let service = &world.host.truth.services[place];
                let patron = service.patrons.iter().copied().find(|p| Some(*p) != service.owner)?;
                world.host.kernel.close(patron, end);
            }
            Self::ClosesOwn { place, stdin } => {
                let leaf = world.living_leaf(place)?;
                let place = world.place(place)?;
                let end = world.host.truth.services[place].wires[usize::from(!stdin)];
                world.host.truth.services[place].mute = true;
                world.host.kernel.close(leaf, end);
            }
            Self::WorkerWorks(worker) => {
                let worker = world.worker(worker)?;
                world.host.kernel.works(worker);
            }
            Self::WorkerLeaves { worker, recorded } => {
                let worker = world.worker(worker)?;
                world.leaves_session(worker, recorded);
            }
            Self::Survivor { host, deed } => {
                let host = world.living_host(host)?;
                let worker = world.fork(host)?;
                world.workers.push(worker);
                world.kill(host);
                world.elapse(1);
                match deed % 4 {
                    0 => world.host.kernel.works(worker),
                    1 => world.host.kernel.get_mut(worker)?.doings.listens = true,
                    2 => world.leaves_session(worker, false),
                    _ => {}
                }
            }
            Self::WorkerHosts(worker) => {
                let worker = world.worker(worker)?;
                let place = world.server(worker, Launch::default())?;
                world.host.truth.services[place].of_worker = true;
            }
            Self::WorkerListens(worker) => {
                let worker = world.worker(worker)?;
                world.host.kernel.works(worker);
                world.host.kernel.get_mut(worker)?.doings.listens = true;
            }
            Self::WorkerEnds(worker) => {
                let worker = world.worker(worker)?;
                world.kill(worker);
            }
            Self::Traced(place) => {
                let leaf = world.living_leaf(place)?;
                let debugger = world.stranger(&programs::GDB)?;
                world.host.kernel.trace(leaf, debugger);
            }
            Self::Client(place) => {
                let leaf = world.living_leaf(place)?;
                let client = world.stranger(&programs::CURL)?;
                world.host.kernel.connect(leaf, client);
            }
            Self::StrangerEnds(stranger) => {
                let stranger = pick(&world.strangers, stranger)?;
                world.exit(stranger, ExitStatus::Code(0));
            }
            Self::Becomes { place, program } => {
                let leaf = world.living_leaf(place)?;
                let place = world.place(place)?;
                if world.host.truth.services[place].bridged {
                    return None;
                }
                let (program, truth) = match program % 3 {
                    0 => (&programs::VIM, &mut world.host.truth.converts),
                    1 => (&programs::TMUX, &mut world.host.truth.sanctuaries),
                    _ => (&programs::CLAUDE, &mut world.host.truth.agents),
                };
                truth.insert(leaf);
                world.host.truth.converts.insert(leaf);
                world.host.truth.services[place].over = true;
                if *program == programs::CLAUDE {
                    world.hosts.push(leaf);
                }
                world.exec(leaf, program, Conduct::default());
            }
            Self::Pipeline { below, recipe } => {
                let above = below.and_then(|host| world.living_host(host));
                world.pipeline(above, recipe)?;
            }
            Self::HelperLeaves { place, recorded } => {
                let leaf = world.living_leaf(place)?;
                let helper = world.spawn(leaf, &programs::GIT, Conduct::default())?;
                world.strangers.push(helper);
                world.leaves_session(helper, recorded);
            }
        }
        Some(())
    }
}

impl World {
    /// The other end of one of a server's wires.
    fn other_end(&self, place: u8, stdin: bool) -> Option<(usize, End)> {
        let place = self.place(place)?;
        let own = self.host.truth.services[place].wires[usize::from(!stdin)];
        Some((place, self.host.kernel.opposite(own)?))
    }

    fn worker(&self, n: u8) -> Option<ProcessId> {
        let living: Vec<ProcessId> = self.workers.iter().copied().filter(|w| self.lives(*w)).collect();
        pick(&living, n)
    }

    /// Anybody alive who may be given a descriptor: hosts, workers, servers, shells, those who pass by.
    fn somebody(&self, n: u8) -> Option<ProcessId> {
        let servers = self.host.truth.services.iter().map(crate::truth::Service::leaf);
        let all = [&self.hosts, &self.workers, &self.strangers].into_iter().flatten().copied();
        let living: Vec<ProcessId> =
            all.chain(servers).chain([self.shell]).filter(|p| self.lives(*p)).collect();
        pick(&living, n)
    }

    fn lives(&self, id: ProcessId) -> bool {
        self.host.kernel.alive(id)
    }

    fn stranger(&mut self, program: &programs::Program) -> Option<ProcessId> {
        let stranger = self.spawn(self.shell, program, Conduct::default())?;
        self.strangers.push(stranger);
        Some(stranger)
    }

    fn leaves_session(&mut self, id: ProcessId, recorded: bool) {
        if recorded {
            self.host.kernel.setsid(id);
        } else {
            self.host.kernel.leave_session(id);
        }
    }

    /// A shell feeds a server and somebody reads what it says. The shell closes what it made.
    fn pipeline(&mut self, above: Option<ProcessId>, recipe: Recipe) -> Option<usize> {
        if self.host.kernel.room() < ROOM {
            return None;
        }
        let by_rule = above.filter(|a| self.host.truth.agents.contains(a));
        let shell = self.spawn(above.unwrap_or(self.shell), &programs::TOOL, Conduct::default())?;
        self.strangers.push(shell);
        let place = self.unowned_server(shell, by_rule.or(above), Launch { recipe, ..Launch::default() })?;
        let wires = self.host.truth.services[place].wires;
        for (number, own) in [(1, wires[0]), (0, wires[1])] {
            let end = self.host.kernel.opposite(own)?;
            let cat = self.fork(shell)?;
            self.host.kernel.get_mut(cat)?.files.null_streams();
            self.host.kernel.open(cat, number, end, false);
            self.exec(cat, &programs::CAT, Conduct::default());
            self.strangers.push(cat);
            self.host.kernel.close(shell, end);
        }
        Some(place)
    }
}
