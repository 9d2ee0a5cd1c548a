//! What only the host can say at the moment of a verdict: memory, the wire, clients, opt-out.
//!
//! Invariant: looking changes nothing about the processes looked at, and a look that failed is told as such, never
//! as "nothing there". For the daemon's shell, which answers `Effect::Ask`, and for the verbs that work without
//! a daemon.

mod clients;
mod holders;
mod manager;
mod memory;
mod server;
mod unit;
mod wire;

use std::cell::RefCell;

pub use self::memory::Sampler;
pub use manager::{CHILD_ARGUMENT, ManagerError, child};

use crate::{
    host::{HostError, Proc},
    model::{About, Answer, ProcessId, SnapshotProcess},
};

/// Asks the host.
#[derive(Debug)]
pub struct Probe {
    proc: Proc,
    /// Who holds which pipe and socket: the last look, for the servers of one agent are judged in one breath.
    holders: RefCell<Option<holders::Index>>,
    memory: RefCell<Sampler>,
}

impl Probe {
    /// A probe of this host.
    pub fn new() -> Result<Self, HostError> {
        Ok(Self { proc: Proc::system()?, holders: RefCell::new(None), memory: RefCell::default() })
    }

    /// What the host says about it. Blocks for as long as a look takes: microseconds to some tens of
    /// milliseconds (all open files of the host, where a wire is held by somebody).
    pub fn answer(&self, about: &About) -> Answer {
        match about {
            About::Memory(processes) => {
                Answer::Memory { processes: self.memory.borrow_mut().of(&self.proc, processes) }
            }
            About::Process(process) => Answer::Process { process: self.process(*process) },
            About::Server(subject) => Answer::Server { facts: self.facts(&subject.processes, subject.stdin) },
            About::Copies { .. } => Answer::Copies { copies: Vec::new() },
        }
    }

    fn process(&self, process: ProcessId) -> Option<SnapshotProcess> {
        let seen = self.proc.seen(process)?;
        Some(SnapshotProcess { unit: self.unit(process), ..seen })
    }
}

#[cfg(test)]
mod actors;
