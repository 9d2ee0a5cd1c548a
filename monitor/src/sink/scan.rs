//! A report as a table: orphans first, one line a server, and the sum below.

use anstyle::Style;

use super::{
    human,
    paint::{self, Paint},
    text,
};
use crate::model::{AgentView, Report, ServerReport};

const HEADINGS: [&str; COLUMNS] = ["SERVER", "STATE", "OWNER", "PID", "PROCESSES", "MEMORY", "WHY"];
const COLUMNS: usize = 7;
/// Columns of numbers are flush right.
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

/// `3 servers, 512 MB, 1 of them an orphan (197 MB)`.
pub(super) fn sum(report: &Report) -> String {
    let (mut servers, mut bytes, mut orphans, mut orphan_bytes) = (0, 0_u64, 0, 0_u64);
    for (_, server) in report.servers() {
        servers += 1;
        bytes = bytes.saturating_add(server.rss_bytes());
        if server.is_orphan() {
            orphans += 1;
            orphan_bytes = orphan_bytes.saturating_add(server.rss_bytes());
        }
    }
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
    format!("{agents}, {shown} ({}), {found}.", text::size(bytes))
}

/// How the state of a server is shown.
pub(super) fn style(server: &ServerReport) -> Style {
    match server.state.as_str() {
        "live" => paint::PLAIN,
        "suspect" | "spared" => paint::WARNING,
        _ if server.is_orphan() => paint::ALARM,
        _ => paint::NOTE,
    }
}

const fn rank(server: &ServerReport) -> u8 {
    match server.state.as_bytes() {
        b"orphan" | b"terminating" => 0,
        b"spared" => 1,
        b"suspect" => 2,
        _ => 3,
    }
}

fn row(owner: Option<&AgentView>, report: &ServerReport) -> [String; COLUMNS] {
    let server = &report.server;
    let why: Vec<&str> = report.evidence.iter().copied().map(human::evidence).collect();
    let guards: Vec<&str> = report.guards.iter().copied().map(human::guard).collect();
    let mut why = why.join(", ");
    if !guards.is_empty() {
        let and = if why.is_empty() { "" } else { "; " };
        why = format!("{why}{and}stays: {}", guards.join(", "));
    }
    [
        text::sanitise(&server.name).into_owned(),
        text::sanitise(&report.state).into_owned(),
        owner.map_or_else(|| "-".to_owned(), human::agent_name),
        server.processes.first().map_or_else(|| "-".to_owned(), |process| process.pid.to_string()),
        server.processes.len().to_string(),
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

/// One line; `style` is applied to a cell after it has its width.
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
