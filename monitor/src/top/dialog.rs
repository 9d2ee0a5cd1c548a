//! What lies over the list: text to read, and the question before a server is ended. Pure.

use std::{borrow::Cow, ops::ControlFlow};

use ratatui::crossterm::event::KeyCode;
use textwrap::{Options, WordSplitter};

use super::{
    state::{Effect, moved},
    worker::Ask,
};
use crate::sink::{human, list::command_line, table::width};
use orphand_core::model::{ReapRequest, ServerReport, ServerView, State, text};

pub(super) const HELP: &str = "\
Up Down j k PgUp PgDn Home End, mouse   move
/   filter by any text, Enter keeps it, Esc clears it
t F5   tree or list
Space + - h l *   fold, unfold; * all of it
< >   sort by the column to the left, to the right; I turns it round
M P T   sort by memory, by CPU time, by age
Enter   explains: what it is, who can reach it, what comes next
r   end a server: shows the processes, then asks
1   orphans, and what may become one; 2   all servers
3   what agents left that is no server
4   what the store has of the last day: runs, orphans, freed memory; Left and Right show what has no room
w   commands instead of names
F   the cursor follows its server, or stays in its line
y   copies the id of the server to the clipboard of the terminal
Z   freeze: what is shown stays
? F1   this help
q F10 Ctrl-C   quit; Ctrl-Z   stop until fg

STATE  orphan: nobody can use it any more; kept: an orphan that stays; unproven: somebody may still use it; \
suspect: its owner just ended.
P      the number of its processes.";

/// By how many columns a key moves a table.
const SIDEWAYS: usize = 10;

/// Lines that lie over the list.
#[derive(Clone, Debug, PartialEq)]
pub struct Dialog {
    pub title: String,
    pub lines: Vec<String>,
    /// The first line that is shown, of those on the screen.
    pub top: usize,
    /// How many lines there were on the screen when it was drawn.
    pub tall: usize,
    /// The first column that is shown of a table, whose lines are cut; lines of words are folded.
    pub left: Option<usize>,
    pub asks: Asks,
}

/// What is asked besides.
#[derive(Clone, Debug, PartialEq)]
pub enum Asks {
    Nothing,
    /// The daemon: what would be ended.
    Daemon(ReapRequest),
    /// A person: what would be ended and what stays because of guards, and whether "End" is selected; at first "Cancel" is.
    Person(Vec<ServerReport>, bool),
}

impl Dialog {
    pub fn text(title: &str, words: &str) -> Self {
        let lines = words.lines().map(str::to_owned).collect();
        Self {
            title: text::sanitise(title).into_owned(),
            lines,
            top: 0,
            tall: 0,
            left: None,
            asks: Asks::Nothing,
        }
    }

    pub fn table(title: &str, text: &str) -> Self {
        Self { left: Some(0), ..Self::text(title, text) }
    }

    pub fn asking(request: ReapRequest) -> Self {
        let asks = Asks::Daemon(request);
        Self { asks, ..Self::text("End", "Asking the daemon what would be ended ...") }
    }

    pub fn reap(planned: Vec<ServerReport>) -> Self {
        let mut lines = Vec::new();
        for one in &planned {
            let (name, state) = (text::sanitise(&one.server.name), one.state);
            let memory = text::size(one.server.rss_bytes.unwrap_or(0));
            lines.push(format!("{name}, {state}, {memory} in memory"));
            lines.extend(processes(&one.server));
            if one.state == State::Unproven {
                let why = human::list_doubts(&one.doubts, &one.reached_by);
                lines.push(format!("Somebody may still use it: {why}"));
            }
            if !one.guards.is_empty() {
                lines.push(format!("It stays: {}", human::guards_of(&one.server, &one.guards)));
            }
        }
        let any = exactly(&planned).is_some();
        let title = if any { "End these processes?" } else { "These processes stay" }.to_owned();
        Self { title, lines, top: 0, tall: 0, left: None, asks: Asks::Person(planned, false) }
    }

    /// Its lines on a screen of this width. What is folded goes on a little further in than its line began.
    pub fn fold(&self, width: usize) -> Vec<String> {
        let fold = |line: &String| {
            let begins = line.len() - line.trim_start_matches(' ').len();
            let further = " ".repeat((begins + 2).min(width / 2));
            let options = Options::new(width).subsequent_indent(&further);
            let options = options.word_splitter(WordSplitter::NoHyphenation);
            textwrap::wrap(line, options).into_iter().map(Cow::into_owned).collect::<Vec<_>>()
        };
        match self.left {
            Some(left) => self.lines.iter().map(|line| line.chars().skip(left).collect()).collect(),
            None => self.lines.iter().flat_map(fold).collect(),
        }
    }

    /// Whether this key chooses what is shown: what is merely read goes then.
    pub fn gives_way_to(&self, code: KeyCode) -> bool {
        self.asks == Asks::Nothing && matches!(code, KeyCode::Char('1'..='4' | 't') | KeyCode::F(5))
    }

    /// It breaks off where the dialog goes, with what is to be done then: what it showed is ended, for instance.
    pub fn key(&mut self, code: KeyCode) -> ControlFlow<Option<Effect>> {
        match (code, &mut self.asks) {
            (KeyCode::F(10), _) => return ControlFlow::Break(Some(Effect::Quit)),
            (KeyCode::Esc, _) | (KeyCode::Enter | KeyCode::Char('?' | 'q'), Asks::Nothing) => {
                return ControlFlow::Break(None);
            }
            (KeyCode::Enter, Asks::Person(planned, end)) => {
                let request = end.then(|| exactly(planned)).flatten();
                return ControlFlow::Break(request.map(|request| Effect::Ask(Ask::Reap(request))));
            }
            (KeyCode::Left | KeyCode::Char('h'), Asks::Person(_, end)) => *end = false,
            (KeyCode::Right | KeyCode::Char('l'), Asks::Person(planned, end)) => {
                *end = exactly(planned).is_some();
            }
            (KeyCode::Tab | KeyCode::BackTab, Asks::Person(planned, end)) => {
                *end = !*end && exactly(planned).is_some();
            }
            (KeyCode::Left | KeyCode::Char('h'), _) => {
                self.left = self.left.map(|left| left.saturating_sub(SIDEWAYS));
            }
            (KeyCode::Right | KeyCode::Char('l'), _) => {
                let widest = self.lines.iter().map(|line| width(line)).max().unwrap_or_default();
                self.left =
                    self.left.map(|left| if left + SIDEWAYS < widest { left + SIDEWAYS } else { left });
            }
            _ => self.top = moved(code, self.top, 10, self.tall).unwrap_or(self.top),
        }
        ControlFlow::Continue(())
    }
}

/// A request for what was shown and has no guard, and nothing else. What has become unproven since stays.
pub fn exactly(planned: &[ServerReport]) -> Option<ReapRequest> {
    let to_end: Vec<&ServerReport> = planned.iter().filter(|one| one.guards.is_empty()).collect();
    (!to_end.is_empty()).then(|| ReapRequest {
        servers: Some(to_end.iter().map(|one| one.server.id.clone()).collect()),
        include_unproven: to_end.iter().any(|one| one.state == State::Unproven),
        ..ReapRequest::default()
    })
}

fn processes(server: &ServerView) -> impl Iterator<Item = String> {
    let listed =
        server.processes.iter().map(|process| format!("{:>7}  {}", process.pid, command_line(process)));
    let hidden = (server.hidden() > 0).then(|| format!("         and {} more", server.hidden()));
    listed.chain(hidden)
}
