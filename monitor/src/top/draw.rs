//! The state as a frame. Pure: it draws into a buffer of any size.

use std::collections::BTreeSet;

use ratatui::{
    Frame,
    layout::{Constraint, Layout, Rect},
    style::{Color, Modifier, Style},
    symbols::{self, border},
    text::{Line, Span},
    widgets::{Block, Borders, Cell, Clear, Paragraph, Row as TableRow, Sparkline, Table},
};
use strum::VariantArray as _;

use super::{
    dialog::{Asks, exactly},
    state::State,
};
use crate::sink::{
    list::{self, Column, Entry, Kind, Row},
    table,
};
use orphand_core::model::{self, ServerReport, text};

/// A column that only wide terminals have room for. It is there only if it says something.
struct Further {
    heading: &'static str,
    from: u16,
    value: fn(&Entry) -> String,
}

/// They follow the columns of the list.
const FURTHER: [Further; 4] = [
    Further { heading: "FOLDER", from: 160, value: folder },
    Further { heading: "TERMINAL", from: 176, value: terminal },
    Further { heading: "PORTS", from: 140, value: ports },
    Further { heading: "WHY", from: 120, value: |entry| list::why(&entry.report) },
];

/// The order in which columns give way where a line is too long, and how narrow each may get.
const NARROWER: [(&str, usize); 8] = [
    ("FOLDER", 16),
    ("TERMINAL", 15),
    ("PORTS", 14),
    ("SERVER", 32),
    ("WHY", 32),
    ("NEXT", 16),
    ("SERVER", 14),
    ("AGENT", 9),
];

/// What is left out where that is not enough, the first one first.
const LEFT_OUT: [&str; 6] = ["WHY", "CPU", "NEXT", "AGENT", "P", "AGE"];

#[derive(Clone, Copy)]
enum Shown {
    Listed(Column),
    Further(&'static Further),
}

impl Shown {
    fn heading(self) -> &'static str {
        match self {
            Self::Listed(column) => column.heading(),
            Self::Further(further) => further.heading,
        }
    }

    fn is_number(self) -> bool {
        matches!(self, Self::Listed(column) if column.is_number())
    }

    /// What the cell of a server says, whole.
    fn cell(self, state: &State, row: &Row, entry: &Entry) -> String {
        match self {
            Self::Listed(Column::Server) => {
                let name = if state.commands { entry.command() } else { entry.value(Column::Server) };
                indented(state, row, &name)
            }
            Self::Listed(column) => entry.value(column),
            Self::Further(further) => (further.value)(entry),
        }
    }
}

/// Bars of a sparkline without other letters than those of ASCII.
const ASCII_BARS: symbols::bar::Set<'static> = symbols::bar::Set {
    full: "#",
    seven_eighths: "#",
    three_quarters: "*",
    five_eighths: "+",
    half: "=",
    three_eighths: "-",
    one_quarter: ":",
    one_eighth: ".",
    empty: " ",
};

/// Draws the state. It learns how many rows there are room for.
pub fn draw(state: &mut State, frame: &mut Frame<'_>) {
    let blind = state.sample.as_ref().map_or(0, |sample| u16::from(!sample.report.blind.is_empty()));
    let lines = events_room(state, frame.area().height);
    let parts = [
        Constraint::Length(2 + blind),
        Constraint::Length(1),
        Constraint::Fill(1),
        Constraint::Length(lines),
        Constraint::Length(1),
    ];
    let [head, headings, list, events, foot] = Layout::vertical(parts).areas(frame.area());
    state.scroll(usize::from(list.height));
    state.place = list;
    let whole = usize::from(frame.area().width);
    let said = head_lines(state, whole);
    let room_from = said.get(1).map_or(0, Line::width);
    frame.render_widget(Paragraph::new(said), head);
    draw_past(state, room_from, head, frame);
    frame.render_widget(rows(state, headings.width), headings.union(list));
    if state.rows.is_empty() {
        frame.render_widget(Paragraph::new(nothing(state)), list);
    }
    let latest = state.events.iter().skip(state.events.len().saturating_sub(usize::from(lines)));
    let latest: Vec<Line<'_>> =
        latest.map(|line| Line::styled(cut(state.look.ascii, line, whole), Modifier::DIM)).collect();
    frame.render_widget(Paragraph::new(latest), events);
    frame.render_widget(Paragraph::new(foot_line(state)), foot);
    draw_dialog(state, frame);
}

/// How many lines events get: none on a small screen, and no more than there are.
fn events_room(state: &State, height: u16) -> u16 {
    let room = if height < 16 { 0 } else { (height / 5).min(8) };
    room.min(u16::try_from(state.events.len()).unwrap_or(u16::MAX))
}

fn nothing(state: &State) -> &'static str {
    match &state.sample {
        None => "Looking ...",
        Some(_) if state.how.ownerless && !state.entries.is_empty() => "No orphan. 2 shows all servers.",
        Some(_) if !state.how.filter.is_empty() => "Nothing matches the filter. Esc clears it.",
        Some(_) if state.leftovers => "No leftover. 2 shows all servers.",
        Some(_) => "No MCP server is running.",
    }
}

fn head_lines(state: &State, width: usize) -> Vec<Line<'static>> {
    let Some(sample) = &state.sample else { return vec![Line::from("orphand")] };
    // First what must not be cut off.
    let marks =
        [(state.frozen, "FROZEN  ", warning(state)), (state.look.readonly, "read-only  ", Style::new())];
    let marks = marks.into_iter().filter(|(is, ..)| *is).map(|(_, mark, style)| Span::styled(mark, style));
    let mut first: Vec<Span<'_>> = marks.collect();
    let room = width.saturating_sub(first.iter().map(Span::width).sum());
    let freed = sample.freed.as_ref().map(|freed| format!("  24 h: {freed} freed")).unwrap_or_default();
    let said = cut(state.look.ascii, &format!("{}{freed}", sample.source), room);
    first.push(Span::styled(said, Modifier::BOLD));
    let mut lines = vec![
        Line::from(first),
        Line::from(cut(state.look.ascii, &list::sum(&sample.report, &sample.report.blind), width)),
    ];
    if let Some(why) = sample.report.blind.first() {
        let more = match sample.report.blind.len() - 1 {
            0 => String::new(),
            more => format!(" (and {more} more)"),
        };
        let why = format!("Not seen{more}: {}", text::sanitise(why));
        lines.push(Line::styled(cut(state.look.ascii, &why, width), warning(state)));
    }
    lines
}

/// How the memory of what lost its owner went during the last minutes, at the end of the second line, if there is room.
fn draw_past(state: &State, said: usize, head: Rect, frame: &mut Frame<'_>) {
    let label = format!(" memory without owner, {} ", state.past.span());
    let bytes = &state.past.bytes;
    let room = usize::from(head.width).saturating_sub(said + 1);
    let width = room.min(label.len() + bytes.len().max(8));
    if bytes.len() < 2 || width < label.len() + 8 || head.height < 2 {
        return;
    }
    let [y, width, text] = [head.y + 1, cells_of(width), cells_of(label.len())];
    let place = Rect { x: head.right() - width, y, width: text, height: 1 };
    frame.render_widget(Paragraph::new(label).style(Modifier::DIM), place);
    let place = Rect { x: place.right(), y, width: width - text, height: 1 };
    let skipped = bytes.len().saturating_sub(usize::from(place.width));
    let bars = Sparkline::default().data(bytes.iter().skip(skipped).copied());
    let bars = if state.look.ascii { bars.bar_set(ASCII_BARS) } else { bars };
    frame.render_widget(bars.style(warning(state)), place);
}

fn cells_of(length: usize) -> u16 {
    u16::try_from(length).unwrap_or(u16::MAX)
}

fn foot_line(state: &State) -> Line<'static> {
    if state.typing {
        return Line::from(format!("/{}_", state.how.filter));
    }
    if let Some(said) = [&state.message, &state.trouble].into_iter().find(|said| !said.is_empty()) {
        return Line::styled(text::sanitise(said).into_owned(), warning(state));
    }
    let filter = match state.how.filter.as_str() {
        "" => String::new(),
        filter => format!("  filter: {filter}"),
    };
    let place = format!("{}/{}", (state.selected + 1).min(state.rows.len()), state.rows.len());
    let keys = "? help  / filter  t tree  Enter why  r reap  q quit";
    Line::styled(format!("{keys}  {place}{filter}"), Modifier::DIM)
}

fn rows(state: &State, width: u16) -> Table<'static> {
    let columns = columns(state, width);
    let widths: Vec<Constraint> =
        columns.iter().map(|(_, room)| Constraint::Length(cells_of(*room))).collect();
    let headings: Vec<Cell<'_>> = columns.iter().map(|(column, _)| heading(state, *column)).collect();
    let shown = state.rows.iter().enumerate().skip(state.top).take(state.page);
    let rows = shown.map(|(at, row)| {
        let style = if at == state.selected { Modifier::REVERSED.into() } else { Style::default() };
        TableRow::new(cells(state, row, &columns, width)).style(style)
    });
    let rows: Vec<TableRow<'_>> = rows.collect();
    Table::new(rows, widths).header(TableRow::new(headings)).column_spacing(1)
}

/// The columns, each as wide as what it says, or narrower where the line has no room for that.
fn columns(state: &State, width: u16) -> Vec<(Shown, usize)> {
    // Commands need the room of the agent; in a tree it is above.
    let is_wanted = |column: &Column| !((state.commands || state.how.tree) && *column == Column::Agent);
    let listed = Column::VARIANTS.iter().copied().filter(is_wanted).map(Shown::Listed);
    let further = FURTHER.iter().filter(|column| width >= column.from).map(Shown::Further);
    let content = |column: Shown| {
        let servers = state.rows.iter().filter_map(|row| Some((row, row.server(&state.entries)?)));
        servers.map(|(row, entry)| table::width(&column.cell(state, row, entry))).max().unwrap_or_default()
    };
    let columns = listed.chain(further).map(|column| (column, content(column)));
    let mut columns: Vec<(Shown, usize)> = columns
        .filter(|(column, content)| *content > 0 || matches!(column, Shown::Listed(_)))
        .map(|(column, content)| (column, content.max(column.heading().len())))
        .collect();
    let mut left_out = LEFT_OUT.iter();
    loop {
        let place = |heading| columns.iter().position(|(column, _)| column.heading() == heading);
        let narrower = NARROWER.iter().filter_map(|(heading, least)| Some((place(*heading)?, *least)));
        let narrower: Vec<(usize, usize)> = narrower.collect();
        let mut widths: Vec<usize> = columns.iter().map(|(_, content)| *content).collect();
        let is_too_long = table::narrow(&mut widths, (width.into(), &narrower)) > width.into();
        match left_out.next().filter(|_| is_too_long) {
            Some(heading) => columns.retain(|(column, _)| column.heading() != *heading),
            None => {
                return columns.into_iter().zip(widths).map(|((column, _), room)| (column, room)).collect();
            }
        }
    }
}

fn heading(state: &State, column: Shown) -> Cell<'static> {
    let is_sorted = matches!(column, Shown::Listed(listed) if listed == state.how.sort);
    let style = if is_sorted { Modifier::BOLD | Modifier::UNDERLINED } else { Modifier::DIM };
    let line = Line::styled(column.heading(), style);
    Cell::from(if column.is_number() { line.right_aligned() } else { line })
}

fn cells(state: &State, row: &Row, columns: &[(Shown, usize)], width: u16) -> Vec<Cell<'static>> {
    let Some(entry) = row.server(&state.entries) else {
        // It has nothing else to show: it has the room of all that follows.
        let [pid, says] = [Column::Pid, Column::Server].map(|column| row.value(&state.entries, column));
        let says = if pid.is_empty() { says } else { format!("{pid}  {says}") };
        let first = columns.first().map_or(0, |(_, room)| room + 1);
        let says =
            cut(state.look.ascii, &indented(state, row, &says), usize::from(width).saturating_sub(first));
        return vec![Cell::default(), Cell::from(says).column_span(cells_of(columns.len()))];
    };
    let cell = |(column, room): &(Shown, usize)| {
        let shown = cut(state.look.ascii, &column.cell(state, row, entry), *room);
        let is_state = matches!(column, Shown::Listed(Column::State));
        let style = if is_state { verdict(state, &entry.report) } else { Style::default() };
        let line = Line::styled(shown, style);
        Cell::from(if column.is_number() { line.right_aligned() } else { line })
    };
    columns.iter().map(cell).collect()
}

fn cut(ascii: bool, text: &str, room: usize) -> String {
    let text = table::cut(text, room);
    if ascii { text.replace('…', "~") } else { text }
}

fn indented(state: &State, row: &Row, says: &str) -> String {
    format!("{}{}{says}", "  ".repeat(usize::from(row.depth)), mark(state, row))
}

fn folder(entry: &Entry) -> String {
    let path = entry.folder().as_deref().unwrap_or_default();
    text::sanitise(path.trim_end_matches('/').rsplit('/').next().unwrap_or_default()).into_owned()
}

fn terminal(entry: &Entry) -> String {
    text::sanitise(entry.hints.terminal.as_deref().unwrap_or_default()).into_owned()
}

/// The ports on which a server listens, each once.
fn ports(entry: &Entry) -> String {
    let ports =
        entry.report.holdings.listens.iter().filter_map(|at| at.rsplit_once(':')?.1.parse::<u16>().ok());
    let ports: BTreeSet<u16> = ports.collect();
    ports.iter().map(u16::to_string).collect::<Vec<_>>().join(" ")
}

fn mark(state: &State, row: &Row) -> &'static str {
    if !state.how.tree && matches!(row.kind, Kind::Server(_)) && row.open == Some(false) {
        return "";
    }
    match (row.open, state.look.ascii) {
        (Some(true), true) => "- ",
        (Some(false), true) => "+ ",
        (Some(true), false) => "▾ ",
        (Some(false), false) => "▸ ",
        (None, _) => "",
    }
}

fn verdict(state: &State, report: &ServerReport) -> Style {
    let style = if report.is_orphan() { Style::from(Modifier::BOLD) } else { Style::default() };
    let colour = match report.state {
        _ if !state.look.colours => return style,
        model::State::Orphan | model::State::Ending => Color::Red,
        model::State::Kept | model::State::Unproven | model::State::Suspect | model::State::Leftover => {
            Color::Yellow
        }
        model::State::Live => Color::Green,
    };
    style.fg(colour)
}

fn warning(state: &State) -> Style {
    if state.look.colours { Style::default().fg(Color::Yellow) } else { Modifier::BOLD.into() }
}

/// Of a border only the lines above and below are drawn.
const ASCII: border::Set<'static> =
    border::Set { horizontal_top: "-", horizontal_bottom: "-", ..border::PLAIN };

fn buttons(end: bool) -> Line<'static> {
    let style = |on: bool| if on { Modifier::REVERSED } else { Modifier::empty() };
    Line::from(vec![
        Span::styled("[ Cancel ]", style(!end)),
        Span::raw("  "),
        Span::styled("[ End ]", style(end)),
    ])
}

fn draw_dialog(state: &mut State, frame: &mut Frame<'_>) {
    let (area, ascii) = (frame.area(), state.look.ascii);
    let Some(dialog) = &mut state.dialog else { return };
    let buttons = match &dialog.asks {
        Asks::Person(planned, end) if exactly(planned).is_some() => Some(buttons(*end)),
        Asks::Person(..) => Some(Line::styled("[ Close ]", Modifier::REVERSED)),
        Asks::Nothing | Asks::Daemon(_) => None,
    };
    // Without borders at its sides a page of 80 columns fits a terminal of 80.
    let widest = dialog.lines.iter().map(|line| table::width(line)).max().unwrap_or_default();
    let width = area.width.min(if dialog.left.is_some() { cells_of(widest).max(100) } else { 100 });
    let inside = usize::from(width).max(1);
    let lines = dialog.fold(inside);
    let below = 2 * u16::from(buttons.is_some());
    let height = cells_of(lines.len() + 2).saturating_add(below).min(area.height);
    let place =
        Rect { x: area.x + (area.width - width) / 2, y: area.y + (area.height - height) / 2, width, height };
    let set = if ascii { ASCII } else { border::PLAIN };
    let block =
        Block::new().borders(Borders::TOP | Borders::BOTTOM).border_set(set).title(dialog.title.as_str());
    let inner = block.inner(place);
    let [text, foot] = Layout::vertical([Constraint::Fill(1), Constraint::Length(below.min(1))]).areas(inner);
    // The last page is full.
    let last = lines.len().saturating_sub(text.height.into());
    dialog.tall = last + 1;
    dialog.top = dialog.top.min(last);
    let more = if dialog.top < last { "more: Down, PgDn  " } else { "" };
    frame.render_widget(Clear, place);
    frame.render_widget(block.title_bottom(format!("{more}Esc closes")), place);
    let shown = lines.iter().skip(dialog.top).take(text.height.into());
    let shown: Vec<Line<'_>> = shown.map(|line| Line::from(cut(ascii, line, inside))).collect();
    frame.render_widget(Paragraph::new(shown), text);
    if let Some(buttons) = buttons {
        frame.render_widget(Paragraph::new(buttons), foot);
    }
}
