//! Reads the merged texts according to the table of options, and reports every mistake. Pure.
//!
//! Each value is first read alone, as the type of its key, in its file, even if a later file overrides it.
//! The merged values are read last.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    ops::Range,
};

use serde::de::DeserializeOwned;
use toml::{
    Spanned,
    de::{DeArray, DeString, DeTable, DeValue, Deserializer, Error},
};

use super::{
    error::Content,
    nearest::advice,
    options::{self, Kind, Section},
    text::{Texts, shifted},
};

/// The most mistakes reported for one file; the rest of the file is skipped.
pub const ENOUGH: usize = 100;

type Key<'t> = Spanned<DeString<'t>>;
type Value<'t> = Spanned<DeValue<'t>>;

/// The position of each value, as in [`super::Origins`].
type Locations = BTreeMap<String, Vec<usize>>;

/// Returns the mistakes in the order of the texts; if there are none, the configuration and the positions of
/// its values.
pub(super) fn read<T: DeserializeOwned>(
    texts: &Texts,
    sections: &'static [Section],
) -> Result<(T, Locations), Vec<Content>> {
    let mut check = Checker { sections, found: Vec::new(), doubtful: BTreeSet::new() };
    let mut all = Vec::new();
    let mut merged = DeTable::new();
    let (mut end, mut broken) = (0, false);
    for (text, base) in texts.iter() {
        let (table, errors) = DeTable::parse_recoverable(text);
        if errors.is_empty() {
            let table = shifted(table.into_inner(), base);
            check.file::<T>(&table);
            merge(&mut merged, table, sections);
        } else {
            check.syntax(text, base, &errors);
            broken = true;
        }
        check.found.sort_by_key(|found| found.at);
        all.extend(check.found.drain(..).take(ENOUGH));
        end = base + text.len();
    }
    if !broken {
        check.together::<T>(&merged);
        all.append(&mut check.found);
    }
    let mut whole = None;
    if all.is_empty() {
        match T::deserialize(Deserializer::from(Spanned::new(0..end, merged.clone()))) {
            Ok(read) => whole = Some(read),
            Err(error) => {
                all.push(Mistake::new(error.span().map_or(0, |span| span.start), one_line(error.message())));
            }
        }
    }
    all.sort_by_key(|found| found.at);
    match whole {
        Some(read) => Ok((read, locations(&merged))),
        None => Err(all.into_iter().map(|found| found.placed(texts)).collect()),
    }
}

/// Merges a later text: its values override, its tables are merged, its lists of tables are appended.
fn merge<'t>(into: &mut DeTable<'t>, later: DeTable<'t>, sections: &'static [Section]) {
    for (key, value) in later {
        let kind = options::table(sections, key.get_ref()).map(|section| section.kind);
        let before = into.get_mut(key.get_ref().as_ref()).map(Spanned::get_mut);
        match (kind, before, value.get_ref()) {
            (Some(Kind::List), Some(DeValue::Array(rules)), DeValue::Array(_)) => {
                if let DeValue::Array(more) = value.into_inner() {
                    more.into_iter().for_each(|rule| rules.push(rule));
                }
            }
            (_, Some(DeValue::Table(table)), DeValue::Table(_)) => {
                if let DeValue::Table(more) = value.into_inner() {
                    merge(table, more, &[]);
                }
            }
            _ => {
                // The key is removed, too, because its position is reported.
                into.remove(key.get_ref().as_ref());
                into.insert(key, value);
            }
        }
    }
}

fn locations(merged: &DeTable<'_>) -> Locations {
    let mut stands = Locations::new();
    for (key, value) in merged {
        let name = key.get_ref();
        match value.get_ref() {
            DeValue::Table(table) => {
                let keys = table
                    .keys()
                    .map(|below| (format!("{name}.{}", below.get_ref()), vec![below.span().start]));
                stands.extend(keys);
            }
            DeValue::Array(items) => {
                stands.insert(name.to_string(), items.iter().map(|item| item.span().start).collect());
            }
            _ => {
                stands.insert(name.to_string(), vec![key.span().start]);
            }
        }
    }
    stands
}

/// A mistake and its byte position.
struct Mistake {
    at: usize,
    key: Option<String>,
    message: String,
    near: Option<&'static str>,
    example: Option<String>,
}

impl Mistake {
    const fn new(at: usize, message: String) -> Self {
        Self { at, key: None, message, near: None, example: None }
    }

    fn placed(self, texts: &Texts) -> Content {
        let Self { at, key, message, near, example } = self;
        Content { location: texts.location(at), key, message, near, example }
    }
}

struct Checker {
    sections: &'static [Section],
    found: Vec<Mistake>,
    /// Tables with a mistake; what they lack may be due to it.
    doubtful: BTreeSet<&'static str>,
}

impl Checker {
    /// Reports syntax errors. The parser continues after an error, but further errors on the same line are
    /// skipped.
    fn syntax(&mut self, text: &str, base: usize, errors: &[Error]) {
        let mut errors: Vec<_> = errors.iter().map(|e| (e.span().map_or(0, |span| span.start), e)).collect();
        errors.sort_by_key(|(at, _)| *at);
        let mut last: Option<usize> = None;
        for (at, error) in errors {
            let same_line = last.is_some_and(|last| !text.get(last..at).unwrap_or_default().contains('\n'));
            if !same_line {
                self.found.push(Mistake::new(base + at, one_line(error.message())));
            }
            last = Some(at);
        }
    }

    fn file<T: DeserializeOwned>(&mut self, table: &DeTable<'_>) {
        let top = options::top(self.sections);
        for (key, value) in in_order(table) {
            if self.found.len() >= ENOUGH {
                break;
            }
            let name = key.get_ref().as_ref();
            if let Some(option) = top.and_then(|section| section.key(name)) {
                if let Err(error) = attempt::<T>(key, value.clone()) {
                    let at = error.span().map_or(value.span().start, |span| span.start);
                    let found = Mistake::new(at, one_line(error.message()));
                    let example = Some(option.example());
                    self.found.push(Mistake { key: Some(name.to_owned()), example, ..found });
                }
            } else if let Some(section) = options::table(self.sections, name) {
                let before = self.found.len();
                self.section::<T>(section, key, value);
                if self.found.len() > before {
                    self.doubtful.insert(section.name);
                }
            } else {
                self.unknown(key, None);
            }
        }
    }

    /// Reads tables whose parts may be in several files; they are complete only after the merge.
    fn together<T: DeserializeOwned>(&mut self, merged: &DeTable<'_>) {
        for (key, value) in merged {
            let section = options::table(self.sections, key.get_ref());
            let Some(section) = section.filter(|s| s.kind == Kind::Table && !self.doubtful.contains(s.name))
            else {
                continue;
            };
            if let Err(error) = attempt::<T>(key, value.clone()) {
                let at = error.span().map_or(key.span().start, |span| span.start);
                let found = Mistake::new(at, one_line(error.message()));
                self.found.push(Mistake { key: Some(section.name.to_owned()), ..found });
            }
        }
    }

    fn section<T: DeserializeOwned>(&mut self, section: &'static Section, key: &Key<'_>, value: &Value<'_>) {
        match (section.kind, value.get_ref()) {
            (Kind::Table, DeValue::Table(table)) => self.table::<T>(section, key, table, value.span()),
            (Kind::List, DeValue::Array(items)) => {
                for item in items {
                    match item.get_ref() {
                        DeValue::Table(table) => self.table::<T>(section, key, table, item.span()),
                        _ => self.shape(section, item.span().start),
                    }
                }
            }
            _ => self.shape(section, key.span().start),
        }
    }

    fn shape(&mut self, section: &Section, at: usize) {
        let message = match section.kind {
            Kind::List => {
                format!("expected a list of tables: write {} and its keys below it", section.header())
            }
            _ => format!("expected a table: write {} and its keys below it", section.header()),
        };
        self.found.push(Mistake { key: Some(section.name.to_owned()), ..Mistake::new(at, message) });
    }

    /// Reports all mistakes of one table: a wrong value is removed, and the rest is read again.
    fn table<T: DeserializeOwned>(
        &mut self,
        section: &'static Section,
        header: &Key<'_>,
        table: &DeTable<'_>,
        span: Range<usize>,
    ) {
        let mut rest = table.clone();
        for (key, _) in in_order(table).filter(|(key, _)| section.key(key.get_ref()).is_none()) {
            if self.found.len() < ENOUGH {
                self.unknown(key, Some(section));
            }
            rest.remove(key.get_ref().as_ref());
        }
        // What is missing may have been removed, or may be in another file.
        let mut whole = section.kind == Kind::List && rest.len() == table.len();
        while self.found.len() < ENOUGH {
            let this = Spanned::new(span.clone(), DeValue::Table(rest.clone()));
            let value = match section.kind {
                Kind::List => {
                    let items: DeArray<'_> = [this].into_iter().collect();
                    Spanned::new(span.clone(), DeValue::Array(items))
                }
                _ => this,
            };
            let Err(error) = attempt::<T>(header, value) else { break };
            let at = error.span().unwrap_or_else(|| span.clone());
            let message = one_line(error.message());
            let wrong =
                rest.iter().find(|(key, value)| contains(&key.span(), &at) || contains(&value.span(), &at));
            let Some(name) = wrong.map(|(key, _)| key.get_ref().to_string()) else {
                if whole {
                    let key = Some(section.name.to_owned());
                    self.found.push(Mistake { key, ..Mistake::new(span.start, message) });
                }
                break;
            };
            let example = section.key(&name).map(options::Key::example);
            let key = Some(format!("{}.{name}", section.name));
            self.found.push(Mistake { key, example, ..Mistake::new(at.start, message) });
            rest.remove(name.as_str());
            whole = false;
        }
    }

    fn unknown(&mut self, key: &Key<'_>, within: Option<&'static Section>) {
        let name = clipped(key.get_ref(), 64);
        let place = within.map(|section| format!(" in {}", section.header())).unwrap_or_default();
        if let Some(now) = options::gone(within.map_or("", |section| section.name), key.get_ref()) {
            let message = format!("the key \"{name}\"{place} is gone: {now}");
            self.found.push(Mistake::new(key.span().start, message));
            return;
        }
        let (near, advice) = advice(self.sections, key.get_ref(), within);
        let keys = within.or_else(|| options::top(self.sections));
        let example = near.and_then(|near| keys?.key(near)).map(options::Key::example);
        let message = format!("unknown key \"{name}\"{place}: {advice}");
        self.found.push(Mistake { near, example, ..Mistake::new(key.span().start, message) });
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

/// The entries in the order of the text, so that the first mistakes are reported if there are too many.
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
