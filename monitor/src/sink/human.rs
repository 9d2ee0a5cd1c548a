//! Notices for a person at a terminal: one calm line each, what it is about in the second column.
//!
//! ```text
//! 12:01:33  orphan    server-filesystem (npm exec > sh > node, 4 processes, 197 MB) of claude #3, gone for
//!                     10 s: owner exited, stdin hung up
//! ```
//! (in one line). Whatever comes from a process is sanitised. No clock, no state but the day of the last line.

mod words;

use std::{fmt::Write as _, time::Duration};

use anstyle::Style;
use jiff::{civil::Date, tz::TimeZone};

pub(super) use words::{agent_name, evidence, list_doubts, list_guards, sent};

use super::{Format, paint, paint::Paint, text, wall::Wall};
use orphand_core::model::{BootTime, Evidence, Guard, Losses, Mode, Notice, ServerView};

/// Writes notices as text.
#[derive(Clone, Debug)]
pub struct Text {
    /// What the kernel's clock means.
    pub wall: Wall,
    /// The time zone of the first column.
    pub zone: TimeZone,
    /// Whether in colour.
    pub paint: Paint,
    /// The day of the last line: a new day is told on a line of its own.
    day: Option<Date>,
}

impl Text {
    /// Text that begins with a line that tells the day.
    pub const fn new(wall: Wall, zone: TimeZone, paint: Paint) -> Self {
        Self { wall, zone, paint, day: None }
    }

    /// The sentence alone, without time and columns: `reaped: notes of claude #3 ended by SIGTERM in 42 ms, 197 MB freed`.
    pub fn plain(&self, at: BootTime, notice: &Notice) -> String {
        let Sentence { word, line, more, .. } = self.sentence(at, notice);
        let more = more.map(|more| format!("; {more}")).unwrap_or_default();
        format!("{word}: {line}{more}")
    }

    fn name(&self, name: &str) -> String {
        self.paint.text(paint::NAME, text::sanitise(name))
    }

    /// The style and word of the second column, the sentence, and what may follow on a line of its own.
    fn sentence(&self, at: BootTime, notice: &Notice) -> Sentence {
        match notice {
            Notice::Ready { .. }
            | Notice::Lost { .. }
            | Notice::Resynced { .. }
            | Notice::Alert { .. }
            | Notice::AlertResolved { .. }
            | Notice::Reconfigured { .. }
            | Notice::Stopping { .. } => of_the_daemon(notice),
            Notice::AgentStarted { agent, continues } => {
                let mut line = format!("{} started, pid {}", self.name(&agent_name(agent)), agent.pid);
                if let Some(unit) = &agent.unit {
                    let _ = write!(line, " in {}", text::sanitise(unit));
                }
                if agent.implied {
                    line.push_str(", an agent because it starts MCP servers");
                }
                if let Some(launcher) = continues {
                    let _ = write!(line, ", goes on for pid {}", launcher.pid);
                }
                Sentence::new(paint::NOTE, "agent", line)
            }
            Notice::AgentExited { agent, exit_code, signal, servers_left, rss_bytes } => {
                let mut line = self.name(&agent_name(agent));
                line.push_str(&words::ending(*exit_code, *signal));
                if *servers_left > 0 {
                    let left = text::count(*servers_left, "server", "servers");
                    let _ = write!(line, "; it leaves {left}, {}", text::size(*rss_bytes));
                }
                Sentence::new(paint::NOTE, "agent", line)
            }
            Notice::AgentsFolded { uid, count, names } => {
                let names: Vec<_> = names.keys().map(|name| text::sanitise(name)).collect();
                let line = format!(
                    "user {uid} started {}, each for a moment and without a server: {}",
                    text::count(*count, "agent", "agents"),
                    names.join(", ")
                );
                Sentence::new(paint::NOTE, "agents", line)
            }
            _ => self.of_a_server(at, notice),
        }
    }

    fn of_a_server(&self, at: BootTime, notice: &Notice) -> Sentence {
        let named = |server: &ServerView| self.name(&server.name);
        let of = words::of_owner;
        match notice {
            Notice::ServerStarted { server, owner } => {
                let line =
                    format!("{}{} started ({})", named(server), of(owner.as_ref()), words::born(server));
                Sentence::new(paint::PLAIN, "server", line)
            }
            Notice::ServerExited { server, owner, let_go } => {
                let line = format!("{}{} ended{}", named(server), of(owner.as_ref()), words::stay(let_go));
                Sentence::new(paint::PLAIN, "server", line)
            }
            Notice::ServerDetached { server, pid, sid } => {
                let line = format!("{}: pid {pid} left its owner's session for {sid}", named(server));
                Sentence::new(paint::PLAIN, "detached", line)
            }
            Notice::OrphanSuspected { server, owner, deadline, .. } => {
                let owner = owner.as_ref().map_or_else(|| "its owner".to_owned(), agent_name);
                let line = format!(
                    "{}: {owner} exited, {} of grace",
                    named(server),
                    text::duration(deadline.since(at))
                );
                Sentence::new(paint::WARNING, "suspect", line)
            }
            Notice::OrphanCleared { server, after_ms, reason, owner, let_go } => {
                let after = text::duration(Duration::from_millis(*after_ms));
                let line = match (owner, reason.as_str()) {
                    (Some(owner), _) => format!("{} belongs to {}, found", named(server), agent_name(owner)),
                    (None, "exited") => format!("{} ended by itself", named(server)),
                    (None, reason) => format!("{}: {}", named(server), text::sanitise(reason)),
                };
                Sentence::new(paint::GOOD, "cleared", format!("{line} after {after}{}", words::stay(let_go)))
            }
            Notice::OrphanDetected {
                server, owner, evidence: found, guards, rss_bytes, after_ms, ..
            } => {
                let mut line = format!(
                    "{} ({}){}",
                    named(server),
                    words::extent(server, *rss_bytes),
                    of(owner.as_ref())
                );
                line.push_str(&gone_for(found, *after_ms));
                let found: Vec<&str> = found.iter().copied().map(evidence).collect();
                let _ = write!(line, ": {}", found.join(", "));
                Sentence { more: stays_because(guards), ..Sentence::new(paint::ALARM, "orphan", line) }
            }
            Notice::OrphanUnproven { server, owner, evidence: found, doubts, rss_bytes, after_ms } => {
                let line = format!(
                    "{} ({}){}{}: it stays: {}",
                    named(server),
                    words::extent(server, *rss_bytes),
                    of(owner.as_ref()),
                    gone_for(found, *after_ms),
                    list_doubts(doubts),
                );
                Sentence::new(paint::WARNING, "unproven", line)
            }
            Notice::OrphanSpared { server, owner, guards, .. } => {
                let why = list_guards(guards);
                let line = format!("{}{} stays: {why}", named(server), of(owner.as_ref()));
                Sentence::new(paint::WARNING, "spared", line)
            }
            Notice::OrphanReaped { server, owner, signal, took_ms, freed_bytes, let_go, .. } => {
                let mut line = format!("{}{} ended", named(server), of(owner.as_ref()));
                match (signal, took_ms) {
                    (Some(signal), Some(took_ms)) => {
                        let took = text::duration(Duration::from_millis(*took_ms));
                        let _ = write!(line, " by {} in {took}", words::sent(*signal));
                    }
                    _ => line.push_str(", as an earlier daemon had told it to"),
                }
                let _ = write!(line, ", {} freed{}", text::size(*freed_bytes), words::stay(let_go));
                Sentence::new(paint::GOOD, "reaped", line)
            }
            Notice::ReapFailed { server, pid, error, errno, failed } => {
                let errno = errno.map(|number| format!(" (errno {number})")).unwrap_or_default();
                let others = match failed.saturating_sub(1) {
                    0 => String::new(),
                    more => format!(" and {more} more"),
                };
                let error = text::sanitise(error);
                let line = format!("{}: pid {pid}{others} lives on: {error}{errno}", named(server));
                Sentence::new(paint::ALARM, "failed", line)
            }
            Notice::OrphanExited { server, owner, let_go, .. } => {
                let (of, stay) = (of(owner.as_ref()), words::stay(let_go));
                let line = format!("{}{of}, an orphan, ended by itself{stay}", named(server));
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
        Notice::Ready { version, mode, kernel, hooks, processes, agents, servers } => {
            let doing = match mode {
                Mode::Reap => "watching",
                Mode::Observe => "observing, nothing will be ended",
            };
            let line = format!(
                "{doing}: {}, {}, {} in their lineage",
                text::count(*agents, "agent", "agents"),
                text::count(*servers, "server", "servers"),
                text::count(*processes, "process", "processes"),
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
                "lineage repaired from /proc: {} found, {removed} gone",
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
            let line = words::threshold(rule, *on, agent.as_deref(), *value, *limit);
            Sentence::new(paint::ALARM, "alert", line)
        }
        Notice::AlertResolved { rule, on, agent, value, limit, after_ms } => {
            let line = words::threshold(rule, *on, agent.as_deref(), *value, *limit);
            let after = text::duration(Duration::from_millis(*after_ms));
            Sentence::new(paint::GOOD, "resolved", format!("{line}, after {after}"))
        }
        Notice::Reconfigured { mode } => {
            let line = match mode {
                Mode::Reap => "another configuration is in effect",
                Mode::Observe => "another configuration is in effect: observing, nothing will be ended",
            };
            Sentence::new(paint::NOTE, "config", line.to_owned())
        }
        // All others are told elsewhere; what is not is shown as it is.
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
        parts.push(format!("records of the kernel: {}", kinds.join(", ")));
    }
    for (name, number) in sink {
        let lines = text::count(*number, "line", "lines");
        parts.push(format!("{lines} of {}, its reader was too slow", text::sanitise(name)));
    }
    if parts.is_empty() { "nothing".to_owned() } else { parts.join("; ") }
}

/// `, gone for 10 s`, of an owner whose exit was witnessed; nothing of another.
fn gone_for(found: &[Evidence], after_ms: u64) -> String {
    if !found.contains(&Evidence::OwnerExited) {
        return String::new();
    }
    format!(", gone for {}", text::duration(Duration::from_millis(after_ms)))
}

fn stays_because(guards: &[Guard]) -> Option<String> {
    (!guards.is_empty()).then(|| format!("it stays: {}", list_guards(guards)))
}

#[cfg(test)]
pub(super) mod tests;
