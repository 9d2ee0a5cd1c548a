//! What the kernel reports about processes.

use serde::{Deserialize, Serialize};

use super::{BootTime, Image, ProcessId, Stdio};

/// One record of the kernel side, decoded. Records arrive in causal order: a fork precedes everything the
/// child does, the exit follows everything the process did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ProcessEvent {
    /// A process was created (threads are not reported); tracepoint `sched:sched_process_fork`.
    Fork {
        /// When, by the kernel's stamp.
        at: BootTime,
        /// Who called clone(2): history that never changes, whoever the parent is.
        creator: ProcessId,
        /// The new process.
        child: ProcessId,
        /// Its real user id.
        uid: u32,
        /// Its session id.
        sid: u32,
    },
    /// A process replaced its image; tracepoint `sched:sched_process_exec`.
    Exec {
        /// When, by the kernel's stamp.
        at: BootTime,
        /// The process.
        process: ProcessId,
        /// Its parent at that moment (`real_parent`): the creator, or an adopter if that one is dead.
        parent: ProcessId,
        /// Its real user id.
        uid: u32,
        /// Its session id.
        sid: u32,
        /// What it now runs.
        image: Image,
        /// Standard input, output and error at that moment.
        stdio: [Stdio; 3],
    },
    /// The last thread of a process exited; tracepoint `sched:sched_process_exit`.
    Exit {
        /// When, by the kernel's stamp.
        at: BootTime,
        /// The process.
        process: ProcessId,
        /// How it ended.
        status: ExitStatus,
    },
    /// A process became the leader of a new session, setsid(2).
    Setsid {
        /// When, by the kernel's stamp.
        at: BootTime,
        /// The process.
        process: ProcessId,
        /// The new session id (its own pid).
        sid: u32,
    },
}

impl ProcessEvent {
    /// The kernel's stamp of the event.
    pub const fn at(&self) -> BootTime {
        match self {
            Self::Fork { at, .. }
            | Self::Exec { at, .. }
            | Self::Exit { at, .. }
            | Self::Setsid { at, .. } => *at,
        }
    }
}

/// How a process ended, wait(2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExitStatus {
    /// It called exit(2) with this code (0 to 255).
    Code(u8),
    /// This signal ended it.
    Signal(u8),
}
