//! Terminal colours. Pure.

use std::{ffi::OsStr, fmt::Display};

use anstyle::{AnsiColor, Color, Style};

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
