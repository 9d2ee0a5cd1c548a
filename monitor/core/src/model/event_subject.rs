//! Which server and which agent an event is about: for the fields of the journal and the variables of a hook.

use super::{AgentView, Notice, RunView, ServerView, Watched};

/// What an event is about.
#[derive(Default)]
pub struct EventSubject<'a> {
    /// The first process of the server's launch chain (its id), the agent, or the process that could not be ended.
    pub pid: Option<u32>,
    /// The server.
    pub server: Option<&'a ServerView>,
    owner: Option<&'a AgentView>,
    /// The memory that the event reports, in bytes.
    pub rss_bytes: Option<u64>,
    /// The agent or unit of an alert rule.
    pub named: Option<&'a str>,
}

impl<'a> EventSubject<'a> {
    /// What this event is about.
    pub fn of(notice: &'a Notice) -> Self {
        let about = |server: &'a ServerView, owner: &'a Option<AgentView>| Self {
            pid: server.processes.first().map(|process| process.pid),
            server: Some(server),
            owner: owner.as_ref(),
            rss_bytes: server.rss_bytes,
            named: None,
        };
        let agent = |agent: &'a AgentView, rss_bytes| Self {
            pid: Some(agent.pid),
            server: None,
            owner: Some(agent),
            rss_bytes,
            named: None,
        };
        match notice {
            Notice::Ready { .. }
            | Notice::AgentsFolded { .. }
            | Notice::Lost { .. }
            | Notice::Resynced { .. }
            | Notice::Reconfigured { .. }
            | Notice::Stopping { .. } => Self::default(),
            Notice::Alert { agent, on, value, .. } | Notice::AlertResolved { agent, on, value, .. } => Self {
                named: agent.as_deref(),
                rss_bytes: (*on == Watched::Rss).then_some(*value),
                ..Self::default()
            },
            Notice::AgentStarted { agent: one, .. } => agent(one, None),
            Notice::AgentExited { agent: one, rss_bytes, .. }
            | Notice::LeftoversFound { agent: one, rss_bytes, .. } => agent(one, Some(*rss_bytes)),
            Notice::ServerStarted { server, owner, .. }
            | Notice::ServerExited { server, owner, .. }
            | Notice::ServerDuplicated { server, owner, .. }
            | Notice::OrphanSuspected { server, owner, .. }
            | Notice::OrphanCleared { server, owner, .. }
            | Notice::OrphanSpared { server, owner, .. }
            | Notice::OrphanExited { server, owner, .. } => about(server, owner),
            Notice::ServerDetached { server, pid, .. } | Notice::ReapFailed { server, pid, .. } => {
                Self { pid: Some(*pid), ..about(server, &None) }
            }
            Notice::OrphanDetected { server, owner, rss_bytes, .. }
            | Notice::OrphanUnproven { server, owner, rss_bytes, .. } => {
                Self { rss_bytes: Some(*rss_bytes), ..about(server, owner) }
            }
            Notice::OrphanReaped { server, owner, freed_bytes, .. } => {
                Self { rss_bytes: Some(*freed_bytes), ..about(server, owner) }
            }
        }
    }

    fn run(&self) -> Option<&'a RunView> {
        self.server?.run.as_ref()
    }

    /// The name of the top-most agent, which the server counts for.
    pub fn agent(&self) -> Option<String> {
        let run = self.run().map(|run| &run.agent);
        let known = run.or(self.owner.map(|owner| &owner.name)).cloned();
        known.or_else(|| self.named.map(str::to_owned))
    }

    /// The number of that agent's run.
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
