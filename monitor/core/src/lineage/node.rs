//! A living process in the graph.

use std::sync::Arc;

use crate::model::{Image, ProcessId, Stdio, UnitFacts};

/// An agent, for as long as the engine runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AgentKey(pub u32);

/// A server, for as long as the engine runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServerKey(pub u32);

/// Which exec brought the image that a process runs: whose, and the how manieth. A fork copies it, so two
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
pub enum UnitSight {
    /// Nobody has asked.
    #[default]
    Unasked,
    /// This; nothing outside of units, or where it could not be read.
    Known(Option<Box<UnitFacts>>),
    /// It ended before anybody could ask.
    Gone,
}

impl UnitSight {
    /// What was read, if anything.
    pub fn facts(&self) -> Option<&UnitFacts> {
        match self {
            Self::Known(facts) => facts.as_deref(),
            Self::Unasked | Self::Gone => None,
        }
    }
}

/// Who made a standard stream of a process: it ran this program when the stream became another one than its creator's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Maker {
    /// The process that called fork(2), or the process itself where it redirected its own stream before an exec. It may have
    /// ended since.
    pub process: ProcessId,
    /// Whose exec brought the program that it ran.
    pub origin: Origin,
    /// That program.
    pub image: Arc<Image>,
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
    /// What it runs; absent if only its identity is known.
    pub image: Option<Arc<Image>>,
    /// Whose exec brought that image.
    pub origin: Origin,
    /// Standard input at the last exec, copied at fork.
    pub stdin: Stdio,
    /// Standard output, likewise.
    pub stdout: Stdio,
    /// Standard error, likewise.
    pub stderr: Stdio,
    /// Who made these streams; absent where nobody witnessed it.
    pub makers: [Option<Arc<Maker>>; 3],
    /// The unit it lives in; asked when it turns out to be an agent.
    pub unit: UnitSight,
    /// The nearest agent among itself and its creators, copied at birth.
    pub agent: Option<AgentKey>,
    /// The server it belongs to, copied at birth.
    pub server: Option<ServerKey>,
    /// The server it launched without being part of it (a shell around it).
    pub wraps: Option<ServerKey>,
    /// A multiplexer or an exempt program, or a copy of one: nothing below it is anybody's.
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
            image: None,
            origin: Origin { process: id, execs: 0 },
            stdin: Stdio::Closed,
            stdout: Stdio::Closed,
            stderr: Stdio::Closed,
            makers: [None, None, None],
            unit: UnitSight::Unasked,
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
            creator: Some(self.id),
            witnessed: true,
            uid,
            sid,
            image: self.image.clone(),
            origin: self.origin,
            stdin: self.stdin,
            stdout: self.stdout,
            stderr: self.stderr,
            makers: self.makers.clone(),
            agent: self.agent,
            server: self.server,
            protected: self.protected,
            pending: self.pending,
            ..Self::bare(child)
        }
    }

    /// Its standard streams.
    pub const fn streams(&self) -> [Stdio; 3] {
        [self.stdin, self.stdout, self.stderr]
    }

    /// It runs another program now, on these streams. Where the exec was witnessed and a stream is another one than before, the
    /// program that ran until now made it: a fork copies its creator's streams, and what it does to them before its exec is its
    /// creator's plan.
    pub fn run(&mut self, image: Image, streams: [Stdio; 3], provenance: Provenance) {
        self.provenance = provenance;
        if provenance == Provenance::Witnessed {
            let before = self.streams();
            let maker = self.image.as_ref().map(|image| {
                let copy = self.origin.process != self.id;
                let process = self.creator.filter(|_| copy).unwrap_or(self.id);
                Arc::new(Maker { process, origin: self.origin, image: Arc::clone(image) })
            });
            for ((slot, old), new) in self.makers.iter_mut().zip(before).zip(streams) {
                if old != new {
                    slot.clone_from(&maker);
                }
            }
        } else {
            self.makers = [None, None, None];
        }
        self.origin = Origin { process: self.id, execs: self.origin.execs.saturating_add(1) };
        self.image = Some(Arc::new(image));
        [self.stdin, self.stdout, self.stderr] = streams;
    }
}
