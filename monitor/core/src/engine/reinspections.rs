//! Inspects servers that stay once more when a process has ended that may be why they stay.
//!
//! Invariant: whoever is reached on a path of processes that live stays reached. So only a server on whose path somebody ended is
//! inspected, and one that stays for another reason.

use std::time::Duration;

use rustc_hash::FxHashSet;

use super::{Engine, agenda::Task};
use crate::{
    case::{Event, INSPECT_AGAIN, Stage},
    lineage::ServerKey,
    model::{BootTime, ProcessId, ReachedBy},
    world::Server,
};

/// The pause between two times for each server that is inspected: nobody can keep the host busy by ending thousands of
/// processes, and where hundreds of servers stay, no agent that comes and goes every second does.
const EACH: Duration = Duration::from_millis(20);
/// So many processes that are on no path any more are kept at most, beside as many as are on one.
const ROOM: usize = 64;

#[derive(Debug, Default)]
pub(super) struct Reinspections {
    /// Who is on the path to a server that stays.
    reasons: FxHashSet<ProcessId>,
    /// How many these may become before those that are on no path any more are forgotten.
    room: usize,
    /// Those of them that have ended since the last time.
    ended: FxHashSet<ProcessId>,
    /// Until then nobody is inspected because another process has ended.
    until: BootTime,
}

impl Reinspections {
    /// Servers stay because of these paths, and of no others.
    fn set<'a>(&mut self, paths: impl Iterator<Item = &'a Server>) {
        self.reasons = paths.flat_map(|server| &server.reached_by).filter_map(ReachedBy::process).collect();
        self.room = 2 * self.reasons.len() + ROOM;
    }

    /// Whether this process, which has ended, was on the path to a server.
    pub(super) fn was_a_reason(&mut self, process: ProcessId) -> bool {
        self.reasons.remove(&process) && self.ended.insert(process)
    }

    fn concern(&self, server: &Server) -> bool {
        match server.phase.stage() {
            // What a guard is about is no step of a path.
            Some(Stage::Spared) => true,
            Some(Stage::Unproven) => {
                let mut path = server.reached_by.iter().map(ReachedBy::process);
                path.len() == 0 || path.any(|one| one.is_none_or(|one| self.ended.contains(&one)))
            }
            _ => false,
        }
    }
}

impl Engine {
    /// Whether an unproven server stays because of this process.
    pub(super) fn keeps_a_server(&self, process: ProcessId) -> bool {
        let is_kept = |server: &Server| {
            server.phase.stage() == Some(Stage::Unproven)
                && server.reached_by.iter().any(|step| step.process() == Some(process))
        };
        self.reinspections.reasons.contains(&process) && self.world.servers().values().any(is_kept)
    }

    /// Returns the path until now.
    pub(super) fn reached(&mut self, key: ServerKey, path: Vec<ReachedBy>) -> Vec<ReachedBy> {
        let reasons = &mut self.reinspections.reasons;
        reasons.extend(path.iter().filter_map(ReachedBy::process));
        let is_full = reasons.len() > self.reinspections.room;
        let server = self.world.server_mut(key);
        let before = server.map(|server| std::mem::replace(&mut server.reached_by, path));
        if is_full {
            self.reinspections.set(self.world.servers().values());
        }
        before.unwrap_or_default()
    }

    /// A process exited that a server may stay for. Such servers are inspected at once, but at most once every
    /// [`INSPECT_AGAIN`], and the more they are the more seldom ([`EACH`]).
    pub(super) fn other_ended(&mut self, now: BootTime) {
        let until = self.reinspections.until;
        self.agenda.set(Task::Reinspect, (until > now).then_some(until));
        if until > now {
            return;
        }
        let servers = self.world.servers().iter();
        let concerned = servers.filter(|(_, server)| self.reinspections.concern(server));
        let concerned: Vec<ServerKey> = concerned.map(|(key, _)| *key).collect();
        let pause = EACH.saturating_mul(u32::try_from(concerned.len()).unwrap_or(u32::MAX));
        self.reinspections.until = now + pause.max(INSPECT_AGAIN);
        self.reinspections.ended.clear();
        self.reinspections.set(self.world.servers().values());
        for key in concerned {
            self.server_event(now, key, Event::OtherEnded);
        }
    }
}
