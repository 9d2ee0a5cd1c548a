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

use std::cell::RefCell;

pub use self::memory::Sampler;
pub use manager::{CHILD_ARGUMENT, ManagerError, child};

use crate::{
    host::{HostError, Passes, Proc},
    model::{About, Answer, ProcessId, SnapshotProcess, Stdio},
};

/// Asks the host.
#[derive(Debug)]
pub struct Probe {
    proc: Proc,
    /// Who holds which pipe and socket: the last look, for the servers of one agent are judged in one breath.
    holders: RefCell<Option<holders::Index>>,
    /// Who makes passes over all open files, if the kernel side can, and the last ones.
    passes: RefCell<pass::Source>,
    memory: RefCell<Sampler>,
}

impl Probe {
    /// A probe of this host that has nothing but /proc: who else may hold a wire it cannot tell.
    pub fn new() -> Result<Self, HostError> {
        Ok(Self {
            proc: Proc::system()?,
            holders: RefCell::new(None),
            passes: RefCell::default(),
            memory: RefCell::default(),
        })
    }

    /// The same with passes of the kernel, which miss nobody.
    #[must_use]
    pub fn with_passes(self, passes: Box<dyn Passes>) -> Self {
        Self { passes: RefCell::new(pass::Source::new(passes)), ..self }
    }

    /// What the host says about it. Blocks for as long as a look takes: microseconds to some tens of
    /// milliseconds (all open files of the host, where a wire is held by somebody). `others` says which wires will be asked
    /// about next: one pass over all files answers for all of them. It is called where a pass is made.
    pub fn answer(&self, about: &About, others: &dyn Fn() -> Vec<Stdio>) -> Answer {
        match about {
            About::Memory(processes) => {
                Answer::Memory { processes: self.memory.borrow_mut().of(&self.proc, processes) }
            }
            About::Process(process) => Answer::Process { process: self.process(*process) },
            About::Server(subject) => Answer::Server { facts: self.facts(subject, others) },
            About::Copies { copies, among } => Answer::Copies { copies: self.copies(copies, among) },
        }
    }

    fn process(&self, process: ProcessId) -> Option<SnapshotProcess> {
        let seen = self.proc.seen(process)?;
        Some(SnapshotProcess { unit: self.unit(process), ..seen })
    }
}

#[cfg(test)]
mod actors;
