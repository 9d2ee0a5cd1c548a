//! The texts of all files as one: every byte of every file has a number of its own, so that a value of the merged
//! configuration still tells the file and the line it came from. Pure.

use std::{
    ops::Range,
    path::{Path, PathBuf},
};

use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use super::error::Place;

/// A file's text.
#[derive(Debug)]
struct Source {
    path: PathBuf,
    text: String,
    /// The number of its first byte.
    base: usize,
}

/// All texts that were read, in their order.
#[derive(Debug, Default)]
pub(super) struct Texts {
    sources: Vec<Source>,
}

impl Texts {
    /// Adds a file.
    pub fn push(&mut self, path: PathBuf, text: String) {
        // One more than there are bytes: what ends at the end of a file is not at the beginning of the next.
        let base = self.sources.last().map_or(0, |last| last.base + last.text.len() + 1);
        self.sources.push(Source { path, text, base });
    }

    /// The files.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.sources.iter().map(|source| source.path.as_path())
    }

    /// Each text with the number of its first byte.
    pub fn iter(&self) -> impl Iterator<Item = (&str, usize)> {
        self.sources.iter().map(|source| (source.text.as_str(), source.base))
    }

    /// The file of this number, and line and column in it.
    pub fn place(&self, at: usize) -> Place {
        let after = self.sources.partition_point(|source| source.base <= at);
        let Some(source) = self.sources.get(after.saturating_sub(1)) else {
            return Place { file: PathBuf::new(), line: 1, column: 1 };
        };
        let before = source.text.get(..at.saturating_sub(source.base)).unwrap_or(&source.text);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        Place {
            file: source.path.clone(),
            line: before.matches('\n').count() + 1,
            column: before.get(line_start..).unwrap_or_default().chars().count() + 1,
        }
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
