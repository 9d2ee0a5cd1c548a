//! Terminal colours; and how each kind of event appears: its word and colour in a line, its id and severity in the journal.
//!
//! Ids are a contract with users: an id never changes, a new kind gets a fresh one (`systemd-id128 new`). `cargo xtask docs`
//! writes them into docs/events.md; a test compares them with packaging/catalog.

use std::{ffi::OsStr, fmt::Display};

use anstyle::{AnsiColor, Color, Style};

use crate::os::journald::Priority;
use orphand_core::model::EventKind;

pub const ALARM: Style = Style::new().bold().fg_color(Some(Color::Ansi(AnsiColor::Red)));
/// Failures and losses.
pub const WARNING: Style = Style::new().fg_color(Some(Color::Ansi(AnsiColor::Yellow)));
pub const GOOD: Style = Style::new().fg_color(Some(Color::Ansi(AnsiColor::Green)));
pub const NOTE: Style = Style::new().fg_color(Some(Color::Ansi(AnsiColor::Cyan)));
pub const NAME: Style = Style::new().bold();
/// Secondary text: times, tree lines, headings.
pub const DIM: Style = Style::new().dimmed();
pub const PLAIN: Style = Style::new();

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Paint {
    colours: bool,
}

impl Paint {
    pub const fn new(colours: bool) -> Self {
        Self { colours }
    }

    /// Colours are on for a terminal that has them, unless `NO_COLOR` (<https://no-color.org>) is set.
    pub fn choose(terminal: bool, no_color: Option<&OsStr>, term: Option<&OsStr>) -> Self {
        Self::new(terminal && no_color.is_none_or(OsStr::is_empty) && term.is_none_or(|term| term != "dumb"))
    }

    /// [`Paint::choose`] for an output, with the environment of this process.
    pub fn of(out: &impl std::io::IsTerminal) -> Self {
        let (no_color, term) = (std::env::var_os("NO_COLOR"), std::env::var_os("TERM"));
        Self::choose(out.is_terminal(), no_color.as_deref(), term.as_deref())
    }

    pub fn text(self, style: Style, text: impl Display) -> String {
        if self.colours { format!("{style}{text}{style:#}") } else { text.to_string() }
    }

    pub fn line(self, style: Style, text: impl Display) -> String {
        self.text(style, text) + "\n"
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Appearance {
    pub word: &'static str,
    pub style: Style,
    pub priority: Priority,
    /// The `MESSAGE_ID`, `systemd.journal-fields(7)`.
    pub id: &'static str,
}

pub const fn appearance(kind: EventKind) -> Appearance {
    use Priority::{Error, Info, Notice, Warning};
    let (word, style, priority, id) = match kind {
        EventKind::Ready => ("ready", NOTE, Info, "987abd36b79446ec9ec223d41003b20e"),
        EventKind::AgentStarted => ("agent", NOTE, Info, "70b53e9779504d509e81bc6161bb983b"),
        EventKind::AgentExited => ("agent", NOTE, Info, "ab88fa475b9e4636a1bafd4c1f3b0cba"),
        EventKind::AgentsFolded => ("agents", NOTE, Notice, "b4c3641fdea54dc3b92bb7383b1ced2e"),
        EventKind::ServerStarted => ("server", PLAIN, Info, "c2123ff8fd3d439c80a8921b0b07864e"),
        EventKind::ServerExited => ("server", PLAIN, Info, "b23accd599b04f7a9a26ffe6e0cc500f"),
        EventKind::ServerDetached => ("detached", PLAIN, Info, "e58068ce294c474c9482ef63587b9bad"),
        EventKind::ServerDuplicated => ("double", WARNING, Notice, "2120014f1cf44be28d8c0c076caf3456"),
        EventKind::OrphanSuspected => ("suspect", WARNING, Info, "05c38f7ebaa542c7831215acc4cd6f0d"),
        EventKind::OrphanCleared => ("cleared", GOOD, Info, "4f2433a608f24b8eb51a7a7d53b33098"),
        EventKind::OrphanDetected => ("orphan", ALARM, Warning, "aa7494121c49484f9d30e06c8a0ec5ec"),
        EventKind::OrphanSpared => ("kept", WARNING, Notice, "0becea1e3cb04956b2c0563dba9c92bc"),
        EventKind::OrphanReaped => ("reaped", GOOD, Notice, "e19ba7cedd314746b2e95d6f1d09f21d"),
        EventKind::ReapFailed => ("failed", ALARM, Error, "64fd4ee9ee7d409faf4be7deea2b7a1b"),
        EventKind::OrphanExited => ("ended", GOOD, Info, "604df02b8a22482c97f1f599a57f7690"),
        EventKind::OrphanUnproven => ("unproven", WARNING, Notice, "8b074c44edf1459883da523a22a54c31"),
        EventKind::LeftoversFound => ("leftover", WARNING, Notice, "3c1de7a0b5f64e7f9a0b64c2d8e15f37"),
        EventKind::Lost => ("lost", WARNING, Warning, "6ad92e74444945119a9404186af287f7"),
        EventKind::Resynced => ("repaired", NOTE, Notice, "4caefd620bc44b28a4501c4910c24443"),
        EventKind::Alert => ("alert", ALARM, Warning, "8f3e693acc304807845eb66b51678431"),
        EventKind::AlertResolved => ("resolved", GOOD, Notice, "fe8f13ed21c44140bd1b826c05129135"),
        EventKind::Reconfigured => ("config", NOTE, Notice, "2f13ec9f8e93427789edf8bf79013227"),
        EventKind::Stopping => ("stopping", NOTE, Info, "ae6d031d4c784a3c943a1773bb941bd2"),
    };
    Appearance { word, style, priority, id }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_only_where_they_are_wanted() {
        let some = |text: &'static str| Some(OsStr::new(text));
        assert_eq!(Paint::choose(true, None, some("xterm-256color")), Paint::new(true));
        assert_eq!(Paint::choose(true, some(""), None), Paint::new(true));
        assert_eq!(Paint::choose(true, some("1"), None), Paint::new(false));
        assert_eq!(Paint::choose(true, None, some("dumb")), Paint::new(false));
        assert_eq!(Paint::choose(false, None, some("xterm")), Paint::new(false));
    }

    #[test]
    fn without_colours_nothing_is_added() {
        assert_eq!(Paint::new(false).text(ALARM, "orphan"), "orphan");
        assert_eq!(Paint::new(true).text(GOOD, "x"), "\u{1b}[32mx\u{1b}[0m");
    }
}
