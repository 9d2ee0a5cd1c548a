//! The text of `orphand status`: whether it is well, since when, sums, what comes next, losses.

use std::{fmt::Write as _, time::Duration};

use jiff::{Timestamp, tz::TimeZone};

use super::{
    list,
    paint::{self, Paint},
    text::{self, sanitise},
    wall_clock::{WallClock, shown},
};
use orphand_core::model::{BootTime, Mode, SessionState, Standing, State, Status};

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
    for line in list::from_before(&status.report).into_iter().chain(config) {
        out.push_str(&paint.line(paint::WARNING, line));
    }
    for why in &status.blind {
        out.push_str(&paint.line(paint::ALARM, format_args!("Blind: {}", text::sanitise(why))));
    }
    if let Some(line) = stuck {
        out.push_str(&paint.line(paint::WARNING, line));
    }
    out.push_str(&list::sum(&status.report));
    out.push('\n');
    let proportional = status.report.servers().filter_map(|(_, one)| one.pss_bytes);
    if let Some(bytes) = proportional.reduce(u64::saturating_add) {
        let _ = writeln!(out, "Proportional memory: {}.", text::size(bytes));
    }
    out.push_str(&next(status, now, paint));
    sessions(status, &mut out);
    let errors = errors(status);
    if !errors.is_empty() {
        out.push_str(&paint.line(paint::WARNING, errors));
    }
    let lost = lost(status);
    match lost.as_str() {
        "" if status.is_watching() => out.push_str(&paint.line(paint::GOOD, "Not blind, nothing lost.")),
        "" => {}
        lost => out.push_str(&paint.line(paint::WARNING, lost)),
    }
    out
}

/// `Next: 2 are judged within 8 s.`, a line for each state.
fn next(status: &Status, now: BootTime, paint: Paint) -> String {
    let sum = status.report.totals();
    let be = |number| if number == 1 { "is" } else { "are" };
    let mut parts = Vec::new();
    let left = sum.orphans - sum.ending - sum.kept;
    if sum.ending > 0 {
        parts.push(format!("{} {} being ended", sum.ending, be(sum.ending)));
    }
    if left > 0 {
        parts.push(format!("{left} could not be ended: `orphand ps --state orphan`"));
    }
    if sum.suspects > 0 {
        let due = status.report.servers().filter(|(_, one)| one.state == State::Suspect);
        let last = due.filter_map(|(_, one)| one.deadline).max();
        let within = last.map(|at| format!(" within {}", text::duration(at.since(now)))).unwrap_or_default();
        parts.push(format!("{} {} judged{within}", sum.suspects, be(sum.suspects)));
    }
    if sum.kept > 0 {
        let stay = if sum.kept == 1 { "stays because of a guard" } else { "stay because of guards" };
        parts.push(format!("{} {stay}: `orphand ps --state kept -o wide`", sum.kept));
    }
    if sum.unproven > 0 {
        let stay = if sum.unproven == 1 { "stays" } else { "stay" };
        parts.push(format!("{} unproven {stay}: `orphand explain PID` says who can reach it", sum.unproven));
    }
    if sum.leftovers > 0 {
        let (what, size) =
            (text::count(sum.leftovers, "leftover", "leftovers"), text::size(sum.leftover_rss_bytes));
        let stay = if sum.leftovers == 1 { "stays" } else { "stay" };
        parts.push(format!("{what} ({size}) {stay}: `orphand ps --state leftover`"));
    }
    let style = if left > 0 { paint::ALARM } else { paint::PLAIN };
    parts.iter().map(|part| paint.text(style, format_args!("Next: {part}.")) + "\n").collect()
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

/// Errors of the eBPF programs as a sentence; empty if there were none. Processes without room are counted as
/// losses, and a limit that another user exceeded is no error.
pub fn errors(status: &Status) -> String {
    let told = |kind: &str| !matches!(kind, "members_full" | "pending_budget");
    let errors = status.kernel_errors.iter().filter(|(kind, n)| told(kind) && **n > 0);
    let errors: Vec<String> = errors.map(|(kind, n)| format!("{n} {}", text::sanitise(kind))).collect();
    if errors.is_empty() {
        String::new()
    } else {
        format!("Errors of the eBPF programs: {}.", errors.join(", "))
    }
}

fn lost(status: &Status) -> String {
    let dropped = status.sink_dropped.iter().map(|(sink, n)| (sink.as_str(), *n));
    let kinds = status.lost.kinds().into_iter().chain(dropped);
    let lost: Vec<String> =
        kinds.filter(|(_, n)| *n > 0).map(|(kind, n)| format!("{n} {}", text::sanitise(kind))).collect();
    if lost.is_empty() {
        return String::new();
    }
    format!(
        "Lost: {}; repaired from /proc {}.",
        lost.join(", "),
        text::count(status.resyncs, "time", "times")
    )
}

/// What the daemon does, and who decided that: `is paused until 15:04 by alice`.
pub fn doing(mode: Mode, standing: &Standing, now: Timestamp, zone: &TimeZone) -> String {
    if let Some(pause) = &standing.pause {
        let until =
            pause.until.map(|until| format!(" until {}", clock_time(until, now, zone))).unwrap_or_default();
        return format!("is paused{until} by {}", sanitise(&pause.by));
    }
    let does = match mode {
        Mode::Reap => "ends orphans",
        Mode::Observe => "observes only",
    };
    // With --observe it observes, whatever was decided.
    let chosen = standing.chosen.as_ref().filter(|chosen| chosen.mode == mode);
    let by = chosen.map(|chosen| format!(", decided by {}", sanitise(&chosen.by))).unwrap_or_default();
    format!("{does}{by}")
}

/// `15:04`, with the date if that is another day.
fn clock_time(at: Timestamp, now: Timestamp, zone: &TimeZone) -> String {
    let (at, now) = (at.to_zoned(zone.clone()), now.to_zoned(zone.clone()));
    at.strftime(if at.date() == now.date() { "%H:%M" } else { "%Y-%m-%d %H:%M" }).to_string()
}

#[cfg(test)]
mod tests;
