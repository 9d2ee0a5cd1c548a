//! What is wrong with a configuration file, in one line that says where and what to do.

use std::{
    io,
    ops::Range,
    path::{Path, PathBuf},
};

use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use super::{KEYS, hook::HOOK_KEYS};
use crate::recognise::RULE_KEYS;

/// Why there is no configuration.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read the configuration {}: {error}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        error: io::Error,
    },
    /// The file is no text.
    #[error("cannot read the configuration {}: it is not UTF-8 text", path.display())]
    Encoding {
        /// The file.
        path: PathBuf,
    },
    /// The file says something that cannot be.
    #[error("{}:{line}:{column}: {}{message}", path.display(), key.as_ref().map(|k| format!("{k}: ")).unwrap_or_default())]
    Content {
        /// The file.
        path: PathBuf,
        /// From 1.
        line: usize,
        /// In characters, from 1.
        column: usize,
        /// The key it is about, `grace` or `agent.program`.
        key: Option<String>,
        /// What is wrong, what to do.
        message: String,
    },
}

/// Line and column of a byte, both from 1.
fn position(text: &str, at: usize) -> (usize, usize) {
    let before = text.get(..at).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    (before.matches('\n').count() + 1, before.get(line_start..).unwrap_or_default().chars().count() + 1)
}

/// What the TOML reader or a value's type said.
pub(super) fn content(error: &toml::de::Error, text: &str, path: &Path) -> ConfigError {
    let span = error.span().unwrap_or(0..0);
    let (line, column) = position(text, span.start);
    let key = DeTable::parse(text).ok().and_then(|table| key_at(table.get_ref(), &span));
    ConfigError::Content { path: path.into(), line, column, key, message: one_line(error.message()) }
}

/// The key whose value the span lies in. The span of `[[agent]]` is the header alone, so what stands below is
/// asked first.
fn key_at(table: &DeTable<'_>, span: &Range<usize>) -> Option<String> {
    let within = |outer: Range<usize>| outer.start <= span.start && span.end <= outer.end;
    table.iter().find_map(|(key, value)| {
        let name = key.get_ref();
        let inner = match value.get_ref() {
            DeValue::Array(items) => {
                items.iter().filter_map(|item| item.get_ref().as_table()).find_map(|t| key_at(t, span))
            }
            DeValue::Table(table) => key_at(table, span),
            _ => None,
        };
        match inner {
            Some(inner) => Some(format!("{name}.{inner}")),
            None => (within(value.span()) || within(key.span())).then(|| name.to_string()),
        }
    })
}

fn one_line(message: &str) -> String {
    message.split('\n').map(str::trim).filter(|l| !l.is_empty()).collect::<Vec<_>>().join(", ")
}

/// Refuses a key that does not exist, and tells the nearest that does. (serde would, without the second.)
pub(super) fn unknown_key(text: &str, path: &Path) -> Result<(), ConfigError> {
    // a text that is no TOML is refused by the reader proper
    let Ok(table) = DeTable::parse(text) else { return Ok(()) };
    let refuse = |key: &Spanned<std::borrow::Cow<'_, str>>, within: Option<&str>, known: &[&str]| {
        let (line, column) = position(text, key.span().start);
        let name = key.get_ref();
        let place = within.map(|w| format!(" in {w}")).unwrap_or_default();
        let advice = advice(name, known);
        ConfigError::Content {
            path: path.into(),
            line,
            column,
            key: None,
            message: format!("unknown key \"{name}\"{place}: {advice}"),
        }
    };
    // in the order of the text, so that the first mistake is told first
    let mut unknown: Option<(usize, ConfigError)> = None;
    let mut note = |at: usize, error: ConfigError| {
        if unknown.as_ref().is_none_or(|(first, _)| at < *first) {
            unknown = Some((at, error));
        }
    };
    for (key, value) in table.get_ref() {
        if !KEYS.contains(&key.get_ref().as_ref()) {
            note(key.span().start, refuse(key, None, KEYS));
            continue;
        }
        if let DeValue::Table(table) = value.get_ref()
            && key.get_ref() == "hook"
        {
            for (hook_key, _) in table.iter().filter(|(key, _)| !HOOK_KEYS.contains(&key.get_ref().as_ref()))
            {
                note(hook_key.span().start, refuse(hook_key, Some("[hook]"), HOOK_KEYS));
            }
        }
        let DeValue::Array(items) = value.get_ref() else { continue };
        for (rule_key, _) in items.iter().filter_map(|item| item.get_ref().as_table()).flatten() {
            if !RULE_KEYS.contains(&rule_key.get_ref().as_ref()) {
                note(
                    rule_key.span().start,
                    refuse(rule_key, Some(&format!("[[{}]]", key.get_ref())), RULE_KEYS),
                );
            }
        }
    }
    unknown.map_or(Ok(()), |(_, error)| Err(error))
}

/// What to do about an unknown name.
pub(super) fn advice(name: &str, known: &[&str]) -> String {
    nearest(name, known)
        .map_or_else(|| format!("known are {}", known.join(", ")), |near| format!("did you mean \"{near}\"?"))
}

/// The known key that was probably meant.
fn nearest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    let name = name.to_lowercase().replace('-', "_");
    let distance = |key: &str| strsim::damerau_levenshtein(&name, key);
    let near = known.iter().copied().min_by_key(|key| distance(key))?;
    let begins = |key: &&str| name.len() >= 3 && (key.starts_with(&name) || name.starts_with(*key));
    if distance(near) <= 1 + near.len() / 4 { Some(near) } else { known.iter().copied().find(begins) }
}
