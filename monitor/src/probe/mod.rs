//! What only the host can say at the moment of a verdict: memory, the wires, clients, opt-out.
//!
//! Invariant: looking changes nothing about the processes looked at, and a look that failed is told as such, never
//! as "nothing there". For the daemon's shell, which answers `Effect::Ask`, and for the verbs that work without
//! a daemon.

mod clients;
mod copies;
mod direction;
mod fifos;
mod holders;
mod manager;
mod memory;
mod pass;
mod pipe;
mod server;
mod siblings;
mod ties;
mod tracers;
mod unit;
mod wire;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub use self::memory::Sampler;
pub use manager::{CHILD_ARGUMENT, ManagerError, child};

use crate::host::{HostError, Passes, Proc, with_deadline};
use orphand_core::model::{About, Answer, ProcessId, SnapshotProcess, Stdio};

/// Asks the host. Its copies share what they remember.
///
/// Invariant: nothing is locked while a process is looked at: a thread that waits for one for ever would keep it. What is
/// remembered is taken out and put back.
#[derive(Clone, Debug)]
pub struct Probe {
    proc: Arc<Proc>,
    /// Who holds which pipe and socket: the last look, for the servers of one agent are judged in one breath.
    holders: Arc<Mutex<Option<holders::Index>>>,
    /// Who makes passes over all open files, if the kernel side can, and the last ones.
    passes: Arc<Mutex<pass::Source>>,
    memory: Arc<Mutex<Sampler>>,
}

impl Probe {
    /// A probe of this host that has nothing but /proc: who else may hold a wire it cannot tell.
    pub fn new() -> Result<Self, HostError> {
        Ok(Self {
            proc: Arc::new(Proc::system()?),
            holders: Arc::default(),
            passes: Arc::default(),
            memory: Arc::default(),
        })
    }

    /// The same with passes of the kernel, which miss nobody.
    #[must_use]
    pub fn with_passes(self, passes: Box<dyn Passes>) -> Self {
        Self { passes: Arc::new(Mutex::new(pass::Source::new(passes))), ..self }
    }

    /// What the host says about it. Blocks for as long as a look takes: microseconds to some tens of
    /// milliseconds (all open files of the host, where a wire is held by somebody). A process that does not answer is not waited
    /// for: the look goes on without it. `others` says which wires will be asked about next: one pass over all files answers for
    /// all of them.
    pub fn answer(&self, about: &About, others: &dyn Fn() -> Vec<Stdio>) -> Answer {
        let others = if matches!(about, About::Server(_)) { others() } else { Vec::new() };
        let (this, about) = (self.clone(), about.clone());
        with_deadline(move || this.answer_now(&about, &|| others.clone()))
    }

    fn answer_now(&self, about: &About, others: &dyn Fn() -> Vec<Stdio>) -> Answer {
        match about {
            About::Memory(processes) => {
                let mut sampler = std::mem::take(&mut *locked(&self.memory));
                let processes = sampler.of(&self.proc, processes);
                *locked(&self.memory) = sampler;
                Answer::Memory { processes }
            }
            About::Process(process) => Answer::Process { process: self.process(*process) },
            About::Server(subject) => Answer::Server { facts: self.facts(subject, others) },
            About::Copies { copies, among } => Answer::Copies { copies: self.copies(copies, among) },
        }
    }

    /// Lets `ask` ask who makes passes. Nothing where there are none.
    fn ask_passes<T>(&self, ask: impl FnOnce(&mut pass::Source) -> T) -> Option<T> {
        let mut passes = locked(&self.passes).take()?;
        let told = ask(&mut passes);
        locked(&self.passes).put_back(passes);
        Some(told)
    }

    fn process(&self, process: ProcessId) -> Option<SnapshotProcess> {
        let seen = self.proc.seen(process)?;
        Some(SnapshotProcess { unit: self.unit(process), ..seen })
    }
}

fn locked<T>(what: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing panics while it is locked.
    what.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
