//! Reads the merged texts against the table of options and tells every mistake. Pure.
//!
//! Each value is read by itself first, as the type it is for, in the file where it stands: also one that a later file beats.
//! What the values of several files say together is read last.

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

/// After so many mistakes in a file the rest of it is not looked at.
pub const ENOUGH: usize = 100;

type Key<'t> = Spanned<DeString<'t>>;
type Value<'t> = Spanned<DeValue<'t>>;

/// Where each value stands, as [`super::Origins`] has it.
type Where = BTreeMap<String, Vec<usize>>;

/// The mistakes, in the order of the texts; without any, what they say and where.
pub(super) fn read<T: DeserializeOwned>(
    texts: &Texts,
    sections: &'static [Section],
) -> Result<(T, Where), Vec<Content>> {
    let mut check = Check { sections, found: Vec::new(), doubtful: BTreeSet::new() };
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
                all.push(Found::new(error.span().map_or(0, |span| span.start), one_line(error.message())));
            }
        }
    }
    all.sort_by_key(|found| found.at);
    match whole {
        Some(read) => Ok((read, stands(&merged))),
        None => Err(all.into_iter().map(|found| found.placed(texts)).collect()),
    }
}

/// Adds what a later text says: its values beat, its tables are merged, its lists of tables are appended.
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
                // The key, too: it tells the place.
                into.remove(key.get_ref().as_ref());
                into.insert(key, value);
            }
        }
    }
}

fn stands(merged: &DeTable<'_>) -> Where {
    let mut stands = Where::new();
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

/// A mistake, and the number of the byte where it stands.
struct Found {
    at: usize,
    key: Option<String>,
    message: String,
    near: Option<&'static str>,
    example: Option<String>,
}

impl Found {
    const fn new(at: usize, message: String) -> Self {
        Self { at, key: None, message, near: None, example: None }
    }

    fn placed(self, texts: &Texts) -> Content {
        let Self { at, key, message, near, example } = self;
        Content { place: texts.place(at), key, message, near, example }
    }
}

struct Check {
    sections: &'static [Section],
    found: Vec<Found>,
    /// Tables in which something is wrong: what they lack may be due to it.
    doubtful: BTreeSet<&'static str>,
}

impl Check {
    /// The reader goes on behind a mistake, but what follows on the same line is no news.
    fn syntax(&mut self, text: &str, base: usize, errors: &[Error]) {
        let mut errors: Vec<_> = errors.iter().map(|e| (e.span().map_or(0, |span| span.start), e)).collect();
        errors.sort_by_key(|(at, _)| *at);
        let mut last: Option<usize> = None;
        for (at, error) in errors {
            let same_line = last.is_some_and(|last| !text.get(last..at).unwrap_or_default().contains('\n'));
            if !same_line {
                self.found.push(Found::new(base + at, one_line(error.message())));
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
                    let found = Found::new(at, one_line(error.message()));
                    let example = Some(option.example());
                    self.found.push(Found { key: Some(name.to_owned()), example, ..found });
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

    /// Tables that several files may say a part of are whole only now.
    fn together<T: DeserializeOwned>(&mut self, merged: &DeTable<'_>) {
        for (key, value) in merged {
            let section = options::table(self.sections, key.get_ref());
            let Some(section) = section.filter(|s| s.kind == Kind::Table && !self.doubtful.contains(s.name))
            else {
                continue;
            };
            if let Err(error) = attempt::<T>(key, value.clone()) {
                let at = error.span().map_or(key.span().start, |span| span.start);
                let found = Found::new(at, one_line(error.message()));
                self.found.push(Found { key: Some(section.name.to_owned()), ..found });
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
            Kind::List => format!("a list of tables is meant: write {} and its keys below", section.header()),
            _ => format!("a table is meant: write {} and its keys below", section.header()),
        };
        self.found.push(Found { key: Some(section.name.to_owned()), ..Found::new(at, message) });
    }

    /// All mistakes of one table: a value that is wrong is taken out, and the rest read again.
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
        // What is missing may have been taken out, or stand in another file.
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
                    self.found.push(Found { key, ..Found::new(span.start, message) });
                }
                break;
            };
            let example = section.key(&name).map(options::Key::example);
            let key = Some(format!("{}.{name}", section.name));
            self.found.push(Found { key, example, ..Found::new(at.start, message) });
            rest.remove(name.as_str());
            whole = false;
        }
    }

    fn unknown(&mut self, key: &Key<'_>, within: Option<&'static Section>) {
        let name = clipped(key.get_ref(), 64);
        let place = within.map(|section| format!(" in {}", section.header())).unwrap_or_default();
        let (near, advice) = advice(self.sections, key.get_ref(), within);
        let keys = within.or_else(|| options::top(self.sections));
        let example = near.and_then(|near| keys?.key(near)).map(options::Key::example);
        let message = format!("unknown key \"{name}\"{place}: {advice}");
        self.found.push(Found { near, example, ..Found::new(key.span().start, message) });
    }
}

/// Reads this key alone; all others have their defaults.
fn attempt<T: DeserializeOwned>(key: &Key<'_>, value: Value<'_>) -> Result<(), Error> {
    let span = key.span().start..value.span().end.max(key.span().end);
    let mut table = DeTable::new();
    table.insert(key.clone(), value);
    T::deserialize(Deserializer::from(Spanned::new(span, table))).map(drop)
}

fn contains(outer: &Range<usize>, inner: &Range<usize>) -> bool {
    outer.start <= inner.start && inner.end <= outer.end
}

/// As they stand in the text, so that the first mistakes are told if there are too many.
fn in_order<'t, 'a>(table: &'a DeTable<'t>) -> impl Iterator<Item = (&'a Key<'t>, &'a Value<'t>)> {
    let mut entries: Vec<_> = table.iter().collect();
    entries.sort_by_key(|(key, _)| key.span().start);
    entries.into_iter()
}

fn one_line(message: &str) -> String {
    let line = message.split('\n').map(str::trim).filter(|l| !l.is_empty()).collect::<Vec<_>>().join(", ");
    clipped(&line, 400).into_owned()
}

/// What a file says may be of any length, a line is to be read.
fn clipped(text: &str, longest: usize) -> Cow<'_, str> {
    match text.char_indices().nth(longest) {
        Some((end, _)) => Cow::Owned(format!("{}..", text.get(..end).unwrap_or_default())),
        None => Cow::Borrowed(text),
    }
}
