//! Text tables with a heading.

use anstyle::Style;

use super::paint::{self, Paint};

/// The style of the first cell, and the cells, which must already be sanitised. A row of one cell is a line of its own.
pub(super) type Row = (Style, Vec<String>);

/// How a table is made to fit: the width of a line, and the columns that give way, each with how narrow it may get.
pub(super) type Fit<'a> = (usize, &'a [(usize, usize)]);

/// The table with a line feed after each row. `columns` are the headings, with `|` between them. One begins with `>` where the
/// column contains numbers, which are right-aligned.
pub(super) fn render(paint: Paint, columns: &str, rows: &[Row], fit: Option<Fit<'_>>) -> String {
    let columns: Vec<&str> = columns.split('|').collect();
    let width = |at: usize, heading: &str| {
        let cells = rows.iter().filter(|(_, row)| row.len() > 1).filter_map(|(_, row)| row.get(at));
        cells.map(|cell| cell.chars().count()).fold(heading.chars().count(), usize::max)
    };
    let mut widths: Vec<usize> =
        columns.iter().enumerate().map(|(at, column)| width(at, heading(column))).collect();
    for (at, least) in fit.iter().flat_map(|(_, narrower)| *narrower) {
        let excess =
            (widths.iter().sum::<usize>() + widths.len() - 1).saturating_sub(fit.map_or(0, |fit| fit.0));
        if let Some(width) = widths.get_mut(*at) {
            *width = width.saturating_sub(excess).max(*least.min(width));
        }
    }
    let headings: Vec<String> = columns.iter().map(|column| heading(column).to_owned()).collect();
    let line = |style: Style, row: &[String]| {
        let mut cells = row.iter().zip(&columns).zip(&widths).map(|((cell, column), &width)| {
            let cell = if fit.is_some() && row.len() > 1 { cut(cell, width) } else { cell.clone() };
            if column.starts_with('>') { format!("{cell:>width$}") } else { format!("{cell:<width$}") }
        });
        let first = cells.next().unwrap_or_default();
        let between = if fit.is_some() { " " } else { "  " };
        let rest: String = cells.fold(String::new(), |all, cell| all + between + &cell);
        let rest = rest.trim_end();
        // The first cell is never cut where others follow.
        let (first, rest) = match fit {
            Some((room, _)) if row.len() > 1 => {
                (first.clone(), cut(rest, room.saturating_sub(first.chars().count())))
            }
            Some((room, _)) => (cut(&first, room), String::new()),
            None => (first, rest.to_owned()),
        };
        let first = if rest.is_empty() { first.trim_end() } else { &first };
        format!("{}{rest}\n", paint.text(style, first))
    };
    let rows: String = rows.iter().map(|(style, row)| line(*style, row)).collect();
    paint.text(paint::DIM, line(paint::PLAIN, &headings).trim_end()) + "\n" + &rows
}

fn heading(column: &str) -> &str {
    column.trim_start_matches('>')
}

fn cut(text: &str, room: usize) -> String {
    if text.chars().count() <= room {
        return text.to_owned();
    }
    let kept: String = text.chars().take(room.saturating_sub(1)).collect();
    kept + if room > 0 { "…" } else { "" }
}
