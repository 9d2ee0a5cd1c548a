//! Facts that only the host can tell at the moment of a verdict: memory, the wires, clients, the opt-out. A
//! wire is the pipe or socket pair that carries a server's standard input or output.
//!
//! Invariant: an inspection changes nothing about the inspected processes. An inspection that failed is
//! reported as a failure, never as "nothing there". For the daemon's shell, which answers `Effect::Ask`, and
//! for the commands that work without a daemon.

mod clients;
mod containers;
mod copies;
mod declared;
mod dependents;
mod direction;
mod fifos;
mod first_message;
mod fork_server;
mod helper_output;
mod holders;
mod hung_up;
mod manager;
mod memory;
mod open_to_all;
mod other_sockets;
mod pass;
mod pipe;
pub mod registry;
mod server;
mod session;
mod settings;
mod siblings;
mod terminals;
mod ties;
mod tracees;
mod tracers;
mod unit;
mod whereabouts;
mod wire;
mod work;

use std::{
    hash::RandomState,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

pub use self::containers::{ENGINE_ARGUMENT, EngineVersion, Engines, engine_child};
pub use self::memory::Sampler;
pub use manager::{CHILD_ARGUMENT, ManagerError, child};

use crate::host::{HostError, Passes, Proc, hastily, with_deadline};
use orphand_core::model::{About, Answer, ProcessId, SnapshotProcess, Stdio};

/// Inspects the host. Clones share what they remember.
///
/// Invariant: no lock is held while a process is inspected, because a thread that waits for a process forever
/// would keep the lock. The thread takes what is remembered out, and puts it back afterwards.
#[derive(Clone, Debug)]
pub struct Probe {
    proc: Arc<Proc>,
    /// The holders of pipes and sockets, as of the last inspection. It is kept because the servers of one
    /// agent are judged one directly after the other.
    holders: Arc<Mutex<Option<holders::Index>>>,
    /// The maker of passes over all open files, if the kernel side offers them, and the last passes.
    passes: Arc<Mutex<pass::Source>>,
    memory: Arc<Mutex<Sampler>>,
    /// The key of the hashes by which directories and command lines are compared.
    key: RandomState,
    /// The sockets of container engines.
    engines: Arc<Engines>,
    /// The settings files of agents that were read.
    settings: Arc<Mutex<settings::Settings>>,
}

impl Probe {
    /// A probe of this host that uses /proc only. It cannot tell whether further processes hold a wire.
    pub fn new() -> Result<Self, HostError> {
        Ok(Self {
            proc: Arc::new(Proc::system()?),
            holders: Arc::default(),
            passes: Arc::default(),
            memory: Arc::default(),
            key: RandomState::new(),
            engines: Arc::default(),
            settings: Arc::default(),
        })
    }

    /// Adds passes of the kernel over all open files, which miss no holder.
    #[must_use]
    pub fn with_passes(self, passes: Box<dyn Passes>) -> Self {
        Self { passes: Arc::new(Mutex::new(pass::Source::new(passes))), ..self }
    }

    /// The answer of the host to the question `about`. This blocks for the time of an inspection:
    /// microseconds, or some tens of milliseconds where another process holds a wire and all open files of
    /// the host are read. The code does not wait for a process that does not answer; the inspection continues
    /// without it. `others` returns the wires that will be asked about next, so that one pass over all files
    /// answers for all of them.
    pub fn answer(&self, about: &About, others: &dyn Fn() -> Vec<Stdio>) -> Answer {
        // This has an effect, and so it runs once.
        if let About::Stop { seen, seconds, .. } = about {
            return self.stop(seen, *seconds);
        }
        let others = if matches!(about, About::Server(_)) { others() } else { Vec::new() };
        let (this, about) = (self.clone(), about.clone());
        with_deadline(move || this.answer_now(&about, &|| others.clone()))
    }

    /// The same for the daemon's loop, for which everybody waits: what does not answer at once counts as unread. Not for
    /// [`About::Stop`], nor for an inspection.
    pub fn answer_hastily(&self, about: &About) -> Answer {
        let (this, about) = (self.clone(), about.clone());
        hastily(move || this.answer_now(&about, &Vec::new))
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
            About::Session(subject) => Answer::Session { id: self.session(subject) },
            About::Whereabouts(process) => Answer::Whereabouts { place: self.whereabouts(*process) },
            About::Work(processes) => Answer::Work { processes: self.work(processes) },
            About::Stop { seen, seconds, .. } => self.stop(seen, *seconds),
            About::Container { query, .. } => {
                Answer::Container { found: self.known_container(query).map(Box::new) }
            }
            About::Copies { copies, among } => Answer::Copies { copies: self.copies(copies, among) },
            About::FirstMessage { end, .. } => Answer::FirstMessage { message: self.first_message(*end) },
            About::Declared { process, .. } => Answer::FirstMessage { message: self.declared(*process) },
            About::HungUp(servers) => Answer::HungUp { processes: self.hung_up(servers) },
        }
    }

    /// Calls `ask` with the source of passes; `None` if there are no passes.
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
    // No code panics while it holds this lock.
    what.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
