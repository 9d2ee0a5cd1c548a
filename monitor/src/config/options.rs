//! Every key of the configuration, as `default.toml` describes it: the file that `orphand config default` prints is the one
//! source of the check for unknown keys, the examples in errors, the manual page and the reference in
//! docs/configuration.md.
//!
//! Invariant: it has exactly the keys and defaults of [`super::Config`] and [`orphand_core::recognise::Rule`]; tests check
//! that. A new key is described there, in the form of the others: what it means, `Value:`, `Default:` and `For example:`.

use std::{collections::BTreeMap, sync::LazyLock};

use super::{Config, Origins};

/// The commented default file. With all commented defaults uncommented it is the default configuration.
pub const DEFAULT_FILE: &str = include_str!("default.toml");

/// How the keys of a section are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Top,
    /// In one table, for example `[sessions]`. Several files may each have a part of it.
    Table,
    /// In any number of tables, for example `[[agent]]`. Each file adds its own.
    List,
}

#[derive(Debug)]
pub struct Section {
    /// The name of the table; empty for [`Kind::Top`].
    pub name: String,
    pub kind: Kind,
    pub about: String,
    pub keys: Vec<Key>,
    /// The lines of an example below its header; empty for [`Kind::Top`].
    pub example: String,
    /// Whether its keys are those of a rule, which are documented once for all.
    pub is_rules: bool,
}

#[derive(Clone, Debug)]
pub struct Key {
    pub name: String,
    pub about: String,
    /// The form of its value, unit and limits, in words.
    pub value: String,
    /// The default as a TOML value; absent if no value has the same meaning.
    pub default: Option<String>,
    pub example: String,
}

impl Section {
    /// The header, `[sessions]` or `[[agent]]`; empty for the top.
    pub fn header(&self) -> String {
        match self.kind {
            Kind::Top => String::new(),
            Kind::Table => format!("[{}]", self.name),
            Kind::List => format!("[[{}]]", self.name),
        }
    }

    pub fn example(&self) -> String {
        format!("{}\n{}", self.header(), self.example)
    }

    pub fn key(&self, name: &str) -> Option<&Key> {
        self.keys.iter().find(|key| key.name == name)
    }

    /// Whether the key may be written here: a row is shared by all kinds of rules, and says where it is not allowed.
    pub fn takes(&self, key: &Key) -> bool {
        !key.value.contains("]] only") || key.value.contains(&self.header())
    }
}

impl Key {
    /// A line with its example, such as `grace = "30s"`.
    pub fn example(&self) -> String {
        format!("{} = {}", self.name, self.example)
    }

    /// Reads `MEANING Value: FORM. Default: VALUE. For example: VALUE`.
    fn read(name: &str, default: Option<&str>, text: &str) -> Self {
        let (text, example) = text.split_once(" For example: ").unwrap_or((text, ""));
        let (about, value) = text.split_once(" Value: ").unwrap_or((text, ""));
        let value = value.trim_end_matches('.');
        let (value, told) =
            value.split_once(". Default: ").map_or((value, None), |(v, told)| (v, Some(told)));
        let [name, about, value, example] = [name, about, value, example].map(str::to_owned);
        Self { name, about, value, default: default.or(told).map(str::to_owned), example }
    }
}

/// All sections, in the order of the file: the keys above every table, then the tables.
static SECTIONS: LazyLock<(Section, Vec<Section>)> = LazyLock::new(|| {
    let (mut top, mut tables, mut rule) = (Vec::new(), Vec::new(), Vec::new());
    for block in DEFAULT_FILE.split("\n\n") {
        // The text above and the text of each key; a default; an example.
        let (mut texts, mut default, mut example) = (vec![String::new()], None, String::new());
        for line in block.lines() {
            if let Some(line) = line.strip_prefix("#     ") {
                example.extend([line, "\n"]);
            } else if let Some(item) = line.strip_prefix("# - ") {
                texts.push(item.to_owned());
            } else if let (Some(more), Some(text)) = (line.strip_prefix("# "), texts.last_mut()) {
                text.extend([if text.is_empty() { "" } else { " " }, more]);
            } else {
                default = line.strip_prefix('#').and_then(|line| line.split_once(" = "));
            }
        }
        let about = texts.remove(0);
        let of_item = |text: &String| text.split_once(": ").map(|(name, text)| Key::read(name, None, text));
        let keys: Vec<Key> = texts.iter().filter_map(of_item).collect();
        if let Some((name, value)) = default {
            top.push(Key::read(name, Some(value), &about));
        } else if let Some((header, example)) = example.split_once('\n') {
            let kind = if header.starts_with("[[") { Kind::List } else { Kind::Table };
            let (name, example) = (header.trim_matches(['[', ']']).to_owned(), example.to_owned());
            let is_rules = keys.is_empty();
            let keys = if is_rules { rule.clone() } else { keys };
            tables.push(Section { name, kind, about, keys, example, is_rules });
        } else {
            rule = keys;
        }
    }
    let (name, about) = (String::new(), "The keys above every table.".to_owned());
    (Section { name, kind: Kind::Top, about, keys: top, example: String::new(), is_rules: false }, tables)
});

pub fn top() -> &'static Section {
    &SECTIONS.0
}

pub fn tables() -> &'static [Section] {
    &SECTIONS.1
}

pub fn sections() -> impl Iterator<Item = &'static Section> {
    std::iter::once(top()).chain(tables())
}

pub fn table(name: &str) -> Option<&'static Section> {
    tables().iter().find(|section| section.name == name)
}

/// The names that are allowed at the top: keys, then tables.
pub fn names() -> Vec<&'static str> {
    let keys = top().keys.iter().map(|key| key.name.as_str());
    keys.chain(tables().iter().map(|section| section.name.as_str())).collect()
}

/// Keys that were there once: the table, the key, and what does the same now.
const GONE: &[(&str, &str, &str)] = &[
    ("", "launcher", "write [[program]] with kind = \"launcher\""),
    ("", "log", "the variable ORPHAND_LOG sets what is logged"),
    ("", "members", "orphand run --members N does the same"),
    ("", "multiplexer", "write [[program]] with kind = \"multiplexer\""),
    ("", "other_uids", "orphand run --other-uids does the same"),
    ("", "ring_size", "orphand run --ring-size BYTES does the same"),
    ("", "server", "write [[program]] with kind = \"server\""),
    ("", "setsid", "orphand run --setsid HOOK does the same"),
    ("", "socket", "--socket PATH does the same"),
    ("", "socket_group", "orphand run --socket-group GROUP does the same"),
    ("", "state_dir", "--state-dir DIR does the same"),
    ("", "steward", "write [[program]] with kind = \"supervisor\""),
    ("", "term_timeout", "orphand run --term-timeout DUR does the same"),
    ("hook", "timeout", "it is 10s"),
    ("sessions", "uid", "orphand run --registry-user UID does the same"),
    ("sessions", "interval", "it follows from idle"),
    // In every table of rules.
    ("rule", "args", "write them after the program: program = \"mybot run\""),
    ("rule", "exe", "program takes a path, too"),
    ("rule", "module", "program takes the name of a module, too"),
    ("rule", "package", "program takes the name of a package, too"),
    ("rule", "script", "program takes a path, too"),
];

/// What does now what a key of this table did once.
pub fn gone(table: &Section, key: &str) -> Option<&'static str> {
    let name = if table.is_rules { "rule" } else { &table.name };
    GONE.iter().find(|gone| (gone.0, gone.1) == (name, key)).map(|gone| gone.2)
}

/// The effective configuration as TOML; a comment after each value, and each table of a list, says where it comes from.
pub fn with_origins(config: &Config, origins: &Origins) -> String {
    let (mut table, mut lists) = (None, BTreeMap::<String, usize>::new());
    let from = |key: &str, index: usize| match origins.location(key, index) {
        Some(location) => format!("# {}", super::Location { column: None, ..location }),
        None => "# default".to_owned(),
    };
    let mut told = |line: &str| {
        if let Some(name) = line.strip_prefix("[[").and_then(|line| line.strip_suffix("]]")) {
            let index = lists.entry(name.to_owned()).or_default();
            let origin = from(name, *index);
            (table, *index) = (None, *index + 1);
            return format!("{line}  {origin}\n");
        }
        if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            table = Some(format!("{name}."));
        }
        match (line.split_once(" = "), &table) {
            (Some((key, _)), table) if table.is_some() || lists.is_empty() => {
                format!("{line}  {}\n", from(&format!("{}{key}", table.as_deref().unwrap_or_default()), 0))
            }
            _ => format!("{line}\n"),
        }
    };
    config.render().lines().map(&mut told).collect()
}
