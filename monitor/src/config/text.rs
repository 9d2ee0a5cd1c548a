//! The texts of all files with one numbering of their bytes, so that a value of the merged configuration has
//! a file and a line. Pure.

use std::{
    collections::BTreeMap,
    ops::Range,
    path::{Path, PathBuf},
};

use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use super::error::Location;

/// The text of a file.
#[derive(Debug)]
struct Source {
    path: PathBuf,
    text: String,
    /// The number of its first byte.
    base: usize,
    /// The offset of each line in it.
    lines: Vec<usize>,
}

/// All texts in the order of reading.
#[derive(Debug, Default)]
pub(super) struct Texts {
    sources: Vec<Source>,
}

impl Texts {
    /// Adds a file.
    pub fn push(&mut self, path: PathBuf, text: String) {
        // One number is left unused, so that the end of a file is not the start of the next one.
        let base = self.sources.last().map_or(0, |last| last.base + last.text.len() + 1);
        let lines = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        self.sources.push(Source { path, text, base, lines });
    }

    /// The paths of the files.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.sources.iter().map(|source| source.path.as_path())
    }

    /// Each text with the number of its first byte.
    pub fn iter(&self) -> impl Iterator<Item = (&str, usize)> {
        self.sources.iter().map(|source| (source.text.as_str(), source.base))
    }

    /// The file, line and column of a byte.
    pub fn location(&self, at: usize) -> Location {
        let after = self.sources.partition_point(|source| source.base <= at);
        let Some(source) = self.sources.get(after.saturating_sub(1)) else {
            return Location { file: PathBuf::new(), line: 1, column: 1 };
        };
        let at = at.saturating_sub(source.base);
        let line = source.lines.partition_point(|begin| *begin <= at);
        let begin = source.lines.get(line.saturating_sub(1)).copied().unwrap_or_default();
        let before = source.text.get(begin..at).unwrap_or_default();
        Location { file: source.path.clone(), line, column: before.chars().count() + 1 }
    }
}

/// Where each value comes from. A key that is not here has its default.
#[derive(Debug, Default)]
pub struct Origins {
    pub(super) texts: Texts,
    /// Byte numbers by key: one for `grace` or `hook.path`, one per rule for `agent`.
    pub(super) at: BTreeMap<String, Vec<usize>>,
}

impl Origins {
    /// The position of a key such as `grace` or `hook.path`, or of the table with this index in a list.
    pub fn location(&self, key: &str, index: usize) -> Option<Location> {
        self.at.get(key).and_then(|all| all.get(index)).map(|at| self.texts.location(*at))
    }
}

/// The table with `base` added to every span.
pub(super) fn shifted(table: DeTable<'_>, base: usize) -> DeTable<'_> {
    let moved = |span: Range<usize>| span.start + base..span.end + base;
    table
        .into_iter()
        .map(|(key, value)| {
            let at = moved(key.span());
            (Spanned::new(at, key.into_inner()), shifted_value(value, base))
        })
        .collect()
}

fn shifted_value(value: Spanned<DeValue<'_>>, base: usize) -> Spanned<DeValue<'_>> {
    let span = value.span();
    let inner = match value.into_inner() {
        DeValue::Table(table) => DeValue::Table(shifted(table, base)),
        DeValue::Array(items) => {
            DeValue::Array(items.into_iter().map(|item| shifted_value(item, base)).collect())
        }
        other => other,
    };
    Spanned::new(span.start + base..span.end + base, inner)
}
