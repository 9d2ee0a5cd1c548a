//! Tools of orphans: a command that a server was asked to run, and that goes on with its work when nobody is left to
//! hear of it, a migration for instance. The end of the server waits for it, for a bounded time.
//!
//! A tool is a process that is tied to the server and no part of its launch chain. A browser is none: it never comes to
//! an end by itself, and does a little all the time.

use std::{collections::BTreeMap, time::Duration};

use super::{Engine, cases::CaseOf};
use crate::{
    lineage::{Node, Program, ServerKey},
    model::{BootTime, Doubt, ProcessId, Work},
    recognise::is_browser,
    verdict::Finding,
    world::Server,
};

/// Between two looks at a tool that works, at least.
const LEAST: Duration = Duration::from_secs(1);

type Accounts = BTreeMap<ProcessId, Work>;

/// What the processes of a server had done at the last two looks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Tools {
    before: Option<Accounts>,
    last: Accounts,
    /// Since when the end of the server waits for its tools.
    awaited: Option<BootTime>,
}

impl Tools {
    /// The host was asleep: the tools did not work, and their time begins anew.
    pub(super) fn rest_until(&mut self, now: BootTime) {
        self.awaited = self.awaited.map(|_| now);
    }

    /// Takes in what the processes have done until now.
    pub(super) fn look(&mut self, work: &[Work]) {
        let now = work.iter().map(|work| (work.process, *work)).collect();
        self.before = Some(std::mem::replace(&mut self.last, now));
    }

    /// Whether one of these has done something between the last two looks. One that could not be read may have, and one
    /// that is new has.
    fn worked(&self, mut tools: impl Iterator<Item = ProcessId>) -> bool {
        tools.any(|tool| {
            let last = self.last.get(&tool);
            last.is_none() || self.before.as_ref().is_none_or(|before| before.get(&tool) != last)
        })
    }
}

impl Engine {
    /// Adds a doubt if nothing but the work of its tools speaks against the end of a server, and they still have time.
    pub(super) fn wait_for_tools(&mut self, now: BootTime, key: ServerKey, finding: &mut Finding) {
        let below_a_browser = |process: &ProcessId| {
            let runs = |node: &Node| node.exec.program.as_deref().map(Program::name);
            let above = self.world.graph().ancestors(*process);
            let above = above.take_while(|node| node.server == Some(key));
            let mut line = self.world.node(*process).into_iter().chain(above);
            line.any(|node| runs(node).is_some_and(|name| is_browser(&name)))
        };
        let tools: Vec<ProcessId> =
            finding.members.tied.iter().filter(|process| !below_a_browser(process)).copied().collect();
        let Some(server) = self.world.server(key) else { return };
        if server.phase.is_terminating() || server.phase.asked() || is_in_grace(server, now) {
            return;
        }
        let seen = self.tools.entry(key).or_default();
        if !finding.case.doubts.is_empty() {
            seen.awaited = None;
        } else if seen.worked(tools.into_iter())
            && *seen.awaited.get_or_insert(now) + self.settings.work_grace > now
        {
            finding.case.doubts.push(Doubt::Working);
        }
    }

    /// Until when the end of a server waits for its tools, if it does.
    pub(super) fn tools_deadline(&self, key: ServerKey) -> Option<BootTime> {
        let verdict = self.world.server(key)?.phase.verdict()?;
        let awaited = self.tools.get(&key)?.awaited.filter(|_| verdict.doubts.contains(&Doubt::Working))?;
        Some(awaited + self.settings.work_grace)
    }

    /// Looks at the tools again before long, and at the end of their time.
    pub(super) fn look_at_tools_again(&mut self, now: BootTime, key: ServerKey) {
        if let Some(deadline) = self.tools_deadline(key) {
            let next = now + self.settings.grace.max(LEAST);
            self.set_deadline(CaseOf::Server(key), Some(next.min(deadline)));
        }
    }
}

/// Whether a server may have tools: it has a process that no rule recognised.
pub(super) fn may_have_tools(server: &Server) -> bool {
    server.processes().iter().any(|process| !server.recognised().contains(process))
}

fn is_in_grace(server: &Server, now: BootTime) -> bool {
    server.phase.grace().is_some_and(|deadline| now < deadline)
}
