//! Text tables with a heading.

use anstyle::Style;
use ratatui::text::Span;

use super::paint::{self, Paint};

/// The columns of names, which other people's programs have. A longer one does not make its column wider, so it disturbs no
/// other row.
const NAMES: [&str; 4] = ["SERVER", "AGENT", "RUN", "ORPHAN"];
const WIDEST: usize = 64;

/// The style of the first cell, and the cells, which must already be sanitised. A row of one cell is a line of its own.
pub(super) type Row = (Style, Vec<String>);

/// How a table is made to fit: the width of a line, and the columns that give way, each with how narrow it may get.
pub(crate) type Fit<'a> = (usize, &'a [(usize, usize)]);

/// Whether a table is of several users: then a column tells whose a row is. One user's runs are told apart by their numbers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Users {
    are_several: bool,
}

impl Users {
    pub(super) fn of(mut users: impl Iterator<Item = u32>) -> Self {
        let first = users.next();
        Self { are_several: users.any(|user| Some(user) != first) }
    }

    pub(super) fn cell(self, user: Option<u32>) -> String {
        cell(user.filter(|_| self.are_several))
    }
}

/// What is not known is a dash.
pub(super) fn cell(known: Option<impl ToString>) -> String {
    known.map_or_else(|| "-".to_owned(), |known| known.to_string())
}

/// None is a dash, too.
pub(super) fn number(number: u64) -> String {
    cell((number > 0).then_some(number))
}

/// The table with a line feed after each row. `columns` are the headings, with `|` between them. One begins with `>` where the
/// column contains numbers, which are right-aligned; or, without `fit`, with `?` where it is there only if a cell says more than `-`.
pub(super) fn render(paint: Paint, columns: &str, rows: &[Row], fit: Option<Fit<'_>>) -> String {
    let says_more = |at: usize| rows.iter().any(|(_, row)| row.get(at).is_some_and(|cell| cell != "-"));
    let columns = columns.split('|').enumerate();
    let (places, columns): (Vec<usize>, Vec<&str>) =
        columns.filter(|(at, column)| !column.starts_with('?') || says_more(*at)).unzip();
    let width_of = |at: usize, heading: &str| {
        let widest = if fit.is_none() && NAMES.contains(&heading) { WIDEST } else { usize::MAX };
        let cells = rows.iter().filter(|(_, row)| row.len() > 1).filter_map(|(_, row)| row.get(at));
        cells.map(|cell| width(cell).min(widest)).fold(heading.len(), usize::max)
    };
    let mut widths: Vec<usize> =
        places.iter().zip(&columns).map(|(at, column)| width_of(*at, heading(column))).collect();
    if let Some(fit) = fit {
        narrow(&mut widths, fit);
    }
    let headings: Vec<String> = columns.iter().map(|column| heading(column).to_owned()).collect();
    let line = |style: Style, row: &[&String]| {
        let mut cells = row.iter().zip(&columns).zip(&widths).map(|((cell, column), room)| {
            let cell = if fit.is_some() && row.len() > 1 { cut(cell, *room) } else { (*cell).clone() };
            let space = " ".repeat(room.saturating_sub(width(&cell)));
            if column.trim_start_matches('?').starts_with('>') { space + &cell } else { cell + &space }
        });
        let first = cells.next().unwrap_or_default();
        let between = if fit.is_some() { " " } else { "  " };
        let rest: String = cells.fold(String::new(), |all, cell| all + between + &cell);
        let rest = rest.trim_end();
        // The first cell is never cut where others follow.
        let (first, rest) = match fit {
            Some((room, _)) if row.len() > 1 => {
                (first.clone(), cut(rest, room.saturating_sub(width(&first))))
            }
            Some((room, _)) => (cut(&first, room), String::new()),
            None => (first, rest.to_owned()),
        };
        let first = if rest.is_empty() { first.trim_end() } else { &first };
        format!("{}{rest}\n", paint.text(style, first))
    };
    let rows = rows.iter().map(|(style, row)| {
        let shown: Vec<&String> = places.iter().filter_map(|at| row.get(*at)).collect();
        line(*style, &shown)
    });
    let rows: String = rows.collect();
    let headings: Vec<&String> = headings.iter().collect();
    paint.text(paint::DIM, line(paint::PLAIN, &headings).trim_end()) + "\n" + &rows
}

/// Makes columns narrower, as far as the line is too long. Returns how long it is then.
pub(crate) fn narrow(widths: &mut [usize], (room, narrower): Fit<'_>) -> usize {
    let length = |widths: &[usize]| (widths.iter().sum::<usize>() + widths.len()).saturating_sub(1);
    for (at, least) in narrower {
        let excess = length(widths).saturating_sub(room);
        if let Some(width) = widths.get_mut(*at) {
            *width = width.saturating_sub(excess).max(*least.min(width));
        }
    }
    length(widths)
}

fn heading(column: &str) -> &str {
    column.trim_start_matches(['>', '?'])
}

/// How many cells of a terminal it takes.
pub(crate) fn width(text: &str) -> usize {
    Span::raw(text).width()
}

pub(crate) fn cut(text: &str, room: usize) -> String {
    if width(text) <= room {
        return text.to_owned();
    }
    let mut kept: String = text.chars().take(room).collect();
    while width(&kept) >= room && kept.pop().is_some() {}
    kept + if room > 0 { "…" } else { "" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_that_says_nothing_is_not_there() {
        let row = |user: &str| (paint::PLAIN, vec!["a".to_owned(), user.to_owned(), "b".to_owned()]);
        let alone = render(Paint::new(false), "RUN|?>UID|WHY", &[row("-"), row("-")], None);
        assert_eq!(alone, "RUN  WHY\na    b\na    b\n");
        let both = render(Paint::new(false), "RUN|?>UID|WHY", &[row("-"), row("1000")], None);
        assert_eq!(both, "RUN   UID  WHY\na       -  b\na    1000  b\n");
    }

    #[test]
    fn a_long_or_a_wide_name_disturbs_no_other_row() {
        let row = |name: &str| (paint::PLAIN, vec![name.to_owned(), "7".to_owned(), "x".to_owned()]);
        let rows = [row("日本"), row("time"), row(&"a".repeat(200))];
        let table = render(Paint::new(false), "RUN|>N|", &rows, None);
        let ends: Vec<usize> = table.lines().map(width).collect();
        assert_eq!(ends, [WIDEST + 3, WIDEST + 6, WIDEST + 6, 206]);
        let table = render(Paint::new(false), "RUN|>N|", &rows, Some((12, &[(0, 3)])));
        assert!(table.lines().all(|line| width(line) <= 12), "{table}");
        assert_eq!(
            (cut("日本", 4), cut("日本", 3), cut("日本", 2), cut("日本", 0)),
            ("日本".into(), "日…".into(), "…".into(), String::new())
        );
    }
}
