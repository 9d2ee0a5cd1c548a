//! Every key of the configuration: what it means, its form, its default, an example. The one source of the check for unknown
//! keys, the examples in errors, the default file, the manual page and the reference in docs/configuration.md.
//!
//! Invariant: the table has exactly the keys and defaults of [`super::Config`] and
//! [`orphand_core::recognise::Rule`]; tests check that. A new key is a new row here.

mod rows;

pub use self::rows::SECTIONS;

/// How the keys of a section are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Above all tables.
    Top,
    /// In one table, for example `[hook]`. Several files may each have a part of it.
    Table,
    /// In any number of tables, for example `[[agent]]`. Each file adds its own.
    List,
}

/// Keys that belong together.
#[derive(Debug)]
pub struct Section {
    /// The name of the table; empty for [`Kind::Top`].
    pub name: &'static str,
    /// How it is written.
    pub kind: Kind,
    /// Its purpose, in one to four sentences.
    pub about: &'static str,
    /// Its keys.
    pub keys: &'static [Key],
    /// The lines of an example below its header; empty for [`Kind::Top`].
    pub example: &'static str,
}

/// A key.
#[derive(Debug)]
pub struct Key {
    /// Its name.
    pub name: &'static str,
    /// The form of its value, unit and limits, in words.
    pub value: &'static str,
    /// The default as a TOML value; absent if no value has the same meaning.
    pub default: Option<&'static str>,
    /// Its meaning, in one to four sentences.
    pub about: &'static str,
    /// An example of a TOML value.
    pub example: &'static str,
}

impl Section {
    /// The header, `[hook]` or `[[agent]]`; empty for the top.
    pub fn header(&self) -> String {
        match self.kind {
            Kind::Top => String::new(),
            Kind::Table => format!("[{}]", self.name),
            Kind::List => format!("[[{}]]", self.name),
        }
    }

    /// An example with its header.
    pub fn example(&self) -> String {
        format!("{}\n{}", self.header(), self.example)
    }

    /// Whether its keys are those of a rule, which are documented once for all.
    pub fn is_rules(&self) -> bool {
        let names = |section: &Self| section.keys.iter().map(|key| key.name).collect::<Vec<_>>();
        self.kind == Kind::List && SECTIONS.iter().filter(|other| names(other) == names(self)).count() > 1
    }

    /// The key of this name.
    pub fn key(&self, name: &str) -> Option<&'static Key> {
        self.keys.iter().find(|key| key.name == name)
    }
}

impl Key {
    /// A line with its example, such as `grace = "30s"`.
    pub fn example(&self) -> String {
        format!("{} = {}", self.name, self.example)
    }
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
];

/// Keys of rules that were there once: `program` says the same.
const PATTERNS: &[(&str, &str)] = &[
    ("args", "write them after the program: program = \"mybot run\""),
    ("exe", "program takes a path, too"),
    ("module", "program takes the name of a module, too"),
    ("package", "program takes the name of a package, too"),
    ("script", "program takes a path, too"),
];

/// What does now what a key of this table did once.
pub fn gone(table: &str, key: &str) -> Option<&'static str> {
    let one = GONE.iter().find(|gone| (gone.0, gone.1) == (table, key)).map(|gone| gone.2);
    let pattern = || PATTERNS.iter().find(|(name, _)| *name == key).map(|(_, now)| *now);
    one.or_else(|| pattern().filter(|_| ["exempt", "agent", "program"].contains(&table)))
}

/// The keys above every table.
pub fn top() -> &'static Section {
    let [top, ..] = SECTIONS;
    top
}

/// The section of this table name.
pub fn table(name: &str) -> Option<&'static Section> {
    SECTIONS.iter().find(|section| section.kind != Kind::Top && section.name == name)
}

/// The names that are allowed at the top: keys, then tables.
pub fn names() -> Vec<&'static str> {
    let tables = SECTIONS.iter().filter(|section| section.kind != Kind::Top).map(|section| section.name);
    top().keys.iter().map(|key| key.name).chain(tables).collect()
}
