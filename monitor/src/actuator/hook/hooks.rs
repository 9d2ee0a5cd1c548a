//! All hooks. Each has a queue and a thread of its own: none waits for another one.

use std::{
    collections::BTreeMap,
    fmt,
    time::{Duration, Instant},
};

use super::{Hook, HookError, Settings, WriteLine};
use orphand_core::model::{BootTime, Notice};

/// All hooks.
pub struct Hooks {
    /// There is always one, which knows the orphans that are alive; it may have no program.
    hooks: Vec<Hook>,
    write_line: Box<dyn Fn() -> Box<WriteLine> + Send>,
}

impl fmt::Debug for Hooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hooks").field("hooks", &self.hooks).finish_non_exhaustive()
    }
}

impl Hooks {
    /// Starts a thread for each hook. `write_line` makes what formats the lines of one hook.
    pub fn start(
        settings: Vec<Settings>,
        write_line: impl Fn() -> Box<WriteLine> + Send + 'static,
    ) -> Result<Self, HookError> {
        let first = Hook::new(write_line(), super::Account::default());
        let mut hooks = Self { hooks: vec![first], write_line: Box::new(write_line) };
        hooks.replace(settings)?;
        Ok(hooks)
    }

    /// Replaces the hooks from the next run on. A new hook gets the events that wait for the one at its place; where there
    /// is none any more they are dropped.
    pub fn replace(&mut self, settings: Vec<Settings>) -> Result<(), HookError> {
        while self.hooks.len() < settings.len() {
            let account = self.hooks.first().map(Hook::account).unwrap_or_default();
            self.hooks.push(Hook::new((self.write_line)(), account));
        }
        let mut settings = settings.into_iter();
        self.hooks.iter().try_for_each(|hook| hook.replace(settings.next()))
    }

    /// Queues an event for each hook that is run for it. Never blocks.
    pub fn push(&self, at: BootTime, notice: &Notice) {
        self.hooks.iter().for_each(|hook| hook.push(at, notice));
    }

    /// How many events were dropped because too many waited.
    pub fn dropped(&self) -> u64 {
        self.hooks.iter().map(Hook::dropped).sum()
    }

    /// How many runs had each outcome so far: `ok`, `failed`, `timed_out`, `refused`, `stopped`.
    pub fn runs(&self) -> BTreeMap<String, u64> {
        let mut all = BTreeMap::new();
        for (outcome, number) in self.hooks.iter().flat_map(Hook::runs) {
            *all.entry(outcome).or_default() += number;
        }
        all
    }

    /// Runs the hooks for the events that wait, for at most `patience`. Then ends the runs in progress and kills their
    /// processes.
    pub fn finish(&self, patience: Duration) {
        let until = Instant::now() + patience;
        self.hooks.iter().for_each(Hook::end_soon);
        self.hooks.iter().for_each(|hook| hook.finish(until.saturating_duration_since(Instant::now())));
    }
}
