//! What lies over the list: text to read, and the question before a server is ended. Pure.

use ratatui::crossterm::event::KeyCode;

use crate::sink::{human, list::command_line};
use orphand_core::model::{ReapRequest, ServerReport, ServerView, State, text};

const HELP: &str = "\
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
4   what the store has of the last day: runs, orphans, freed memory
w   commands instead of names
F   the cursor follows its server, or stays in its line
y   copies the id of the server to the clipboard of the terminal
Z   pause: what is shown stays
? F1   this help
q F10 Ctrl-C   quit

STATE  orphan: nobody can use it any more; kept: an orphan that stays;
       unproven: somebody may still use it; suspect: its owner just ended.
P      the number of its processes.";

/// Lines that lie over the list.
#[derive(Clone, Debug, PartialEq)]
pub struct Dialog {
    pub title: String,
    pub lines: Vec<String>,
    /// The first line that is shown.
    pub top: u16,
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

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    Stay,
    Close,
    Quit,
    /// It goes, and what it showed is ended.
    End(ReapRequest),
}

impl Dialog {
    pub fn help() -> Self {
        Self::text("Keys", HELP)
    }

    pub fn text(title: &str, words: &str) -> Self {
        let lines = words.lines().map(str::to_owned).collect();
        Self { title: text::sanitise(title).into_owned(), lines, top: 0, asks: Asks::Nothing }
    }

    pub fn asking(request: ReapRequest) -> Self {
        let asks = Asks::Daemon(request);
        Self { asks, ..Self::text("End", "Asking the daemon what would be ended ...") }
    }

    pub fn reap(planned: Vec<ServerReport>) -> Self {
        let mut lines = Vec::new();
        for one in &planned {
            let (name, state) = (text::sanitise(&one.server.name), one.state);
            lines.push(format!(
                "{name}, {state}, {} in memory",
                text::size(one.server.rss_bytes.unwrap_or(0))
            ));
            lines.extend(processes(&one.server));
            if one.state == State::Unproven {
                lines.push("Somebody may still use it: it is not proven that it is an orphan.".to_owned());
            }
            if !one.guards.is_empty() {
                lines.push(format!("It stays: {}", human::guards_of(&one.server, &one.guards)));
            }
        }
        let title = "End these processes?".to_owned();
        Self { title, lines, top: 0, asks: Asks::Person(planned, false) }
    }

    pub fn key(&mut self, code: KeyCode) -> Answer {
        match (code, &mut self.asks) {
            (KeyCode::F(10), _) => return Answer::Quit,
            (KeyCode::Esc, _) | (KeyCode::Enter | KeyCode::Char('?' | 'q'), Asks::Nothing) => {
                return Answer::Close;
            }
            (KeyCode::Enter, Asks::Person(planned, end)) => {
                let request = end.then(|| exactly(planned)).flatten();
                return request.map_or(Answer::Close, Answer::End);
            }
            (KeyCode::Left | KeyCode::Char('h'), Asks::Person(_, end)) => *end = false,
            (KeyCode::Right | KeyCode::Char('l'), Asks::Person(planned, end)) => {
                *end = exactly(planned).is_some();
            }
            (KeyCode::Tab | KeyCode::BackTab, Asks::Person(planned, end)) => {
                *end = !*end && exactly(planned).is_some();
            }
            _ => {
                let last = u16::try_from(self.lines.len()).unwrap_or(u16::MAX).saturating_sub(1);
                self.top = match code {
                    KeyCode::Up | KeyCode::Char('k') => self.top.saturating_sub(1),
                    KeyCode::Down | KeyCode::Char('j') => self.top.saturating_add(1).min(last),
                    KeyCode::PageUp => self.top.saturating_sub(10),
                    KeyCode::PageDown => self.top.saturating_add(10).min(last),
                    KeyCode::Home => 0,
                    KeyCode::End => last,
                    _ => self.top,
                };
            }
        }
        Answer::Stay
    }
}

/// A request for what was shown and nothing else; nothing, if all of it stays because of guards. One that was shown as an orphan
/// and has become unproven since stays.
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
