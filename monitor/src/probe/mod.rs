//! Facts that only the host can tell at the moment of a verdict: the scene of a server, memory, sessions, containers, units.
//!
//! Invariant: an inspection changes nothing about the inspected processes. An inspection that failed is
//! reported as a failure, never as "nothing there". For the daemon's shell, which answers `Effect::Ask`, and
//! for the commands that work without a daemon.

mod containers;
mod declared;
mod first_message;
mod hints;
mod hung_up;
mod leftovers;
mod manager;
mod open_to_all;
pub mod registry;
mod server;
mod session;
mod settings;
mod settings_files;
mod unit;
mod whereabouts;

use std::{hash::RandomState, sync::Arc, thread};

pub use self::containers::{EngineVersion, Engines, absolute};
pub use self::declared::Candidate;
pub(crate) use crate::read::{holdings, ports};
pub use manager::ManagerError;

use crate::{
    helper::{self, Task},
    host::{HostError, Proc, hastily, with_deadline},
    os::processor_time::{self, Meter},
    read::{Reader, activity, pipe},
    source::kernel_side::KernelSide,
};
use orphand_core::model::{
    About, Answer, FirstMessage, Holdings, ProcessId, SnapshotProcess, Subject,
    scene::{Scene, SceneQuestion},
};

/// Inspects the host. It remembers nothing, and holds no lock while a process is inspected: a thread that waits for a
/// process forever would keep it.
#[derive(Clone, Debug)]
pub struct Probe {
    proc: Proc,
    kernel: KernelSide,
    /// The key of the hashes by which directories and command lines are compared.
    key: RandomState,
    engines: Arc<Engines>,
}

impl Probe {
    /// A probe of this host that uses /proc only. It cannot tell whether further processes hold a wire.
    pub fn new() -> Result<Self, HostError> {
        Ok(Self {
            proc: Proc::system()?,
            kernel: KernelSide::default(),
            key: RandomState::new(),
            engines: Arc::default(),
        })
    }

    #[must_use]
    pub fn with_kernel(self, kernel: KernelSide) -> Self {
        Self { kernel, ..self }
    }

    /// The answer of the host to the question `about`. This blocks for the time of an inspection:
    /// microseconds, or some tens of milliseconds where all open files of the host are read. The code does not wait for a
    /// process that does not answer; the inspection continues without it.
    pub fn answer(&self, about: &About) -> Answer {
        // The first has an effect, and a helper answers the others: they run once.
        if matches!(about, About::Stop { .. } | About::Declared { .. } | About::Hints { .. }) {
            return self.answer_now(about);
        }
        let (this, about) = (self.clone(), about.clone());
        metered(move || this.answer_now(&about))
    }

    /// The same for several servers: what they have in common is read once.
    pub fn answer_together(&self, subjects: Vec<Subject>) -> Vec<Answer> {
        let this = self.clone();
        let facts = metered(move || this.facts(&subjects.iter().collect::<Vec<_>>()));
        facts.into_iter().map(|facts| Answer::Server { facts }).collect()
    }

    /// The same for the daemon's loop, for which everybody waits: what does not answer at once counts as unread. What is asked
    /// once in the life of a process has more time. Not for what an engine of containers or a helper answers, nor for an
    /// inspection.
    pub fn answer_hastily(&self, about: &About) -> Answer {
        if matches!(about, About::Process(_) | About::Session(_) | About::Whereabouts(_)) {
            return self.answer(about);
        }
        let (this, about) = (self.clone(), about.clone());
        hastily(move || this.answer_now(&about))
    }

    fn answer_now(&self, about: &About) -> Answer {
        match about {
            About::Memory(processes) => Answer::Memory { processes: self.proc.used(processes) },
            About::Leftovers(branches) => Answer::Leftovers { branches: self.leftovers(branches) },
            About::Process(process) => Answer::Process { process: self.process(*process) },
            About::Server(subject) => {
                Answer::Server { facts: self.facts(&[subject]).pop().unwrap_or_default() }
            }
            About::Session(subject) => Answer::Session { id: self.session(subject) },
            About::Whereabouts(process) => Answer::Whereabouts { place: self.whereabouts(*process) },
            About::Work(processes) => Answer::Work { processes: activity::of_all(&self.proc, processes) },
            About::Stop { seen, seconds } => self.stop(seen, *seconds),
            About::Container(query) => Answer::Container { found: self.known_container(query).map(Box::new) },
            About::Copies(copies) => Answer::Copies { copies: self.copies(copies) },
            About::FirstMessage { processes, stdin } => {
                Answer::FirstMessage { message: self.first_message(processes, *stdin) }
            }
            About::Declared { process, lines } => {
                let candidate = Candidate { process: *process, earlier: lines.clone() };
                let message = self.declared(&[candidate]).pop().unwrap_or(FirstMessage::Nothing);
                Answer::FirstMessage { message }
            }
            About::Hints { server, owner, lines } => {
                Answer::Hints { found: self.server_hints(*server, *owner, lines).map(Box::new) }
            }
            About::HungUp(servers) => Answer::HungUp { processes: self.hung_up(servers) },
        }
    }

    /// A scene for each of these questions, of one moment. This blocks for the time of an inspection.
    pub fn scenes(&self, questions: &[&SceneQuestion]) -> Vec<Scene> {
        let unit = |process| self.unit(process);
        Reader { proc: &self.proc, kernel: &self.kernel, unit: &unit }.scenes(questions)
    }

    pub fn scene(&self, question: &SceneQuestion) -> Scene {
        self.scenes(&[question]).pop().unwrap_or_default()
    }

    /// What these processes block: ports, locks, lock files and pid files.
    pub fn holdings(&self, processes: &[ProcessId]) -> Holdings {
        let (proc, processes) = (self.proc.clone(), processes.to_vec());
        with_deadline(move || holdings(&proc, &processes))
    }

    fn process(&self, process: ProcessId) -> Option<SnapshotProcess> {
        let seen = self.proc.seen(process)?;
        let hints = self.agent_hints(process).map(Box::new);
        let (unit, (place, slices)) = (self.unit(process), self.place_of(process).unzip());
        let found = SnapshotProcess { unit, place, slices: slices.unwrap_or_default(), hints, ..seen };
        // One that exits loses its environment, which names the invocation of its unit, before its control group.
        self.proc.identified(process).ok()??.has_memory().then_some(found)
    }
}

/// The main function of this program where it was started as a [helper]. Returns whether the answer could be written.
pub fn help() -> bool {
    helper::serve(|task, question, files| match task {
        Task::Engine => containers::help(question, &files),
        Task::Manager => manager::help(question, &files),
        Task::Settings => settings::help(question, files),
        // It is served where it is confined: no bytes are looked at.
        Task::Text => None,
    })
}

/// The same as [`with_deadline`]. What the work costs is charged to the calling thread.
fn metered<T: Send + 'static>(work: impl Fn() -> T + Send + Sync + 'static) -> T {
    let (found, spent, by) = with_deadline(move || {
        let meter = Meter::begin();
        (work(), meter.spent(), thread::current().id())
    });
    if by != thread::current().id() {
        processor_time::add(spent);
    }
    found
}

#[cfg(test)]
pub(crate) mod tests;
