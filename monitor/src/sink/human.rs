//! Notices as lines for people: time, kind, sentence.
//!
//! ```text
//! 12:01:33  orphan    server-filesystem (npm exec > sh > node, 4 processes, 197 MB) of claude #3,
//! gone for 10 s: owner exited, stdin hung up
//! ```
//!
//! (The example is one line.) Names that processes chose are sanitised. The only state is the day of the last
//! line.

pub(super) mod phrases;

use std::{fmt::Write as _, time::Duration};

use anstyle::Style;
use jiff::{civil::Date, tz::TimeZone};

pub(crate) use phrases::{agent_name, evidence, guards_of, list_doubts};
pub(super) use phrases::{list_guards, pid_of, sent};

use super::{Format, paint, paint::Paint, text, wall_clock::WallClock};
use orphand_core::model::{
    AgentView, BootTime, Evidence, Guard, Losses, Mode, Notice, ReachedBy, ServerView,
};

/// Formats notices as text.
#[derive(Clone, Debug)]
pub struct Text {
    /// Converts kernel time stamps to wall-clock time.
    pub wall: WallClock,
    /// The time zone of the times.
    pub zone: TimeZone,
    /// Whether to use colours.
    pub paint: Paint,
    /// The day of the last line. A new day gets a line of its own.
    day: Option<Date>,
}

impl Text {
    /// A formatter whose first line is the date.
    pub const fn new(wall: WallClock, zone: TimeZone, paint: Paint) -> Self {
        Self { wall, zone, paint, day: None }
    }

    /// Only the kind and the sentence: `reaped: notes of claude #3 ended by SIGTERM in 42 ms, 197 MB freed`.
    pub fn plain(&self, at: BootTime, notice: &Notice) -> String {
        let Sentence { word, line, more, .. } = self.sentence(at, notice);
        let more = more.map(|more| format!("; {more}")).unwrap_or_default();
        format!("{word}: {line}{more}")
    }

    fn name(&self, name: &str) -> String {
        self.paint.text(paint::NAME, text::sanitise(name))
    }

    /// The style and word of the second column, the sentence, and an optional second line.
    fn sentence(&self, at: BootTime, notice: &Notice) -> Sentence {
        match notice {
            Notice::Ready { .. }
            | Notice::Lost { .. }
            | Notice::Resynced { .. }
            | Notice::Alert { .. }
            | Notice::AlertResolved { .. }
            | Notice::Reconfigured { .. }
            | Notice::Stopping { .. } => of_the_daemon(notice),
            Notice::AgentStarted { agent, continues, found } => {
                let began = phrases::began(*found);
                let mut line = format!("{} {began}, pid {}", self.name(&agent_name(agent)), agent.pid);
                if let Some(unit) = &agent.unit {
                    let _ = write!(line, " in {}", text::sanitise(unit));
                }
                if agent.implied {
                    line.push_str(", an agent because it starts MCP servers");
                }
                if let Some(launcher) = continues {
                    let _ = write!(line, ", continues pid {}", launcher.pid);
                }
                Sentence::new(paint::NOTE, "agent", line)
            }
            Notice::AgentExited { agent, ending, servers_left, rss_bytes, .. } => {
                let mut line = format!("{} {}", self.name(&agent_name(agent)), ending.words());
                if *servers_left > 0 {
                    let left = text::count(*servers_left, "server", "servers");
                    let _ = write!(line, "; {left} left, {}", text::size(*rss_bytes));
                }
                Sentence::new(paint::NOTE, "agent", line)
            }
            Notice::LeftoversFound { agent, count, rss_bytes, processes, .. } => {
                let what = phrases::leftovers(*count, *rss_bytes, processes);
                Sentence::new(paint::WARNING, "leftover", format!("{} {what}", self.name(&agent_name(agent))))
            }
            Notice::AgentsFolded { uid, count, names } => {
                let names: Vec<_> = names.keys().map(|name| text::sanitise(name)).collect();
                let line = format!(
                    "user {uid} started {}, all short-lived and without a server: {}",
                    text::count(*count, "agent", "agents"),
                    names.join(", ")
                );
                Sentence::new(paint::NOTE, "agents", line)
            }
            Notice::ServerDuplicated { server, owner, count } => {
                let more = phrases::further(server, owner.as_ref(), *count);
                Sentence::new(paint::WARNING, "double", format!("{}{more}", self.name(&server.name)))
            }
            _ => self.of_a_server(at, notice),
        }
    }

    #[expect(clippy::too_many_lines, reason = "one arm an event")]
    fn of_a_server(&self, at: BootTime, notice: &Notice) -> Sentence {
        let named = |server: &ServerView| self.name(&server.name);
        let of = phrases::of_owner;
        let with_extent = |server, bytes, owner: &Option<AgentView>| {
            format!("{} ({}){}", named(server), phrases::extent(server, bytes), of(owner.as_ref()))
        };
        match notice {
            Notice::ServerStarted { server, owner, found } => {
                let (of, began, born) = (of(owner.as_ref()), phrases::began(*found), phrases::born(server));
                let line = format!("{}{of} {began} ({born})", named(server));
                Sentence::new(paint::PLAIN, "server", line)
            }
            Notice::ServerExited { server, owner, ending, let_go } => {
                let (of, stay) = (of(owner.as_ref()), phrases::remaining(let_go));
                let line = format!("{}{of} {}{stay}", named(server), ending.told());
                Sentence::new(paint::PLAIN, "server", line)
            }
            Notice::ServerDetached { server, pid, sid } => {
                let line =
                    format!("{}: pid {pid} moved from its owner's session to session {sid}", named(server));
                Sentence::new(paint::PLAIN, "detached", line)
            }
            Notice::OrphanSuspected { server, owner, deadline, .. } => {
                let why = suspicion(owner.as_ref());
                let line =
                    format!("{}: {why}, grace period {}", named(server), text::duration(deadline.since(at)));
                Sentence::new(paint::WARNING, "suspect", line)
            }
            Notice::OrphanCleared { server, after_ms, reason, owner, ending, let_go } => {
                let after = text::duration(Duration::from_millis(*after_ms));
                let line = match (owner, reason.as_str()) {
                    (Some(owner), _) => format!("{} belongs to {}, found", named(server), agent_name(owner)),
                    (None, "exited") => format!("{} {}", named(server), ending.told()),
                    (None, reason) => format!("{}: {}", named(server), text::sanitise(reason)),
                };
                let comma = if ending.signal.is_some() { "," } else { "" };
                let line = format!("{line}{comma} after {after}{}", phrases::remaining(let_go));
                Sentence::new(paint::GOOD, "cleared", line)
            }
            Notice::OrphanDetected {
                again,
                server,
                owner,
                evidence: found,
                guards,
                rss_bytes,
                after_ms,
                ..
            } => {
                let mut line = with_extent(server, *rss_bytes, owner);
                line.push_str(if *again { " again" } else { "" });
                line.push_str(&since_owner_exit(found, *after_ms));
                let found: Vec<&str> = found.iter().copied().map(evidence).collect();
                let _ = write!(line, ": {}", found.join(", "));
                let more = reasons_to_stay(server, guards);
                Sentence { more, ..Sentence::new(paint::ALARM, "orphan", line) }
            }
            Notice::OrphanUnproven {
                server,
                owner,
                evidence: found,
                doubts,
                reached_by,
                rss_bytes,
                after_ms,
                deadline,
                ..
            } => {
                let who = with_extent(server, *rss_bytes, owner);
                let since = since_owner_exit(found, *after_ms);
                let mut line = format!("{who}{since}: it stays: {}", list_doubts(doubts));
                if let Some(deadline) = deadline {
                    let _ = write!(line, ", for {} at most", text::duration(deadline.since(at)));
                }
                Sentence { more: way(reached_by), ..Sentence::new(paint::WARNING, "unproven", line) }
            }
            Notice::OrphanSpared { server, owner, guards, .. } => {
                let why = guards_of(server, guards);
                let line = format!("{}{} stays: {why}", named(server), of(owner.as_ref()));
                Sentence::new(paint::WARNING, "kept", line)
            }
            Notice::OrphanReaped {
                server,
                owner,
                signal,
                took_ms,
                freed_bytes,
                freed_pss_bytes,
                let_go,
                ..
            } => {
                let mut line = format!("{}{} ended", named(server), of(owner.as_ref()));
                match (signal, took_ms) {
                    (Some(signal), Some(took_ms)) => {
                        let took = text::duration(Duration::from_millis(*took_ms));
                        let _ = write!(line, " by {} in {took}", phrases::sent(*signal));
                    }
                    _ => line.push_str(" after a signal from an earlier daemon"),
                }
                let freed = text::freed(*freed_bytes, *freed_pss_bytes);
                let _ = write!(line, ", {freed}{}", phrases::remaining(let_go));
                Sentence::new(paint::GOOD, "reaped", line)
            }
            Notice::ReapFailed { server, pid, error, errno, failed } => {
                let errno = errno.map(|number| format!(" (errno {number})")).unwrap_or_default();
                let others = match failed.saturating_sub(1) {
                    0 => String::new(),
                    more => format!(" and {more} more"),
                };
                let error = text::sanitise(error);
                let line = format!("{}: pid {pid}{others} is still alive: {error}{errno}", named(server));
                Sentence::new(paint::ALARM, "failed", line)
            }
            Notice::OrphanExited { server, owner, ending, let_go, .. } => {
                let (of, stay) = (of(owner.as_ref()), phrases::remaining(let_go));
                let line = format!("{}{of}, an orphan, {}{stay}", named(server), ending.told());
                Sentence::new(paint::GOOD, "ended", line)
            }
            _ => of_the_daemon(notice),
        }
    }
}

impl Format for Text {
    fn write(&mut self, at: BootTime, notice: &Notice, out: &mut String) {
        let when = self.wall.timestamp(at).to_zoned(self.zone.clone());
        if self.day != Some(when.date()) {
            self.day = Some(when.date());
            out.push_str(&self.paint.text(paint::DIM, when.date()));
            out.push('\n');
        }
        let Sentence { style, word, line, more } = self.sentence(at, notice);
        let time = self.paint.text(paint::DIM, when.strftime("%H:%M:%S"));
        let word = self.paint.text(style, format_args!("{word:<8}"));
        // Writing to a string cannot fail.
        let _ = writeln!(out, "{time}  {word}  {line}");
        if let Some(more) = more {
            let _ = writeln!(out, "{:20}{}", "", self.paint.text(paint::DIM, more));
        }
    }
}

/// How a server is reached, in one line.
fn way(reached_by: &[ReachedBy]) -> Option<String> {
    let steps: Vec<_> = reached_by.iter().map(|step| text::sanitise(&step.sentence()).into_owned()).collect();
    (!steps.is_empty()).then(|| steps.join("; "))
}

struct Sentence {
    style: Style,
    word: &'static str,
    line: String,
    more: Option<String>,
}

impl Sentence {
    const fn new(style: Style, word: &'static str, line: String) -> Self {
        Self { style, word, line, more: None }
    }
}

fn of_the_daemon(notice: &Notice) -> Sentence {
    match notice {
        Notice::Ready { version, mode, kernel, hooks, processes, agents, servers, found } => {
            let doing = match mode {
                Mode::Reap => "watching",
                Mode::Observe => "observing, ends nothing",
            };
            let line = format!(
                "{doing}: {}, {}, {} followed{}",
                text::count(*agents, "agent", "agents"),
                text::count(*servers, "server", "servers"),
                text::count(*processes, "process", "processes"),
                phrases::left_before(*found),
            );
            let (version, kernel) = (text::sanitise(version), text::sanitise(kernel));
            let hooks: Vec<_> = hooks.iter().map(|hook| text::sanitise(hook)).collect();
            let hooks = if hooks.is_empty() { "no hooks".to_owned() } else { hooks.join(", ") };
            let more = format!("orphand {version}, kernel {kernel}; {hooks}");
            Sentence { more: Some(more), ..Sentence::new(paint::NOTE, "ready", line) }
        }
        Notice::Lost { records, sink } => Sentence::new(paint::WARNING, "lost", lost(records, sink)),
        Notice::Resynced { added, removed } => {
            let line = format!(
                "process graph repaired from /proc: {} found, {removed} gone",
                text::count(*added, "process", "processes")
            );
            Sentence::new(paint::NOTE, "repaired", line)
        }
        Notice::Stopping { agents, servers, orphans } => {
            let line = format!(
                "{}, {}, {} stay",
                text::count(*agents, "agent", "agents"),
                text::count(*servers, "server", "servers"),
                text::count(*orphans, "orphan", "orphans"),
            );
            Sentence::new(paint::NOTE, "stopping", line)
        }
        Notice::Alert { rule, on, agent, value, limit } => {
            let line = phrases::threshold(rule, *on, agent.as_deref(), *value, *limit);
            Sentence::new(paint::ALARM, "alert", line)
        }
        Notice::AlertResolved { rule, on, agent, value, limit, after_ms } => {
            let line = phrases::threshold(rule, *on, agent.as_deref(), *value, *limit);
            let after = text::duration(Duration::from_millis(*after_ms));
            Sentence::new(paint::GOOD, "resolved", format!("{line}, after {after}"))
        }
        Notice::Reconfigured { mode, by } => {
            let line = match (mode, by) {
                (Mode::Reap, None) => "a new configuration is in effect".to_owned(),
                (Mode::Observe, None) => {
                    "a new configuration is in effect: observing, ends nothing".to_owned()
                }
                (Mode::Reap, Some(by)) => format!("ends orphans, decided by {}", text::sanitise(by)),
                (Mode::Observe, Some(by)) => format!("ends nothing, decided by {}", text::sanitise(by)),
            };
            Sentence::new(paint::NOTE, "config", line)
        }
        // Other notices have their own branch above; an unknown one is shown as it is.
        other => Sentence::new(paint::PLAIN, "event", text::sanitise(&format!("{other:?}")).into_owned()),
    }
}

fn lost(records: &Losses, sink: &std::collections::BTreeMap<String, u64>) -> String {
    let Losses { fork, exec, exit, setsid, member } = *records;
    let kinds = [(fork, "fork"), (exec, "exec"), (exit, "exit"), (setsid, "setsid"), (member, "membership")];
    let kinds: Vec<String> =
        kinds.iter().filter(|(n, _)| *n > 0).map(|(number, kind)| format!("{number} {kind}")).collect();
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
    if !found.contains(&Evidence::OwnerExited) {
        return String::new();
    }
    format!(", gone for {}", text::duration(Duration::from_millis(after_ms)))
}

fn reasons_to_stay(server: &ServerView, guards: &[Guard]) -> Option<String> {
    (!guards.is_empty()).then(|| format!("it stays: {}", guards_of(server, guards)))
}

/// Why a server may have been left behind.
fn suspicion(owner: Option<&AgentView>) -> String {
    match owner {
        Some(owner) if owner.alive => format!("left behind though {} lives", agent_name(owner)),
        Some(owner) => format!("{} exited", agent_name(owner)),
        None => "its owner exited".to_owned(),
    }
}

#[cfg(test)]
pub(super) mod tests;
