//! What single words are, and how they are cut.

use super::MASK;

/// Whether a word behind an option can be its value and not another option.
pub(super) fn is_value(word: &str) -> bool {
    let is_option = word.starts_with("--") || word == "-" || (word.len() == 2 && word.starts_with('-'));
    !word.is_empty() && !is_option
}

/// Whether a word is a script or a scoped package, so that the option before it was a mere switch.
pub(super) fn is_program(word: &str) -> bool {
    const SCRIPTS: [&str; 7] = [".js", ".mjs", ".cjs", ".ts", ".mts", ".py", ".sh"];
    let is_script = SCRIPTS.iter().any(|end| word.ends_with(end));
    let is_package = word.starts_with('@') && word.contains('/');
    (is_script || is_package) && word.chars().all(|c| is_run(c) || matches!(c, '/' | '@' | '~' | '+'))
}

/// The name of a scheme of HTTP authentication, which is no secret.
pub(super) fn is_scheme(word: &str) -> bool {
    ["bearer", "basic", "token", "digest"].iter().any(|scheme| word.eq_ignore_ascii_case(scheme))
}

/// `Bearer abc` becomes `Bearer ***`, anything else `***`.
pub(super) fn mask_behind_scheme(value: &str, out: &mut String) {
    let (scheme, tail) = split_while(value, |c| c != ' ');
    if is_scheme(scheme) && !tail.is_empty() {
        out.push_str(scheme);
        out.push(' ');
    }
    mask_if_any(value, out);
}

/// `user:password` becomes `user:***`.
pub(super) fn mask_password(text: &str, out: &mut String) {
    let (user, password) = split_while(text, |c| c != ':');
    out.push_str(user);
    if !password.is_empty() {
        out.push(':');
        out.push_str(MASK);
    }
}

pub(super) fn mask_if_any(value: &str, out: &mut String) {
    if !value.is_empty() {
        out.push_str(MASK);
    }
}

/// Where the value ends whose closing quote is `quote`, its backslash included if it has one.
pub(super) fn find_close(text: &str, quote: char, escaped: bool) -> Option<usize> {
    let mut backslashes = 0;
    for (at, c) in text.char_indices() {
        match c {
            '\\' => backslashes += 1,
            _ if c == quote && escaped => return Some(at - backslashes),
            _ if c == quote && backslashes % 2 == 0 => return Some(at),
            _ => backslashes = 0,
        }
    }
    None
}

/// A character of a name: keys, options, hosts and tokens are made of these.
pub(super) const fn is_run(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.')
}

/// The longest beginning of which all characters satisfy `wanted`, and the rest.
pub(super) fn split_while(text: &str, wanted: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(|c| !wanted(c)).unwrap_or(text.len()))
}

/// The first character and the rest.
pub(super) fn split_first(text: &str) -> (&str, &str) {
    text.split_at(text.chars().next().map_or(0, char::len_utf8))
}
