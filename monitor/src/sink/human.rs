//! Notices as lines for people: time, kind, sentence; names are sanitised. The only state is the day of the last line.
//!
//! ```text
//! 12:01:33  orphan    server-filesystem (npm exec > sh > node, 197 MB) of claude #3, gone for 10 s: owner exited
//! ```

mod phrases;

use std::{collections::BTreeMap, fmt::Write as _};

use jiff::{civil::Date, tz::TimeZone};

pub(super) use phrases::pid_of;
pub(crate) use phrases::{agent_name, counts, guards_of, holdings, list_doubts};

use super::{
    Format,
    page::shown_server,
    paint::{self, Paint, appearance},
    text,
    wall_clock::WallClock,
};
use orphand_core::model::{
    AgentView, BootTime, Ending, Evidence, Guard, Losses, Mode, Notice, ServerView, list, signal_name,
};

#[derive(Clone, Debug)]
pub struct Text {
    pub wall: WallClock,
    pub zone: TimeZone,
    pub paint: Paint,
    /// The day of the last line. A new day gets a line of its own.
    day: Option<Date>,
    /// Whether anybody may read it: then it has no process number, no argument, no user, and no name from settings.
    public: bool,
}

impl Text {
    pub const fn new(wall: WallClock, zone: TimeZone, paint: Paint) -> Self {
        Self { wall, zone, paint, day: None, public: false }
    }

    /// Of what happened a sentence that anybody may read.
    pub fn public(wall: WallClock, at: BootTime, notice: &Notice) -> String {
        let text = Self { public: true, ..Self::new(wall, TimeZone::UTC, Paint::new(false)) };
        text.sentence(at, notice) + &text.more(notice).map(|more| format!("; {more}")).unwrap_or_default()
    }

    /// Only the kind and the sentence: `reaped: notes of claude #3 ended by SIGTERM in 42 ms, 197 MB freed`.
    pub fn plain(&self, at: BootTime, notice: &Notice) -> String {
        let more = self.more(notice).map(|more| format!("; {more}")).unwrap_or_default();
        format!("{}: {}{more}", appearance(notice.kind()).word, self.sentence(at, notice))
    }

    #[expect(clippy::too_many_lines, reason = "a sentence for each kind")]
    fn sentence(&self, at: BootTime, notice: &Notice) -> String {
        let (owner, server) = notice.views();
        let of = phrases::of_owner(owner);
        let server_name =
            |server: &ServerView| if self.public { shown_server(server) } else { server.name.clone() };
        let name = server.map(server_name).or_else(|| owner.map(agent_name));
        let name = self.paint.text(paint::NAME, text::sanitise(&name.unwrap_or_default()));
        let extent = |server: &ServerView, bytes| {
            let extent = if self.public { text::size(bytes) } else { phrases::extent(server, bytes) };
            format!("{name} ({extent}){of}")
        };
        // Who sent a signal is not for everybody.
        let ended = |ending: &Ending, words: fn(&Ending) -> String| match ending.signal {
            Some(signal) if self.public => format!("was killed by {}", signal_name(signal)),
            _ => words(ending),
        };
        match notice {
            Notice::AgentStarted { found, .. } | Notice::ServerStarted { found, .. } if self.public => {
                format!("{name}{} {}", server.map(|_| of).unwrap_or_default(), phrases::began(*found))
            }
            Notice::ReapFailed { .. } if self.public => format!("{name}{of} could not be ended"),
            Notice::AgentStarted { agent, continues, found } => {
                // The run has the name of the unit.
                let own = agent.run_name() != agent.name;
                let own = if own { format!(": {}", text::sanitise(&agent.name)) } else { String::new() };
                let mut line = format!("{name} {}{own}, pid {}", phrases::began(*found), agent.pid);
                if let Some(unit) = agent.unit.as_ref().filter(|_| own.is_empty()) {
                    let _ = write!(line, " in {}", text::sanitise(unit));
                }
                if agent.implied {
                    line.push_str(", an agent because it starts MCP servers");
                }
                if let Some(launcher) = continues {
                    let _ = write!(line, ", continues pid {}", launcher.pid);
                }
                line
            }
            Notice::AgentExited { ending, servers_left, rss_bytes, .. } => {
                format!("{name} {}{}", ended(ending, Ending::words), phrases::left(*servers_left, *rss_bytes))
            }
            Notice::LeftoversFound { count, rss_bytes, processes, .. } => {
                let heads = if self.public { &[][..] } else { processes };
                format!("{name} {}", phrases::leftovers(*count, *rss_bytes, heads))
            }
            Notice::ServerStarted { server, found, .. } => {
                format!("{name}{of} {} ({})", phrases::began(*found), phrases::born(server))
            }
            Notice::ServerExited { ending, let_go, .. } => {
                format!("{name}{of} {}{}", ended(ending, Ending::told), phrases::remaining(let_go))
            }
            Notice::ServerDetached { pid, sid, .. } => {
                format!("{name}: pid {pid} moved from its owner's session to session {sid}")
            }
            Notice::ServerDuplicated { server, count, .. } => {
                let first = server.processes.first().filter(|_| !self.public);
                let pid = first.map(|process| format!(", pid {}", process.pid));
                format!("{name}{of}{}: it has {count} servers of this kind", pid.unwrap_or_default())
            }
            Notice::OrphanSuspected { deadline, .. } => {
                format!("{name}: {}, grace period {}", suspicion(owner), text::duration(deadline.since(at)))
            }
            Notice::OrphanCleared { after_ms, reason, owner, ending, let_go, .. } => {
                let what = match (owner, reason.as_str()) {
                    (Some(owner), _) => format!("{name} belongs to {}, found", agent_name(owner)),
                    (None, "exited") => format!("{name} {}", ended(ending, Ending::told)),
                    (None, reason) => format!("{name}: {}", text::sanitise(reason)),
                };
                let comma = if ending.signal.is_some() { "," } else { "" };
                format!("{what}{comma} after {}{}", text::millis(*after_ms), phrases::remaining(let_go))
            }
            Notice::OrphanDetected { again, server, evidence, rss_bytes, after_ms, .. } => {
                let again = if *again { " again" } else { "" };
                let since = since_owner_exit(evidence, *after_ms);
                format!("{}{again}{since}: {}", extent(server, *rss_bytes), list(evidence))
            }
            Notice::OrphanUnproven {
                server,
                evidence,
                doubts,
                reached_by,
                rss_bytes,
                after_ms,
                deadline,
                ..
            } => {
                let since = since_owner_exit(evidence, *after_ms);
                let most = deadline.map(|end| format!(", for {} at most", text::duration(end.since(at))));
                let (who, why) = (extent(server, *rss_bytes), list_doubts(doubts, reached_by));
                format!("{who}{since}: it stays: {why}{}", most.unwrap_or_default())
            }
            Notice::OrphanSpared { server, guards, .. } => {
                format!("{name}{of} stays: {}", self.guards(server, guards))
            }
            Notice::OrphanReaped {
                signal, took_ms, asked_by, freed_bytes, freed_pss_bytes, let_go, ..
            } => {
                let how = match (signal, took_ms) {
                    (Some(signal), Some(took)) => format!("by {} in {}", signal.name(), text::millis(*took)),
                    _ => "after a signal from an earlier daemon".to_owned(),
                };
                let freed = text::freed(*freed_bytes, *freed_pss_bytes);
                let asked = asked_by.as_ref().map(|by| format!(", as {} asked", self.person(by)));
                let asked = asked.unwrap_or_default();
                format!("{name}{of} ended {how}{asked}, {freed}{}", phrases::remaining(let_go))
            }
            Notice::ReapFailed { pid, error, errno, failed, .. } => {
                let errno = errno.map(|number| format!(" (errno {number})")).unwrap_or_default();
                let others = phrases::and_more(failed.saturating_sub(1));
                format!("{name}: pid {pid}{others} is still alive: {}{errno}", text::sanitise(error))
            }
            Notice::OrphanExited { ending, let_go, .. } => {
                let ended = ended(ending, Ending::told);
                format!("{name}{of}, an orphan, {ended}{}", phrases::remaining(let_go))
            }
            Notice::Ready { mode, processes, agents, servers, found, .. } => {
                let doing = match mode {
                    Mode::Enforce => "watching",
                    Mode::Observe => "observing, ends nothing",
                };
                let agents = text::count(*agents, "agent", "agents");
                let servers = text::count(*servers, "server", "servers");
                let processes = text::count(*processes, "process", "processes");
                format!("{doing}: {agents}, {servers}, {processes} followed{}", phrases::left_before(*found))
            }
            Notice::AgentsFolded { uid, count, names } => {
                let agents = text::count(*count, "agent", "agents");
                let names: Vec<_> = names.keys().map(|name| text::sanitise(name)).collect();
                let names = names.join(", ");
                format!("user {uid} started {agents}, all short-lived and without a server: {names}")
            }
            Notice::Lost { records, sink } => lost(*records, sink),
            Notice::Resynced { added, removed } => {
                let added = text::count(*added, "process", "processes");
                format!("process graph repaired from /proc: {added} found, {removed} gone")
            }
            Notice::Stopping { agents, servers, orphans } => {
                format!("{} stay", counts([*agents, *servers, *orphans]))
            }
            Notice::Alert { rule, on, agent, value, limit } => {
                phrases::threshold(rule, *on, agent.as_deref(), *value, *limit)
            }
            Notice::AlertResolved { rule, on, agent, value, limit, after_ms } => {
                let line = phrases::threshold(rule, *on, agent.as_deref(), *value, *limit);
                format!("{line}, after {}", text::millis(*after_ms))
            }
            Notice::Reconfigured { mode, by } => match (mode, by.as_deref().map(|by| self.person(by))) {
                (Mode::Enforce, None) => "a new configuration is in effect".to_owned(),
                (Mode::Observe, None) => {
                    "a new configuration is in effect: observing, ends nothing".to_owned()
                }
                (Mode::Enforce, Some(by)) => format!("ends orphans, decided by {by}"),
                (Mode::Observe, Some(by)) => {
                    format!("ends nothing from now on (a pause, or observe mode), decided by {by}")
                }
            },
        }
    }

    fn person(&self, name: &str) -> String {
        if self.public { "a person".to_owned() } else { text::sanitise(name).into_owned() }
    }

    fn guards(&self, server: &ServerView, guards: &[Guard]) -> String {
        if self.public { list(guards) } else { guards_of(server, guards) }
    }

    /// A second line: details of the daemon, how a server is reached, why an orphan stays.
    fn more(&self, notice: &Notice) -> Option<String> {
        match notice {
            Notice::OrphanDetected { server, guards, .. } if !guards.is_empty() => {
                Some(format!("it stays: {}", self.guards(server, guards)))
            }
            Notice::Ready { version, kernel, hooks, .. } if !self.public => {
                let hooks = if hooks.is_empty() { "no hooks".to_owned() } else { hooks.join(", ") };
                Some(text::clean(&format!("orphand {version}, kernel {kernel}; {hooks}")))
            }
            Notice::OrphanUnproven { reached_by, .. } if !reached_by.is_empty() && !self.public => {
                let steps: Vec<_> = reached_by.iter().map(|step| text::clean(&step.sentence())).collect();
                Some(steps.join("; "))
            }
            _ => None,
        }
    }
}

impl Format for Text {
    fn write(&mut self, at: BootTime, notice: &Notice, out: &mut String) {
        let when = self.wall.timestamp(at).to_zoned(self.zone.clone());
        if self.day != Some(when.date()) {
            self.day = Some(when.date());
            out.push_str(&self.paint.line(paint::DIM, when.date()));
        }
        let look = appearance(notice.kind());
        let time = self.paint.text(paint::DIM, when.strftime("%H:%M:%S"));
        let word = self.paint.text(look.style, format_args!("{:<8}", look.word));
        // Writing to a string cannot fail.
        let _ = writeln!(out, "{time}  {word}  {}", self.sentence(at, notice));
        if let Some(more) = self.more(notice) {
            let _ = writeln!(out, "{:20}{}", "", self.paint.text(paint::DIM, more));
        }
    }
}

fn lost(records: Losses, sink: &BTreeMap<String, u64>) -> String {
    let kinds = records.kinds().into_iter().filter(|(_, number)| *number > 0);
    let kinds = kinds
        .map(|(kind, number)| format!("{number} {}", if kind == "member" { "membership" } else { kind }));
    let kinds: Vec<String> = kinds.collect();
    let mut parts = Vec::new();
    if !kinds.is_empty() {
        parts.push(format!("kernel records: {}", kinds.join(", ")));
    }
    for (name, number) in sink {
        let lines = text::count(*number, "event", "events");
        parts.push(format!("{lines} of {}: its reader was too slow", text::sanitise(name)));
    }
    if parts.is_empty() { "nothing".to_owned() } else { parts.join("; ") }
}

/// `, gone for 10 s` if the owner's exit was witnessed; otherwise nothing.
fn since_owner_exit(found: &[Evidence], after_ms: u64) -> String {
    let witnessed = found.contains(&Evidence::OwnerExited);
    if witnessed { format!(", gone for {}", text::millis(after_ms)) } else { String::new() }
}

fn suspicion(owner: Option<&AgentView>) -> String {
    match owner {
        Some(owner) if owner.alive => format!("left behind though {} lives", agent_name(owner)),
        Some(owner) => format!("{} exited", agent_name(owner)),
        None => "its owner exited".to_owned(),
    }
}

#[cfg(test)]
pub(super) mod tests;
