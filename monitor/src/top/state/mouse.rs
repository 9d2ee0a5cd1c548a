//! What the mouse does to the view.

use ratatui::{
    crossterm::event::{KeyCode, MouseButton, MouseEvent, MouseEventKind},
    layout::Position,
};

use super::State;

impl State {
    pub fn mouse(&mut self, mouse: MouseEvent) {
        let steps = match mouse.kind {
            MouseEventKind::ScrollUp => [KeyCode::Up; 3],
            MouseEventKind::ScrollDown => [KeyCode::Down; 3],
            MouseEventKind::Down(MouseButton::Left) => {
                let row = self.top + usize::from(mouse.row.saturating_sub(self.place.y));
                let is_inside = self.place.contains(Position { x: mouse.column, y: mouse.row });
                if self.dialog.is_none() && is_inside && row < self.rows.len() {
                    self.selected = row;
                }
                return;
            }
            _ => return,
        };
        for code in steps {
            match &mut self.dialog {
                Some(dialog) => drop(dialog.key(code)),
                None => drop(self.move_by(code)),
            }
        }
    }
}
