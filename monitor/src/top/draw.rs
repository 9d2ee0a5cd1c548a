//! The state as a frame. Pure: it draws into a buffer of any size.

use std::collections::BTreeSet;

use ratatui::{
    Frame,
    layout::{Constraint, Layout, Rect},
    style::{Color, Modifier, Style},
    symbols::{self, border},
    text::{Line, Span},
    widgets::{Block, Borders, Cell, Clear, Paragraph, Row as TableRow, Sparkline, Table, Wrap},
};
use strum::VariantArray as _;

use super::{
    dialog::{Asks, Dialog, exactly},
    state::State,
};
use crate::sink::list::{self, Column, Entry, Kind, Row};
use orphand_core::model::{self, ServerReport, text};

/// From this width on a last column says why, and columns are wider.
const WIDE: u16 = 120;

/// A column that only wide terminals have room for.
struct Further {
    heading: &'static str,
    from: u16,
    room: Constraint,
    value: fn(&Entry) -> String,
}

/// They follow the columns of the list.
const FURTHER: [Further; 4] = [
    Further { heading: "FOLDER", from: 160, room: Constraint::Length(16), value: folder },
    Further { heading: "TERMINAL", from: 176, room: Constraint::Length(15), value: terminal },
    Further { heading: "PORTS", from: 140, room: Constraint::Length(14), value: ports },
    Further {
        heading: "WHY",
        from: WIDE,
        room: Constraint::Fill(1),
        value: |entry| list::why(&entry.report),
    },
];

fn further(width: u16) -> impl Iterator<Item = &'static Further> {
    FURTHER.iter().filter(move |column| width >= column.from)
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
    let said = head_lines(state);
    let room_from = said.get(1).map_or(0, Line::width);
    frame.render_widget(Paragraph::new(said), head);
    draw_past(state, room_from, head, frame);
    frame.render_widget(table(state, headings.width), headings.union(list));
    if state.rows.is_empty() {
        frame.render_widget(Paragraph::new(nothing(state)), list);
    }
    let latest = state.events.iter().skip(state.events.len().saturating_sub(usize::from(lines)));
    let latest: Vec<Line<'_>> = latest.map(|line| Line::styled(line.as_str(), Modifier::DIM)).collect();
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

fn head_lines(state: &State) -> Vec<Line<'static>> {
    let Some(sample) = &state.sample else { return vec![Line::from("orphand")] };
    let mut first = vec![Span::styled(sample.source.clone(), Modifier::BOLD)];
    if let Some(bytes) = sample.freed {
        first.push(Span::raw(format!("  24 h: {} freed", text::size(bytes))));
    }
    if state.paused {
        first.push(Span::styled("  view PAUSED", warning(state)));
    }
    if state.look.readonly {
        first.push(Span::raw("  read-only"));
    }
    let mut lines = vec![Line::from(first), Line::from(list::sum(&sample.report, &sample.report.blind))];
    if let Some(why) = sample.report.blind.first() {
        let more = match sample.report.blind.len() - 1 {
            0 => String::new(),
            more => format!(" (and {more} more)"),
        };
        let why = format!("Not seen{more}: {}", text::sanitise(why));
        lines.push(Line::styled(why, warning(state)));
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

fn table(state: &State, width: u16) -> Table<'static> {
    // Commands need the room of the agent; in a tree it is above.
    let is_wanted = |column: Column| !((state.commands || state.how.tree) && column == Column::Agent);
    let fits = |column: &Column| width >= measures(*column).0 && is_wanted(*column);
    let columns: Vec<Column> = Column::VARIANTS.iter().copied().filter(fits).collect();
    let widths = columns.iter().map(|column| match measures(*column).1 {
        _ if *column == Column::Server => Constraint::Fill(1),
        [wide, other] => Constraint::Length(if width >= WIDE { wide } else { other }),
    });
    let widths: Vec<Constraint> = widths.chain(further(width).map(|column| column.room)).collect();
    let last = further(width).map(|column| Cell::from(Span::styled(column.heading, Modifier::DIM)));
    let headings: Vec<Cell<'_>> = columns.iter().map(|column| heading(state, *column)).chain(last).collect();
    let shown = state.rows.iter().enumerate().skip(state.top).take(state.page);
    let rows = shown.map(|(at, row)| {
        let style = if at == state.selected { Modifier::REVERSED.into() } else { Style::default() };
        TableRow::new(cells(state, row, &columns, width)).style(style)
    });
    let rows: Vec<TableRow<'_>> = rows.collect();
    Table::new(rows, widths).header(TableRow::new(headings)).column_spacing(1)
}

/// From which width of the terminal on a column is there, and its own width, in a wide terminal and in others.
const fn measures(column: Column) -> (u16, [u16; 2]) {
    match column {
        Column::State => (0, [8, 8]),
        Column::Server => (0, [0, 0]),
        Column::Agent => (58, [20, 11]),
        Column::Pid | Column::Memory => (0, [7, 7]),
        Column::Processes => (45, [3, 3]),
        Column::Cpu => (76, [5, 5]),
        Column::Age => (45, [5, 5]),
        Column::Next => (72, [24, 15]),
    }
}

fn heading(state: &State, column: Column) -> Cell<'static> {
    let style = if column == state.how.sort { Modifier::BOLD | Modifier::UNDERLINED } else { Modifier::DIM };
    let line = Line::styled(column.heading(), style);
    Cell::from(if column.is_number() { line.right_aligned() } else { line })
}

fn cells(state: &State, row: &Row, columns: &[Column], width: u16) -> Vec<Cell<'static>> {
    let entry = row.server(&state.entries);
    let cell = |column: &Column| {
        let shown = match (entry, column) {
            (Some(entry), Column::Server) if state.commands => entry.command(),
            _ => row.value(&state.entries, *column),
        };
        let (shown, style) = match (entry, column) {
            (_, Column::Server) => {
                let indent = "  ".repeat(usize::from(row.depth));
                (format!("{indent}{}{shown}", mark(state, row)), Style::default())
            }
            (Some(entry), Column::State) => (shown, verdict(state, &entry.report)),
            _ => (shown, Style::default()),
        };
        let line = Line::styled(shown, style);
        Cell::from(if column.is_number() { line.right_aligned() } else { line })
    };
    if matches!(row.kind, Kind::Agent | Kind::Generation) {
        // It has nothing else to show: its name has the room of all that follows.
        let name = cell(&Column::Server).column_span(cells_of(columns.len()));
        return vec![Cell::default(), name];
    }
    let last = further(width).map(|column| Cell::from(entry.map(column.value).unwrap_or_default()));
    columns.iter().map(cell).chain(last).collect()
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

fn draw_dialog(state: &State, frame: &mut Frame<'_>) {
    let Some(Dialog { title, lines, top, asks }) = &state.dialog else { return };
    let buttons = match asks {
        Asks::Person(planned, end) if exactly(planned).is_some() => Some(buttons(*end)),
        Asks::Person(..) => Some(Line::styled("[ Close ]", Modifier::REVERSED)),
        Asks::Nothing | Asks::Daemon(_) => None,
    };
    let area = frame.area();
    // Without borders at its sides a page of 80 columns fits a terminal of 80.
    let width = area.width.min(100);
    // Long lines are wrapped: what is left of the last one has a line of its own.
    let inside = usize::from(width).max(1);
    let tall: usize = lines.iter().map(|line| line.chars().count().div_ceil(inside).max(1)).sum();
    let below = 2 * u16::from(buttons.is_some());
    let height = u16::try_from(tall + 2).unwrap_or(u16::MAX).saturating_add(below).min(area.height);
    let place =
        Rect { x: area.x + (area.width - width) / 2, y: area.y + (area.height - height) / 2, width, height };
    let set = if state.look.ascii { ASCII } else { border::PLAIN };
    let block = Block::new().borders(Borders::TOP | Borders::BOTTOM).border_set(set).title(title.as_str());
    let inner = block.inner(place);
    frame.render_widget(Clear, place);
    frame.render_widget(block, place);
    let [text, foot] = Layout::vertical([Constraint::Fill(1), Constraint::Length(below.min(1))]).areas(inner);
    let lines: Vec<Line<'_>> = lines.iter().map(|line| Line::from(line.as_str())).collect();
    frame.render_widget(Paragraph::new(lines).wrap(Wrap { trim: false }).scroll((cells_of(*top), 0)), text);
    if let Some(buttons) = buttons {
        frame.render_widget(Paragraph::new(buttons), foot);
    }
}
