//! What lies over the list.

use ratatui::{
    Frame,
    layout::{Constraint, Layout, Rect},
    style::Modifier,
    symbols::border,
    text::{Line, Span},
    widgets::{Block, Borders, Clear, Paragraph, Wrap},
};

use super::super::{
    dialog::{Asks, Dialog, exactly},
    state::State,
};

const ASCII: border::Set<'static> = border::Set {
    top_left: "+",
    top_right: "+",
    bottom_left: "+",
    bottom_right: "+",
    vertical_left: "|",
    vertical_right: "|",
    horizontal_top: "-",
    horizontal_bottom: "-",
};

fn buttons(end: bool) -> Line<'static> {
    let style = |on: bool| if on { Modifier::REVERSED } else { Modifier::empty() };
    Line::from(vec![
        Span::styled("[ Cancel ]", style(!end)),
        Span::raw("  "),
        Span::styled("[ End ]", style(end)),
    ])
}

pub(super) fn draw(state: &State, frame: &mut Frame<'_>) {
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
    frame.render_widget(Paragraph::new(lines).wrap(Wrap { trim: false }).scroll((*top, 0)), text);
    if let Some(buttons) = buttons {
        frame.render_widget(Paragraph::new(buttons), foot);
    }
}
