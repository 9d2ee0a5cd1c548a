//! Where keys begin and values end.

use super::word::{split_first, split_while};

/// Where an unquoted value ends: that depends on what its key stands in.
#[derive(Clone, Copy, Debug)]
pub(super) enum Stop {
    Word,
    Command,
    Query,
    List,
    Quote(char),
}

impl Stop {
    /// For a key that follows `before`.
    pub(super) fn after(before: Option<char>, command: bool) -> Self {
        match before {
            Some('?' | '&' | '#') => Self::Query,
            Some('{' | '[' | '(' | ',') => Self::List,
            Some(quote @ ('"' | '\'')) => Self::Quote(quote),
            _ if command => Self::Command,
            _ => Self::Word,
        }
    }

    /// The value that `text` begins with, and what follows it.
    pub(super) fn split(self, text: &str) -> (&str, &str) {
        match self {
            // A quote at the very end closes something that began before.
            Self::Word => text.split_at(text.trim_end_matches(['"', '\'']).len()),
            _ => split_while(text, |c| !self.at(c)),
        }
    }

    /// The value that `text` begins with, without its quotes.
    pub(super) fn value(self, text: &str) -> &str {
        let quote = text.chars().next().filter(|c| matches!(c, '"' | '\''));
        match quote {
            Some(quote) => text.split(quote).nth(1).unwrap_or_default(),
            None => self.split(text).0,
        }
    }

    const fn at(self, c: char) -> bool {
        match self {
            Self::Word => false,
            Self::Command => matches!(c, ';' | '&' | '|' | ')' | '`'),
            Self::Query => matches!(c, '&' | '#' | '"' | '\''),
            Self::List => matches!(c, ',' | '}' | ']' | ')' | '"' | '\''),
            Self::Quote(quote) => c == quote,
        }
    }
}

/// What separates the key of a pair from its value: `=`, `":`, `:` of a header.
pub(super) fn separator(after: &str, before: Option<char>, header: bool) -> Option<&str> {
    let bare = split_while(after, |c| c == '\\').1;
    let quoted = bare.starts_with(['"', '\'']) && before.is_some_and(|c| matches!(c, '"' | '\''));
    let tail = if quoted { split_first(bare).1 } else { after };
    let (mark, value) = split_first(tail);
    let in_object = before.is_some_and(|c| matches!(c, '{' | ','));
    let is_separator = match mark {
        "=" => true,
        // `name:tag` is an image, `auth:dev` a script of npm, `http://` a URL.
        ":" => !value.starts_with('/') && (quoted || header || in_object || value.is_empty()),
        _ => false,
    };
    is_separator.then(|| after.split_at(after.len() - value.len()).0)
}

/// What separates an option from its value in a list of JSON: `","`.
pub(super) fn comma_separated(after: &str, before: Option<char>) -> Option<&str> {
    if !before.is_some_and(|c| matches!(c, '"' | '\'')) {
        return None;
    }
    let tail = split_while(after, |c| c == '\\').1.strip_prefix(['"', '\''])?;
    let value = tail.strip_prefix(',')?;
    let is_string = split_while(value, |c| c == '\\').1.starts_with(['"', '\'']);
    is_string.then(|| after.split_at(after.len() - value.len()).0)
}

/// Whether a key may begin behind this character. Not behind `/`: that is a path.
pub(super) const fn begins_key(before: Option<char>) -> bool {
    matches!(
        before,
        None | Some('"' | '\'' | '{' | '[' | '(' | ',' | ';' | '&' | '|' | '?' | '$' | '=' | '#' | '`' | ':')
    )
}
