//! The text of `orphand history`: the runs, the notable orphans, the unproven servers that are still there, and totals;
//! of a given time also each signal; or only the leaks.

pub mod leaks;

use std::time::Duration;

use jiff::{Timestamp, tz::TimeZone};

use super::{
    human,
    paint::{self, Paint},
    report,
    table::{self, Users, cell, number},
    text,
    wall_clock::shown as when,
};
use orphand_core::model::{AgentHints, Fate, History, PastOrphan, PastRun, PastSignal, RunView, list};

/// How many unremarkable orphans are listed, the latest first. `--json` has all.
const LATEST: usize = 10;

const RUNS: &str =
    "RUN|?>UID|STARTED|>LIVED|>SERVERS|>ORPHANS|>REAPED|>FREED|>LEFT|>UNPROVEN|?>LEFTOVERS|?WHERE";
/// Until when somebody watched: what had not ended by then is alive, or nobody saw what became of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Watched {
    Now(Timestamp),
    Until(Timestamp),
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
    let source = if watched.by_daemon() { "daemon" } else { "store" };
    report::json(&report::with(past, [("source", source.into())])?)
}

pub fn render(past: &History, watched: Watched, zone: &TimeZone, paint: Paint) -> String {
    let mut out = String::new();
    let users = users(past);
    if let Some(until) = past.until {
        out.push_str(&signals(past, users, until, zone, paint));
    }
    out += &table_of(RUNS, past.runs.iter().map(|run| row_of_run(run, users, watched, zone)), paint);
    let (shown, hidden) = orphans_to_list(past);
    let judged = |what, all: Vec<&PastOrphan>| {
        let columns = format!("{what}|JUDGED|RUN|?>UID|>MEMORY|OUTCOME|WHY");
        table_of(&columns, all.into_iter().map(|one| row_of_orphan(one, users, watched, zone)), paint)
    };
    out += &judged("ORPHAN", shown);
    if hidden > 0 {
        out += &paint.text(paint::DIM, format!("and {hidden} more that have ended (--json lists all)\n\n"));
    }
    out += &judged("UNPROVEN", past.unproven.iter().filter(|one| is_there(one)).collect());
    out.push_str(&sum(past, watched));
    out.push('\n');
    for warning in warnings(past, watched) {
        out.push_str(&paint.line(paint::WARNING, warning));
    }
    out
}

/// The table with an empty line below it; nothing where there are no rows.
fn table_of(columns: &str, rows: impl IntoIterator<Item = Vec<String>>, paint: Paint) -> String {
    let rows: Vec<_> = rows.into_iter().map(|cells| (paint::PLAIN, cells)).collect();
    if rows.is_empty() { String::new() } else { table::render(paint, columns, &rows, None) + "\n" }
}

const fn is_there(one: &PastOrphan) -> bool {
    matches!(one.outcome, Fate::Stays | Fate::Ending)
}

/// The orphans to list: those still there or that could not be ended, and the latest of the rest; how many are left out.
fn orphans_to_list(past: &History) -> (Vec<&PastOrphan>, u64) {
    let story = |orphan: &PastOrphan| orphan.failure.is_some() || is_there(orphan);
    let plain = past.orphans.iter().filter(|orphan| !story(orphan)).count();
    let mut skip = plain.saturating_sub(LATEST);
    let hidden = skip as u64;
    let shown = past.orphans.iter().filter(|orphan| {
        let keep = story(orphan) || skip == 0;
        skip -= usize::from(!keep);
        keep
    });
    (shown.collect(), hidden)
}

/// Of several users the same name and number may be there twice.
fn users(past: &History) -> Users {
    let orphans = past.orphans.iter().chain(&past.unproven).map(|one| one.run.as_ref());
    let signals = past.signals.iter().map(|one| one.run.as_ref());
    let runs = past.runs.iter().map(|one| Some(&one.run)).chain(orphans).chain(signals);
    Users::of(runs.flatten().filter_map(RunView::user))
}

/// The cells with a run, or the name of the owner where it is not known, and with its user.
fn whose(users: Users, run: Option<&RunView>, owner: Option<&str>) -> [String; 2] {
    let shown = run.map(name).or_else(|| owner.map(text::clean));
    [cell(shown), users.cell(run.and_then(RunView::user))]
}

fn row_of_run(past: &PastRun, users: Users, watched: Watched, zone: &TimeZone) -> Vec<String> {
    let account = &past.account;
    let lived = match (past.ended, watched) {
        (Some(ended), _) => between(past.started, ended),
        (None, Watched::Now(now)) => format!("{}, alive", between(past.started, now)),
        (None, Watched::Until(then)) => format!("{}, then unseen", between(past.started, then)),
        (None, Watched::Unknown) => "not known".to_owned(),
    };
    let leftovers = || format!("{} ({})", past.leftovers, text::size(past.leftover_bytes));
    let [name, uid] = whose(users, Some(&past.run), None);
    vec![
        name,
        uid,
        when(past.started, zone),
        lived,
        number(account.servers),
        number(account.orphans),
        number(account.reaped),
        cell((account.freed_bytes > 0).then(|| account.freed())),
        number(account.left),
        number(account.unproven),
        cell((past.leftovers > 0).then(leftovers)),
        place(&past.hints),
    ]
}

fn row_of_orphan(orphan: &PastOrphan, users: Users, watched: Watched, zone: &TimeZone) -> Vec<String> {
    // An unproven server has doubts and no guards.
    let stays = match orphan.doubts.as_slice() {
        [] => list(&orphan.guards),
        doubts => human::list_doubts(doubts, &[]),
    };
    let mut why = cell((!orphan.evidence.is_empty()).then(|| list(&orphan.evidence)));
    if matches!(orphan.outcome, Fate::Stays) && !stays.is_empty() {
        why = format!("{why}; stays: {stays}");
    }
    if let Some(failure) = &orphan.failure {
        why = format!("{why}; {}", text::sanitise(failure));
    }
    let outcome = match orphan.outcome {
        Fate::Reaped { signal: Some(signal), .. } => format!("reaped by {}", signal.name()),
        Fate::Reaped { signal: None, .. } => "reaped".to_owned(),
        Fate::Exited { ref ending } => ending.words(),
        Fate::Unseen => "exited unseen".to_owned(),
        Fate::Ending | Fate::Stays if !watched.by_daemon() => "not known".to_owned(),
        Fate::Ending => "being ended".to_owned(),
        Fate::Stays => "still there".to_owned(),
    } + &asked_by(orphan);
    let [run, uid] = whose(users, orphan.run.as_ref(), orphan.owner.as_deref());
    vec![name_of(orphan), when(orphan.judged, zone), run, uid, text::size(orphan.rss_bytes), outcome, why]
}

/// `, asked by alice`, or nothing.
pub(crate) fn asked_by(orphan: &PastOrphan) -> String {
    orphan.asked_by.as_ref().map(|by| format!(", asked by {}", text::sanitise(by))).unwrap_or_default()
}

/// `server-github`, or `server-github (hub)` where settings call it `hub`.
fn name_of(orphan: &PastOrphan) -> String {
    let name = if orphan.name.is_empty() { &orphan.id } else { &orphan.name };
    let settings = orphan.hints.configured_name.as_ref().filter(|configured| *configured != name);
    let settings = settings.map(|configured| format!(" ({configured})")).unwrap_or_default();
    text::clean(&format!("{name}{settings}"))
}

fn place(hints: &AgentHints) -> String {
    cell(hints.words().map(|words| text::clean(&words)))
}

/// `10 runs, 140 servers, 126 orphans, 126 reaped, 10.3 GB freed.`
fn sum(past: &History, watched: Watched) -> String {
    let there = if watched.by_daemon() { "still there" } else { "not seen to end" };
    let sum = past.sum();
    let mut parts = vec![
        text::count(past.runs.len() as u64, "run", "runs"),
        text::count(sum.servers, "MCP server", "MCP servers"),
        text::count(sum.orphans, "orphan", "orphans"),
    ];
    // A person may have ended others.
    if sum.orphans > 0 || sum.reaped > 0 {
        parts.push(format!("{} reaped", sum.reaped));
    }
    if sum.freed_bytes > 0 {
        parts.push(format!("{} freed", sum.freed()));
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
        let why = "No daemon was asked: what had not ended when the last one stopped may have ended since";
        warnings.push(why.to_owned());
    }
    warnings.extend(past.store_error.as_ref().map(|why| format!("Not all is here: {}", text::sanitise(why))));
    let lost = past.losses.iter().flat_map(|loss| loss.records.kinds());
    let lost: u64 = lost.map(|(_, number)| number).sum();
    if lost > 0 {
        let lost = text::count(lost, "record was", "records were");
        warnings.push(format!("{lost} lost by the kernel side; /proc was read instead"));
    }
    // The last daemon may still be running.
    let earlier = past.daemons.len().saturating_sub(1);
    let killed = past.daemons.iter().take(earlier).filter(|daemon| daemon.stopped.is_none()).count();
    if killed > 0 {
        let killed = text::count(killed as u64, "daemon ended", "daemons ended");
        warnings.push(format!("{killed} without a regular stop: killed, or the host went down"));
    }
    warnings
}

/// `untether.service #3`, `claude #12`.
fn name(run: &RunView) -> String {
    if run.generation.is_some() { run.title() } else { run.title() + " #?" }
}

fn between(from: Timestamp, to: Timestamp) -> String {
    // A wall clock that was set back must not give a negative time.
    text::duration(Duration::try_from(to.duration_since(from)).unwrap_or_default())
}

const SIGNALS: &str = "TIME|SIGNAL|PROCESS|SERVER|RUN|?>UID|WHY";

/// The signals of the asked time. "None" is an answer, too.
fn signals(past: &History, users: Users, until: Timestamp, zone: &TimeZone, paint: Paint) -> String {
    let mut out = table_of(SIGNALS, past.signals.iter().map(|one| row_of_signal(one, users, zone)), paint);
    let since = past.since.unwrap_or(until);
    if past.signals.is_empty() {
        let (since, until) = (when(since, zone), when(until, zone));
        out = format!(
            "No server was signalled by the daemon between {since} and {until}. What a person ended as a leftover is not kept.\n"
        );
    }
    // Of a time before the store nothing is known.
    if past.begins.is_none_or(|begins| begins >= until) {
        out.clear();
    }
    let unknown = match past.begins {
        Some(begins) if begins <= since => String::new(),
        Some(begins) => {
            let begins = when(begins, zone);
            paint.line(paint::WARNING, format!("Not known before {begins}: the store begins then."))
        }
        None => paint.line(paint::WARNING, "No daemon has used this store yet.".to_owned()),
    };
    format!("{unknown}{out}\n")
}

fn row_of_signal(one: &PastSignal, users: Users, zone: &TimeZone) -> Vec<String> {
    let evidence = list(&one.evidence);
    let by = text::sanitise(one.asked_by.as_deref().unwrap_or("a person"));
    let why = match (one.asked, one.doubts.as_slice()) {
        (true, []) if evidence.is_empty() => format!("{by} asked"),
        (true, []) => format!("{by} asked; {evidence}"),
        (true, doubts) => format!("{by} asked, though unproven: {}", human::list_doubts(doubts, &[])),
        (false, _) => format!("orphan: {evidence}"),
    };
    let [run, uid] = whose(users, one.run.as_ref(), one.owner.as_deref());
    vec![
        when(one.at, zone),
        one.signal.name().to_owned(),
        format!("{} {}", one.pid, text::sanitise(&one.program)).trim_end().to_owned(),
        if one.name.is_empty() { one.server.clone() } else { text::clean(&one.name) },
        run,
        uid,
        why,
    ]
}

#[cfg(test)]
mod tests;
