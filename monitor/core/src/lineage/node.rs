//! A living process in the graph.

use std::{num::NonZeroU32, sync::Arc};

use crate::{
    model::{Image, ProcessId, Stdio, UnitFacts},
    recognise::Role,
};

/// An agent, for as long as the engine runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AgentKey(pub NonZeroU32);

/// A server, for as long as the engine runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServerKey(pub NonZeroU32);

/// Which exec brought the program that a process runs: of which process, and its number. A fork copies it, so two
/// processes with equal origins are copies of one program in one state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Origin {
    /// The process that called exec.
    pub process: ProcessId,
    /// The number of its execs we know of.
    pub execs: u32,
}

/// How something is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Provenance {
    /// The kernel's records say so.
    #[default]
    Witnessed,
    /// It was found in /proc: the parent of a process may not be its creator, but have adopted it.
    Found {
        /// Whether its launch chain hangs below a service manager, or init, without anything between.
        adopted: bool,
    },
    /// An earlier daemon knew it.
    Recovered,
}

impl Provenance {
    /// Found in /proc; nobody is known to have adopted it.
    pub const FOUND: Self = Self::Found { adopted: false };

    /// Whether it was found in /proc.
    pub const fn is_found(self) -> bool {
        matches!(self, Self::Found { .. })
    }

    /// Whether it was found adopted.
    pub const fn is_adopted(self) -> bool {
        matches!(self, Self::Found { adopted: true })
    }
}

/// What is known of the unit that a process lives in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ObservedUnit {
    /// It was not asked for.
    #[default]
    Unasked,
    /// This; nothing outside of units, or where it could not be read.
    Known(Option<Box<UnitFacts>>),
    /// The process exited before it could be asked for.
    Gone,
}

impl ObservedUnit {
    /// What was read, if anything.
    pub fn facts(&self) -> Option<&UnitFacts> {
        match self {
            Self::Known(facts) => facts.as_deref(),
            Self::Unasked | Self::Gone => None,
        }
    }
}

/// A program, and what the rules say of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// What was executed.
    pub image: Image,
    /// What it is to orphand by the present rules.
    pub role: Role,
}

impl Program {
    /// The name shown for it.
    pub fn name(&self) -> String {
        self.role.name().unwrap_or_else(|| self.image.exe.rsplit('/').next().unwrap_or_default()).to_owned()
    }

    /// Whether a rule knows it as an agent.
    pub const fn is_agent(&self) -> bool {
        matches!(self.role, Role::Agent { .. })
    }
}

/// The process that made a standard stream of another one, and the program that it ran when the stream became another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Maker {
    /// The process that called fork(2), or the process itself where it redirected its own stream before an exec. It may have
    /// ended since.
    pub process: ProcessId,
    /// Whose exec brought the program that it ran.
    pub origin: Origin,
    /// That program.
    pub program: Arc<Program>,
}

/// What a process got by its last exec. A fork shares it.
#[derive(Clone, Debug)]
pub struct Exec {
    /// What it runs; absent if only its identity is known.
    pub program: Option<Arc<Program>>,
    /// Whose exec brought that program.
    pub origin: Origin,
    /// Standard input, output and error.
    pub streams: [Stdio; 3],
    /// The process that made each stream; absent if that was not witnessed.
    pub makers: [Option<Arc<Maker>>; 3],
}

/// A living process.
#[derive(Clone, Debug)]
pub struct Node {
    /// Its identity.
    pub id: ProcessId,
    /// Who created it: history. Absent if nobody knows (it was there before us and its parent is not in the
    /// graph). Never changes once witnessed.
    pub creator: Option<ProcessId>,
    /// Whether the creator is known from a fork record, not inferred from a parent.
    pub witnessed: bool,
    /// How it is known what it runs.
    pub provenance: Provenance,
    /// The order in which processes entered the graph: creators before what they created.
    pub order: u64,
    /// Real user id.
    pub uid: u32,
    /// Session id.
    pub sid: u32,
    /// What it got by its last exec.
    pub exec: Arc<Exec>,
    /// The unit it lives in; asked when it turns out to be an agent.
    pub unit: ObservedUnit,
    /// The nearest agent among itself and its creators, copied at birth.
    pub agent: Option<AgentKey>,
    /// The server it belongs to, copied at birth.
    pub server: Option<ServerKey>,
    /// The server it launched without being part of it (a shell around it).
    pub wraps: Option<ServerKey>,
    /// A multiplexer or an exempt program, or a copy of one: nothing below it belongs to an agent or a server.
    pub protected: bool,
    /// Not known to matter yet.
    pub pending: bool,
    pub(super) up: Option<u32>,
    pub(super) first_child: Option<u32>,
    pub(super) next: Option<u32>,
    pub(super) prev: Option<u32>,
}

impl Node {
    /// A process of which only the identity is known.
    pub fn bare(id: ProcessId) -> Self {
        Self {
            id,
            creator: None,
            witnessed: false,
            provenance: Provenance::Witnessed,
            order: 0,
            uid: 0,
            sid: 0,
            exec: Arc::new(Exec {
                program: None,
                origin: Origin { process: id, execs: 0 },
                streams: [Stdio::Closed; 3],
                makers: [None, None, None],
            }),
            unit: ObservedUnit::Unasked,
            agent: None,
            server: None,
            wraps: None,
            protected: false,
            pending: true,
            up: None,
            first_child: None,
            next: None,
            prev: None,
        }
    }

    /// What a fork of this process starts as.
    pub fn fork(&self, child: ProcessId, uid: u32, sid: u32) -> Self {
        Self {
            id: child,
            creator: Some(self.id),
            witnessed: true,
            provenance: Provenance::Witnessed,
            order: 0,
            uid,
            sid,
            exec: Arc::clone(&self.exec),
            unit: ObservedUnit::Unasked,
            agent: self.agent,
            server: self.server,
            wraps: None,
            protected: self.protected,
            pending: self.pending,
            up: None,
            first_child: None,
            next: None,
            prev: None,
        }
    }

    /// What it runs, if that is known.
    pub fn image(&self) -> Option<&Image> {
        self.exec.program.as_ref().map(|program| &program.image)
    }

    /// What that is to orphand.
    pub fn role(&self) -> Option<&Role> {
        self.exec.program.as_ref().map(|program| &program.role)
    }

    /// Whose exec brought what it runs.
    pub fn origin(&self) -> Origin {
        self.exec.origin
    }

    /// Its standard streams at its last exec.
    pub fn streams(&self) -> [Stdio; 3] {
        self.exec.streams
    }

    /// Its standard input at its last exec.
    pub fn stdin(&self) -> Stdio {
        self.exec.streams[0]
    }

    /// Its standard output at its last exec.
    pub fn stdout(&self) -> Stdio {
        self.exec.streams[1]
    }

    /// It runs another program now, on these streams. Where the exec was witnessed and a stream is another one than before, the
    /// program that ran until now made it: a fork copies its creator's streams, and what it does to them before its exec is its
    /// creator's plan.
    pub fn run(&mut self, program: Program, streams: [Stdio; 3], provenance: Provenance) {
        self.provenance = provenance;
        let before = &self.exec;
        let origin = Origin { process: self.id, execs: before.origin.execs.saturating_add(1) };
        let mut makers = [None, None, None];
        if provenance == Provenance::Witnessed {
            makers.clone_from(&before.makers);
            let maker = before.program.as_ref().map(|program| {
                let copy = before.origin.process != self.id;
                let process = self.creator.filter(|_| copy).unwrap_or(self.id);
                Arc::new(Maker { process, origin: before.origin, program: Arc::clone(program) })
            });
            for ((slot, old), new) in makers.iter_mut().zip(before.streams).zip(streams) {
                if old != new {
                    slot.clone_from(&maker);
                }
            }
        }
        self.exec = Arc::new(Exec { program: Some(Arc::new(program)), origin, streams, makers });
    }

    /// What is known of its last exec changes.
    pub fn correct(&mut self, change: impl FnOnce(&mut Exec)) {
        change(Arc::make_mut(&mut self.exec));
    }
}
