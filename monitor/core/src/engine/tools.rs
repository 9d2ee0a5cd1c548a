//! Tools of orphans: a command that a server was asked to run, and that goes on with its work when nobody is left to
//! hear of it, a migration for instance. The end of the server waits for it, for a bounded time.
//!
//! A tool is a process that is tied to the server and no part of its launch chain. A browser is none: it never comes to
//! an end by itself, and does a little all the time.

use std::time::Duration;

use super::Engine;
use crate::{
    lineage::{Node, Program, ServerKey},
    model::{BootTime, Doubt, ProcessId},
    recognise::is_browser,
    verdict::Finding,
    world::Server,
};

/// Between two looks at a tool that works, at least.
const LEAST: Duration = Duration::from_secs(1);

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
        let Some(server) = self.world.server_mut(key) else { return };
        if server.phase.is_terminating() || server.phase.asked() || is_in_grace(server, now) {
            return;
        }
        if !finding.case.doubts.is_empty() {
            server.tools.awaited = None;
        } else if server.tools.worked(tools.into_iter())
            && *server.tools.awaited.get_or_insert(now) + self.settings.work_grace > now
        {
            finding.case.doubts.push(Doubt::Working);
        }
    }

    /// Until when the end of a server waits for its tools, if it does.
    pub(super) fn tools_deadline(&self, server: &Server) -> Option<BootTime> {
        let works = |server: &Server| {
            server.phase.verdict().is_some_and(|verdict| verdict.doubts.contains(&Doubt::Working))
        };
        server.tools.awaited.filter(|_| works(server)).map(|since| since + self.settings.work_grace)
    }

    /// Looks at the tools again before long, and at the end of their time.
    pub(super) fn look_at_tools_again(&mut self, now: BootTime, key: ServerKey) {
        let deadline = self.world.server(key).and_then(|server| self.tools_deadline(server));
        if let Some(deadline) = deadline {
            let next = now + self.settings.grace.max(LEAST);
            self.world.set_timer(key, Some(next.min(deadline)));
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
