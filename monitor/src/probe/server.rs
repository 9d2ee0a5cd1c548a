//! All facts from the host that a verdict on one server needs.

use super::{Probe, activity};
use crate::read::unread;
use orphand_core::model::{
    CopyFacts, ProcessId, ServerFacts, Subject,
    scene::{ProcessRow, Scene},
};

/// Up to this many resident bytes of a server its proportional memory is read. That costs 10 us for each megabyte.
/// Resident bytes count what processes share once for each of them: they may be several times what a server takes.
const WEIGHED: u64 = 4 << 30;
/// The same of a server that everybody waits for.
const WEIGHED_AT_ONCE: u64 = 1 << 30;

impl Probe {
    /// The facts about these servers.
    pub fn facts(&self, subjects: &[&Subject]) -> Vec<ServerFacts> {
        let questions: Vec<_> = subjects.iter().map(|subject| &subject.question).collect();
        let scenes = self.scenes(&questions).into_iter();
        subjects.iter().zip(scenes).map(|(subject, scene)| self.facts_beside(subject, scene)).collect()
    }

    /// The facts about this server, with this scene.
    fn facts_beside(&self, subject: &Subject, mut scene: Scene) -> ServerFacts {
        self.weigh(subject, &mut scene);
        let enclosing = self.enclosing(&subject.processes).map(Box::new);
        // An engine may take its time, so it is asked only where the answer may come later.
        let query = subject.container.as_deref().filter(|_| subject.turn.is_some());
        let container = query.and_then(|query| self.container(query)).map(Box::new);
        let inside = container.iter().flat_map(|container| &container.processes);
        let all: Vec<_> = subject.processes.iter().chain(inside).copied().collect();
        let work = if subject.work { activity::of_all(&self.proc, &all) } else { Vec::new() };
        let due = subject.question.servers.first().filter(|_| subject.question.waits);
        let unread = due.and_then(|server| unread::bytes(&self.proc, &server.processes, server.stdin));
        ServerFacts { scene, work, unread, container, enclosing }
    }

    /// Adds the proportional memory of the server's processes. It is reported and no evidence: without it a row is complete.
    fn weigh(&self, subject: &Subject, scene: &mut Scene) {
        let most = if subject.turn.is_some() { WEIGHED } else { WEIGHED_AT_ONCE };
        let is_its_own = |row: &&mut ProcessRow| row.full && subject.processes.contains(&row.process);
        let own: Vec<_> = scene.processes.iter_mut().filter(is_its_own).collect();
        if own.iter().map(|row| row.rss_bytes).sum::<u64>() > most {
            return;
        }
        for row in own {
            let dir = self.proc.identified(row.process).ok().flatten();
            row.pss_bytes = dir.and_then(|dir| dir.proportional_bytes().ok());
        }
    }

    /// What those of these copies have done that are alive.
    pub(super) fn copies(&self, copies: &[ProcessId]) -> Vec<CopyFacts> {
        let facts = |process: ProcessId| match self.proc.identified(process) {
            Ok(Some(dir)) if dir.stat().has_begun_to_exit() => None,
            Ok(Some(dir)) => {
                Some(CopyFacts { process, sid: dir.stat().sid, work: activity::work(&dir).ok() })
            }
            Ok(None) => None,
            Err(_) => Some(CopyFacts { process, ..CopyFacts::default() }),
        };
        copies.iter().filter_map(|process| facts(*process)).collect()
    }
}

#[cfg(test)]
mod tests;
