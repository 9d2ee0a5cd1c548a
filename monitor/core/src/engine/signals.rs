//! The results of signals, and which user a process belongs to when it gets one.

use super::Engine;
use crate::{
    case::Event,
    lineage::{AgentKey, Node},
    model::{BootTime, Fact, ProcessId, ServerFacts, Signal, SignalError},
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
        for seen in facts.scene.processes.iter().filter(|row| row.full) {
            let now = (seen.uid, seen.stale_binary);
            self.world.change(seen.process, |node| (node.uid, node.stale_binary) = now);
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
        let agent = self.world.agent_of(process);
        let agent = agent.filter(|key| self.world.agent(*key).is_some_and(|a| a.phase.is_terminating()));
        if error.is_none() {
            self.remember_signal(now, process, signal, agent);
        }
        let Some(error) = error else { return };
        if let Some(agent) = agent {
            self.agent_event(now, agent, Event::SignalRefused { process, signal, error, last: true });
        } else if let Some(key) = self.world.node(process).and_then(|n| n.server.or(n.wraps)) {
            let last = matches!(error, SignalError::System { .. }) && !self.is_target_left(key, process);
            self.server_event(now, key, Event::SignalRefused { process, signal, error, last });
        }
    }

    /// A person can ask later whom orphand signalled, and why: the store has the verdict of that moment.
    fn remember_signal(
        &mut self,
        now: BootTime,
        process: ProcessId,
        signal: Signal,
        agent: Option<AgentKey>,
    ) {
        let node = self.world.node(process);
        let image = node.and_then(Node::image);
        let program = image.map(|image| image.exe.rsplit('/').next().unwrap_or_default().to_owned());
        let server = node.and_then(|n| n.server.or(n.wraps)).and_then(|key| self.world.server(key));
        let (subject, asked) = match (agent.and_then(|key| self.world.agent(key)), server) {
            (Some(agent), _) => (agent.main(), agent.phase.asked()),
            (None, Some(server)) => (server.id, server.phase.asked()),
            // A leftover, which no verdict is about.
            (None, None) => return,
        };
        let program = program.unwrap_or_default();
        self.persist(now, Fact::Signalled { server: subject, process, program, signal, asked });
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
