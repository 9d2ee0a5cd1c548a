//! The kinds of events, whose names are a contract with users, and what an event is about: for the fields of the journal, the
//! variables of a hook, and queues.

use strum::VariantArray as _;

use super::{AgentView, Container, EventKind, Notice, ProcessView, RunView, ServerView, Share, Watched};

/// The fixed part of a queued notice in bytes, which covers short texts.
const LEAST: usize = 256;

impl Notice {
    pub fn kind(&self) -> EventKind {
        self.into()
    }

    /// The agent, or the owner of the server, and the server that it is about.
    pub const fn views(&self) -> (Option<&AgentView>, Option<&ServerView>) {
        match self {
            Self::AgentStarted { agent, .. }
            | Self::AgentExited { agent, .. }
            | Self::LeftoversFound { agent, .. } => (Some(agent), None),
            Self::ServerStarted { server, owner, .. }
            | Self::ServerExited { server, owner, .. }
            | Self::ServerDuplicated { server, owner, .. }
            | Self::OrphanSuspected { server, owner, .. }
            | Self::OrphanCleared { server, owner, .. }
            | Self::OrphanDetected { server, owner, .. }
            | Self::OrphanUnproven { server, owner, .. }
            | Self::OrphanSpared { server, owner, .. }
            | Self::OrphanReaped { server, owner, .. }
            | Self::OrphanExited { server, owner, .. } => (owner.as_ref(), Some(server)),
            Self::ServerDetached { server, .. } | Self::ReapFailed { server, .. } => (None, Some(server)),
            Self::Ready { .. }
            | Self::AgentsFolded { .. }
            | Self::Alert { .. }
            | Self::AlertResolved { .. }
            | Self::Reconfigured { .. }
            | Self::Lost { .. }
            | Self::Resynced { .. }
            | Self::Stopping { .. } => (None, None),
        }
    }

    /// The approximate number of bytes in a queue that is bounded in bytes. Only texts whose length others choose are
    /// counted in full.
    pub fn queued_bytes(&self) -> usize {
        let (_, server) = self.views();
        let let_go = match self {
            Self::ServerExited { let_go, .. }
            | Self::OrphanCleared { let_go, .. }
            | Self::OrphanReaped { let_go, .. }
            | Self::OrphanExited { let_go, .. } => let_go.as_slice(),
            _ => &[],
        };
        let left: &[_] = if let Self::LeftoversFound { processes, .. } = self { processes } else { &[] };
        let of_server = server.into_iter().flat_map(|server| &server.processes);
        let processes = of_server.chain(let_go).chain(left.iter().map(|one| &one.process));
        let container = server.and_then(|server| server.container.as_ref());
        2 * LEAST + container.map_or(0, Container::queued_bytes) + processes.map(queued_bytes).sum::<usize>()
    }
}

fn queued_bytes(process: &ProcessView) -> usize {
    let arguments = process.argv.iter().map(|argument| argument.len() + size_of::<String>());
    LEAST / 2 + process.exe.len() + arguments.sum::<usize>()
}

#[derive(Default)]
pub struct EventSubject<'a> {
    /// The first process of the server's launch chain (its id), the agent, or the process that could not be ended.
    pub pid: Option<u32>,
    pub server: Option<&'a ServerView>,
    owner: Option<&'a AgentView>,
    pub rss_bytes: Option<u64>,
    /// The agent or unit of an alert rule.
    pub named: Option<&'a str>,
}

impl<'a> EventSubject<'a> {
    pub fn of(notice: &'a Notice) -> Self {
        let (owner, server) = notice.views();
        let first = |server: &ServerView| server.processes.first().map(|process| process.pid);
        let pid = server.map_or_else(|| owner.map(|agent| agent.pid), first);
        let rss_bytes = server.and_then(|server| server.rss_bytes);
        let about = Self { pid, server, owner, rss_bytes, named: None };
        match notice {
            Notice::Alert { agent, on, value, .. } | Notice::AlertResolved { agent, on, value, .. } => {
                Self { named: agent.as_deref(), rss_bytes: (*on == Watched::Rss).then_some(*value), ..about }
            }
            Notice::AgentExited { rss_bytes: bytes, .. }
            | Notice::LeftoversFound { rss_bytes: bytes, .. }
            | Notice::OrphanDetected { rss_bytes: bytes, .. }
            | Notice::OrphanUnproven { rss_bytes: bytes, .. }
            | Notice::OrphanReaped { freed_bytes: bytes, .. } => Self { rss_bytes: Some(*bytes), ..about },
            Notice::ServerDetached { pid, .. } | Notice::ReapFailed { pid, .. } => {
                Self { pid: Some(*pid), ..about }
            }
            _ => about,
        }
    }

    pub fn share(&self) -> Option<Share> {
        let of_server = self.server.and_then(|server| server.processes.first()).map(|process| process.uid);
        of_server.or(self.owner.map(|owner| owner.uid)).map(Share::of)
    }

    fn run(&self) -> Option<&'a RunView> {
        self.server?.run.as_ref()
    }

    /// The name of the top-most agent, which the server counts for.
    pub fn agent(&self) -> Option<&'a str> {
        let run = self.run().map(|run| &run.agent);
        run.or(self.owner.map(|owner| &owner.name)).map(String::as_str).or(self.named)
    }

    pub fn generation(&self) -> Option<u64> {
        match self.run() {
            Some(run) => run.generation,
            None => self.owner?.generation,
        }
    }

    /// The agent's unit and the journal field for it. Units of containers have no field on this host.
    pub fn unit(&self) -> Option<(&'static str, &'a str)> {
        let (unit, manager) = match self.run() {
            Some(run) => (run.unit.as_deref()?, run.manager.as_deref()),
            None => (self.owner?.unit.as_deref()?, None),
        };
        match manager {
            None => Some(("UNIT", unit)),
            Some(path) if path.rsplit('/').next().is_some_and(|last| last.starts_with("user@")) => {
                Some(("USER_UNIT", unit))
            }
            Some(_) => None,
        }
    }
}

impl EventKind {
    pub const ALL: &'static [Self] = Self::VARIANTS;

    pub fn name(self) -> &'static str {
        self.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_are_those_that_serde_reads() {
        // serde lists the names that there are.
        let error = serde_json::from_str::<Notice>(r#"{"event":"?"}"#).unwrap_err().to_string();
        let mut names: Vec<_> = error.split('`').skip(1).step_by(2).filter(|name| *name != "?").collect();
        let mut known: Vec<_> = EventKind::ALL.iter().map(|kind| kind.name()).collect();
        names.sort_unstable();
        known.sort_unstable();
        assert_eq!(names, known, "{error}");
    }
}
