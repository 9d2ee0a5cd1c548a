//! The text of `orphand history`: the runs, the notable orphans, the unproven servers that are still there,
//! and totals.

use std::time::Duration;

use jiff::{Timestamp, tz::TimeZone};

use super::{
    human,
    paint::{self, Paint},
    text,
};
use orphand_core::model::{History, Losses, Outcome, PastOrphan, PastRun, RunView};

/// How many unremarkable orphans are listed, the latest first. `--json` has all.
const LATEST: usize = 10;

const RUNS: [(&str, bool); 9] = [
    ("RUN", false),
    ("STARTED", false),
    ("LIVED", true),
    ("SERVERS", true),
    ("ORPHANS", true),
    ("REAPED", true),
    ("FREED", true),
    ("LEFT", true),
    ("UNPROVEN", true),
];
const ORPHANS: [(&str, bool); 6] = [
    ("ORPHAN", false),
    ("JUDGED", false),
    ("RUN", false),
    ("MEMORY", true),
    ("OUTCOME", false),
    ("WHY", false),
];
const UNPROVEN: [(&str, bool); 6] = [
    ("UNPROVEN", false),
    ("JUDGED", false),
    ("RUN", false),
    ("MEMORY", true),
    ("OUTCOME", false),
    ("WHY", false),
];

/// The history as indented JSON with a line feed at the end.
pub fn json(past: &History) -> Result<String, serde_json::Error> {
    let mut out = String::new();
    text::push_json(&serde_json::to_string_pretty(past)?, &mut out);
    out.push('\n');
    Ok(out)
}

/// The history as tables, with times in `zone`.
pub fn render(past: &History, now: Timestamp, zone: &TimeZone, paint: Paint) -> String {
    let mut out = String::new();
    let runs: Vec<_> = past.runs.iter().map(|run| row_of_run(run, now, zone)).collect();
    table(&RUNS, &runs, paint, &mut out);
    let (shown, hidden) = orphans_to_list(past);
    let orphans: Vec<_> = shown.iter().map(|orphan| row_of_orphan(orphan, zone)).collect();
    table(&ORPHANS, &orphans, paint, &mut out);
    if hidden > 0 {
        let more = format!("and {hidden} more that have ended (--json lists all)\n\n");
        out.push_str(&paint.text(paint::DIM, more));
    }
    let is_there = |one: &&PastOrphan| matches!(one.outcome, Outcome::Stays | Outcome::Ending);
    let unproven: Vec<_> =
        past.unproven.iter().filter(is_there).map(|one| row_of_orphan(one, zone)).collect();
    table(&UNPROVEN, &unproven, paint, &mut out);
    out.push_str(&sum(past));
    out.push('\n');
    for warning in warnings(past) {
        out.push_str(&paint.text(paint::WARNING, warning));
        out.push('\n');
    }
    out
}

/// The orphans to list: those that are still there or could not be ended, and the latest of the rest. Also
/// returns how many are left out.
fn orphans_to_list(past: &History) -> (Vec<&PastOrphan>, u64) {
    let story = |orphan: &PastOrphan| {
        orphan.failure.is_some() || matches!(orphan.outcome, Outcome::Stays | Outcome::Ending)
    };
    let plain = past.orphans.iter().filter(|orphan| !story(orphan)).count();
    let mut skip = plain.saturating_sub(LATEST);
    let hidden = u64::try_from(skip).unwrap_or(u64::MAX);
    let shown = past.orphans.iter().filter(|orphan| {
        let keep = story(orphan) || skip == 0;
        skip -= usize::from(!keep);
        keep
    });
    (shown.collect(), hidden)
}

fn row_of_run(past: &PastRun, now: Timestamp, zone: &TimeZone) -> Vec<String> {
    let account = &past.account;
    let lived = between(past.started, past.ended.unwrap_or(now));
    let some = |number: u64| if number == 0 { "-".to_owned() } else { number.to_string() };
    vec![
        name(&past.run),
        when(past.started, zone),
        if past.ended.is_some() { lived } else { format!("{lived}, alive") },
        some(account.servers),
        some(account.orphans),
        some(account.reaped),
        freed(account.freed_bytes, account.freed_pss_bytes),
        some(account.left),
        some(account.unproven),
    ]
}

fn row_of_orphan(orphan: &PastOrphan, zone: &TimeZone) -> Vec<String> {
    let mut why: Vec<&str> = orphan.evidence.iter().copied().map(human::evidence).collect();
    // An unproven server has doubts and no guards.
    let stays = match orphan.doubts.as_slice() {
        [] => human::list_guards(&orphan.guards),
        doubts => human::list_doubts(doubts),
    };
    if why.is_empty() {
        why.push("-");
    }
    let mut why = why.join(", ");
    if matches!(orphan.outcome, Outcome::Stays) && !stays.is_empty() {
        why = format!("{why}; stays: {stays}");
    }
    if let Some(failure) = &orphan.failure {
        why = format!("{why}; {}", text::sanitise(failure));
    }
    let outcome = match orphan.outcome {
        Outcome::Reaped { signal: Some(signal), .. } => format!("reaped by {}", human::sent(signal)),
        Outcome::Reaped { signal: None, .. } => "reaped".to_owned(),
        Outcome::Exited => "exited by itself".to_owned(),
        Outcome::Unseen => "exited unseen".to_owned(),
        Outcome::Ending => "being ended".to_owned(),
        Outcome::Stays => "still there".to_owned(),
    };
    let owner =
        orphan.owner.as_deref().map_or_else(|| "-".to_owned(), |owner| text::sanitise(owner).into_owned());
    vec![
        if orphan.name.is_empty() { orphan.id.clone() } else { text::sanitise(&orphan.name).into_owned() },
        when(orphan.judged, zone),
        orphan.run.as_ref().map_or(owner, name),
        text::size(orphan.rss_bytes),
        outcome,
        why,
    ]
}

/// `10 runs, 140 servers, 126 orphans, 126 reaped, 10.3 GB freed.`
fn sum(past: &History) -> String {
    let sum = past.sum();
    let runs = u64::try_from(past.runs.len()).unwrap_or(u64::MAX);
    let mut parts = vec![
        text::count(runs, "run", "runs"),
        text::count(sum.servers, "MCP server", "MCP servers"),
        text::count(sum.orphans, "orphan", "orphans"),
    ];
    if sum.orphans > 0 {
        parts.push(format!("{} reaped", sum.reaped));
    }
    if sum.freed_bytes > 0 {
        parts.push(format!("{} freed", freed(sum.freed_bytes, sum.freed_pss_bytes)));
    }
    if sum.left > 0 {
        parts.push(format!("{} still there", sum.left));
    }
    if sum.unproven > 0 {
        let left = sum.unproven_left;
        let there = if left > 0 { format!(" ({left} still there)") } else { String::new() };
        parts.push(format!("{} unproven{there}", sum.unproven));
    }
    format!("{}.", parts.join(", "))
}

/// What makes the history incomplete: lost kernel records, daemons that were killed, gaps without a daemon.
fn warnings(past: &History) -> Vec<String> {
    let mut warnings = Vec::new();
    let lost: u64 = past
        .losses
        .iter()
        .map(|loss| {
            let Losses { fork, exec, exit, setsid, member } = loss.records;
            fork + exec + exit + setsid + member
        })
        .sum();
    if lost > 0 {
        warnings.push(format!(
            "{} lost by the kernel side; /proc was read instead",
            text::count(lost, "record was", "records were")
        ));
    }
    // The last daemon may still be running.
    let earlier = past.daemons.len().saturating_sub(1);
    let killed = past.daemons.iter().take(earlier).filter(|daemon| daemon.stopped.is_none()).count();
    if killed > 0 {
        let killed = u64::try_from(killed).unwrap_or(u64::MAX);
        warnings.push(format!(
            "{} without a regular stop: killed, or the host went down",
            text::count(killed, "daemon ended", "daemons ended")
        ));
    }
    warnings
}

/// `untether.service #3`, `claude #12`.
fn name(run: &RunView) -> String {
    let name = text::sanitise(run.unit.as_deref().unwrap_or(&run.agent));
    run.generation.map_or_else(|| format!("{name} #?"), |generation| format!("{name} #{generation}"))
}

/// `1.2 GB (PSS 510 MB)`.
fn freed(rss: u64, pss: u64) -> String {
    match (rss, pss) {
        (0, _) => "-".to_owned(),
        (_, 0) => text::size(rss),
        _ => format!("{} (PSS {})", text::size(rss), text::size(pss)),
    }
}

fn when(at: Timestamp, zone: &TimeZone) -> String {
    at.to_zoned(zone.clone()).strftime("%Y-%m-%d %H:%M:%S").to_string()
}

fn between(from: Timestamp, to: Timestamp) -> String {
    // A wall clock that was set back must not give a negative time.
    text::duration(Duration::try_from(to.duration_since(from)).unwrap_or_default())
}

/// A table with a heading and columns of equal width; numbers are right-aligned. Without rows nothing is
/// written.
fn table(columns: &[(&str, bool)], rows: &[Vec<String>], paint: Paint, out: &mut String) {
    if rows.is_empty() {
        return;
    }
    let headings: Vec<String> = columns.iter().map(|(heading, _)| (*heading).to_owned()).collect();
    let mut widths: Vec<usize> = headings.iter().map(String::len).collect();
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let line = |row: &[String]| {
        let cells = row.iter().zip(&widths).zip(columns).map(|((cell, &width), (_, number))| {
            if *number { format!("{cell:>width$}") } else { format!("{cell:<width$}") }
        });
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    out.push_str(&paint.text(paint::DIM, line(&headings)));
    out.push('\n');
    for row in rows {
        out.push_str(&line(row));
        out.push('\n');
    }
    out.push('\n');
}

#[cfg(test)]
mod tests;
