//! Agents that were left behind: started by an agent, or by a unit, that has gone on without them.

use crate::model::{BootTime, Evidence, Guard, Signal};

/// How far the case of an agent has come.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Left {
    /// When to look at it again.
    pub timer: Option<BootTime>,
    /// Since when nobody above it lives.
    pub since: Option<BootTime>,
    /// What speaks for it, once it was judged.
    pub evidence: Vec<Evidence>,
    /// What forbids to end it.
    pub guards: Vec<Guard>,
    /// What was done.
    pub stage: LeftStage,
    /// Resident memory at the verdict, in bytes.
    pub rss_bytes: u64,
    /// Proportional memory at the verdict, in bytes.
    pub pss_bytes: Option<u64>,
}

/// What was done about an agent that was left behind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LeftStage {
    /// Nothing: it is not, or not known to be, left behind.
    #[default]
    None,
    /// It was told; it stays.
    Told,
    /// It was asked to end, or killed.
    Signalled {
        /// The last signal.
        signal: Signal,
        /// When the first one was sent.
        first: BootTime,
    },
    /// It could not be ended.
    Failed,
}

impl Left {
    /// Whether it has been judged: left behind.
    pub fn is_orphan(&self) -> bool {
        self.stage != LeftStage::None
    }
}
