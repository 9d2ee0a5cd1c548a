//! Text tables with a heading.

use anstyle::Style;

use super::paint::{self, Paint};

/// A heading, and whether the column contains numbers, which are right-aligned.
pub(super) type Column = (&'static str, bool);

/// The table with a line feed after each row. A row's style applies to its first cell. Cells must already be
/// sanitised.
pub(super) fn render(paint: Paint, columns: &[Column], rows: &[(Style, Vec<String>)]) -> String {
    let width = |at: usize, heading: &str| {
        let cells = rows.iter().filter_map(|(_, row)| row.get(at)).map(|cell| cell.chars().count());
        cells.fold(heading.chars().count(), usize::max)
    };
    let widths: Vec<usize> =
        columns.iter().enumerate().map(|(at, (heading, _))| width(at, heading)).collect();
    let headings: Vec<String> = columns.iter().map(|(heading, _)| (*heading).to_owned()).collect();
    let mut out = paint.text(paint::DIM, line(Paint::new(false), paint::PLAIN, columns, &widths, &headings));
    out.push('\n');
    for (style, row) in rows {
        out.push_str(&line(paint, *style, columns, &widths, row));
        out.push('\n');
    }
    out
}

fn line(paint: Paint, style: Style, columns: &[Column], widths: &[usize], row: &[String]) -> String {
    let mut out = String::new();
    for (at, ((cell, (_, number)), &width)) in row.iter().zip(columns).zip(widths).enumerate() {
        let last = at + 1 == row.len();
        let cell = match (number, last) {
            (true, _) => format!("{cell:>width$}"),
            (false, true) => cell.clone(),
            (false, false) => format!("{cell:<width$}"),
        };
        out.push_str(if at == 0 { "" } else { "  " });
        out.push_str(&if at == 0 { paint.text(style, cell) } else { cell });
    }
    out.truncate(out.trim_end().len());
    out
}
