//! Colours: whether, and which. Pure.

use std::{ffi::OsStr, fmt::Display};

use anstyle::{AnsiColor, Color, Style};

/// For what orphand is about: an orphan.
pub const ALARM: Style = Style::new().bold().fg_color(Some(Color::Ansi(AnsiColor::Red)));
/// For what needs a look: a failure, a loss.
pub const WARNING: Style = Style::new().fg_color(Some(Color::Ansi(AnsiColor::Yellow)));
/// For a good end.
pub const GOOD: Style = Style::new().fg_color(Some(Color::Ansi(AnsiColor::Green)));
/// For what is worth to be seen from afar.
pub const NOTE: Style = Style::new().fg_color(Some(Color::Ansi(AnsiColor::Cyan)));
/// For names.
pub const NAME: Style = Style::new().bold();
/// For what recedes: times, tree lines, headings.
pub const DIM: Style = Style::new().dimmed();
/// For the rest.
pub const PLAIN: Style = Style::new();

/// Puts colours on text, or does not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Paint {
    colours: bool,
}

impl Paint {
    /// With colours or without.
    pub const fn new(colours: bool) -> Self {
        Self { colours }
    }

    /// Colours on a terminal that has them, unless `NO_COLOR` (<https://no-color.org>) says something.
    pub fn choose(terminal: bool, no_color: Option<&OsStr>, term: Option<&OsStr>) -> Self {
        Self::new(terminal && no_color.is_none_or(OsStr::is_empty) && term.is_none_or(|term| term != "dumb"))
    }

    /// [`Paint::choose`] for something written to, with the environment of this process.
    pub fn of(out: &impl std::io::IsTerminal) -> Self {
        let (no_color, term) = (std::env::var_os("NO_COLOR"), std::env::var_os("TERM"));
        Self::choose(out.is_terminal(), no_color.as_deref(), term.as_deref())
    }

    /// `text` in `style`.
    pub fn text(self, style: Style, text: impl Display) -> String {
        if self.colours { format!("{style}{text}{style:#}") } else { text.to_string() }
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
