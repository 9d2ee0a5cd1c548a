//! Where keys begin and where values end.

use super::word::{split_first, split_while};

/// Where an unquoted value ends, which depends on what surrounds its key.
#[derive(Clone, Copy, Debug)]
pub(super) enum Stop {
    Word,
    Command,
    Query,
    List,
    Quote(char),
}

impl Stop {
    /// The rule for a key that follows the character `before`.
    pub(super) fn after(before: Option<char>, command: bool) -> Self {
        match before {
            Some('?' | '&' | '#') => Self::Query,
            Some('{' | '[' | '(' | ',') => Self::List,
            Some(quote @ ('"' | '\'')) => Self::Quote(quote),
            _ if command => Self::Command,
            _ => Self::Word,
        }
    }

    /// Splits `text` into the value at its start and the rest.
    pub(super) fn split(self, text: &str) -> (&str, &str) {
        match self {
            // A quote at the very end closes a string that began earlier.
            Self::Word => text.split_at(text.trim_end_matches(['"', '\'']).len()),
            _ => split_while(text, |c| !self.at(c)),
        }
    }

    /// The value at the start of `text` without its quotes.
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

/// The separator between a key and its value: `=`, `":`, or `:` in a header.
pub(super) fn separator(after: &str, before: Option<char>, header: bool) -> Option<&str> {
    let bare = split_while(after, |c| c == '\\').1;
    let quoted = bare.starts_with(['"', '\'']) && before.is_some_and(|c| matches!(c, '"' | '\''));
    let tail = if quoted { split_first(bare).1 } else { after };
    let (mark, value) = split_first(tail);
    let in_object = before.is_some_and(|c| matches!(c, '{' | ','));
    let is_separator = match mark {
        "=" => true,
        // `name:tag` is an image, `auth:dev` an npm script, `http://` a URL.
        ":" => !value.starts_with('/') && (quoted || header || in_object || value.is_empty()),
        _ => false,
    };
    is_separator.then(|| after.split_at(after.len() - value.len()).0)
}

/// The separator between an option and its value in a JSON list: `","`.
pub(super) fn comma_separated(after: &str, before: Option<char>) -> Option<&str> {
    if !before.is_some_and(|c| matches!(c, '"' | '\'')) {
        return None;
    }
    let tail = split_while(after, |c| c == '\\').1.strip_prefix(['"', '\''])?;
    let value = tail.strip_prefix(',')?;
    let is_string = split_while(value, |c| c == '\\').1.starts_with(['"', '\'']);
    is_string.then(|| after.split_at(after.len() - value.len()).0)
}

/// Whether a key may begin after this character. Not after `/`, which is part of a path.
pub(super) const fn begins_key(before: Option<char>) -> bool {
    matches!(
        before,
        None | Some('"' | '\'' | '{' | '[' | '(' | ',' | ';' | '&' | '|' | '?' | '$' | '=' | '#' | '`' | ':')
    )
}
