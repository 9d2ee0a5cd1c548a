//! Which processes may be signalled, in which order, and what came of it. Every signal to a server goes through these checks.

use std::iter;

use rustc_hash::FxHashSet;

use super::{Engine, cases::CaseOf};
use crate::{
    case::{Event, Phase},
    lineage::{AgentKey, Node, ServerKey, in_order},
    model::{BootTime, Fact, ProcessId, ServerFacts, Signal, SignalError},
    recognise::Role,
    world::is_run_by,
};

impl Engine {
    /// The last check before every signal, who may get one: of a server that is an orphan without a guard its targets, of an
    /// agent that may be ended its main process.
    pub(super) fn may_signal(&self, of: CaseOf) -> FxHashSet<ProcessId> {
        let targets = match of {
            CaseOf::Server(key) => {
                let orphan = self.world.server(key).and_then(|server| server.phase.orphan());
                orphan.filter(|verdict| verdict.guards.is_empty()).map(|_| self.targets(key))
            }
            CaseOf::Agent(key) if self.may_end(key) => self.world.agent(key).map(|agent| vec![agent.main()]),
            CaseOf::Agent(_) => None,
        };
        targets.into_iter().flatten().collect()
    }

    /// Whether a process of a server may be signalled. The following never are, in any state of the case: a process
    /// that is not part of the server, a protected process, an agent and its ancestors, orphand itself, pid 1, a
    /// wrapper that has other children, and the client of a container.
    pub(super) fn is_target(&self, key: ServerKey, process: ProcessId) -> bool {
        let is_agent = |node: &Node| self.world.agent_of(node.id).is_some();
        self.is_target_but_for_agents(key, process)
            && self.world.agent_of(process).is_none()
            && !self.world.graph().below(process).any(is_agent)
    }

    fn is_target_but_for_agents(&self, key: ServerKey, process: ProcessId) -> bool {
        let Some(server) = self.world.server(key) else { return false };
        let Some(node) = self.world.node(process) else { return false };
        let is_wrapper = !server.processes().contains(&process);
        let launches = || {
            // What it let go has been released when its turn comes.
            let was_alone =
                server.phase.orphan().is_some_and(|orphan| orphan.attempt.not_to_be_asked.contains(&process));
            let role = node.role();
            matches!(role, Some(Role::Launcher | Role::Shell | Role::Other { .. } | Role::ServiceManager))
                && node.stdin() == server.stdin
                && (was_alone || self.world.graph().below(process).all(|below| server.contains(below.id)))
        };
        process.pid > 1
            && server.contains(process)
            && !node.protected
            && !self.ourselves.contains(&process)
            && (!is_wrapper || launches())
            && !node.is_client()
    }

    /// The main process: follows the launch chain down from the process that was recognised last. A tool on its wires is no link.
    pub(super) fn main_process(&self, key: ServerKey) -> Option<ProcessId> {
        let server = self.world.server(key)?;
        let first = self.world.node(server.main_process()).filter(|n| n.server == Some(key));
        let is_link = |n: &&Node| {
            n.server == Some(key)
                && n.stdin() == server.stdin
                && n.origin().process == n.id
                && !is_run_by(self.world.graph(), server, n.id)
        };
        let next = |at: &&Node| {
            let mut links = self.world.graph().children(at.id).filter(is_link);
            links.next().filter(|_| links.next().is_none())
        };
        iter::successors(first, next).last().map(|node| node.id)
    }

    /// The agents among these processes and their descendants, and all ancestors of those agents.
    pub(super) fn at_and_above_agents(
        &self,
        processes: impl Iterator<Item = ProcessId>,
    ) -> FxHashSet<ProcessId> {
        let mut seen = FxHashSet::default();
        let mut stack: Vec<ProcessId> = processes.collect();
        let mut found = FxHashSet::default();
        while let Some(process) = stack.pop() {
            if !seen.insert(process) {
                continue;
            }
            stack.extend(self.world.graph().children(process).map(|child| child.id));
            if self.world.agent_of(process).is_some() && found.insert(process) {
                let mut above = self.world.graph().ancestors(process);
                while above.next().is_some_and(|node| found.insert(node.id)) {}
            }
        }
        found
    }

    /// The living processes of the server that may be signalled, children before their parents.
    pub(super) fn targets(&self, key: ServerKey) -> Vec<ProcessId> {
        let Some(server) = self.world.server(key) else { return Vec::new() };
        // Computed once for all of them: there may be thousands of processes, each the child of the one before.
        let above_agents = self.at_and_above_agents(server.all());
        let is_one = |p: &ProcessId| !above_agents.contains(p) && self.is_target_but_for_agents(key, *p);
        let mut living = in_order(server.all().filter(is_one).filter_map(|process| self.world.node(process)));
        living.reverse();
        living
    }

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

    /// The case of the agent, or of the server, that this process is being ended with.
    fn case_of(&self, process: ProcessId) -> Option<CaseOf> {
        let is_ending = |key: &AgentKey| self.world.agent(*key).is_some_and(|a| a.phase.is_terminating());
        let agent = self.world.agent_of(process).filter(is_ending).map(CaseOf::Agent);
        let server = || self.world.node(process).and_then(|node| node.server.or(node.wraps));
        agent.or_else(|| server().map(CaseOf::Server))
    }

    /// A person can ask later whom orphand signalled, and why: the store has the verdict of that moment.
    pub(super) fn signalled(&mut self, now: BootTime, process: ProcessId, signal: Signal) {
        let node = self.world.node(process);
        let exe = node.and_then(Node::image).map(|image| image.exe.as_str()).unwrap_or_default();
        let program = exe.rsplit('/').next().unwrap_or_default().to_owned();
        // No verdict is about a leftover.
        let Some(of) = self.case_of(process) else { return };
        if let Some((server, asked)) = self.stored_as(of).zip(self.phase(of).map(Phase::asked)) {
            self.persist(now, Fact::Signalled { server, process, program, signal, asked });
        }
    }

    pub(super) fn signal_refused(
        &mut self,
        now: BootTime,
        process: ProcessId,
        signal: Signal,
        error: SignalError,
    ) {
        let Some(of) = self.case_of(process) else { return };
        let is_final = matches!(error, SignalError::System { .. });
        let last = match of {
            CaseOf::Agent(_) => true,
            CaseOf::Server(key) => is_final && !self.is_target_left(key, process),
        };
        self.advance(now, of, Event::SignalRefused { process, signal, error, last }, None);
    }

    /// Whether there is a process, other than this one, that may be signalled and did not refuse a signal.
    fn is_target_left(&self, key: ServerKey, but: ProcessId) -> bool {
        let Some(server) = self.world.server(key) else { return false };
        let refused = |process| {
            let orphan = server.phase.orphan();
            process == but || orphan.is_some_and(|verdict| verdict.attempt.refused.contains(&process))
        };
        self.targets(key).into_iter().any(|process| !refused(process))
    }
}
