//! All facts from the host that a verdict on one server needs.

use std::collections::BTreeMap;

use super::{ManagerError, Probe, activity};
use crate::read::pipe;
use orphand_core::model::{
    CopyFacts, FirstMessage, OwnEnd, ProcessId, ServerFacts, Subject, Unit, UnitState,
    scene::{Scene, SceneServer},
};

/// Up to this many resident bytes of a server its proportional memory is read. That costs 10 us for each megabyte.
/// Resident bytes count what processes share once for each of them: they may be several times what a server takes.
const WEIGHED: u64 = 4 << 30;

impl Probe {
    pub fn facts(&self, subjects: &[&Subject]) -> Vec<ServerFacts> {
        let questions: Vec<_> = subjects.iter().map(|subject| &subject.question).collect();
        // First what takes its time and is no evidence: who uses a server is to be read last.
        let weights: Vec<_> = subjects.iter().map(|subject| self.weights(subject)).collect();
        let mut scenes = self.scenes(&questions);
        for (scene, weights) in scenes.iter_mut().zip(&weights) {
            for row in scene.processes.iter_mut().filter(|row| row.full) {
                row.pss_bytes = weights.get(&row.process).copied();
            }
        }
        // After the scenes: who began to end them meanwhile is heard. Once for a unit, whatever it has.
        let mut asked = BTreeMap::new();
        let stopping: Vec<bool> = subjects
            .iter()
            .zip(&scenes)
            .map(|(subject, scene)| self.is_stopping(subject, scene, &mut asked))
            .collect();
        let all = subjects.iter().zip(scenes).zip(stopping);
        all.map(|((subject, scene), stopping)| ServerFacts { stopping, ..self.facts_beside(subject, scene) })
            .collect()
    }

    /// Whether the unit that it runs in is being stopped: then its manager is ending it. Who does not answer says no, and is asked
    /// about no other unit.
    fn is_stopping(
        &self,
        subject: &Subject,
        scene: &Scene,
        asked: &mut BTreeMap<Unit, Result<bool, ManagerError>>,
    ) -> bool {
        let mut rows = scene.full(&subject.processes).filter(|_| subject.unit);
        let found = rows.find_map(|row| {
            let unit = row.unit.as_ref()?;
            let goes_on = matches!(unit.state, UnitState::Active(_)) && !unit.left_behind();
            goes_on.then(|| (row.process, unit.unit.clone()))
        });
        let Some((process, unit)) = found else { return false };
        let is_silent = |(other, said): (&Unit, &Result<bool, ManagerError>)| {
            other.manager == unit.manager && matches!(said, Err(ManagerError::Silent(_)))
        };
        if asked.iter().any(is_silent) {
            return false;
        }
        let said = asked.entry(unit).or_insert_with(|| Ok(self.service(process).1?.stopping));
        matches!(said, Ok(true))
    }

    fn facts_beside(&self, subject: &Subject, scene: Scene) -> ServerFacts {
        let enclosing = self.enclosing(&subject.processes).map(Box::new);
        let container = subject.container.as_deref().and_then(|query| self.container(query)).map(Box::new);
        let inside = container.iter().flat_map(|container| &container.processes);
        let all: Vec<_> = subject.processes.iter().chain(inside).copied().collect();
        let work = if subject.work { activity::of_all(&self.proc, &all) } else { Vec::new() };
        let due = subject.question.servers.first();
        let unread_input = due.and_then(|server| self.unread_input(server, subject.input));
        ServerFacts { scene, work, unread_input, stopping: false, container, enclosing }
    }

    fn unread_input(&self, server: &SceneServer, is_asked: bool) -> Option<FirstMessage> {
        let stdin = server.stdin;
        if !pipe::has_unread(&self.proc, &server.processes, stdin)? {
            return Some(FirstMessage::Nothing);
        }
        let messages =
            server.processes.iter().map(|process| self.first_message(OwnEnd { process: *process, stdin }));
        // Where there is only the beginning of a message, something waits all the same.
        let is_known = |message: &FirstMessage| !message.is_nothing() && *message != FirstMessage::Unknown;
        Some(messages.take_while(|_| is_asked).find(is_known).unwrap_or(FirstMessage::Unknown))
    }

    /// The proportional memory of the server's processes, as far as it can be read. It is reported and no evidence.
    fn weights(&self, subject: &Subject) -> BTreeMap<ProcessId, u64> {
        // One process at a time: there may be more than we may open descriptors.
        let identified = |process: &ProcessId| self.proc.identified(*process).ok().flatten();
        let all = || subject.processes.iter().filter_map(identified);
        if all().filter_map(|dir| dir.used().ok()).map(|used| used.rss_bytes).sum::<u64>() > WEIGHED {
            return BTreeMap::new();
        }
        all().filter_map(|dir| Some((dir.id(), dir.proportional_bytes().ok()?))).collect()
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
