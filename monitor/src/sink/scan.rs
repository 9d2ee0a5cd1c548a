//! The text of `orphand scan`: one line per server, orphans first, and a sum.

use anstyle::Style;

use super::{
    human,
    paint::{self, Paint},
    text,
};
use orphand_core::model::{AgentView, Report, ServerReport};

const HEADINGS: [&str; COLUMNS] = ["SERVER", "STATE", "OWNER", "PID", "PROCESSES", "MEMORY", "WHY"];
const COLUMNS: usize = 7;
/// Columns of numbers; they are right-aligned.
const NUMBERS: [bool; COLUMNS] = [false, false, false, true, true, true, false];
const STATE: usize = 1;

/// The report as a table.
pub fn render(report: &Report, paint: Paint) -> String {
    let mut servers: Vec<_> = report.servers().collect();
    servers.sort_by_key(|(_, server)| rank(server));
    let rows: Vec<[String; COLUMNS]> = servers.iter().map(|(owner, server)| row(*owner, server)).collect();
    let mut out = String::new();
    if !rows.is_empty() {
        let widths = widths(&rows);
        let headings = HEADINGS.map(str::to_owned);
        out.push_str(&paint.text(paint::DIM, line(&headings, &widths, |_, cell| cell)));
        out.push('\n');
        for (row, (_, server)) in rows.iter().zip(&servers) {
            let style = style(server);
            out.push_str(&line(
                row,
                &widths,
                |column, cell| {
                    if column == STATE { paint.text(style, cell) } else { cell }
                },
            ));
            out.push('\n');
        }
        out.push('\n');
    }
    out.push_str(&sum(report));
    out.push('\n');
    for what in &report.blind {
        let what = format!("Not seen: {}", text::sanitise(what));
        out.push_str(&paint.text(paint::WARNING, what));
        out.push('\n');
    }
    out
}

/// `1 agent, 3 MCP servers (512 MB), 1 orphan (197 MB), 1 unproven (64 MB).`
pub(super) fn sum(report: &Report) -> String {
    let sum = |meant: &dyn Fn(&ServerReport) -> bool| {
        let meant = report.servers().map(|(_, server)| server).filter(|server| meant(server));
        meant.fold((0, 0_u64), |(n, bytes), server| (n + 1, bytes.saturating_add(server.rss_bytes())))
    };
    let (servers, bytes) = sum(&|_| true);
    let (orphans, orphan_bytes) = sum(&ServerReport::is_orphan);
    let (unproven, unproven_bytes) = sum(&ServerReport::is_unproven);
    let agents = u64::try_from(report.agents.len()).unwrap_or(u64::MAX);
    let agents = text::count(agents, "agent", "agents");
    let shown = text::count(servers, "MCP server", "MCP servers");
    if servers == 0 {
        return format!("{agents}, {shown}{}.", if report.blind.is_empty() { "" } else { " seen" });
    }
    let found = match orphans {
        0 if report.blind.is_empty() => "no orphans".to_owned(),
        0 => "no orphans seen".to_owned(),
        _ => format!("{} ({})", text::count(orphans, "orphan", "orphans"), text::size(orphan_bytes)),
    };
    let unproven = match unproven {
        0 => String::new(),
        _ => format!(", {unproven} unproven ({})", text::size(unproven_bytes)),
    };
    let duplicates = match sum(&ServerReport::is_duplicate) {
        (0, _) => String::new(),
        (number, bytes) => {
            format!(", {} ({})", text::count(number, "duplicate", "duplicates"), text::size(bytes))
        }
    };
    let stale = match sum(&ServerReport::has_stale_binary) {
        (0, _) => String::new(),
        (number, _) => format!(", {number} with a stale binary"),
    };
    format!("{agents}, {shown} ({}), {found}{unproven}{duplicates}{stale}.", text::size(bytes))
}

/// The style of a server's state.
pub(super) fn style(server: &ServerReport) -> Style {
    match server.state.as_str() {
        "live" => paint::PLAIN,
        "suspect" | "unproven" | "spared" => paint::WARNING,
        _ if server.is_orphan() => paint::ALARM,
        _ => paint::NOTE,
    }
}

/// Why it is not ended: the doubts of an unproven server, the guards of an orphan.
pub(super) fn reasons_to_stay(report: &ServerReport) -> Option<String> {
    let doubts = report.is_unproven().then(|| human::list_doubts(&report.doubts));
    let guards = (!report.guards.is_empty()).then(|| human::guards_of(&report.server, &report.guards));
    let why: Vec<String> = doubts.into_iter().chain(guards).collect();
    (!why.is_empty()).then(|| why.join(", "))
}

/// `duplicate of pid 1234`: its living owner has a newer server with the same identity. `stale binary`: its
/// executable was replaced or deleted on disk.
pub(super) fn remarks(report: &ServerReport) -> impl Iterator<Item = String> {
    let duplicate =
        report.duplicate_of.as_ref().map(|newest| format!("duplicate of {}", human::pid_of(newest)));
    let stale = report.has_stale_binary().then(|| "stale binary".to_owned());
    duplicate.into_iter().chain(stale)
}

const fn rank(server: &ServerReport) -> u8 {
    match server.state.as_bytes() {
        b"orphan" | b"terminating" => 0,
        b"spared" => 1,
        b"unproven" => 2,
        b"suspect" => 3,
        _ => 4,
    }
}

fn row(owner: Option<&AgentView>, report: &ServerReport) -> [String; COLUMNS] {
    let server = &report.server;
    let why: Vec<&str> = report.evidence.iter().copied().map(human::evidence).collect();
    let mut why = why.into_iter().map(str::to_owned).chain(remarks(report)).collect::<Vec<_>>().join(", ");
    if let Some(stays) = reasons_to_stay(report) {
        let and = if why.is_empty() { "" } else { "; " };
        why = format!("{why}{and}stays: {stays}");
    }
    [
        text::sanitise(&server.name).into_owned(),
        text::sanitise(&report.state).into_owned(),
        owner.map_or_else(|| "-".to_owned(), human::agent_name),
        server.processes.first().map_or_else(|| "-".to_owned(), |process| process.pid.to_string()),
        server.count().to_string(),
        server.rss_bytes.map_or_else(|| "-".to_owned(), text::size),
        why,
    ]
}

fn widths(rows: &[[String; COLUMNS]]) -> [usize; COLUMNS] {
    let mut widths = HEADINGS.map(str::len);
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    widths
}

/// One line. `style` is applied to a padded cell.
fn line(
    row: &[String; COLUMNS],
    widths: &[usize; COLUMNS],
    style: impl Fn(usize, String) -> String,
) -> String {
    let mut out = String::new();
    for (column, ((cell, &width), number)) in row.iter().zip(widths).zip(NUMBERS).enumerate() {
        let cell = match (number, column + 1 == COLUMNS) {
            (true, _) => format!("{cell:>width$}"),
            (false, true) => cell.clone(),
            (false, false) => format!("{cell:<width$}"),
        };
        if column > 0 {
            out.push_str("  ");
        }
        out.push_str(&style(column, cell));
    }
    out.truncate(out.trim_end().len());
    out
}
