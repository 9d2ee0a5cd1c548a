//! The text of `orphand status`: one line per agent and generation, sums, unproven servers, losses.

use std::{collections::BTreeMap, time::Duration};

use super::{
    human,
    paint::{self, Paint},
    scan, table, text,
};
use orphand_core::model::{AgentView, Losses, Mode, Report, RunView, ServerReport, SessionState, Status};

/// How many unproven servers are listed. `orphand scan` and `--json` have all.
const UNPROVEN: usize = 10;

/// How many servers with a session are listed. `--json` has all.
const SESSIONS: usize = 10;

/// One line of the table.
#[derive(Default)]
struct Row {
    servers: u64,
    orphans: u64,
    bytes: u64,
    orphan_bytes: u64,
    unproven: u64,
    duplicates: u64,
    /// Absent unless `--pss` was given.
    pss_bytes: Option<u64>,
}

/// The key of a line: the agent with its unit, and the generation.
type RowKey = (String, Option<u64>);

/// The status as text.
pub fn render(status: &Status, paint: Paint) -> String {
    let mode = match status.mode {
        Mode::Reap => "ends orphans",
        Mode::Observe => "observes only",
    };
    let up = text::duration(Duration::from_nanos(status.up_ns));
    let mut out = format!(
        "orphand {} (pid {}) has been watching for {up}, {mode}; {} followed.\n",
        text::sanitise(&status.version),
        status.pid,
        text::count(status.processes, "process", "processes"),
    );
    if let Some(why) = &status.config_error {
        let why = format!("The configuration was not reloaded: {}", text::sanitise(why));
        out.push_str(&paint.text(paint::WARNING, why));
        out.push('\n');
    }
    for why in &status.blind {
        let why = format!("Blind: {}", text::sanitise(why));
        out.push_str(&paint.text(paint::ALARM, why));
        out.push('\n');
    }
    if !status.stuck.is_empty() {
        let line = format!("Not seen: {}", text::unanswered(&status.stuck));
        out.push_str(&paint.text(paint::WARNING, line));
        out.push('\n');
    }
    out.push('\n');
    let rows = rows(&status.report);
    if !rows.is_empty() {
        out.push_str(&generations(&rows, paint));
        out.push('\n');
    }
    out.push_str(&scan::sum(&status.report));
    out.push('\n');
    sessions(status, paint, &mut out);
    unproven(&status.report, paint, &mut out);
    let errors = errors(status);
    if !errors.is_empty() {
        out.push_str(&paint.text(paint::WARNING, errors));
        out.push('\n');
    }
    let lost = lost(status);
    if !lost.is_empty() {
        out.push_str(&paint.text(paint::WARNING, lost));
        out.push('\n');
    }
    out
}

fn generations(rows: &BTreeMap<RowKey, Row>, paint: Paint) -> String {
    let pss = rows.values().any(|row| row.pss_bytes.is_some());
    let mut columns = vec![
        ("AGENT", false),
        ("GENERATION", true),
        ("SERVERS", true),
        ("MEMORY", true),
        ("ORPHANS", true),
        ("ORPHANED", true),
        ("UNPROVEN", true),
    ];
    let duplicates = rows.values().any(|row| row.duplicates > 0);
    if duplicates {
        columns.push(("DUPLICATES", true));
    }
    if pss {
        columns.push(("PROPORTIONAL", true));
    }
    let mut shown = Vec::new();
    // The latest run comes first.
    let mut ordered: Vec<_> = rows.iter().collect();
    ordered.sort_by(|((a, x), _), ((b, y), _)| a.cmp(b).then(y.cmp(x)));
    for ((name, generation), row) in ordered {
        let style = if row.orphans > 0 { paint::ALARM } else { paint::PLAIN };
        let mut cells = vec![
            name.clone(),
            generation.map_or_else(|| "-".to_owned(), |number| format!("#{number}")),
            row.servers.to_string(),
            text::size(row.bytes),
            row.orphans.to_string(),
            text::size(row.orphan_bytes),
            row.unproven.to_string(),
        ];
        if duplicates {
            cells.push(row.duplicates.to_string());
        }
        if pss {
            cells.push(row.pss_bytes.map_or_else(|| "-".to_owned(), text::size));
        }
        shown.push((style, cells));
    }
    table::render(paint, &columns, &shown)
}

fn rows(report: &Report) -> BTreeMap<RowKey, Row> {
    let mut rows: BTreeMap<RowKey, Row> = BTreeMap::new();
    let named = |name: &str, unit: Option<&str>| {
        let unit = unit.filter(|unit| *unit != name).map(|unit| format!(" ({})", text::sanitise(unit)));
        format!("{}{}", text::sanitise(name), unit.unwrap_or_default())
    };
    let of_run = |run: &RunView| (named(&run.agent, run.unit.as_deref()), run.generation);
    for agent in &report.agents {
        let whose = (named(&agent.agent.name, agent.agent.unit.as_deref()), agent.agent.generation);
        for server in &agent.servers {
            let run = server.server.run.as_ref();
            rows.entry(run.map_or_else(|| whose.clone(), of_run)).or_default().add(server);
        }
        if agent.servers.is_empty() {
            rows.entry(whose).or_default();
        }
    }
    for server in &report.unowned {
        let run = server.server.run.as_ref();
        rows.entry(run.map_or_else(|| ("no owner".to_owned(), None), of_run)).or_default().add(server);
    }
    rows
}

impl Row {
    fn add(&mut self, server: &ServerReport) {
        self.servers += 1;
        self.bytes = self.bytes.saturating_add(server.rss_bytes());
        if server.is_orphan() {
            self.orphans += 1;
            self.orphan_bytes = self.orphan_bytes.saturating_add(server.rss_bytes());
        }
        self.unproven += u64::from(server.is_unproven());
        self.duplicates += u64::from(server.is_duplicate());
        if let Some(pss) = server.pss_bytes {
            self.pss_bytes = Some(self.pss_bytes.unwrap_or_default().saturating_add(pss));
        }
    }
}

/// How many sessions there are, and those that have servers: `Session 0b8c8f2e..: active, fetch (pid 99300) of claude #2`.
fn sessions(status: &Status, paint: Paint, out: &mut String) {
    let Some(sessions) = &status.sessions else { return };
    let count = |state: &SessionState| sessions.states.get(state).copied().unwrap_or_default();
    let counts = SessionState::ALL.map(|state| format!("{} {}", count(&state), state.word()));
    let failed: u64 = sessions.errors.values().sum();
    let failed = if failed > 0 {
        format!(
            "; {} to their registry failed",
            text::count(failed, "round of questions", "rounds of questions")
        )
    } else {
        String::new()
    };
    let line = format!("Sessions: {}{failed}.\n", counts.join(", "));
    out.push_str(&paint.text(paint::PLAIN, line));
    let with = |(owner, server)| -> Option<(_, &ServerReport, SessionState)> {
        let server: &ServerReport = server;
        Some((owner, server, server.session?))
    };
    let all: Vec<(Option<&AgentView>, _, _)> = status.report.servers().filter_map(with).collect();
    for (owner, server, state) in all.iter().take(SESSIONS) {
        let line = format!(
            "Session {}: {}, {}\n",
            text::sanitise(server.server.session.as_deref().unwrap_or_default()),
            state.word(),
            of(*owner, server),
        );
        out.push_str(&paint.text(paint::PLAIN, line));
    }
    let hidden = all.len().saturating_sub(SESSIONS);
    if hidden > 0 {
        out.push_str(&paint.text(paint::DIM, format_args!("and {hidden} more (--json)\n")));
    }
}

/// `fetch (pid 99300) of claude #2`.
fn of(owner: Option<&AgentView>, server: &ServerReport) -> String {
    let pid = server.server.processes.first().map(|process| format!(" (pid {})", process.pid));
    let of = owner.map(|owner| format!(" of {}", human::agent_name(owner)));
    let name = text::sanitise(&server.server.name);
    format!("{name}{}{}", pid.unwrap_or_default(), of.unwrap_or_default())
}

/// One line each: `Unproven: fetch (pid 99300) of claude #2: another process holds its stdin`; and what a person can do.
fn unproven(report: &Report, paint: Paint, out: &mut String) {
    let mut all: Vec<_> = report.servers().filter(|(_, server)| server.is_unproven()).collect();
    let hidden = all.len().saturating_sub(UNPROVEN);
    all.truncate(UNPROVEN);
    let any = !all.is_empty();
    for (owner, server) in all {
        let line = format!("Unproven: {}: {}", of(owner, server), human::list_doubts(&server.doubts));
        out.push_str(&paint.text(paint::WARNING, line));
        out.push('\n');
    }
    if hidden > 0 {
        out.push_str(&paint.text(paint::DIM, format_args!("and {hidden} more (`orphand scan`, --json)\n")));
    }
    if any {
        let line =
            "orphand lets these live. If you know that nobody uses one, end it: `orphand reap --pid PID`.\n";
        out.push_str(&paint.text(paint::DIM, line));
    }
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

/// Losses as a sentence; empty if there were none.
fn lost(status: &Status) -> String {
    let Losses { fork, exec, exit, setsid, member } = status.lost;
    let kinds = [("fork", fork), ("exec", exec), ("exit", exit), ("setsid", setsid), ("member", member)];
    let kinds = kinds.into_iter().chain(status.sink_dropped.iter().map(|(sink, n)| (sink.as_str(), *n)));
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

#[cfg(test)]
mod tests;
