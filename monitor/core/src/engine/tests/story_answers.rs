//! What the simulated host answers.

use super::{
    story::Story,
    story_scene::{Outside, ProcessFacts, scene},
};
use crate::model::{
    About, Answer, Branch, CopyFacts, FirstMessage, Memory, OwnEnd, ProcessId, ServerFacts, SnapshotProcess,
    Stdio, Subject,
};

impl Story {
    pub(super) fn answer(&mut self, about: About) -> Answer {
        match about {
            About::Memory(processes) => {
                let one = |process| Memory { process, rss_bytes: self.rss_bytes, cpu_ms: self.cpu_ms };
                Answer::Memory { processes: processes.into_iter().map(one).collect() }
            }
            About::Leftovers(branches) => {
                let plain = || Branch { place: self.place.clone(), ..Branch::default() };
                let one = |head: ProcessId| Branch {
                    head,
                    ..self.branches.get(&head.pid).cloned().unwrap_or_else(plain)
                };
                Answer::Leftovers { branches: branches.iter().map(|branch| one(branch[0])).collect() }
            }
            About::Process(process) => {
                if self.gone.contains(&process.pid) {
                    return Answer::Process { process: None };
                }
                let unit = self.units.get(&process.pid).cloned();
                let known = self.creator.clone().filter(|c| c.id == process);
                let plain = || SnapshotProcess { id: process, ..SnapshotProcess::default() };
                let lives = unit.is_some() || self.ran.contains(&process.pid);
                let known = known.or_else(|| lives.then(plain)).or_else(|| self.creator.clone());
                let (place, hints) = (self.place.clone(), self.agent_hints.clone().map(Box::new));
                let slices = self.slices.clone();
                let answered = |known| SnapshotProcess { unit, place, slices, hints, ..known };
                Answer::Process { process: known.map(answered) }
            }
            About::Hints { server, lines, .. } => {
                self.lines_asked.extend(self.hints.contains_key(&server.pid).then_some(lines));
                Answer::Hints { found: self.hints.get(&server.pid).cloned().map(Box::new) }
            }
            About::Container(query) => {
                self.containers_asked.push((self.now, query.client.pid));
                Answer::Container { found: self.facts.container.clone() }
            }
            About::Stop { seen, .. } if self.container_changes => {
                self.stops_refused.push(seen.container.id);
                Answer::Stopped { error: Some("somebody came".to_owned()), changed: true }
            }
            About::Stop { seen, .. } => {
                self.stops.push(seen.container.id);
                Answer::Stopped { error: self.stop_error.clone(), changed: false }
            }
            About::HungUp(servers) => {
                self.wire_looks.push((self.now, servers.len()));
                let hung_up = |end: &&OwnEnd| self.hung_up.contains(&end.process.pid);
                let processes = servers.iter().filter(hung_up).map(|end| end.process).collect();
                Answer::HungUp { processes }
            }
            About::Declared { process, lines, .. } => {
                self.lines_asked.push(lines);
                let name = self.declared.get(&process.pid).cloned();
                let message = name.map_or(FirstMessage::Nothing, |name| FirstMessage::Declared { name });
                Answer::FirstMessage { message }
            }
            About::FirstMessage { processes, .. } => {
                self.message_looks.push((self.now, processes[0].pid));
                let said = |process: &ProcessId| self.messages.get(&process.pid).cloned().unwrap_or_default();
                let mut all = processes.iter().map(said);
                let message = all.find(|message| *message != FirstMessage::Unknown);
                Answer::FirstMessage { message: message.unwrap_or(FirstMessage::Unknown) }
            }
            About::Copies(asked) => {
                let copies = self.copies.iter().filter(|copy| asked.contains(&copy.process));
                let facts = copies.map(|copy| {
                    let (process, sid, work) = (copy.process, copy.sid, copy.work);
                    CopyFacts { process, sid, work }
                });
                Answer::Copies { copies: facts.collect() }
            }
            About::Session(subject) => {
                let of = |one: ProcessId| self.sessions.get(&one.pid).cloned();
                let id = [subject.main].into_iter().chain(subject.inside).find_map(of);
                let inherited = subject.owner.and_then(of);
                Answer::Session { id: id.filter(|id| inherited.as_ref() != Some(id)) }
            }
            About::Whereabouts(process) => {
                self.places_asked.push(process.pid);
                Answer::Whereabouts { place: self.places.get(&process.pid).copied() }
            }
            About::Work(processes) => Answer::Work { processes: self.work_of(&processes) },
            About::Server(subject) => self.answer_server(subject),
        }
    }

    fn answer_server(&mut self, subject: Subject) -> Answer {
        let Subject { processes, question, work, unit, .. } = subject;
        let stopping = unit && self.stopping;
        self.looks.push(self.now);
        let (uid, rss_bytes) = (self.uid, self.rss_bytes);
        let sockets = self.sockets.clone();
        let facts = |process| ProcessFacts {
            process,
            parent: self.parent(process),
            uid,
            rss_bytes,
            sockets: sockets.clone(),
            // A tool reports to its server, as a rule.
            stdio: [Stdio::Closed, Stdio::Pipe(9), Stdio::Closed],
            ..ProcessFacts::default()
        };
        let apart = |id: ProcessId| {
            let facts = self.apart.get(&id.pid)?.clone();
            Some(ProcessFacts { process: id, parent: self.parent(id), ..facts })
        };
        let inside = self.facts.container.iter().flat_map(|container| &container.processes);
        let all: Vec<ProcessId> = processes.iter().chain(inside).copied().collect();
        let work = if work { self.work_of(&all) } else { Vec::new() };
        // What a launcher started beside the server.
        let own = question.servers.first().into_iter().flat_map(|own| &own.processes);
        let beside = own.filter(|one| !processes.contains(one)).copied().collect::<Vec<_>>();
        let processes = processes.into_iter().map(|id| apart(id).unwrap_or_else(|| facts(id))).collect();
        let copies = self.copies.iter().filter(|copy| question.copies.contains(&copy.process));
        let copies = copies.copied().collect();
        let outside = Outside { processes, copies, ..self.facts.clone() };
        let others = question.servers.iter().skip(1).flat_map(|other| &other.processes).chain(&beside);
        let others: Vec<_> = others
            .map(|id| apart(*id).unwrap_or(ProcessFacts { process: *id, ..ProcessFacts::default() }))
            .collect();
        let server = question.servers.first().cloned().unwrap_or_default();
        let scene = scene(&server, &outside, &others);
        let Outside { unread_input, container, enclosing, .. } = outside;
        // What waits before it is passed in, `answer_after` tells.
        let began = Some(self.now);
        Answer::Server {
            facts: ServerFacts { began, scene, work, unread_input, stopping, container, enclosing },
        }
    }

    /// The number of its creator, or of init if that has ended.
    fn parent(&self, process: ProcessId) -> u32 {
        let creator = self.engine.world.node(process).and_then(|node| node.creator);
        creator.filter(|creator| self.engine.world.node(*creator).is_some()).map_or(1, |creator| creator.pid)
    }
}
