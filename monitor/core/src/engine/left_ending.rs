//! Ending leftovers that a person named: SIGTERM to the head and what is below it, and SIGKILL to what is left of that
//! after the term timeout. The daemon never begins it.

use std::{collections::BTreeSet, time::Duration};

use super::{Engine, agenda::Task};
use crate::{
    lineage::AgentKey,
    model::{BootTime, Effect, ProcessId, Signal},
};

/// How long a process that was killed may take to end until it is told that it stays.
const AFTER_KILL: Duration = Duration::from_secs(2);

/// How far the end of a branch is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ending {
    agent: AgentKey,
    killed: bool,
}

impl Engine {
    /// Begins to end the leftovers with these ids. No guard protects one: a person has seen it.
    pub(super) fn end_leftovers(&mut self, now: BootTime, ids: &BTreeSet<String>) {
        let heads = self.leftovers.of_agent.iter().flat_map(|(key, left)| {
            let found = left.heads.iter().filter(|(_, head)| head.is_some());
            found.map(|(head, _)| (*key, *head))
        });
        let meant: Vec<_> = heads.filter(|(_, head)| ids.contains(&head.to_string())).collect();
        for (agent, head) in meant {
            if !self.leftovers.ending.contains_key(&head) {
                self.agenda.set(Task::LeftEnding(head), Some(now + self.policy.term_timeout));
                self.leftovers.ending.insert(head, Ending { agent, killed: false });
                // From the top down: a shell must not go on with its next command.
                self.signal_branch(agent, self.branch(agent, head), Signal::Term);
            }
        }
    }

    /// What did not end by SIGTERM is killed; what did not end by that stays.
    pub(super) fn go_on_ending(&mut self, now: BootTime, head: ProcessId) {
        let Some(Ending { agent, killed }) = self.leftovers.ending.remove(&head) else { return };
        if !killed && self.is_left(agent, head) {
            self.agenda.set(Task::LeftEnding(head), Some(now + AFTER_KILL));
            self.leftovers.ending.insert(head, Ending { agent, killed: true });
            let mut below = self.branch(agent, head);
            below.reverse();
            self.signal_branch(agent, below, Signal::Kill);
        }
    }

    /// Signals processes of a branch. Every signal to a leftover goes through this check.
    fn signal_branch(&mut self, agent: AgentKey, branch: Vec<ProcessId>, signal: Signal) {
        for process in branch {
            let is_agent = |node: &crate::lineage::Node| self.world.agent_of(node.id).is_some();
            if process.pid > 1
                && self.is_left(agent, process)
                && !self.world.graph().below(process).any(is_agent)
            {
                let uid = self.user(process);
                self.effects.push_back(Effect::Signal { process, signal, uid });
            }
        }
    }
}
