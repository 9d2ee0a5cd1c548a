//! What the host says: one read of /proc, an inspection of a server and of who can use it, what single processes do.

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use super::{
    AgentHints, BootTime, Container, ContainerFacts, Image, ProcessId, Stdio, UnitFacts, scene::Scene,
    text::base,
};

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerFacts {
    /// How old it is: when the reading of it began, later by the processor time that it took. Absent in recordings of earlier
    /// versions, and where no answer waits.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub began: Option<BootTime>,
    /// Its processes, and who is joined with them: the raw rows.
    pub scene: Scene,
    /// What its processes have done so far, if that was asked for: those that could be read.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub work: Vec<Work>,
    /// What waits to be read in its standard input: the first of it, where that was asked for, and [`FirstMessage::Unknown`]
    /// where it was not; absent if it could not be found out whether anything does.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub unread_input: Option<FirstMessage>,
    /// Whether its unit is being stopped, by its manager's word, if that was asked for.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub stopping: bool,
    /// The container that its client works for; absent if there is none, or if its engine did not tell exactly
    /// one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub container: Option<Box<ContainerFacts>>,
    /// The container that one of its processes is in, by the name of the control group; absent outside of containers, and
    /// in the container of orphand itself.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub enclosing: Option<Box<Container>>,
}

/// What a forked copy of an agent has done when the agent ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CopyFacts {
    pub process: ProcessId,
    pub sid: u32,
    /// What it has done so far; absent if that could not be read.
    pub work: Option<Work>,
}

/// What one process uses (`/proc/PID/stat`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Memory {
    pub process: ProcessId,
    pub rss_bytes: u64,
    #[serde(default)]
    pub cpu_ms: u64,
}

/// What one pass over /proc saw. Processes that started at or after `horizon` may be missing or incomplete.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot {
    /// The time before the pass began, and strictly after the ring was last drained.
    pub horizon: BootTime,
    /// The living processes in no particular order, without zombies and kernel threads.
    pub processes: Vec<SnapshotProcess>,
    /// The ids of processes whose /proc files did not answer. They exist, and nothing else is known of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unread: Vec<u32>,
}

impl Snapshot {
    /// Tells whether a process had ended. Of one that was born at or after the horizon, or that could not be read, nothing is
    /// concluded.
    pub fn gone(&self) -> impl Fn(&ProcessId) -> bool {
        let horizon = self.horizon.ticks();
        let seen: FxHashMap<u32, u64> = self.processes.iter().map(|p| (p.id.pid, p.id.start)).collect();
        move |id| id.start < horizon && seen.get(&id.pid) != Some(&id.start) && !self.unread.contains(&id.pid)
    }
}

/// One process as /proc describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnapshotProcess {
    pub id: ProcessId,
    /// Its present parent (creator or adopter); absent for pid 1 and if the parent was not seen.
    pub parent: Option<ProcessId>,
    pub uid: u32,
    pub sid: u32,
    /// What it runs now, as /proc shows it.
    pub image: Image,
    /// Whether `argv` is no list of arguments, but a title that the program wrote over it (setproctitle(3)).
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub titled: bool,
    /// Standard input, output and error now. `stdio[0]` is the wire even if the program moved it to another
    /// descriptor, as Python's mcp 2 does.
    pub stdio: [Stdio; 3],
    /// The unit it belongs to; absent outside of units and in a full pass over /proc. An answer to
    /// [`super::About::Process`] always says it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub unit: Option<UnitFacts>,
    /// Its place among the units: the innermost service or scope of each hierarchy of control groups, as text to be
    /// compared; empty outside of units. Read with `unit`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub place: Option<String>,
    /// The systemd slices above it, by name. Read with `unit`.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub slices: Vec<String>,
    /// By what a person recognises it, if it is an agent. Read with `unit`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub hints: Option<Box<AgentHints>>,
    /// Whether its executable was replaced or deleted on disk since it started.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub stale_binary: bool,
}

impl SnapshotProcess {
    /// Whether /proc shows no more than a title of a process that was seen to run this: it still runs it. A title that was
    /// cut at the end of the arguments looks like one argument. /proc names the file that a link led to, which is called
    /// like it, as a rule (`python3`, `python3.11`).
    pub fn is_title_of(&self, witnessed: &Image) -> bool {
        let (now, then) = (base(&self.image.exe), base(&witnessed.exe));
        let is_one_word = self.image.argv.len() == 1 && witnessed.argv.len() > 1;
        (self.titled || is_one_word) && !then.is_empty() && (now.starts_with(then) || then.starts_with(now))
    }
}

/// What a process has done since it started, what it read and what it wrote apart. If two accounts of it are equal, it
/// did nothing in between.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Work {
    pub process: ProcessId,
    /// CPU time of all its threads in nanoseconds (`/proc/PID/task/TID/schedstat`, field 1).
    pub cpu_ns: u64,
    /// Bytes read (`rchar` of `/proc/PID/io`).
    pub read_bytes: u64,
    /// Bytes written (`wchar` of `/proc/PID/io`).
    pub written_bytes: u64,
    /// How often it wrote (`syscw`).
    pub writes: u64,
}

/// What tells apart two processes with the same arguments. The values are hashes with a key that no other daemon
/// has: they can be compared, and they say nothing about paths and secrets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Whereabouts {
    /// The working directory, with the mount namespace in which it has that path.
    pub directory: u64,
    /// The command line with its secrets. Absent if it is not what the process was started with: a title was
    /// written over it.
    pub command: Option<u64>,
    /// The environment that the process was started with, its user and its network namespace. Absent if it could not be
    /// read to its end, or a title was written over the command line, and perhaps over what follows it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub environment: Option<u64>,
}

/// What the first message on a standard input says. The message is read without being taken, and nothing of it is
/// kept but this.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "says", rename_all = "snake_case")]
pub enum FirstMessage {
    /// Nothing is there, or only the beginning of a message. The process may have read the message already.
    #[default]
    Nothing,
    /// Nothing is there, and nobody can write any more.
    Over,
    Mcp {
        /// The name in `clientInfo`, bounded and without control characters; absent if there is none.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        client: Option<String>,
    },
    /// None was seen, but the settings of an agent declare the process as a server of that protocol.
    Declared {
        /// The name that the settings give it, bounded and without control characters.
        name: String,
    },
    /// A JSON object that is no message of JSON-RPC: agents hand such to a program that they call at an event of theirs.
    Hook,
    /// Anything else, such as the header of a language server or a debug adapter.
    Other,
    /// It cannot be read: the process is gone, has other streams now, or does not answer.
    Unknown,
}

impl FirstMessage {
    /// Whether nothing waits to be read.
    pub const fn is_nothing(&self) -> bool {
        matches!(self, Self::Nothing | Self::Over)
    }
}
