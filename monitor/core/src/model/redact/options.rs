//! Options that announce a secret, and short options of certain tools.

use super::{
    Expect, MASK, Redactor, key,
    tool::{self, Style},
    word,
};

impl Redactor {
    pub(super) fn remember_tool(&mut self, word: &str) {
        self.tool = tool::find(word).or(self.tool);
    }

    /// Handles a short option of a tool. Returns whether `word` was one and was written.
    pub(super) fn short_option(&mut self, word: &str, out: &mut String) -> bool {
        let Some((option, attached, style)) = tool::option(self.tool, word) else {
            return false;
        };
        let begun = out.len();
        match (style, attached.is_empty()) {
            (Style::Attached | Style::Either, false) if !word::is_ports(attached) => {
                out.push_str(option);
                out.push_str(MASK);
            }
            (Style::UserPassword | Style::MaybeUserPassword | Style::UserPercent | Style::Cookie, false) => {
                out.push_str(option);
                if !mask_login(style, attached, out) {
                    out.truncate(begun);
                    return false;
                }
            }
            (Style::Separate | Style::Either, true) => {
                out.push_str(word);
                self.expect = Expect::Secret(option.to_owned());
            }
            (Style::UserPassword | Style::MaybeUserPassword | Style::UserPercent | Style::Cookie, true) => {
                out.push_str(word);
                self.expect = Expect::Login(style);
            }
            _ => return false,
        }
        true
    }
}

/// Writes the value of an option that takes a login or a cookie. Returns whether it was one.
pub(super) fn mask_login(style: Style, text: &str, out: &mut String) -> bool {
    match style {
        Style::UserPassword => word::mask_password(text, ':', true, out),
        Style::MaybeUserPassword => word::mask_password(text, ':', false, out),
        Style::UserPercent => word::mask_password(text, '%', true, out),
        Style::Cookie if text.contains('=') => {
            let quote = text.chars().next().filter(|c| matches!(c, '"' | '\''));
            out.extend(quote);
            out.push_str(MASK);
            out.extend(quote.filter(|quote| text.len() > 1 && text.ends_with(*quote)));
            true
        }
        _ => false,
    }
}

/// What follows this option.
pub(super) fn what_option_expects(word: &str) -> Expect {
    let word = word.trim_start_matches(['"', '\'', '[']).trim_end_matches(['"', '\'', ',']);
    match word {
        "-e" | "--env" | "-H" | "--header" | "--headers" => Expect::Pair,
        _ if !word.starts_with('-') || word.contains('=') => Expect::Nothing,
        _ if is_script_option(word) => Expect::Script,
        _ if key::takes_secret(word) => Expect::Secret(word.to_owned()),
        _ => Expect::Nothing,
    }
}

/// Whether a shell script follows: `-c`, `-lc`, `-exc`.
fn is_script_option(word: &str) -> bool {
    let flags = word.strip_prefix('-').unwrap_or_default();
    flags.ends_with('c') && flags.len() <= 4 && flags.bytes().all(|b| b.is_ascii_lowercase())
}
