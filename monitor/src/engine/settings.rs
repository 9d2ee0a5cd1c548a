//! What the engine is told once.

use std::time::Duration;

use crate::{
    model::{Mode, ProcessId},
    recognise::Rules,
};

/// What the engine is told once.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Whether to act.
    pub mode: Mode,
    /// From the owner's exit to the verdict.
    pub grace: Duration,
    /// From SIGTERM to SIGKILL.
    pub term_timeout: Duration,
    /// Whether servers of another user than their owner's may be ended.
    pub other_uids: bool,
    /// The rules.
    pub rules: Rules,
    /// The daemon and its ancestors: never signalled.
    pub ourselves: Vec<ProcessId>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            mode: Mode::Reap,
            grace: Duration::from_secs(10),
            term_timeout: Duration::from_secs(5),
            other_uids: false,
            rules: Rules::builtin(),
            ourselves: Vec::new(),
        }
    }
}
