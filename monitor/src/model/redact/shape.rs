//! Tokens that are known by their shape, wherever they stand.

use super::{
    MASK,
    word::{is_run, split_while},
};

/// Prefix, the characters that follow it, and how many of them it takes at least to be a token: more than a
/// word of a package's or a directory's name has.
const SHAPES: &[(&str, Letters, usize)] = &[
    ("ghp_", Letters::Alphanumeric, 20),
    ("gho_", Letters::Alphanumeric, 20),
    ("ghu_", Letters::Alphanumeric, 20),
    ("ghs_", Letters::Alphanumeric, 20),
    ("ghr_", Letters::Alphanumeric, 20),
    ("github_pat_", Letters::Underscore, 20),
    ("glpat-", Letters::Run, 16),
    ("xoxa-", Letters::Hyphen, 10),
    ("xoxb-", Letters::Hyphen, 10),
    ("xoxe-", Letters::Hyphen, 10),
    ("xoxp-", Letters::Hyphen, 10),
    ("xoxr-", Letters::Hyphen, 10),
    ("xoxs-", Letters::Hyphen, 10),
    ("xapp-", Letters::Hyphen, 10),
    ("AKIA", Letters::Capital, 16),
    ("ASIA", Letters::Capital, 16),
    ("AIza", Letters::Run, 30),
    ("ya29.", Letters::Run, 20),
    ("hf_", Letters::Alphanumeric, 24),
    ("npm_", Letters::Alphanumeric, 30),
    ("gsk_", Letters::Alphanumeric, 24),
    ("sk_live_", Letters::Alphanumeric, 16),
    ("sk_test_", Letters::Alphanumeric, 16),
    ("rk_live_", Letters::Alphanumeric, 16),
    ("ntn_", Letters::Alphanumeric, 24),
    ("lin_api_", Letters::Alphanumeric, 24),
    ("shpat_", Letters::Alphanumeric, 24),
    ("dop_v1_", Letters::Alphanumeric, 24),
    ("tvly-", Letters::Dense, 16),
    ("pplx-", Letters::Dense, 16),
    ("sk-", Letters::Dense, 16),
    // Base64 of `{"`: a JSON web token, or a configuration that may hold anything.
    ("eyJ", Letters::Base64, 16),
];

#[derive(Clone, Copy)]
enum Letters {
    Alphanumeric,
    Underscore,
    Hyphen,
    Capital,
    Run,
    Base64,
    /// Letters, digits, `-` and `_`, among them one run of letters and digits as long as required, with a
    /// digit in it. So `sk-learn-mcp-server` is none.
    Dense,
}

impl Letters {
    const fn has(self, c: char) -> bool {
        match self {
            Self::Alphanumeric => c.is_ascii_alphanumeric(),
            Self::Underscore => c.is_ascii_alphanumeric() || c == '_',
            Self::Hyphen => c.is_ascii_alphanumeric() || c == '-',
            Self::Capital => c.is_ascii_uppercase() || c.is_ascii_digit(),
            Self::Dense => c.is_ascii_alphanumeric() || matches!(c, '-' | '_'),
            Self::Run => is_run(c),
            Self::Base64 => is_run(c) || matches!(c, '+' | '/' | '='),
        }
    }

    fn enough(self, body: &str, least: usize) -> bool {
        match self {
            Self::Dense => body
                .split(['-', '_'])
                .any(|part| part.len() >= least && part.bytes().any(|b| b.is_ascii_digit())),
            _ => body.len() >= least,
        }
    }
}

/// Writes `run`, the beginning of `text`, up to the first token in it, and that as `prefix***`. Returns what
/// is left of `text` and the character before it.
pub(super) fn mask<'a>(
    text: &'a str,
    run: &str,
    before: Option<char>,
    out: &mut String,
) -> (&'a str, Option<char>) {
    let mut before = before;
    for (at, c) in run.char_indices() {
        let begins = !before.is_some_and(|b| b.is_alphanumeric() || matches!(b, '_' | '-'));
        if begins
            && c.is_ascii_alphabetic()
            && let Some((prefix, length)) = find(text.split_at(at).1)
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

/// The prefix and the length of the token that `text` begins with.
fn find(text: &str) -> Option<(&'static str, usize)> {
    SHAPES.iter().find_map(|(prefix, letters, least)| {
        let (body, _) = split_while(text.strip_prefix(prefix)?, |c| letters.has(c));
        letters.enough(body, *least).then_some((*prefix, prefix.len() + body.len()))
    })
}
