//! The text of `orphand status`: whether it is well, since when, sums, what comes next, losses.

use std::{fmt::Write as _, time::Duration};

use jiff::{Timestamp, tz::TimeZone};

use super::{
    list,
    paint::{self, Paint},
    text::{self, sanitise},
    wall_clock::{WallClock, shown},
};
use orphand_core::model::{BootTime, Mode, ServerReport, SessionState, Standing, State, Status};

pub fn render(status: &Status, now: BootTime, wall: WallClock, zone: &TimeZone, paint: Paint) -> String {
    let mode = doing(status.mode, &status.standing, wall.timestamp(now), zone);
    let up = Duration::from_millis(status.up_ms);
    let mut out = format!(
        "orphand {} (pid {}) {mode}.\nWatching for {}, since {}; {} followed.\n",
        text::sanitise(&status.version),
        status.pid,
        text::duration(up),
        shown(wall.timestamp(now - up), zone),
        text::count(status.processes, "process", "processes"),
    );
    let stuck = (!status.stuck.is_empty()).then(|| format!("Not seen: {}", text::unanswered(&status.stuck)));
    let config = status.config_error.as_ref();
    let config = config.map(|why| format!("The configuration was not reloaded: {}", text::sanitise(why)));
    let store = status.store_error.as_ref().map(|why| format!("Not kept: {}", text::sanitise(why)));
    let forgotten = status.forgotten.iter().map(|what| format!("Not known: {}.", text::sanitise(what)));
    for line in list::from_before(&status.report).into_iter().chain(config).chain(store).chain(forgotten) {
        out.push_str(&paint.line(paint::WARNING, line));
    }
    for why in &status.blind {
        out.push_str(&paint.line(paint::ALARM, format_args!("Blind: {}", text::sanitise(why))));
    }
    if let Some(line) = stuck {
        out.push_str(&paint.line(paint::WARNING, line));
    }
    out.push_str(&list::sum(&status.report, &status.blind));
    out.push('\n');
    // What was measured before a part of it ended says nothing of the rest.
    let of_now = |(_, one): (_, &ServerReport)| {
        one.pss_bytes.filter(|pss| one.server.rss_bytes.is_none_or(|rss| *pss <= rss))
    };
    let proportional: Vec<u64> = status.report.servers().filter_map(of_now).collect();
    if !proportional.is_empty() {
        let of = text::count(proportional.len() as u64, "server", "servers");
        let bytes = proportional.into_iter().fold(0, u64::saturating_add);
        let _ = writeln!(out, "Proportional memory of {of}: {}.", text::size(bytes));
    }
    out.push_str(&next(status, now, paint));
    sessions(status, &mut out);
    let (errors, lost) = (errors(status), lost(status));
    if status.store_error.is_none() && status.is_watching() {
        let whole = lost.is_none() && status.forgotten.is_empty();
        let line = if whole { "Not blind, nothing lost." } else { "Not blind." };
        out.push_str(&paint.line(paint::GOOD, line));
    }
    for line in errors.into_iter().chain(lost) {
        out.push_str(&paint.line(paint::WARNING, line));
    }
    out
}

/// `Next: 2 to be judged within 8 s.`, a line for each state.
fn next(status: &Status, now: BootTime, paint: Paint) -> String {
    let sum = status.report.totals();
    let left = sum.orphans - sum.ending - sum.kept;
    let due = status.report.servers().filter(|(_, one)| one.state == State::Suspect);
    let last = due.filter_map(|(_, one)| one.deadline).max();
    let within = last.map(|at| format!(" within {}", text::duration(at.since(now)))).unwrap_or_default();
    let noun = if sum.leftovers == 1 { "leftover" } else { "leftovers" };
    let leftover = format!("{noun}, {}", text::size(sum.leftover_rss_bytes));
    let parts = [
        (sum.ending, "being ended"),
        (left, "could not be ended: `orphand ps --state orphan`"),
        (sum.suspects, &format!("to be judged{within}")),
        (sum.kept, "kept by a guard: `orphand ps --state kept -o wide`"),
        (sum.unproven, "unproven: `orphand explain PID` says who can reach it"),
        (sum.leftovers, &format!("{leftover}: `orphand ps --state leftover`")),
    ];
    let style = if left > 0 { paint::ALARM } else { paint::PLAIN };
    let parts = parts.into_iter().filter(|(number, _)| *number > 0);
    parts.map(|(number, what)| paint.text(style, format_args!("Next: {number} {what}.")) + "\n").collect()
}

/// How many sessions there are. `--json` says which servers they have.
fn sessions(status: &Status, out: &mut String) {
    let Some(sessions) = &status.sessions else { return };
    let count = |state: &SessionState| sessions.states.get(state).copied().unwrap_or_default();
    let counts = SessionState::ALL.map(|state| format!("{} {}", count(&state), text::word(state)));
    let failed: u64 = sessions.errors.values().sum();
    let rounds = text::count(failed, "round of questions", "rounds of questions");
    let failed = if failed > 0 { format!("; {rounds} to their registry failed") } else { String::new() };
    let _ = writeln!(out, "Sessions: {}{failed}.", counts.join(", "));
}

/// `3 fork, 1 exit`; nothing where all are zero.
fn counted<'a>(kinds: impl Iterator<Item = (&'a str, u64)>) -> Option<String> {
    let some = kinds.filter(|(_, n)| *n > 0).map(|(kind, n)| format!("{n} {}", text::sanitise(kind)));
    Some(some.collect::<Vec<_>>().join(", ")).filter(|all| !all.is_empty())
}

/// The kind of error that is a loss: a call of a port that was not written down.
const CALL_LOST: &str = "call_dropped";

/// The errors of the eBPF programs. Processes without room are losses, and a limit that another user exceeded is no error.
pub fn errors(status: &Status) -> Option<String> {
    let errors = status.kernel_errors.iter().map(|(kind, n)| (kind.as_str(), *n));
    let errors =
        counted(errors.filter(|(kind, _)| !matches!(*kind, "members_full" | "pending_budget" | CALL_LOST)));
    errors.map(|errors| format!("Errors of the eBPF programs: {errors}."))
}

fn lost(status: &Status) -> Option<String> {
    let sink = |sink| if sink == "hook" { "of the events for hooks" } else { sink };
    let dropped = status.sink_dropped.iter().map(|(name, n)| (sink(name.as_str()), *n));
    let kinds =
        status.lost.kinds().map(|(kind, n)| (if kind == "member" { "without room" } else { kind }, n));
    let calls = status.kernel_errors.get(CALL_LOST).copied().unwrap_or_default();
    let further = [("call", calls), ("not asked about", status.not_asked)];
    let lost = counted(kinds.into_iter().chain(dropped).chain(further))?;
    let times = text::count(status.resyncs, "time", "times");
    let repaired = if status.resyncs > 0 { format!("; repaired from /proc {times}") } else { String::new() };
    Some(format!("Lost: {lost}{repaired}."))
}

/// What the daemon does, and who decided that: `is paused until 15:04 by alice`.
pub fn doing(mode: Mode, standing: &Standing, now: Timestamp, zone: &TimeZone) -> String {
    if let Some(pause) = &standing.pause {
        let until =
            pause.until.map(|until| format!(" until {}", clock_time(until, now, zone))).unwrap_or_default();
        // With --observe it observes afterwards, too.
        let chosen = standing.chosen.as_ref().map(|chosen| {
            let mode = if chosen.mode == Mode::Enforce { "enforce" } else { "observe" };
            format!(" (mode {mode}, decided by {})", sanitise(&chosen.by))
        });
        return format!("is paused{until} by {}{}", sanitise(&pause.by), chosen.unwrap_or_default());
    }
    let does = match mode {
        Mode::Enforce => "ends orphans",
        Mode::Observe => "observes only",
    };
    // With --observe it observes, whatever was decided.
    let chosen = standing.chosen.as_ref().filter(|chosen| chosen.mode == mode);
    let by = chosen.map(|chosen| format!(", decided by {}", sanitise(&chosen.by))).unwrap_or_default();
    format!("{does}{by}")
}

/// `15:04`, with the date if that is another day, and with the seconds if it is near.
fn clock_time(at: Timestamp, now: Timestamp, zone: &TimeZone) -> String {
    let is_near = at.duration_since(now).as_secs() < 120;
    let (at, now) = (at.to_zoned(zone.clone()), now.to_zoned(zone.clone()));
    let form = match at.date() == now.date() {
        true if is_near => "%H:%M:%S",
        true => "%H:%M",
        false => "%Y-%m-%d %H:%M",
    };
    at.strftime(form).to_string()
}

#[cfg(test)]
mod tests;
