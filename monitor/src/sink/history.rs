//! The text of `orphand history`: the runs, the notable orphans, the unproven servers that are still there, and totals;
//! of a given time also each signal; or only the leaks.

pub mod leaks;
mod signals;

use std::time::Duration;

use jiff::{Timestamp, tz::TimeZone};

use super::{
    human,
    paint::{self, Paint},
    report, table, text,
};
use orphand_core::model::{AgentHints, History, Losses, Outcome, PastOrphan, PastRun, RunView};

/// How many unremarkable orphans are listed, the latest first. `--json` has all.
const LATEST: usize = 10;

const RUNS: [(&str, bool); 11] = [
    ("RUN", false),
    ("STARTED", false),
    ("LIVED", true),
    ("SERVERS", true),
    ("ORPHANS", true),
    ("REAPED", true),
    ("FREED", true),
    ("LEFT", true),
    ("UNPROVEN", true),
    ("LEFTOVERS", true),
    ("WHERE", false),
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

/// Until when somebody watched: what had not ended by then is alive, or nobody saw what became of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Watched {
    /// The daemon watches now.
    Now(Timestamp),
    /// The last daemon stopped then.
    Until(Timestamp),
    /// It is not known when the last daemon ended.
    Unknown,
}

impl Watched {
    /// Of a store that was read without its daemon.
    pub fn without_daemon(past: &History) -> Self {
        past.daemons.last().and_then(|last| last.stopped).map_or(Self::Unknown, Self::Until)
    }

    const fn by_daemon(self) -> bool {
        matches!(self, Self::Now(_))
    }
}

/// The history as indented JSON; `source` says who was asked.
pub fn json(past: &History, watched: Watched) -> Result<String, serde_json::Error> {
    let mut all = serde_json::to_value(past)?;
    if let Some(all) = all.as_object_mut() {
        let source = if watched.by_daemon() { "daemon" } else { "store" };
        all.insert("source".to_owned(), source.into());
    }
    report::json(&all)
}

/// The history as tables, with times in `zone`.
pub fn render(past: &History, watched: Watched, zone: &TimeZone, paint: Paint) -> String {
    let mut out = String::new();
    if let Some(until) = past.until {
        out.push_str(&signals::render(past, until, zone, paint));
    }
    let mut tables = Vec::new();
    let mut add = |columns: &[table::Column], rows| tables.push(table_of(columns, rows, paint));
    // The last two columns are there only where they say something.
    let told = [
        past.runs.iter().any(|run| run.leftovers > 0),
        past.runs.iter().any(|run| run.hints.words().is_some()),
    ];
    let shown =
        |at: usize| at + told.len() < RUNS.len() || told.get(at + told.len() - RUNS.len()) == Some(&true);
    let columns: Vec<_> =
        RUNS.into_iter().enumerate().filter(|(at, _)| shown(*at)).map(|(_, column)| column).collect();
    let row_of_run = |run| {
        let cells = row_of_run(run, watched, zone).into_iter().enumerate();
        cells.filter(|(at, _)| shown(*at)).map(|(_, cell)| cell).collect()
    };
    add(&columns, past.runs.iter().map(row_of_run).collect());
    let (shown, hidden) = orphans_to_list(past);
    add(&ORPHANS, shown.iter().map(|orphan| row_of_orphan(orphan, watched, zone)).collect());
    let is_there = |one: &&PastOrphan| matches!(one.outcome, Outcome::Stays | Outcome::Ending);
    let unproven = past.unproven.iter().filter(is_there);
    add(&UNPROVEN, unproven.map(|one| row_of_orphan(one, watched, zone)).collect());
    if let (true, Some(orphans)) = (hidden > 0, tables.get_mut(1)) {
        let more = format!("and {hidden} more that have ended (--json lists all)\n\n");
        orphans.push_str(&paint.text(paint::DIM, more));
    }
    out.push_str(&tables.concat());
    out.push_str(&sum(past, watched));
    out.push('\n');
    for warning in warnings(past, watched) {
        out.push_str(&paint.text(paint::WARNING, warning));
        out.push('\n');
    }
    out
}

/// The table with an empty line below it; nothing where there are no rows.
fn table_of(columns: &[table::Column], rows: Vec<Vec<String>>, paint: Paint) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let rows: Vec<_> = rows.into_iter().map(|row| (paint::PLAIN, row)).collect();
    table::render(paint, columns, &rows, None) + "\n"
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

fn row_of_run(past: &PastRun, watched: Watched, zone: &TimeZone) -> Vec<String> {
    let account = &past.account;
    let lived = match (past.ended, watched) {
        (Some(ended), _) => between(past.started, ended),
        (None, Watched::Now(now)) => format!("{}, alive", between(past.started, now)),
        (None, Watched::Until(then)) => format!("{}, then unseen", between(past.started, then)),
        (None, Watched::Unknown) => "not known".to_owned(),
    };
    let some = |number: u64| if number == 0 { "-".to_owned() } else { number.to_string() };
    vec![
        name(&past.run),
        when(past.started, zone),
        lived,
        some(account.servers),
        some(account.orphans),
        some(account.reaped),
        freed(account.freed_bytes, account.freed_pss_bytes),
        some(account.left),
        some(account.unproven),
        if past.leftovers == 0 {
            "-".to_owned()
        } else {
            format!("{} ({})", past.leftovers, text::size(past.leftover_bytes))
        },
        place(&past.hints),
    ]
}

fn row_of_orphan(orphan: &PastOrphan, watched: Watched, zone: &TimeZone) -> Vec<String> {
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
        Outcome::Exited { ref ending } => ending.words(),
        Outcome::Unseen => "exited unseen".to_owned(),
        Outcome::Ending | Outcome::Stays if !watched.by_daemon() => "not known".to_owned(),
        Outcome::Ending => "being ended".to_owned(),
        Outcome::Stays => "still there".to_owned(),
    };
    let owner =
        orphan.owner.as_deref().map_or_else(|| "-".to_owned(), |owner| text::sanitise(owner).into_owned());
    vec![
        name_of(orphan),
        when(orphan.judged, zone),
        orphan.run.as_ref().map_or(owner, name),
        text::size(orphan.rss_bytes),
        outcome,
        why,
    ]
}

/// `server-github`, or `server-github (hub)` where settings call it `hub`.
fn name_of(orphan: &PastOrphan) -> String {
    let name = if orphan.name.is_empty() { &orphan.id } else { &orphan.name };
    let settings = orphan.hints.configured_name.as_ref().filter(|configured| *configured != name);
    let settings = settings.map(|configured| format!(" ({configured})")).unwrap_or_default();
    text::sanitise(&format!("{name}{settings}")).into_owned()
}

/// Folder, terminal and session of an agent.
fn place(hints: &AgentHints) -> String {
    hints.words().map_or_else(|| "-".to_owned(), |words| text::sanitise(&words).into_owned())
}

/// `10 runs, 140 servers, 126 orphans, 126 reaped, 10.3 GB freed.`
fn sum(past: &History, watched: Watched) -> String {
    let there = if watched.by_daemon() { "still there" } else { "not seen to end" };
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
        parts.push(format!("{} {there}", sum.left));
    }
    if sum.unproven > 0 {
        let left = sum.unproven_left;
        let left = if left > 0 { format!(" ({left} {there})") } else { String::new() };
        parts.push(format!("{} unproven{left}", sum.unproven));
    }
    if !past.signals.is_empty() {
        parts.push(text::count(past.signals.len() as u64, "signal sent", "signals sent"));
    }
    format!("{}.", parts.join(", "))
}

/// What makes the history incomplete: lost kernel records, daemons that were killed, gaps without a daemon.
fn warnings(past: &History, watched: Watched) -> Vec<String> {
    let mut warnings = Vec::new();
    if !watched.by_daemon() {
        warnings.push(
            "No daemon was asked: what had not ended when the last one stopped may have ended since"
                .to_owned(),
        );
    }
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

#[cfg(test)]
mod tests;
