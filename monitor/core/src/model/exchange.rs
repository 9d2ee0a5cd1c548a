//! Inputs of the engine, and the effects it asks the daemon to carry out.

use std::{num::NonZeroU32, time::Duration};

use serde::{Deserialize, Serialize};

use super::{
    BootTime, Branch, ContainerFacts, ContainerQuery, CopyFacts, Fact, FirstMessage, FoundHints, Knowledge,
    Losses, Memory, Notice, Policy, ProcessEvent, ProcessId, ReapRequest, ReleaseRequest, ServerFacts,
    SessionSubject, SessionsSeen, Share, Snapshot, SnapshotProcess, Stdio, Whereabouts, Work,
    policy::nanoseconds, scene::SceneQuestion,
};

/// Everything that can happen to the engine. A trace is a list of inputs with their times.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "input", rename_all = "snake_case")]
pub enum Input {
    /// What earlier daemons stored. The first input, handed in once.
    Remembered {
        knowledge: Knowledge,
    },
    Process {
        event: ProcessEvent,
    },
    /// The kernel side could not deliver records since the previous input of this kind.
    Lost {
        losses: Losses,
    },
    /// Not all processes of these users are followed, for want of room. Empty when that is over. Handed in before and
    /// after the read of /proc that follows.
    Crowded {
        /// Real user ids, one of each [`Share`].
        users: Vec<u32>,
    },
    /// /proc was read, at the start or because of [`Effect::Resync`].
    Snapshot {
        snapshot: Snapshot,
    },
    Answered {
        token: u64,
        answer: Answer,
    },
    Signalled {
        process: ProcessId,
        signal: Signal,
        /// Why it was not sent; absent if it was sent.
        error: Option<SignalError>,
    },
    /// A pidfd or /proc shows that this process has exited: handed in after the records of what it did before.
    Gone {
        process: ProcessId,
    },
    /// The daemon is ready. Handed in once, after the first snapshot.
    Ready {
        kernel: String,
        hooks: Vec<String>,
    },
    Timeout,
    /// The host was asleep until now (suspended, or a virtual machine that was stopped): nobody could do anything.
    Woke {
        /// For how long. Recordings of earlier versions do not tell.
        #[serde(rename = "slept_ns", with = "nanoseconds", default)]
        slept: Duration,
    },
    Reap {
        request: ReapRequest,
        /// The name of who asks.
        #[serde(default)]
        by: String,
    },
    Release {
        request: ReleaseRequest,
        /// The real user id of who says so.
        user: u32,
    },
    Configured {
        policy: Policy,
    },
    Sessions {
        seen: SessionsSeen,
    },
    Stop,
}

/// What the engine wants done. The daemon carries the effects out in order.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    Emit {
        at: BootTime,
        notice: Box<Notice>,
    },
    /// Store a fact before any later effect is carried out.
    Persist {
        at: BootTime,
        fact: Box<Fact>,
    },
    /// Ask the host a question. The answer is handed in as [`Input::Answered`] before any other input.
    Ask {
        token: u64,
        about: About,
        /// Whose turn it uses. Without one it is answered at once, and everybody waits for that.
        turn: Option<(Share, Haste)>,
    },
    /// Send a signal: open a pidfd, hand in what the kernel side has reported, compare identity and user, send unless
    /// something speaks against it. Answered by [`Input::Signalled`], and [`Input::Gone`] when the process has exited.
    Signal {
        process: ProcessId,
        signal: Signal,
        /// The real user id that the process must have; absent if it is not known.
        uid: Option<u32>,
    },
    /// Make the kernel side report this process, and what it forks.
    Track {
        process: ProcessId,
        tracking: Tracking,
    },
    Untrack {
        process: ProcessId,
    },
    /// Report the end of this thread as [`ProcessEvent::ThreadExit`]; at once, if it has ended already. It is the
    /// thread that had this number when it started a process.
    FollowThread {
        process: ProcessId,
        thread: NonZeroU32,
        /// When the started process began, in clock ticks since boot: the thread began no later.
        until: u64,
    },
    /// Drain the ring, read /proc, and hand in an [`Input::Snapshot`].
    Resync,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Tracking {
    /// The process and all that it forks.
    Member,
    /// As `Member`; its exit wakes the daemon.
    Agent,
    /// A service manager: every exec of its children is reported, whatever they run.
    Manager,
}

/// Whether a question may wait for inspections of the same user. The answers of all of these may come later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Haste {
    /// It waits for its turn among them.
    InTurn,
    /// What it is about is gone in milliseconds.
    AtOnce,
    /// There may be many of them, which read files, and nothing else waits for them.
    AtLeisure,
    /// Nothing depends on the answer.
    Never,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum About {
    /// The resident memory of these processes: [`Answer::Memory`].
    Memory(Vec<ProcessId>),
    /// Memory, place and ports of the branches that an ended agent left, each with its head first:
    /// [`Answer::Leftovers`].
    Leftovers(Vec<Vec<ProcessId>>),
    Process(ProcessId),
    Server(Subject),
    /// What these forked copies of an agent have done: [`Answer::Copies`].
    Copies(Vec<ProcessId>),
    Session(Box<SessionSubject>),
    /// Has a container stopped by its engine, if it is looked at once more and nothing has changed:
    /// [`Answer::Stopped`].
    Stop {
        seen: Box<ContainerFacts>,
        /// The time from SIGTERM to SIGKILL, in seconds.
        seconds: u64,
    },
    /// Which container a client works for: [`Answer::Container`]. Needed for reports only.
    Container(Box<ContainerQuery>),
    /// Which of these servers have a standard input that is hung up: [`Answer::HungUp`].
    HungUp(Vec<OwnEnd>),
    /// What the first message on the standard input of the first of these processes says: [`Answer::FirstMessage`]. Where that
    /// cannot be asked (it has put its input away), the next one that has the same input is.
    FirstMessage {
        processes: Vec<ProcessId>,
        stdin: Stdio,
    },
    /// Whether the settings of an agent declare a process as an MCP server: [`Answer::FirstMessage`], with
    /// [`FirstMessage::Declared`] or [`FirstMessage::Nothing`].
    Declared {
        process: ProcessId,
        /// The command lines that it had on its wires, this one included: a shell that a file declares may run another
        /// program in place.
        lines: Vec<Vec<String>>,
    },
    /// By what a person recognises a server: [`Answer::Hints`].
    Hints {
        /// The head of its launch chain.
        server: ProcessId,
        owner: Option<ProcessId>,
        /// The command lines of its launch chain as they were started: its settings name one of them.
        lines: Vec<Vec<String>>,
    },
    /// Where this process works and how it was started: [`Answer::Whereabouts`].
    Whereabouts(ProcessId),
    Work(Vec<ProcessId>),
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Subject {
    /// Its launch chain, its main process and what descends from that.
    pub processes: Vec<ProcessId>,
    /// Who is judged with it: the question that [`ServerFacts::scene`] answers.
    pub question: SceneQuestion,
    pub container: Option<Box<ContainerQuery>>,
    /// Whether it matters what its processes have done so far: [`ServerFacts::work`].
    pub work: bool,
    /// Whether it matters what waits in its standard input: [`ServerFacts::unread_input`].
    pub input: bool,
    /// Whether it matters that its unit is being stopped: [`ServerFacts::stopping`].
    pub unit: bool,
}

/// A process and the pipe or socket that is its standard input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnEnd {
    pub process: ProcessId,
    pub stdin: Stdio,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "about", rename_all = "snake_case")]
pub enum Answer {
    Memory {
        processes: Vec<Memory>,
    },
    Leftovers {
        branches: Vec<Branch>,
    },
    Process {
        /// Absent if it is gone.
        process: Option<SnapshotProcess>,
    },
    Server {
        facts: ServerFacts,
    },
    /// Only those that still exist.
    Copies {
        copies: Vec<CopyFacts>,
    },
    Session {
        /// Absent if the server has none, or it could not be read.
        id: Option<String>,
    },
    Stopped {
        /// Why it may still run; absent if it has ended.
        error: Option<String>,
        /// Whether its engine was not asked to stop it, because something changed since it was inspected.
        #[serde(skip_serializing_if = "std::ops::Not::not", default)]
        changed: bool,
    },
    Container {
        /// The one that fits, without what an inspection would find of its processes; absent if there is none, or more
        /// than one, or if its engine did not tell.
        found: Option<Box<ContainerFacts>>,
    },
    /// The processes that still have their end of a wire whose other end is closed for good.
    HungUp {
        processes: Vec<ProcessId>,
    },
    FirstMessage {
        message: FirstMessage,
    },
    /// By what a person recognises a server; absent if it is gone.
    Hints {
        found: Option<Box<FoundHints>>,
    },
    /// Where a process works; absent if it is gone or could not be read.
    Whereabouts {
        place: Option<Whereabouts>,
    },
    /// What processes have done; only those that still exist and can be read.
    Work {
        processes: Vec<Work>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Signal {
    /// SIGTERM: the process may end in its own way.
    Term,
    /// SIGKILL: the kernel ends the process.
    Kill,
}

impl Signal {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Term => "SIGTERM",
            Self::Kill => "SIGKILL",
        }
    }

    /// As in events: `TERM`.
    pub fn word(self) -> &'static str {
        self.name().trim_start_matches("SIG")
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "why", rename_all = "snake_case")]
pub enum SignalError {
    /// The process has exited, or its number belongs to another process now.
    Gone,
    /// The system call failed, for instance with EPERM.
    System { errno: i32, message: String },
    /// No file descriptor or memory is free at present. The process is as it was judged, and a later attempt
    /// may succeed.
    NoRoom { message: String },
    /// The process may no longer be the one that was meant, or not be as it was judged. It must be inspected
    /// again.
    Unsure {
        /// What speaks against it.
        message: String,
    },
}
