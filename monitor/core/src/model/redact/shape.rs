//! Tokens with a known shape, found at any position.

use super::{
    MASK,
    services::SERVICES,
    word::{is_run, split_while},
};

/// The characters that may follow a prefix, and what makes them a token.
#[derive(Clone, Copy)]
pub(super) enum Letters {
    Alphanumeric,
    /// Letters, digits, `_` and `-`. The prefix is no word of any language, so a short token suffices if it
    /// has a digit or a capital; otherwise 16 characters are needed.
    Strict,
    Hyphen,
    Capital,
    Hex,
    Run,
    Base64,
    /// Letters, digits, `-` and `_`, with one run of letters and digits of the required length that has a
    /// digit. So `sk-learn-mcp-server` is not a token.
    Dense,
    /// As `Dense`, and the run must mix capitals and small letters, because the prefix is a common word.
    Mixed,
}

impl Letters {
    const fn has(self, c: char) -> bool {
        match self {
            Self::Alphanumeric => c.is_ascii_alphanumeric(),
            Self::Hyphen => c.is_ascii_alphanumeric() || c == '-',
            Self::Capital => c.is_ascii_uppercase() || c.is_ascii_digit(),
            Self::Hex => c.is_ascii_hexdigit() && !c.is_ascii_uppercase(),
            Self::Strict | Self::Dense | Self::Mixed => c.is_ascii_alphanumeric() || matches!(c, '-' | '_'),
            Self::Run => is_run(c),
            Self::Base64 => is_run(c) || matches!(c, '+' | '/' | '='),
        }
    }

    fn enough(self, body: &str, least: usize) -> bool {
        let parts = || body.split(['-', '_']).filter(|part| part.len() >= least);
        let digit = |part: &str| part.bytes().any(|b| b.is_ascii_digit());
        let capital = |part: &str| part.bytes().any(|b| b.is_ascii_uppercase());
        match self {
            Self::Dense => parts().any(digit),
            Self::Mixed => parts()
                .any(|part| digit(part) && capital(part) && part.bytes().any(|b| b.is_ascii_lowercase())),
            Self::Strict => {
                body.len() >= 16.max(least) || (body.len() >= least && (digit(body) || capital(body)))
            }
            _ => body.len() >= least,
        }
    }
}

/// Writes `run`, the start of `text`, up to the first token in it, and the token as `prefix***`. Returns the
/// rest of `text` and the character before it. `cut`: `text` ends because the kernel cut it, so a token at
/// its end may be short.
pub(super) fn mask<'a>(
    text: &'a str,
    run: &str,
    before: Option<char>,
    cut: bool,
    out: &mut String,
) -> (&'a str, Option<char>) {
    let mut before = before;
    for (at, c) in run.char_indices() {
        let begins = !before.is_some_and(|b| b.is_alphanumeric() || matches!(b, '_' | '-'));
        if begins
            && c.is_ascii_alphanumeric()
            && let Some((prefix, length)) = find(text.split_at(at).1, cut)
        {
            out.push_str(text.split_at(at).0);
            out.push_str(prefix);
            out.push_str(MASK);
            return (text.split_at(at + length).1, Some('*'));
        }
        before = Some(c);
    }
    out.push_str(run);
    (text.split_at(run.len()).1, before)
}

/// The visible part and the length of the token at the start of `text`.
fn find(text: &str, cut: bool) -> Option<(&str, usize)> {
    let known = SERVICES.iter().find_map(|(prefix, letters, least)| {
        let (body, rest) = split_while(text.strip_prefix(prefix)?, |c| letters.has(c));
        let is_cut = cut && rest.is_empty() && !body.is_empty();
        (is_cut || letters.enough(body, *least)).then_some((*prefix, prefix.len() + body.len()))
    });
    known.or_else(|| find_numbered(text))
}

/// Tokens without a prefix of letters: Airtable (`pat` and 14 characters), `ClickUp` (`pk_1234_`), Telegram
/// (`1234:AA`), Discord and Terraform (three parts).
fn find_numbered(text: &str) -> Option<(&str, usize)> {
    let (run, rest) = split_while(text, is_run);
    let shown = |length: usize, whole: usize| Some((text.split_at(length).0, whole));
    let mut parts = run.split('.');
    let (first, second, third) =
        (parts.next()?, parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    if first.len() == 17 && first.starts_with("pat") && second.len() >= 32 {
        return shown(3, run.len());
    }
    if second == "atlasv1" && first.len() >= 8 && third.len() >= 16 {
        return shown(0, run.len());
    }
    if let Some((number, body)) = first.strip_prefix("pk_").and_then(|rest| rest.split_once('_'))
        && number.len() >= 4
        && number.bytes().all(|b| b.is_ascii_digit())
        && body.len() >= 16
    {
        return shown(3, first.len());
    }
    let is_discord = (23..=28).contains(&first.len()) && (6..=7).contains(&second.len()) && third.len() >= 27;
    if is_discord && first.starts_with(['M', 'N', 'O']) {
        return shown(0, run.len());
    }
    if (8..=10).contains(&run.len()) && run.bytes().all(|b| b.is_ascii_digit()) {
        let (body, _) = split_while(rest.strip_prefix(':')?, is_run);
        return (body.len() >= 30).then_some((text.split_at(run.len()).0, run.len() + 1 + body.len()));
    }
    None
}
