//! What the shell tells the engine and what the engine asks of the shell.

use serde::{Deserialize, Serialize};

use super::{
    BootTime, CopyFacts, Fact, Knowledge, Notice, Policy, ProcessEvent, ProcessId, ReapRequest, ServerFacts,
    Snapshot, SnapshotProcess, Stdio,
};

/// All that can happen to the engine. A trace is a list of these with their times.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "input", rename_all = "snake_case")]
pub enum Input {
    /// What earlier daemons knew. Handed in once, before anything else.
    Remembered {
        /// From the store.
        knowledge: Knowledge,
    },
    /// The kernel reported a process.
    Process {
        /// The record.
        event: ProcessEvent,
    },
    /// The kernel side could not deliver records since the last word about it.
    Lost {
        /// How many, by kind.
        losses: Losses,
    },
    /// The processes of these users are not all followed: there is no room for more of them. Empty when that is over; handed in
    /// before and after /proc is read for it.
    Crowded {
        /// Real user ids.
        users: Vec<u32>,
    },
    /// /proc was read, at the start or because of [`Effect::Resync`].
    Snapshot {
        /// What was seen.
        snapshot: Snapshot,
    },
    /// The answer to [`Effect::Ask`].
    Answered {
        /// The token of the question.
        token: u64,
        /// What was found.
        answer: Answer,
    },
    /// What became of an [`Effect::Signal`].
    Signalled {
        /// The process meant.
        process: ProcessId,
        /// The signal meant.
        signal: Signal,
        /// Why it was not sent, if it was not.
        error: Option<SignalError>,
    },
    /// A pidfd or /proc says that this process has ended. Handed in only after the records of what it did
    /// before.
    Gone {
        /// The process.
        process: ProcessId,
    },
    /// The daemon is ready: attached, self-tested, reconciled. Sent once, after the first snapshot.
    Ready {
        /// The kernel's release, `uname -r`.
        kernel: String,
        /// The hooks in use.
        hooks: Vec<String>,
    },
    /// The time that the engine waited for has come.
    Timeout,
    /// A person asks to end servers now.
    Reap {
        /// Which.
        request: ReapRequest,
    },
    /// There is another configuration.
    Configured {
        /// What to judge by from now on.
        policy: Policy,
    },
    /// The daemon has been told to stop.
    Stop,
}

/// Records the kernel side could not deliver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Losses {
    /// Forks.
    pub fork: u64,
    /// Execs.
    pub exec: u64,
    /// Exits.
    pub exit: u64,
    /// Setsids.
    pub setsid: u64,
    /// Processes that could not be entered into the membership map.
    pub member: u64,
}

/// What the engine wants done. The shell carries the effects out in order.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Tell the world; `at` is the time of the cause.
    Emit {
        /// When the cause happened.
        at: BootTime,
        /// What to tell.
        notice: Box<Notice>,
    },
    /// Put this on disk before any effect behind it is carried out.
    Persist {
        /// When the cause happened.
        at: BootTime,
        /// What to remember.
        fact: Box<Fact>,
    },
    /// Find something out and answer with [`Input::Answered`] before anything else is handed in.
    Ask {
        /// To be given back with the answer.
        token: u64,
        /// What to find out.
        about: About,
    },
    /// Open a pidfd, take what the kernel side has reported, compare identity and user, send the signal unless anything speaks
    /// against it; report by [`Input::Signalled`], and by [`Input::Gone`] when the process has ended.
    Signal {
        /// To whom.
        process: ProcessId,
        /// Which.
        signal: Signal,
        /// The real user id that it must have; nothing where nobody knows it.
        uid: Option<u32>,
    },
    /// Have the kernel side report this process (and, as [`Tracking`] says, what it forks).
    Track {
        /// The process.
        process: ProcessId,
        /// How.
        tracking: Tracking,
    },
    /// Have the kernel side forget this process.
    Untrack {
        /// The process.
        process: ProcessId,
    },
    /// Drain the ring, read /proc, hand in a [`Input::Snapshot`].
    Resync,
}

/// How the kernel side follows a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Tracking {
    /// It and everything it forks.
    Member,
    /// The same, and its exit wakes the daemon at once.
    Agent,
    /// A service manager: the execs of its children are reported whatever they run.
    Manager,
}

/// A question to the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum About {
    /// The resident memory of these processes: [`Answer::Memory`].
    Memory(Vec<ProcessId>),
    /// What this process is: [`Answer::Process`].
    Process(ProcessId),
    /// All that a verdict on a server needs: [`Answer::Server`].
    Server(Subject),
    /// What forked copies of an agent do: [`Answer::Copies`].
    Copies {
        /// The copies.
        copies: Vec<ProcessId>,
        /// Who a connection of theirs may lead to without being one of their own: the agent's servers.
        among: Vec<ProcessId>,
    },
}

/// The server that a look is about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Subject {
    /// Its launch chain, the server proper and what descends from it.
    pub processes: Vec<ProcessId>,
    /// Its standard input when it was born: the wire on which it is talked to.
    pub stdin: Stdio,
    /// Its standard output when it was born: the wire on which it answers.
    pub stdout: Stdio,
    /// Forked copies of its dead owner, which may hold the wires by accident.
    pub copies: Vec<ProcessId>,
    /// Other servers' processes of that owner, their launch chains included; without a known owner, those of other servers that
    /// have none either.
    pub siblings: Vec<ProcessId>,
    /// The user in whose turn it is looked at, where the answer may come later; absent where it is wanted at once.
    pub turn: Option<u32>,
}

/// An answer of the host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "about", rename_all = "snake_case")]
pub enum Answer {
    /// Memory of those that are still there.
    Memory {
        /// One entry for each.
        processes: Vec<Memory>,
    },
    /// A process, or nothing if it is gone.
    Process {
        /// What /proc says.
        process: Option<SnapshotProcess>,
    },
    /// The facts about a server.
    Server {
        /// What was found.
        facts: ServerFacts,
    },
    /// What copies of an agent do: those that are still there.
    Copies {
        /// What was found.
        copies: Vec<CopyFacts>,
    },
}

/// Memory of one process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Memory {
    /// The process.
    pub process: ProcessId,
    /// Resident set size in bytes (`/proc/PID/statm`, field 2).
    pub rss_bytes: u64,
}

/// The two signals orphand sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Signal {
    /// SIGTERM: please end.
    Term,
    /// SIGKILL: end.
    Kill,
}

/// Why a signal was not sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "why", rename_all = "snake_case")]
pub enum SignalError {
    /// The process had ended, or its number belongs to another one now.
    Gone,
    /// The system refused; EPERM for instance.
    System {
        /// errno(3).
        errno: i32,
        /// Which call, and what it said.
        message: String,
    },
    /// There is no room for one more descriptor now, or no memory: nothing is wrong with the process, and later will do.
    NoRoom {
        /// Which call, and what it said.
        message: String,
    },
    /// It may not be the process meant any more, or not as it was judged: it is to be looked at again.
    Unsure {
        /// What speaks against it.
        message: String,
    },
}
