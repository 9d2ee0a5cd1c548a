//! Kernel events about processes.

use std::num::NonZeroU32;

use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

use super::{BootTime, Image, Killer, ProcessId, Stdio};

/// One decoded record of the kernel side. Records arrive in causal order: the fork comes before everything
/// the child does, the exit after everything the process did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum ProcessEvent {
    /// A process was created (threads are not reported); tracepoint `sched:sched_process_fork`.
    Fork {
        at: BootTime,
        /// The process that called clone(2). It never changes, whoever the parent is later.
        creator: ProcessId,
        /// The thread of the creator that did so, unless that was its leading thread.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        thread: Option<NonZeroU32>,
        child: ProcessId,
        uid: u32,
        sid: u32,
    },
    /// A process replaced its image; tracepoint `sched:sched_process_exec`.
    Exec {
        at: BootTime,
        process: ProcessId,
        /// Its parent at that time (`real_parent`): the creator, or the adopter if the creator is dead.
        parent: ProcessId,
        uid: u32,
        sid: u32,
        image: Image,
        /// Standard input, output and error at that time.
        stdio: [Stdio; 3],
        #[serde(flatten)]
        ignored: Ignored,
    },
    /// The last thread of a process exited; tracepoint `sched:sched_process_exit`.
    Exit { at: BootTime, process: ProcessId, status: ExitStatus },
    /// A process became the leader of a new session, setsid(2).
    Setsid {
        at: BootTime,
        process: ProcessId,
        /// The new session id (its own pid).
        sid: u32,
    },
    /// A thread that started a server exited, and its process lives on; tracepoint
    /// `sched:sched_process_exit`. Or it was found in /proc to have ended: then `at` is when it was looked for, or
    /// the last moment before the thread began that has its number now.
    ThreadExit { at: BootTime, process: ProcessId, thread: NonZeroU32 },
    /// A signal was sent to a process that does not handle it, so that it ends; tracepoint `signal:signal_generate`.
    Signal { at: BootTime, process: ProcessId, signal: u8, killer: Box<Killer> },
}

/// What was ignored when a program began. Programs change that: node takes it back, many others have a handler.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ignored {
    /// SIGINT, as what a shell starts in the background begins.
    #[serde(rename = "ignores_interrupt", skip_serializing_if = "std::ops::Not::not", default)]
    pub interrupt: bool,
    /// SIGHUP, as what nohup(1) starts begins.
    #[serde(rename = "ignores_hangup", skip_serializing_if = "std::ops::Not::not", default)]
    pub hangup: bool,
}

impl ProcessEvent {
    pub const fn at(&self) -> BootTime {
        match self {
            Self::Fork { at, .. }
            | Self::Exec { at, .. }
            | Self::Exit { at, .. }
            | Self::Setsid { at, .. }
            | Self::ThreadExit { at, .. }
            | Self::Signal { at, .. } => *at,
        }
    }
}

/// How a process ended, as in wait(2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExitStatus {
    /// It called exit(2) with this code (0 to 255).
    Code(u8),
    Signal(u8),
}
