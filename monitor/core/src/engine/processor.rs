//! The processor time of what was left behind, for alerts on `cpu`: how much of a CPU orphans and unproven servers have
//! used over the last minute.
//!
//! Invariant: without an alert on `cpu`, and without such a server, nothing is measured. The readings are those of
//! memory, which tell processor time, too.

use std::{
    collections::{BTreeMap, VecDeque},
    time::Duration,
};

use super::{Engine, agenda::Task};
use crate::{
    lineage::ServerKey,
    model::{About, Answer, BootTime, ProcessId, Watched},
    world::Server,
};

/// Between two readings.
const EVERY: Duration = Duration::from_secs(5);
/// The time that an alert looks back.
const MINUTE: Duration = Duration::from_secs(60);
/// How many processes are measured at once: everybody waits for it.
const PROCESSES: usize = 1024;

/// Readings of the last minute.
#[derive(Debug, Default)]
pub(super) struct Processor {
    of_server: BTreeMap<ServerKey, VecDeque<Reading>>,
}

/// The CPU time of a server at a moment.
#[derive(Clone, Copy, Debug)]
struct Reading {
    at: BootTime,
    cpu_ms: u64,
}

impl Processor {
    /// How much of one CPU a server has used since the oldest reading of the last minute, in percent.
    pub(super) fn percent(&self, key: ServerKey) -> u64 {
        let readings = self.of_server.get(&key);
        let Some((first, last)) = readings.and_then(|all| Some((all.front()?, all.back()?))) else {
            return 0;
        };
        let time = u64::try_from(last.at.since(first.at).as_millis()).unwrap_or(u64::MAX);
        last.cpu_ms.saturating_sub(first.cpu_ms).saturating_mul(100).checked_div(time).unwrap_or_default()
    }
}

impl Engine {
    /// Begins to measure, if an alert wants it and there is something to measure.
    pub(super) fn begin_processor_watch(&mut self, now: BootTime) {
        if self.agenda.at(Task::Processor).is_none()
            && self.alarms.watch(Watched::Cpu)
            && self.world.servers().values().any(is_left_behind)
        {
            self.agenda.set(Task::Processor, Some(now));
        }
    }

    /// Measures what was left behind.
    pub(super) fn read_processor(&mut self, now: BootTime) {
        let left = self.world.servers().iter().filter(|(_, server)| is_left_behind(server));
        let servers: Vec<ServerKey> = left.map(|(key, _)| *key).collect();
        self.processor.of_server.retain(|key, _| servers.binary_search(key).is_ok());
        let wanted = !servers.is_empty() && self.alarms.watch(Watched::Cpu);
        self.agenda.set(Task::Processor, wanted.then(|| now + EVERY));
        if wanted {
            let of_all = servers.iter().filter_map(|key| self.world.server(*key)).flat_map(Server::processes);
            let processes: Vec<ProcessId> = of_all.take(PROCESSES).copied().collect();
            self.ask(About::Memory(processes), move |engine, now, answer| {
                engine.measured(now, &servers, answer);
            });
        }
    }

    /// Memory and processor time of these servers were measured: keeps the readings of this moment.
    pub(super) fn measured(&mut self, now: BootTime, servers: &[ServerKey], answer: Answer) {
        if !matches!(answer, Answer::Memory { .. }) {
            return;
        }
        self.remember_memory(servers, answer);
        for key in servers {
            let Some(cpu_ms) = self.world.server(*key).and_then(|server| server.cpu_ms) else { continue };
            let readings = self.processor.of_server.entry(*key).or_default();
            readings.push_back(Reading { at: now, cpu_ms });
            // Of those that are older than a minute the latest stays: the others are compared with it.
            while readings.get(1).is_some_and(|second| now.since(second.at) >= MINUTE) {
                readings.pop_front();
            }
        }
        self.alarms.dirty = true;
    }
}

fn is_left_behind(server: &Server) -> bool {
    let state = server.phase.state();
    state.is_orphan() || state == crate::model::State::Unproven
}
