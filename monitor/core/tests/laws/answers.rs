//! What the model host answers: the truth, as far as the probes of the daemon could see it.

use orphand_core::model::{
    About, Answer, Branch, CopyFacts, FirstMessage, Memory, OwnEnd, ProcessId, ServerFacts, SnapshotProcess,
    Stdio, Subject, Unit, UnitFacts, UnitState, Whereabouts, Work,
    scene::{Scene, Unread},
};

use crate::{files::End, host::Host, kernel::Process};

impl Host {
    /// Answers a question.
    pub fn answer(&mut self, about: About) -> Answer {
        match about {
            About::Memory(processes) => Answer::Memory {
                processes: processes
                    .into_iter()
                    .filter(|p| self.kernel.alive(*p))
                    .map(|process| Memory { process, rss_bytes: rss(process), cpu_ms: 0 })
                    .collect(),
            },
            About::Leftovers(branches) => {
                let one = |branch: &Vec<ProcessId>| {
                    let head = self.kernel.get(*branch.first()?)?;
                    let (head, parent) = (head.id, Some(head.parent));
                    Some(Branch { head, parent, place: Some(String::new()), ..Branch::default() })
                };
                Answer::Leftovers { branches: branches.iter().filter_map(one).collect() }
            }
            About::Process(process) => Answer::Process { process: self.kernel.get(process).map(describe) },
            About::Copies(copies) => Answer::Copies { copies: self.copies(&copies) },
            About::Session(_) => Answer::Session { id: None },
            About::Container(_) => Answer::Container { found: None },
            About::Hints { .. } => Answer::Hints { found: None },
            About::Stop { .. } => {
                Answer::Stopped { error: Some("there is no engine".to_owned()), changed: false }
            }
            About::HungUp(servers) => Answer::HungUp { processes: self.hung_up(&servers) },
            // No server of this world speaks to one that no rule knows.
            About::FirstMessage { .. } | About::Declared { .. } => {
                Answer::FirstMessage { message: FirstMessage::Nothing }
            }
            About::Whereabouts(process) => {
                let directory = u64::from(process.pid % 2);
                let place = |_: &Process| Whereabouts { directory, command: Some(0), environment: Some(0) };
                Answer::Whereabouts { place: self.kernel.get(process).map(place) }
            }
            About::Work(processes) => Answer::Work { processes: self.work(&processes) },
            About::Server(subject) => Answer::Server { facts: self.look_at(&subject) },
        }
    }

    /// No process of this world does anything that is in an account.
    fn work(&self, processes: &[ProcessId]) -> Vec<Work> {
        let living = processes.iter().filter(|process| self.kernel.alive(**process));
        living.map(|process| Work { process: *process, ..Work::default() }).collect()
    }

    fn look_at(&mut self, subject: &Subject) -> ServerFacts {
        self.looks += 1;
        let stumbles = self.manners.stumbles > 0 && self.looks.is_multiple_of(self.manners.stumbles.into());
        if self.manners.blind || stumbles {
            let unread = vec![Unread { process: None, why: "cannot read /proc".to_owned() }];
            return ServerFacts { scene: Scene { unread, ..Scene::default() }, ..ServerFacts::default() };
        }
        ServerFacts {
            scene: self.scene(&subject.question),
            work: if subject.work { self.work(&subject.processes) } else { Vec::new() },
            ..ServerFacts::default()
        }
    }

    /// Those whose standard input has no other end any more.
    fn hung_up(&self, servers: &[OwnEnd]) -> Vec<ProcessId> {
        let is_hung_up = |server: &&OwnEnd| {
            let Some(end) = own_end(server.stdin, true) else { return false };
            let has_it = self.kernel.get(server.process).is_some_and(|p| p.files.has(end));
            let other = self.kernel.opposite(end);
            has_it && !self.manners.blind && other.is_none_or(|other| !self.kernel.is_open(other))
        };
        servers.iter().filter(is_hung_up).map(|server| server.process).collect()
    }

    /// What forked copies of an agent have done.
    fn copies(&self, copies: &[ProcessId]) -> Vec<CopyFacts> {
        let facts = |p: &Process| CopyFacts { process: p.id, sid: p.sid, work: Some(p.doings.work(p.id)) };
        copies.iter().filter_map(|copy| self.kernel.get(*copy)).map(facts).collect()
    }
}

/// A server's own end of a wire.
fn own_end(wire: Stdio, reads: bool) -> Option<End> {
    match (wire, reads) {
        (Stdio::Pipe(n), true) => Some(End::Read(n)),
        (Stdio::Pipe(n), false) => Some(End::Write(n)),
        (Stdio::Socket(n), _) => Some(End::Socket(n)),
        _ => None,
    }
}

/// What init started is a unit of its own. (What it adopted is not.)
pub fn own_unit(p: &Process) -> Option<UnitFacts> {
    let name = format!("{}.service", p.id);
    let unit = Unit { manager: String::new(), name: name.clone() };
    let started = p.creator == crate::world::INIT;
    started.then(|| UnitFacts { unit, invocation_id: Some(name.clone()), state: UnitState::Active(name) })
}

/// Resident memory: any number that differs between processes.
pub fn rss(process: ProcessId) -> u64 {
    u64::from(process.pid) << 20
}

/// A process as /proc shows it.
pub fn describe(p: &Process) -> SnapshotProcess {
    SnapshotProcess {
        id: p.id,
        parent: (p.parent.pid != 0).then_some(p.parent),
        uid: p.uid,
        sid: p.sid,
        image: p.image.clone(),
        titled: false,
        stdio: p.files.standard_with_wire(),
        unit: None,
        place: Some(String::new()),
        slices: Vec::new(),
        hints: None,
        stale_binary: false,
    }
}
