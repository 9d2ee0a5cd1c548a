//! Notices as entries of the journal: the sentence for people, fields for programs.
//!
//! Invariants: every kind of event has a `MESSAGE_ID` of its own, which never changes; every entry has all of MESSAGE, `MESSAGE_ID`,
//! PRIORITY, `ORPHAND_EVENT` and `ORPHAND_JSON`, the line that the stream would have. For an [`super::outlet::Outlet`] alone.

mod kind;

use std::{io, thread, time::Duration};

use jiff::tz::TimeZone;

pub use self::kind::{ALL, Kind, kind};
use super::{Format, human::Text, outlet::Target, paint::Paint, stream::Json, wall::Wall};
use crate::{
    journal::{Journal, field, head, is_absent},
    model::{AgentView, BootTime, Notice, RunView, ServerView, Watched},
};

/// Between two tries to reach a journald that is not there.
const ABSENT: Duration = Duration::from_secs(1);

/// Writes notices as entries, one for each.
#[derive(Clone, Debug)]
pub struct Entries {
    text: Text,
    json: Json,
}

impl Entries {
    /// Entries whose first has the `seq` 1 in its JSON.
    pub const fn new(wall: Wall) -> Self {
        Self { text: Text::new(wall, TimeZone::UTC, Paint::new(false)), json: Json::new(wall) }
    }
}

impl Format for Entries {
    fn write(&mut self, at: BootTime, notice: &Notice, out: &mut String) {
        let Kind { event, id, priority } = kind(notice);
        head(out, &self.text.plain(at, notice), priority);
        field(out, "MESSAGE_ID", id);
        // daemon, syslog(3).
        field(out, "SYSLOG_FACILITY", "3");
        field(out, "ORPHAND_EVENT", event);
        let about = About::of(notice);
        let mut optional = |name, value: Option<String>| {
            if let Some(value) = value {
                field(out, name, &value);
            }
        };
        optional("OBJECT_PID", about.pid.map(|pid| pid.to_string()));
        optional("ORPHAND_SERVER", about.server.map(|server| server.name.clone()));
        optional("ORPHAND_AGENT", about.agent());
        optional("ORPHAND_GENERATION", about.generation().map(|number| number.to_string()));
        optional("ORPHAND_RSS_BYTES", about.rss_bytes.map(|bytes| bytes.to_string()));
        if let Some((name, unit)) = about.unit() {
            field(out, name, unit);
        }
        let mut line = String::new();
        self.json.write(at, notice, &mut line);
        field(out, "ORPHAND_JSON", line.trim_end());
    }
}

/// Whom a notice is about.
#[derive(Default)]
struct About<'a> {
    /// The head of the server's launch chain, as in its id; the agent; the process that could not be ended.
    pid: Option<u32>,
    server: Option<&'a ServerView>,
    owner: Option<&'a AgentView>,
    rss_bytes: Option<u64>,
    /// The agent, or the unit, that a threshold is about.
    named: Option<&'a str>,
}

impl<'a> About<'a> {
    fn of(notice: &'a Notice) -> Self {
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
            Notice::AgentExited { agent: one, rss_bytes, .. } => agent(one, Some(*rss_bytes)),
            Notice::ServerStarted { server, owner }
            | Notice::ServerExited { server, owner }
            | Notice::OrphanSuspected { server, owner, .. }
            | Notice::OrphanCleared { server, owner, .. }
            | Notice::OrphanSpared { server, owner, .. }
            | Notice::OrphanExited { server, owner, .. } => about(server, owner),
            Notice::ServerDetached { server, pid, .. } | Notice::ReapFailed { server, pid, .. } => {
                Self { pid: Some(*pid), ..about(server, &None) }
            }
            Notice::OrphanDetected { server, owner, rss_bytes, .. } => {
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

    /// The top-most one, to which a server is accounted.
    fn agent(&self) -> Option<String> {
        let run = self.run().map(|run| &run.agent);
        let known = run.or(self.owner.map(|owner| &owner.name)).cloned();
        known.or_else(|| self.named.map(str::to_owned))
    }

    fn generation(&self) -> Option<u64> {
        match self.run() {
            Some(run) => run.generation,
            None => self.owner?.generation,
        }
    }

    /// The agent's unit, in the field that systemd has for such units. Those of containers have none on this host.
    fn unit(&self) -> Option<(&'static str, &'a str)> {
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

impl Target for Journal {
    /// Each entry by itself.
    const BATCH: usize = 0;

    fn write(&mut self, entry: &str) -> io::Result<()> {
        loop {
            match self.send(entry) {
                // While it is started anew what happens waits in the queue.
                Err(error) if is_absent(&error) => thread::sleep(ABSENT),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                sent => return sent,
            }
        }
    }
}

#[cfg(test)]
mod tests;
