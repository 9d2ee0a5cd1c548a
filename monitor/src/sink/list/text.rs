//! The text and the JSON of `orphand ps`.

use anstyle::Style;
use serde_json::json;
use strum::VariantArray as _;

use super::{
    super::{
        paint::{self, Paint},
        report,
        table::{self, cell},
        text::sanitise,
        wall_clock::WallClock,
    },
    Column, Entry, Kind, Row, Sample, from_before, style, sum, why,
};
use orphand_core::model::Report;

#[derive(Clone, Copy, Debug, Default)]
pub struct Layout {
    pub paint: Paint,
    pub width: Option<usize>,
    /// Nothing is cut, and the further columns are there.
    pub wide: bool,
}

/// The further columns of the wide list: by what a person recognises the server, and its agent, come first.
const WIDE: &str = "UID|CONFIGURED AS|FOLDER|TERMINAL|SESSION|WHY|COMMAND";

/// What a look through /proc cannot know.
const PROC_ALONE: &str = "One look through /proc: who owned what before and what comes next is not known.";

pub fn render(sample: &Sample, entries: &[Entry], rows: &[Row], layout: Layout) -> String {
    let paint = layout.paint;
    let mut out = String::new();
    if !rows.is_empty() {
        let rows: Vec<_> = rows.iter().map(|row| cells(entries, row, layout.wide)).collect();
        let columns = Column::VARIANTS.iter().map(|column| column.title());
        let columns: Vec<_> = columns.chain(layout.wide.then_some(WIDE)).collect();
        // The order in which columns give way where the line is too long, and how narrow each may get.
        let narrower = [
            (Column::Next, 16),
            (Column::Server, 14),
            (Column::Agent, 9),
            (Column::Next, 8),
            (Column::Server, 8),
            (Column::Agent, 4),
        ];
        let narrower = narrower.map(|(column, least)| (column as usize, least));
        let fit = layout.width.filter(|_| !layout.wide).map(|width| (width, &narrower[..]));
        out = table::render(paint, &columns.join("|"), &rows, fit) + "\n";
    }
    let none_of = sample.none_of.as_ref().map(|all| format!("none of {all}"));
    out.push_str(&none_of.unwrap_or_else(|| sum(&sample.report, &sample.report.blind)));
    out.push('\n');
    if let Some(line) = &sample.decided {
        out.push_str(&paint.line(paint::WARNING, line));
    }
    if let Some(line) = from_before(&sample.report) {
        out.push_str(&paint.line(paint::WARNING, line));
    }
    if sample.mode.is_none() {
        out.push_str(&paint.line(paint::DIM, PROC_ALONE));
    }
    out + &unseen(&sample.report, paint)
}

pub fn unseen(report: &Report, paint: Paint) -> String {
    let line =
        |what: &String| paint.text(paint::WARNING, format_args!("Not seen: {}", sanitise(what))) + "\n";
    report.blind.iter().map(line).collect()
}

pub fn json(sample: &Sample, wall: WallClock) -> Result<String, serde_json::Error> {
    let source = if sample.mode.is_some() { "daemon" } else { "proc" };
    let more = [("source", source.into()), ("totals", json!(sample.report.totals()))];
    report::json_with_times(&report::with(&sample.report, more)?, wall)
}

/// The style and the cells of a row; a line without columns has one cell.
fn cells(entries: &[Entry], row: &Row, wide: bool) -> (Style, Vec<String>) {
    let cell = |column: Column| match column {
        Column::Server => "  ".repeat(usize::from(row.depth)) + &row.value(entries, column),
        // In a tree it is above.
        Column::Agent if row.depth > 0 => String::new(),
        _ => row.value(entries, column),
    };
    match row.kind {
        Kind::Agent | Kind::Generation => return (paint::NAME, vec![cell(Column::Server)]),
        Kind::Process(..) => {
            let indent = "  ".repeat(usize::from(row.depth)) + &" ".repeat(9);
            let [pid, command] = [Column::Pid, Column::Server].map(|column| row.value(entries, column));
            return (paint::PLAIN, vec![format!("{indent}{pid}  {command}")]);
        }
        Kind::Server(_) => {}
    }
    let entry = row.server(entries);
    let more = entry.filter(|_| wide).map(further);
    let cells = Column::VARIANTS.iter().copied().map(cell).chain(more.into_iter().flatten());
    (entry.map_or(paint::PLAIN, |entry| style(entry.report.state)), cells.collect())
}

fn further(entry: &Entry) -> [String; 7] {
    let known = |hint: &Option<String>| cell(hint.as_deref().map(sanitise));
    let (agent, server) = (&entry.hints, &entry.report.server.hints);
    let hints = [&server.configured_name, entry.folder(), &agent.terminal, &agent.session].map(known);
    let [name, folder, terminal, session] = hints;
    let first = entry.report.server.processes.first();
    let uid = cell(first.map(|process| process.uid));
    [uid, name, folder, terminal, session, why(&entry.report), entry.command()]
}

#[cfg(test)]
mod tests;
