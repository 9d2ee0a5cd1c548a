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
    dialog::{Dialog, exactly},
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

pub(super) fn draw(state: &State, frame: &mut Frame<'_>) {
    match &state.dialog {
        None => {}
        Some(Dialog::Asking(_)) => {
            let lines = ["Asking the daemon what would be ended ...".to_owned()];
            show(state, frame, "End", &lines, 0, None);
        }
        Some(Dialog::Text { title, lines, top }) => show(state, frame, title, lines, *top, None),
        Some(Dialog::Reap { planned, lines, top, end }) => {
            let buttons = match exactly(planned) {
                Some(_) => buttons(*end),
                None => Line::styled("[ Close ]", Modifier::REVERSED),
            };
            show(state, frame, "End these processes?", lines, *top, Some(buttons));
        }
    }
}

fn buttons(end: bool) -> Line<'static> {
    let style = |on: bool| if on { Modifier::REVERSED } else { Modifier::empty() };
    Line::from(vec![
        Span::styled("[ Cancel ]", style(!end)),
        Span::raw("  "),
        Span::styled("[ End ]", style(end)),
    ])
}

fn show(
    state: &State,
    frame: &mut Frame<'_>,
    title: &str,
    lines: &[String],
    top: u16,
    buttons: Option<Line<'_>>,
) {
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
    let block = Block::new().borders(Borders::TOP | Borders::BOTTOM).border_set(set).title(title.to_owned());
    let inner = block.inner(place);
    frame.render_widget(Clear, place);
    frame.render_widget(block, place);
    let [text, foot] = Layout::vertical([Constraint::Fill(1), Constraint::Length(below.min(1))]).areas(inner);
    let lines: Vec<Line<'_>> = lines.iter().map(|line| Line::from(line.as_str())).collect();
    frame.render_widget(Paragraph::new(lines).wrap(Wrap { trim: false }).scroll((top, 0)), text);
    if let Some(buttons) = buttons {
        frame.render_widget(Paragraph::new(buttons), foot);
    }
}
