//! Reads the files according to the table of options, merges them, and reports the first mistake. Pure.
//!
//! Each key above the tables, and each table, is first read alone, in its file, even if a later file overrides it: so a
//! mistake has its place. The merged values are read last.

use std::{borrow::Cow, collections::BTreeMap, ops::Range, path::Path};

use serde::de::DeserializeOwned;
use toml::{
    Spanned,
    de::{DeArray, DeString, DeTable, DeValue, Deserializer, Error},
};

use super::{
    error::{Location, Mistake},
    files::Input,
    options::{self, Kind, Section},
};

type Key<'t> = Spanned<DeString<'t>>;
type Value<'t> = Spanned<DeValue<'t>>;

/// Where each value comes from. A key that is not here has its default.
#[derive(Debug, Default)]
pub struct Origins(BTreeMap<String, Vec<Location>>);

impl Origins {
    /// The position of a key such as `grace` or `sessions.key`, or of the table with this index in a list.
    pub fn location(&self, key: &str, index: usize) -> Option<Location> {
        self.0.get(key)?.get(index).cloned()
    }
}

pub(super) fn read<T: DeserializeOwned>(files: &[Input]) -> Result<(T, Origins), Box<Mistake>> {
    let (mut merged, mut origins) = (DeTable::new(), Origins::default());
    for (path, text) in files {
        let file = File::new(path, text);
        let table = DeTable::parse(text).map_err(|error| {
            file.wrong(error.span().unwrap_or_default().start, None, error.message(), None)
        })?;
        file.check::<T>(table.get_ref())?;
        file.merge(table.into_inner(), &mut merged, &mut origins);
    }
    // What is right in each file may contradict itself in all of them.
    for (key, value) in &merged {
        if let (Err(error), Some(location)) =
            (attempt::<T>(key, value.clone()), origins.location(key.get_ref(), 0))
        {
            return Err(Mistake::new(location, Some(key.get_ref()), one_line(error.message())));
        }
    }
    let read = T::deserialize(Deserializer::from(Spanned::new(0..0, merged)));
    let whole = files.last().map_or(Path::new(""), |(path, _)| path);
    Ok((read.map_err(|error| Mistake::of_file(whole, one_line(error.message())))?, origins))
}

struct File<'t> {
    path: &'t Path,
    text: &'t str,
    /// Where its lines begin: each of its keys and tables is asked for its place.
    lines: Vec<usize>,
}

impl<'t> File<'t> {
    fn new(path: &'t Path, text: &'t str) -> Self {
        let further = text.match_indices('\n').map(|(end, _)| end + 1);
        Self { path, text, lines: [0].into_iter().chain(further).collect() }
    }

    fn check<T: DeserializeOwned>(&self, table: &DeTable<'t>) -> Result<(), Box<Mistake>> {
        for (key, value) in in_order(table) {
            let name = key.get_ref().as_ref();
            if let Some(option) = options::top().key(name) {
                attempt::<T>(key, value.clone()).map_err(|error| {
                    let at = error.span().unwrap_or_else(|| value.span()).start;
                    self.wrong(at, Some(name), error.message(), Some(option))
                })?;
                continue;
            }
            let section = options::table(name).ok_or_else(|| self.unknown(key, options::top()))?;
            match (section.kind, value.get_ref()) {
                (Kind::Table, DeValue::Table(below)) => self.table::<T>(section, key, below, value)?,
                (Kind::List, DeValue::Array(items)) => {
                    for item in items {
                        let DeValue::Table(below) = item.get_ref() else {
                            return Err(self.shape(section, item.span().start));
                        };
                        self.table::<T>(section, key, below, item)?;
                    }
                }
                _ => return Err(self.shape(section, key.span().start)),
            }
        }
        Ok(())
    }

    fn shape(&self, section: &'static Section, at: usize) -> Box<Mistake> {
        let kind = if section.kind == Kind::List { "a list of tables" } else { "a table" };
        let message = format!("expected {kind}: write {} and its keys below it", section.header());
        self.wrong(at, Some(&section.name), &message, None)
    }

    /// Finds the first unknown key of a table; if there is none, the first wrong value.
    fn table<T: DeserializeOwned>(
        &self,
        section: &'static Section,
        header: &Key<'t>,
        table: &DeTable<'t>,
        whole: &Value<'t>,
    ) -> Result<(), Box<Mistake>> {
        if let Some((key, _)) = in_order(table).find(|(key, _)| section.key(key.get_ref()).is_none()) {
            return Err(self.unknown(key, section));
        }
        let value = match section.kind {
            Kind::List => {
                let items: DeArray<'_> = [whole.clone()].into_iter().collect();
                Spanned::new(whole.span(), DeValue::Array(items))
            }
            _ => whole.clone(),
        };
        let Err(error) = attempt::<T>(header, value) else { return Ok(()) };
        let at = error.span().unwrap_or_else(|| whole.span());
        let is_there = |(key, value): &(&Key<'_>, &Value<'_>)| {
            contains(&key.span(), &at) || contains(&value.span(), &at)
        };
        Err(match table.iter().find(is_there) {
            Some((key, _)) => {
                let name = key.get_ref();
                let full = format!("{}.{name}", section.name);
                self.wrong(at.start, Some(&full), error.message(), section.key(name))
            }
            None => self.wrong(whole.span().start, Some(&section.name), error.message(), None),
        })
    }

    fn unknown(&self, key: &Key<'_>, within: &'static Section) -> Box<Mistake> {
        let name = clipped(key.get_ref(), 64);
        let place = match within.kind {
            Kind::Top => String::new(),
            _ => format!(" in {}", within.header()),
        };
        let (near, message) = if let Some(now) = options::gone(within, key.get_ref()) {
            (None, format!("the key \"{name}\"{place} is gone: {now}"))
        } else {
            let (near, advice) = advice(key.get_ref(), within);
            (near, format!("unknown key \"{name}\"{place}: {advice}"))
        };
        let example = near.and_then(|near| within.key(near)).map(options::Key::example);
        let mistake = Mistake::new(self.location(key.span().start), None, message);
        Box::new(Mistake { near, example, ..*mistake })
    }

    fn wrong(
        &self,
        at: usize,
        key: Option<&str>,
        message: &str,
        option: Option<&options::Key>,
    ) -> Box<Mistake> {
        let mistake = Mistake::new(self.location(at), key, one_line(message));
        Box::new(Mistake { example: option.map(options::Key::example), ..*mistake })
    }

    fn location(&self, at: usize) -> Location {
        let line = self.lines.partition_point(|begin| *begin <= at);
        let begin = self.lines.get(line - 1).copied().unwrap_or_default();
        let column = self.text.get(begin..at).unwrap_or_default().chars().count() + 1;
        Location { file: self.path.to_owned(), line: Some(line), column: Some(column) }
    }

    /// Merges this file: its values override, its tables are merged, its lists of tables are appended.
    fn merge(&self, table: DeTable<'t>, into: &mut DeTable<'t>, origins: &mut Origins) {
        for (key, value) in table {
            let name = key.get_ref().to_string();
            let here = self.location(key.span().start);
            let is_list = options::table(&name).is_some_and(|section| section.kind == Kind::List);
            let before = into.get_mut(name.as_str()).map(Spanned::get_mut);
            match (before, value.get_ref()) {
                (Some(DeValue::Table(all)), DeValue::Table(more)) => {
                    all.extend(more.iter().map(|(key, value)| (key.clone(), value.clone())));
                }
                (Some(DeValue::Array(all)), DeValue::Array(more)) if is_list => {
                    more.iter().for_each(|item| all.push(item.clone()));
                }
                _ => {
                    into.insert(key, value.clone());
                }
            }
            match value.get_ref() {
                DeValue::Table(below) => {
                    let keys = below.keys().map(|key| {
                        (format!("{name}.{}", key.get_ref()), vec![self.location(key.span().start)])
                    });
                    origins.0.extend(keys);
                    origins.0.insert(name, vec![here]);
                }
                DeValue::Array(items) if is_list => {
                    let items = items.iter().map(|item| self.location(item.span().start));
                    origins.0.entry(name).or_default().extend(items);
                }
                _ => {
                    origins.0.insert(name, vec![here]);
                }
            }
        }
    }
}

/// Reads this key alone, with defaults for all others.
fn attempt<T: DeserializeOwned>(key: &Key<'_>, value: Value<'_>) -> Result<(), Error> {
    let span = key.span().start..value.span().end.max(key.span().end);
    let mut table = DeTable::new();
    table.insert(key.clone(), value);
    T::deserialize(Deserializer::from(Spanned::new(span, table))).map(drop)
}

fn contains(outer: &Range<usize>, inner: &Range<usize>) -> bool {
    outer.start <= inner.start && inner.end <= outer.end
}

fn in_order<'t, 'a>(table: &'a DeTable<'t>) -> impl Iterator<Item = (&'a Key<'t>, &'a Value<'t>)> {
    let mut entries: Vec<_> = table.iter().collect();
    entries.sort_by_key(|(key, _)| key.span().start);
    entries.into_iter()
}

fn one_line(message: &str) -> String {
    let line = message.split('\n').map(str::trim).filter(|l| !l.is_empty()).collect::<Vec<_>>().join(", ");
    clipped(&line, 400).into_owned()
}

/// Shortens a text, because a value may have any length and a message should fit on a line.
fn clipped(text: &str, longest: usize) -> Cow<'_, str> {
    match text.char_indices().nth(longest) {
        Some((end, _)) => Cow::Owned(format!("{}..", text.get(..end).unwrap_or_default())),
        None => Cow::Borrowed(text),
    }
}

/// The most similar known key, if there is one, and the advice. `within` is the table with the unknown key, or the top.
pub(super) fn advice(name: &str, within: &'static Section) -> (Option<&'static str>, String) {
    let known: Vec<_> = match within.kind {
        Kind::Top => options::names(),
        _ => within.keys.iter().map(|key| key.name.as_str()).collect(),
    };
    // A frequent mistake: a top-level key below the header of a table.
    if within.kind != Kind::Top && options::top().key(name).is_some() {
        return (None, "it is a top-level key: write it above the first [table]".to_owned());
    }
    if let Some(near) = nearest(name, &known) {
        return (Some(near), format!("did you mean \"{near}\"?"));
    }
    match options::sections().find(|section| section.key(name).is_some_and(|key| section.takes(key))) {
        Some(section) => (None, format!("it is a key of {}: write it below that header", section.header())),
        None => (None, format!("known keys are {}", known.join(", "))),
    }
}

pub(super) fn among(name: &str, known: &[&str]) -> String {
    nearest(name, known).map_or_else(
        || format!("known names are {}", known.join(", ")),
        |near| format!("did you mean \"{near}\"?"),
    )
}

fn nearest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    let name: String = name.to_lowercase().replace('-', "_");
    // A long text is no misspelt key, and comparing it takes time.
    if name.chars().nth(64).is_some() {
        return None;
    }
    let distance = |key: &str| strsim::damerau_levenshtein(&name, key);
    let near = known.iter().copied().min_by_key(|key| distance(key))?;
    let begins = |key: &&str| name.len() >= 3 && (key.starts_with(&name) || name.starts_with(*key));
    if distance(near) <= 1 + near.len() / 4 { Some(near) } else { known.iter().copied().find(begins) }
}
