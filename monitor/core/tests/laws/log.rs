//! All that went into an engine and came out of it, with its times.

use orphand_core::model::{BootTime, Effect, Input, Notice, ProcessId, Signal};

/// A signal the engine asked for.
#[derive(Clone, Debug)]
pub struct Shot {
    pub at: BootTime,
    pub meant: ProcessId,
    pub signal: Signal,
    /// Who got it.
    pub hit: Option<ProcessId>,
    /// Why it was wrong, if it was.
    pub wrong: Option<String>,
}

/// All that went in and out.
#[derive(Clone, Debug, Default)]
pub struct Log {
    pub given: Vec<(BootTime, Input)>,
    pub effects: Vec<(BootTime, Effect)>,
    pub shots: Vec<Shot>,
    /// What was wrong with the engine's world when something was first.
    pub broken: Vec<String>,
    /// Orphans that were none when they were called so.
    pub wrong_verdicts: Vec<(BootTime, String)>,
    /// When records were first lost, when /proc was first and last read.
    pub first_loss: Option<BootTime>,
    pub first_look: Option<BootTime>,
    pub last_look: Option<BootTime>,
}

impl Log {
    /// The notices, with the time of their cause and the time they were told.
    pub fn notices(&self) -> impl Iterator<Item = (BootTime, BootTime, &Notice)> {
        self.effects.iter().filter_map(|(now, e)| match e {
            Effect::Emit { at, notice } => Some((*at, *now, &**notice)),
            _ => None,
        })
    }
}
