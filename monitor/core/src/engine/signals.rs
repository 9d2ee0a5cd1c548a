//! The results of signals, and which user a process belongs to when it gets one.

use super::Engine;
use crate::{
    case::{Event, Refusal},
    model::{BootTime, ProcessId, ServerFacts, Signal, SignalError},
};

impl Engine {
    /// The real user id of a process, as last reported or seen.
    pub(super) fn user(&self, process: ProcessId) -> Option<u32> {
        // For a bare parent only the identity is known.
        self.world.node(process).filter(|n| n.witnessed || n.exec.program.is_some()).map(|n| n.uid)
    }

    /// Updates from an inspection what no record reports: real user ids after a setuid(2), and whether an executable
    /// was replaced on disk.
    pub(super) fn update_users(&mut self, facts: &ServerFacts) {
        for seen in &facts.processes {
            self.world.set_user(seen.process, seen.uid);
            self.world.set_stale_binary(seen.process, seen.stale_binary);
        }
    }

    /// Handles the result of a signal.
    pub(super) fn signalled(
        &mut self,
        now: BootTime,
        process: ProcessId,
        signal: Signal,
        error: Option<SignalError>,
    ) {
        let Some(refusal) = error.and_then(Refusal::of) else { return };
        let agent = self.world.agent_of(process);
        let agent = agent.filter(|key| self.world.agent(*key).is_some_and(|a| a.phase.is_terminating()));
        if let Some(agent) = agent {
            self.agent_event(now, agent, Event::SignalRefused { process, signal, refusal, last: true });
            return;
        }
        let Some(key) = self.world.node(process).and_then(|n| n.server.or(n.wraps)) else { return };
        let last = matches!(refusal, Refusal::Final { .. }) && !self.is_target_left(key, process);
        self.server_event(now, key, Event::SignalRefused { process, signal, refusal, last });
    }

    /// Whether there is a process, other than this one, that may be signalled and did not refuse a signal.
    fn is_target_left(&self, key: crate::lineage::ServerKey, but: ProcessId) -> bool {
        let Some(server) = self.world.server(key) else { return false };
        let refused = |process: &ProcessId| {
            let orphan = server.phase.orphan();
            *process == but || orphan.is_some_and(|verdict| verdict.attempt.refused.contains(process))
        };
        let mut others =
            server.processes().iter().chain(server.wrappers()).filter(|process| !refused(process));
        others.any(|process| self.is_target(key, *process))
    }
}
