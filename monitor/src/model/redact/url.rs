//! Passwords in URLs.

use super::{MASK, shape, word::split_while};

/// How long the name of a user in an HTTP URL may be before it must be a token.
const LONGEST_USER: usize = 20;

/// Writes the user information that `text`, the part of a URL behind `scheme://`, begins with, its password
/// masked. Returns what is left of `text`.
pub(super) fn mask_userinfo<'a>(scheme: &str, text: &'a str, out: &mut String) -> &'a str {
    let Some(end) = end_of_userinfo(text) else { return text };
    let (userinfo, tail) = text.split_at(end);
    let (user, password) = split_while(userinfo, |c| c != ':');
    let web = scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https");
    // `https://TOKEN@github.com`: without a password the user is the secret, but for `git`.
    let is_token = web && ((password.is_empty() && user != "git") || user.len() >= LONGEST_USER);
    if is_token && !user.is_empty() {
        out.push_str(MASK);
    } else {
        mask_shapes(user, out);
    }
    if !password.is_empty() {
        out.push(':');
        out.push_str(MASK);
    }
    tail
}

/// Where the user information ends: at the last `@` of the authority. A password with a `/` in it, which it
/// should not have, makes the authority end too early; then what looks like a port is none.
fn end_of_userinfo(text: &str) -> Option<usize> {
    let (authority, rest) =
        split_while(text, |c| !matches!(c, '/' | '?' | '#' | '"' | '\'' | '\\' | '<' | '>'));
    if let Some(end) = authority.rfind('@') {
        return Some(end);
    }
    let (_, port) = authority.split_once(':')?;
    if port.bytes().all(|b| b.is_ascii_digit()) || authority.starts_with('[') {
        return None;
    }
    // Not beyond the next URL: that keeps the time linear.
    let rest = rest.split("://").next().unwrap_or_default();
    rest.rfind('@').map(|end| authority.len() + end)
}

fn mask_shapes(user: &str, out: &mut String) {
    let mut rest = user;
    let mut before = None;
    while !rest.is_empty() {
        (rest, before) = shape::mask(rest, rest, before, out);
    }
}
