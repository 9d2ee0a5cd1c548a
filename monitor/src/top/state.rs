//! The state of the view, and what keys do to it. Pure: a key gives at most one [`Effect`], which the shell carries out.

use std::{collections::VecDeque, ops::ControlFlow};

use ratatui::{
    crossterm::event::{KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind},
    layout::{Position, Rect},
};

use super::{
    dialog::{Asks, Dialog, HELP},
    past::Past,
    worker::Ask,
};
use crate::sink::list::{self, Arrangement, Column, Entry, Kind, Row, Sample};
use orphand_core::model::{Asked, ReapRequest, ServerReport};

const EVENTS: usize = 50;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    Quit,
    /// Stop, until the shell lets it go on.
    Suspend,
    Ask(Ask),
    /// Put this into the clipboard of the terminal.
    Copy(String),
}

#[derive(Clone, Copy, Debug, Default)]
pub struct Look {
    pub colours: bool,
    pub ascii: bool,
    pub readonly: bool,
}

#[derive(Debug, Default)]
pub struct State {
    pub(super) look: Look,
    /// The latest look at the host; absent before the first.
    pub(super) sample: Option<Sample>,
    /// What came while it was frozen is not shown.
    pub(super) frozen: bool,
    pub(super) entries: Vec<Entry>,
    pub(super) rows: Vec<Row>,
    pub(super) how: Arrangement,
    pub(super) selected: usize,
    /// The first row on the screen.
    pub(super) top: usize,
    /// How many rows the list had when it was drawn.
    pub(super) page: usize,
    pub(super) typing: bool,
    pub(super) commands: bool,
    pub(super) dialog: Option<Dialog>,
    pub(super) events: VecDeque<String>,
    pub(super) message: String,
    /// Why the latest look saw nothing.
    pub(super) trouble: String,
    pub(super) past: Past,
    /// Whether what agents left is shown that is no server.
    pub(super) leftovers: bool,
    /// Whether the cursor stays in its line, not at its server.
    pub(super) stays: bool,
    pub(super) place: Rect,
}

impl State {
    pub fn new(look: Look) -> Self {
        Self { look, page: 1, ..Self::default() }
    }

    pub fn update(&mut self, sample: Sample) {
        self.trouble.clear();
        self.past.add(&sample);
        if !self.frozen || self.sample.is_none() {
            self.sample = Some(sample);
            self.enter();
        }
    }

    /// No daemon answers. What it told stays in the list until /proc has been looked through, but for what it was about to do.
    pub fn alone(&mut self, without: Sample) {
        self.trouble.clear();
        if let Some(sample) = &mut self.sample {
            *sample = Sample { report: std::mem::take(&mut sample.report), ..without };
            for one in sample.report.servers_mut() {
                (one.next, one.deadline) = (None, None);
            }
            self.enter();
        }
    }

    /// Enters what the latest look found of what is to be shown.
    fn enter(&mut self) {
        let of = if self.leftovers { list::leftover_entries } else { list::entries };
        self.entries = self.sample.as_ref().map(of).unwrap_or_default();
        self.arrange();
    }

    pub fn say(&mut self, message: impl Into<String>) {
        self.message = message.into();
    }

    pub fn event(&mut self, line: String) {
        if self.events.len() == EVENTS {
            self.events.pop_front();
        }
        self.events.push_back(line);
    }

    pub fn read(&mut self, dialog: Dialog) {
        self.dialog = Some(dialog);
    }

    /// The daemon has said which processes would be ended. What nobody waits for any more is dropped.
    pub fn planned(&mut self, request: &ReapRequest, planned: Vec<ServerReport>) {
        if !matches!(&self.dialog, Some(Dialog { asks: Asks::Daemon(asked), .. }) if asked == request) {
            return;
        }
        self.dialog = None;
        if planned.is_empty() {
            let is_meant = |id: &String| request.servers.iter().flatten().any(|meant| meant == id);
            let there = self.entries.iter().map(|one| &one.report).find(|one| is_meant(&one.server.id));
            let why = there.map_or_else(
                || "It has gone.".to_owned(),
                |one| {
                    format!("It is {}: `orphand reap {} --include-active` ends it.", one.state, one.server.id)
                },
            );
            self.say(why);
        } else {
            self.dialog = Some(Dialog::reap(planned));
        }
    }

    pub fn reaping(&mut self, planned: &[ServerReport]) {
        let names: Vec<&str> =
            planned.iter().filter(|one| one.guards.is_empty()).map(|one| one.server.name.as_str()).collect();
        self.say(match names.as_slice() {
            [] => "Nothing is ended: it is gone, or it may not be ended any more.".to_owned(),
            names => format!("The daemon ends {}.", names.join(", ")),
        });
    }

    pub fn failed(&mut self, why: String) {
        if matches!(self.dialog, Some(Dialog { asks: Asks::Daemon(_), .. })) {
            self.dialog = None;
        }
        self.say(why);
    }

    pub fn key(&mut self, key: KeyEvent) -> Option<Effect> {
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            return match key.code {
                KeyCode::Char('c') => Some(Effect::Quit),
                KeyCode::Char('z') => Some(Effect::Suspend),
                _ => None,
            };
        }
        self.message.clear();
        if let Some(dialog) = &mut self.dialog
            && !dialog.gives_way_to(key.code)
        {
            let ControlFlow::Break(effect) = dialog.key(key.code) else { return None };
            self.dialog = None;
            return effect;
        }
        self.dialog = None;
        if self.typing {
            self.type_filter(key.code);
            return None;
        }
        match key.code {
            KeyCode::Char('q') | KeyCode::F(10) => return Some(Effect::Quit),
            KeyCode::Char('r') => return self.reap(),
            KeyCode::Enter => return self.explain(),
            KeyCode::Char('y') => return self.copy(),
            KeyCode::Char('F') => self.stays = !self.stays,
            KeyCode::Char('?') | KeyCode::F(1) => self.dialog = Some(Dialog::text("Keys", HELP)),
            KeyCode::Char('/') => self.typing = true,
            KeyCode::Esc => self.filter(String::new()),
            KeyCode::Char('1') => self.show(true, false),
            KeyCode::Char('2') => self.show(false, false),
            KeyCode::Char('3') => self.show(false, true),
            KeyCode::Char('4') => return Some(Effect::Ask(Ask::History)),
            KeyCode::Char('w') => self.commands = !self.commands,
            KeyCode::Char('Z') => self.frozen = !self.frozen,
            code => {
                if !self.move_by(code) && !self.fold(code) {
                    self.order(code);
                }
            }
        }
        None
    }

    /// The entry of the selected row; of a process, its server.
    pub(super) fn selection(&self) -> Option<&Entry> {
        match self.rows.get(self.selected)?.kind {
            Kind::Server(at) | Kind::Process(at, _) => self.entries.get(at),
            Kind::Agent | Kind::Generation => None,
        }
    }

    /// Makes the list again. The same row stays selected, unless the cursor stays; if it is gone, the one in its place.
    fn arrange(&mut self) {
        let selected = self.rows.get(self.selected).map(|row| row.key.clone());
        let agents = self.sample.as_ref().map(|sample| sample.report.agents.as_slice());
        self.rows = list::rows(&mut self.entries, agents.unwrap_or_default(), &self.how);
        let again = selected.filter(|_| !self.stays);
        let again = again.and_then(|key| self.rows.iter().position(|row| row.key == key));
        self.selected = again.unwrap_or(self.selected).min(self.rows.len().saturating_sub(1));
        self.scroll(self.page);
    }

    /// Keeps the selected row on a screen with this many rows.
    pub(super) fn scroll(&mut self, page: usize) {
        self.page = page.max(1);
        let last = self.rows.len().saturating_sub(self.page);
        let first = (self.selected + 1).saturating_sub(self.page);
        self.top = self.top.clamp(first, self.selected.max(first)).min(last);
    }

    fn move_by(&mut self, code: KeyCode) -> bool {
        let Some(selected) = moved(code, self.selected, self.page, self.rows.len()) else { return false };
        self.selected = selected;
        self.scroll(self.page);
        true
    }

    fn fold(&mut self, code: KeyCode) -> bool {
        let Some(Row { key, open: Some(open), .. }) = self.rows.get(self.selected).cloned() else {
            return false;
        };
        let wanted = match code {
            KeyCode::Char(' ') => !open,
            KeyCode::Char('+' | 'l') | KeyCode::Right => true,
            KeyCode::Char('-' | 'h') | KeyCode::Left => false,
            KeyCode::Char('*') => {
                self.fold_all(!open);
                return true;
            }
            _ => return false,
        };
        if wanted != open && !self.how.toggled.remove(&key) {
            self.how.toggled.insert(key);
        }
        self.arrange();
        true
    }

    fn fold_all(&mut self, open: bool) {
        self.how.toggled.clear();
        self.arrange();
        // Opening an agent shows runs and servers that were not in the list.
        let others = self.rows.iter().filter(|row| row.open.is_some_and(|now| now != open));
        self.how.toggled.extend(others.map(|row| row.key.clone()));
        self.arrange();
    }

    fn order(&mut self, code: KeyCode) {
        let (sort, inverted) = (self.how.sort, self.how.inverted);
        (self.how.sort, self.how.inverted) = match code {
            KeyCode::Char('<') => (sort.step(false), false),
            KeyCode::Char('>') => (sort.step(true), false),
            KeyCode::Char('I') => (sort, !inverted),
            KeyCode::Char('M') => (Column::Memory, false),
            KeyCode::Char('P') => (Column::Cpu, false),
            KeyCode::Char('T') => (Column::Age, false),
            KeyCode::Char('t') | KeyCode::F(5) => {
                self.how.tree = !self.how.tree;
                (sort, inverted)
            }
            _ => return,
        };
        self.arrange();
    }

    fn type_filter(&mut self, code: KeyCode) {
        let mut filter = self.how.filter.clone();
        match code {
            KeyCode::Enter => self.typing = false,
            KeyCode::Esc => {
                self.typing = false;
                filter.clear();
            }
            KeyCode::Backspace => drop(filter.pop()),
            KeyCode::Char(c) => filter.push(c),
            code => drop(self.move_by(code)),
        }
        self.filter(filter);
    }

    fn filter(&mut self, filter: String) {
        if filter != self.how.filter {
            self.how.filter = filter;
            self.arrange();
        }
    }

    /// Shows what lost its owner alone, or all servers, or what agents left that is no server.
    fn show(&mut self, ownerless: bool, leftovers: bool) {
        (self.how.ownerless, self.leftovers) = (ownerless, leftovers);
        self.enter();
    }

    /// The identity of the selected process, or of the first process of the selected server.
    fn process(&self) -> Option<String> {
        let process = match self.rows.get(self.selected)?.kind {
            Kind::Process(server, at) => self.entries.get(server)?.report.server.processes.get(at)?,
            Kind::Server(_) => return Some(self.selection()?.report.server.id.clone()),
            Kind::Agent | Kind::Generation => return None,
        };
        Some(format!("{}@{}", process.pid, process.start))
    }

    fn explain(&mut self) -> Option<Effect> {
        let Some(id) = self.process() else {
            self.fold(KeyCode::Char(' '));
            return None;
        };
        self.say("Asking what is known of it ...");
        Some(Effect::Ask(Ask::Explain(Asked::from(id.as_str()))))
    }

    fn copy(&mut self) -> Option<Effect> {
        let id = self.process()?;
        self.say(format!("The terminal was told to copy {id}."));
        Some(Effect::Copy(id))
    }

    /// Begins to end the selected server: first it is asked which processes that means.
    fn reap(&mut self) -> Option<Effect> {
        let has_daemon = self.sample.as_ref().is_some_and(|sample| sample.mode.is_some());
        let why_not = match self.selection() {
            _ if self.look.readonly => "Nothing is ended here: --readonly.",
            _ if !has_daemon => "No daemon answers. `orphand reap` ends orphans without one.",
            _ if self.leftovers => "`orphand reap --leftovers` ends leftovers.",
            None => "Select a server: only one server at a time is ended here.",
            Some(Entry { is_agent: true, .. }) => {
                "orphand ends no living agent at a person's word: kill does."
            }
            Some(Entry { report, .. }) => {
                let servers = Some(vec![report.server.id.clone()]);
                let include_unproven = report.is_unproven();
                let request = ReapRequest { servers, include_unproven, ..ReapRequest::default() };
                self.dialog = Some(Dialog::asking(request.clone()));
                return Some(Effect::Ask(Ask::Plan(request)));
            }
        };
        self.say(why_not);
        None
    }

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

/// Where a key leads to from this line of so many, if it moves anything.
pub(super) fn moved(code: KeyCode, from: usize, page: usize, lines: usize) -> Option<usize> {
    let last = lines.saturating_sub(1);
    Some(match code {
        KeyCode::Up | KeyCode::Char('k') => from.saturating_sub(1),
        KeyCode::Down | KeyCode::Char('j') => (from + 1).min(last),
        KeyCode::PageUp => from.saturating_sub(page),
        KeyCode::PageDown => (from + page).min(last),
        KeyCode::Home => 0,
        KeyCode::End => last,
        _ => return None,
    })
}

#[cfg(test)]
mod tests;
