//! Programs whose short options carry a secret.

use super::key;

/// Short options with a secret, unambiguous only after a certain program or verb.
const TOOLS: &[(&str, &str, Style)] = &[
    ("sshpass", "-p", Style::Either),
    ("mysql", "-p", Style::Attached),
    ("mysqldump", "-p", Style::Attached),
    ("mysqladmin", "-p", Style::Attached),
    ("mariadb", "-p", Style::Attached),
    ("mongosh", "-p", Style::Either),
    ("mongodump", "-p", Style::Either),
    ("login", "-p", Style::Either),
    ("redis-cli", "-a", Style::Separate),
    ("curl", "-u", Style::UserPassword),
    ("curl", "--user", Style::UserPassword),
];

/// Where the value of a short option stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Style {
    Attached,
    Separate,
    Either,
    UserPassword,
}

/// The name of the tool that `word` is, if it is one.
pub(super) fn find(word: &str) -> Option<&'static str> {
    let name = word.rsplit('/').next().unwrap_or_default();
    TOOLS.iter().find(|(tool, ..)| *tool == name).map(|(tool, ..)| *tool)
}

/// The option of `tool` that `word` begins with, what is attached to it, and where its value stands.
pub(super) fn option<'a>(tool: &str, word: &'a str) -> Option<(&'static str, &'a str, Style)> {
    // `-password` is another option than `-p`.
    if key::takes_secret(word) {
        return None;
    }
    TOOLS
        .iter()
        .filter(|(name, ..)| *name == tool)
        .find_map(|(_, option, style)| word.strip_prefix(option).map(|attached| (*option, attached, *style)))
}
