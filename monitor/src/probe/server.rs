//! All facts from the host that a verdict on one server needs.

use std::collections::BTreeMap;

use super::{Probe, activity, manager::Asked};
use crate::{
    os::{clock, processor_time::Meter},
    read::pipe,
};
use orphand_core::model::{CopyFacts, FirstMessage, ProcessId, ServerFacts, Subject, scene::SceneServer};

/// Up to this many resident bytes of a server its proportional memory is read. That costs 10 us for each megabyte.
/// Resident bytes count what processes share once for each of them: they may be several times what a server takes.
const WEIGHED: u64 = 4 << 30;

impl Probe {
    pub fn facts(&self, subjects: &[&Subject]) -> Vec<ServerFacts> {
        let mut asked = Asked::default();
        self.facts_after(subjects, |subject| {
            let mut processes = subject.processes.iter().filter(|_| subject.unit);
            let stopping = processes.any(|process| self.is_being_stopped(*process, &mut asked));
            let enclosing = self.enclosing(&subject.processes).map(Box::new);
            let container =
                subject.container.as_deref().and_then(|query| self.container(query)).map(Box::new);
            let unread_input = subject.input.then(|| self.waiting_message(subject)).flatten();
            ServerFacts { stopping, enclosing, container, unread_input, ..ServerFacts::default() }
        })
    }

    /// First what others answer (`beside`: managers, engines, helpers), who may take seconds, and what is no evidence: who uses a
    /// server is read last, and who comes meanwhile is seen.
    fn facts_after(
        &self,
        subjects: &[&Subject],
        beside: impl FnMut(&Subject) -> ServerFacts,
    ) -> Vec<ServerFacts> {
        let questions: Vec<_> = subjects.iter().map(|subject| &subject.question).collect();
        let weights: Vec<_> = subjects.iter().map(|subject| self.weights(subject)).collect();
        let mut all: Vec<_> = subjects.iter().copied().map(beside).collect();
        let (began, meter) = (clock::now(), Meter::begin());
        let scenes = self.scenes(&questions);
        // On a host with millions of descriptors it takes long, however often it is made again.
        let began = Some(began + meter.spent());
        for ((subject, facts), scene) in subjects.iter().zip(&mut all).zip(scenes) {
            (facts.began, facts.scene) = (began, scene);
            let inside = facts.container.iter().flat_map(|container| &container.processes);
            let processes: Vec<_> = subject.processes.iter().chain(inside).copied().collect();
            facts.work = if subject.work { activity::of_all(&self.proc, &processes) } else { Vec::new() };
            let due = subject.question.servers.first();
            let message = facts.unread_input.take().unwrap_or(FirstMessage::Unknown);
            facts.unread_input = due.and_then(|server| self.unread_input(server, message));
        }
        for (facts, weights) in all.iter_mut().zip(&weights) {
            for row in facts.scene.processes.iter_mut().filter(|row| row.full) {
                row.pss_bytes = weights.get(&row.process).copied();
            }
        }
        all
    }

    /// `message`: what was seen to wait there before.
    fn unread_input(&self, server: &SceneServer, message: FirstMessage) -> Option<FirstMessage> {
        let waits = pipe::has_unread(&self.proc, &server.processes, server.stdin)?;
        Some(if waits { message } else { FirstMessage::Nothing })
    }

    fn waiting_message(&self, subject: &Subject) -> Option<FirstMessage> {
        let SceneServer { processes, stdin, .. } = subject.question.servers.first()?;
        let mut messages = processes.iter().map(|process| self.first_message(&[*process], *stdin));
        // Where there is only the beginning of a message, something waits all the same.
        messages.find(|message| !message.is_nothing() && *message != FirstMessage::Unknown)
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
