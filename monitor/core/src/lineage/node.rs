//! A node of the graph: one living process.

use std::{
    num::{NonZeroU32, NonZeroU64},
    sync::Arc,
};

use crate::{
    model::{
        AgentHints, BootTime, FirstMessage, Ignored, Image, Killer, Placement, ProcessId, Stdio, UnitFacts,
    },
    recognise::{Role, container_client, is_opener},
};

/// Identifies an agent for as long as the engine runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AgentKey(pub NonZeroU32);

/// Identifies a server for as long as the engine runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServerKey(pub NonZeroU32);

/// Identifies the exec that brought the program of a process: which process called it, and its number. A fork copies
/// the origin, so two processes with equal origins are copies of one program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Origin {
    /// The process that called execve(2).
    pub process: ProcessId,
    /// The number of this exec among those of the process that are known.
    pub execs: u32,
}

/// How a fact about a process is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Provenance {
    /// The kernel's records report it.
    #[default]
    Witnessed,
    /// It was found in /proc. The parent of the process may have adopted it, and need not be its creator.
    Found {
        /// Whether the parent of its launch chain is a service manager or init.
        adopted: bool,
    },
    Recovered,
}

impl Provenance {
    /// Found in /proc, and not known to be adopted.
    pub const FOUND: Self = Self::Found { adopted: false };

    pub const fn is_found(self) -> bool {
        matches!(self, Self::Found { .. })
    }

    pub const fn is_adopted(self) -> bool {
        matches!(self, Self::Found { adopted: true })
    }
}

/// What is known of the unit that a process runs in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ObservedUnit {
    #[default]
    Unasked,
    /// The unit. `None` for a process outside of units, or if the unit could not be read.
    Known(Option<Box<UnitFacts>>),
    /// The process exited before it could be asked for.
    Gone,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    pub image: Image,
    /// The role that the present rules give it.
    pub role: Role,
    /// Whether it does its work itself, and runs no other program on its own standard streams in its place.
    pub runs_itself: bool,
}

impl Program {
    /// The name that events and reports show for it.
    pub fn name(&self) -> String {
        self.role.name().unwrap_or_else(|| self.image.exe.rsplit('/').next().unwrap_or_default()).to_owned()
    }

    pub const fn is_agent(&self) -> bool {
        matches!(self.role, Role::Agent { .. })
    }
}

/// The process that made a standard stream of another process, and the program that the maker ran at that time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Maker {
    /// The process that called fork(2), or the process itself if it redirected its own stream before an exec. It may
    /// have exited since.
    pub process: ProcessId,
    /// The exec that brought the program of the maker.
    pub origin: Origin,
    pub program: Arc<Program>,
}

/// What a process got by its last exec. Its forks share it.
#[derive(Clone, Debug, Default)]
pub struct Exec {
    /// The program it runs. Absent if only the identity of the process is known.
    pub program: Option<Arc<Program>>,
    pub origin: Origin,
    /// Standard input, output and error at that exec.
    pub streams: [Stdio; 3],
    /// The process that made each stream; absent if that was not witnessed.
    pub makers: [Option<Arc<Maker>>; 3],
    pub ignored: Ignored,
    /// Whether it was seen to read the first message to it, though it is a launcher or a shell: it hands its streams on to nobody.
    pub reads_itself: bool,
}

#[derive(Clone, Debug, Default)]
pub struct Node {
    pub id: ProcessId,
    /// The process that created it. Absent if unknown: it existed before the daemon and its parent is not in the
    /// graph. It never changes once witnessed.
    pub creator: Option<ProcessId>,
    /// Whether a fork record reported the creator. Otherwise the creator is inferred from the parent in /proc.
    pub witnessed: bool,
    /// The thread of the creator that created it, unless that was the leading thread. Absent if unknown.
    pub thread: Option<NonZeroU32>,
    /// How it is known what the process runs.
    pub provenance: Provenance,
    /// The order in which processes entered the graph: a creator has a lower number than what it created.
    pub order: u64,
    pub uid: u32,
    pub sid: u32,
    /// What it got by its last exec.
    pub exec: Arc<Exec>,
    /// Whether its executable was replaced or deleted on disk, as last seen.
    pub stale_binary: bool,
    /// The unit it runs in. It is asked for when the process turns out to be an agent.
    pub unit: ObservedUnit,
    /// Its place among the units when the unit was read: [`crate::model::SnapshotProcess::place`].
    pub place: Option<Box<str>>,
    /// The systemd slices above it, by name. Of most processes that are found in /proc neither these nor the unit were read.
    pub slices: Option<Box<[String]>>,
    /// By what a person recognises it, if it is an agent. Read with the unit.
    pub hints: Option<Box<AgentHints>>,
    /// The nearest agent among the process and its creators, copied at birth.
    pub agent: Option<AgentKey>,
    /// The server it belongs to, copied at birth.
    pub server: Option<ServerKey>,
    /// The server it launched without being part of it, for example as the shell around it.
    pub wraps: Option<ServerKey>,
    /// Whether a server that it launched has ended after its owner. What it launches from then on is that one again.
    pub launched: bool,
    /// The process of its server that ran it, or ran what created it, as a tool, and has ended. Copied at birth.
    pub ran_by: Option<ProcessId>,
    /// Whether it was left, or who created it. Copied at birth.
    pub left: Left,
    /// The process that ran a program with SIGHUP ignored, where the one before did not ignore it (`nohup job`): itself, or one below
    /// which it was started, by a number. Copied at birth. Of what a server had before it was recognised it says nothing.
    pub outlives: Option<NonZeroU64>,
    /// Something that it started was dismissed, since it was not known yet that this process matters: whether it has left that since.
    pub forgot: Option<Left>,
    /// Whether it is a multiplexer, an exempt program, or a copy of one. Nothing below it belongs to an agent or a
    /// server.
    pub protected: bool,
    /// How many programs that open a file or an address for a person (`xdg-open`) it has run, or was started below.
    pub openers: u8,
    /// When nobody had looked in time at what was said to it: it may be a server.
    pub unheard: Option<BootTime>,
    /// What the server that it is part of said to it first, on wires of its own. It is a tool of that one, and a server when that
    /// has ended.
    pub heard: Option<Box<FirstMessage>>,
    /// Whether it is not known yet that the process matters.
    pub pending: bool,
    /// The last signal that was sent to it and that it does not handle, so that it ends; and who sent it.
    pub strike: Option<Box<(u8, Killer)>>,
    /// Those with which it is linked below its nearest living creator, and those that are linked below it.
    pub(super) up: Option<u64>,
    pub(super) brood: Option<u64>,
}

/// Whether a process was left by who created it, who has ended since, or is a shell that runs another program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Left {
    #[default]
    No,
    /// By a program of a server, other than a shell, that ended by itself: it has left what is in another session
    /// (`setsid -f job`, a double fork).
    Apart,
    /// By a shell that was killed. What it had in the background (`job & next`) was left, and not what it waited for.
    InBackground,
    /// By a shell that ended by itself.
    Whole,
}

impl Node {
    /// A process of which only the identity is known.
    pub fn bare(id: ProcessId) -> Self {
        let origin = Origin { process: id, execs: 0 };
        let exec = Arc::new(Exec { origin, ..Exec::default() });
        Self { id, exec, pending: true, ..Self::default() }
    }

    /// Where it runs; `None` if that was not read.
    pub fn placement(&self) -> Option<Placement> {
        let slices = self.slices.as_ref()?.to_vec();
        let unit =
            if let ObservedUnit::Known(Some(facts)) = &self.unit { Some(facts.unit.clone()) } else { None };
        Some(Placement { unit, slices, uid: self.uid })
    }

    pub fn fork(&self, child: ProcessId, uid: u32, sid: u32) -> Self {
        Self {
            creator: Some(self.id),
            witnessed: true,
            uid,
            sid,
            stale_binary: self.stale_binary,
            agent: self.agent,
            server: self.server,
            ran_by: self.ran_by,
            left: self.left,
            outlives: self.outlives,
            protected: self.protected,
            openers: self.openers,
            pending: self.pending,
            id: child,
            exec: Arc::clone(&self.exec),
            ..Self::default()
        }
    }

    pub fn image(&self) -> Option<&Image> {
        self.exec.program.as_ref().map(|program| &program.image)
    }

    pub fn role(&self) -> Option<&Role> {
        self.exec.program.as_ref().map(|program| &program.role)
    }

    /// The name that events and reports show for its program.
    pub fn name(&self) -> Option<String> {
        self.exec.program.as_deref().map(Program::name)
    }

    pub fn is_client(&self) -> bool {
        self.image().and_then(container_client).is_some()
    }

    pub fn origin(&self) -> Origin {
        self.exec.origin
    }

    pub fn streams(&self) -> [Stdio; 3] {
        self.exec.streams
    }

    pub fn stdin(&self) -> Stdio {
        self.exec.streams[0]
    }

    pub fn stdout(&self) -> Stdio {
        self.exec.streams[1]
    }

    /// The streams that may carry a protocol.
    pub fn wires(&self) -> [Stdio; 2] {
        [self.stdin(), self.stdout()]
    }

    /// Records that the process runs another program now, on these streams. If the exec was witnessed and a stream
    /// has changed, the maker of the stream is the program that ran until now. The reason: a fork copies the streams
    /// of its creator, and what it does to them before its exec is decided by the program of its creator.
    pub fn run(&mut self, program: Program, streams: [Stdio; 3], provenance: Provenance) {
        self.provenance = provenance;
        (self.launched, self.heard) = (false, None);
        self.openers = self.openers.saturating_add(u8::from(is_opener(&program.image)));
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
        let program = Some(Arc::new(program));
        self.exec = Arc::new(Exec { program, origin, streams, makers, ..Exec::default() });
    }

    pub fn correct(&mut self, change: impl FnOnce(&mut Exec)) {
        change(Arc::make_mut(&mut self.exec));
    }
}
