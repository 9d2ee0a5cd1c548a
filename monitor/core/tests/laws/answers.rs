//! What the model host answers: the truth, as far as the probes of the daemon could see it.

use std::collections::BTreeSet;

use orphand_core::model::{
    About, Answer, CopyFacts, FirstMessage, Holder, Memory, OwnEnd, ProcessFacts, ProcessId, ServerFacts,
    SnapshotProcess, SocketUse, Stdio, Subject, Unit, UnitFacts, UnitState, Whereabouts, WireState, Work,
};

use crate::{
    files::End,
    host::Host,
    kernel::{Kernel, Process},
};

impl Host {
    /// Answers a question.
    pub fn answer(&mut self, about: About) -> Answer {
        match about {
            About::Memory(processes) => Answer::Memory {
                processes: processes
                    .into_iter()
                    .filter(|p| self.kernel.alive(*p))
                    .map(|process| Memory { process, rss_bytes: rss(process) })
                    .collect(),
            },
            About::Process(process) => Answer::Process { process: self.kernel.get(process).map(describe) },
            About::Copies { copies, among } => Answer::Copies { copies: self.copies(&copies, &among) },
            About::Session(_) => Answer::Session { id: None },
            About::Container { .. } => Answer::Container { found: None },
            About::Stop { .. } => {
                Answer::Stopped { error: Some("there is no engine".to_owned()), changed: false }
            }
            About::HungUp(servers) => Answer::HungUp { processes: self.hung_up(&servers) },
            // No server of this world speaks to one that no rule knows.
            About::FirstMessage { .. } | About::Declared { .. } => {
                Answer::FirstMessage { message: FirstMessage::Nothing }
            }
            About::Whereabouts(process) => {
                let place =
                    |_: &Process| Whereabouts { directory: u64::from(process.pid % 2), command: Some(0) };
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
            return ServerFacts { blind: Some("cannot read /proc".to_owned()), ..ServerFacts::default() };
        }
        let kernel = &self.kernel;
        let living: Vec<&Process> = subject.processes.iter().filter_map(|p| kernel.get(*p)).collect();
        let [stdin, stdout] = [(subject.stdin, true), (subject.stdout, false)].map(|(wire, reads)| {
            match own_end(wire, reads) {
                Some(end) => self.wire(&living, end),
                None => WireState::Unknown,
            }
        });
        let has_own =
            |wire, reads| own_end(wire, reads).is_some_and(|end| living.iter().any(|p| p.files.has(end)));
        ServerFacts {
            own_ends: [has_own(subject.stdin, true), has_own(subject.stdout, false)],
            processes: living.iter().map(|p| facts(kernel, p, &subject.processes)).collect(),
            stdin,
            stdout,
            copies: self.copies(&subject.copies, &[&*subject.processes, &*subject.siblings].concat()),
            work: if subject.work { self.work(&subject.processes) } else { Vec::new() },
            container: None,
            enclosing: None,
            opted_out: living.iter().any(|p| p.conduct.opted_out),
            unit: living.iter().find_map(|p| own_unit(p)),
            blind: None,
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

    /// Who holds the other end of the wire whose own end this is. A server that has let go of its own end has no wire.
    fn wire(&self, living: &[&Process], end: End) -> WireState {
        let kernel = &self.kernel;
        let of_it = |p: &Process| living.iter().any(|one| kernel.descends(p.id, one.id));
        if !kernel.holders(end).any(of_it) {
            return WireState::HungUp;
        }
        let Some(other) = kernel.opposite(end) else { return WireState::Unknown };
        if !kernel.is_open(other) {
            return WireState::HungUp;
        }
        let describe = |p: &Process| Holder {
            process: p.id,
            uid: p.uid,
            sid: p.sid,
            image: p.image.clone(),
            unit: None,
            clients: false,
        };
        WireState::Held {
            holders: kernel.holders(other).map(describe).collect(),
            unseen: self.manners.passless || kernel.in_flight.contains(&other),
        }
    }

    /// What forked copies of an agent do.
    fn copies(&self, copies: &[ProcessId], among: &[ProcessId]) -> Vec<CopyFacts> {
        let known: BTreeSet<&ProcessId> = copies.iter().chain(among).collect();
        let facts = |p: &Process| CopyFacts {
            process: p.id,
            sid: p.sid,
            connected: self.kernel.is_connected(p, &known),
            work: Some(p.doings.work(p.id)),
        };
        copies.iter().filter_map(|copy| self.kernel.get(*copy)).map(facts).collect()
    }
}

impl Kernel {
    /// Whether it has a socket that leads to somebody who is not known, or that somebody may connect to.
    pub fn is_connected(&self, p: &Process, known: &BTreeSet<&ProcessId>) -> bool {
        let leads_out = |end: End| {
            let peer = self.opposite(end).filter(|_| matches!(end, End::Socket(_)));
            peer.is_some_and(|peer| {
                self.in_flight.contains(&peer) || self.holders(peer).any(|other| !known.contains(&other.id))
            })
        };
        p.has_sockets() || p.files.ends().any(leads_out)
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
fn own_unit(p: &Process) -> Option<UnitFacts> {
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
        stdio: p.files.standard_with_wire(),
        unit: None,
        stale_binary: false,
    }
}

fn facts(kernel: &Kernel, p: &Process, asked: &[ProcessId]) -> ProcessFacts {
    let (inside, outside): (Vec<ProcessId>, Vec<ProcessId>) =
        p.doings.clients.iter().partition(|client| asked.contains(client));
    let only_inside = outside.is_empty() && !inside.is_empty() && !p.conduct.serves_clients;
    let joined = |other: &ProcessId| {
        *other != p.id && kernel.get(*other).is_some_and(|other| kernel.are_joined(p, other))
    };
    ProcessFacts {
        process: p.id,
        uid: p.uid,
        sid: p.sid,
        rss_bytes: rss(p.id),
        pss_bytes: Some(rss(p.id) / 2),
        stdio: p.files.standard(),
        joined: asked.iter().copied().filter(joined).collect(),
        sockets: SocketUse {
            listens: p.conduct.serves_clients || p.doings.listens,
            clients: p.is_served_to(kernel.now()) && !(only_inside && p.doings.served.is_none()),
            inside,
        },
        stale_binary: false,
        traced: p.doings.tracer.is_some_and(|tracer| !asked.contains(&tracer)),
        ignores_hangup: false,
    }
}
