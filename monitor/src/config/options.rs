//! Every key of the configuration: what it means, its form, its default, an example. The one source of the check for unknown
//! keys, the examples in errors, the default file, the manual page and the reference in docs/configuration.md.
//!
//! Invariant: it has the keys of [`super::Config`] and [`orphand_core::recognise::Rule`], all of them and no others, and the
//! same defaults; the tests hold it to that. A new key is a row here.

mod rows;

pub use self::rows::SECTIONS;

/// How the keys of a section are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Above every table.
    Top,
    /// In a table that is there once, `[hook]`; several files may each say a part of it.
    Table,
    /// In tables that are there as often as wanted, `[[agent]]`; each file adds its own.
    List,
}

/// Keys that are written together.
#[derive(Debug)]
pub struct Section {
    /// The name of the table, empty for [`Kind::Top`].
    pub name: &'static str,
    /// How it is written.
    pub kind: Kind,
    /// What it is for: one to four sentences.
    pub about: &'static str,
    /// Its keys.
    pub keys: &'static [Key],
    /// The lines below the header of an example, empty for [`Kind::Top`].
    pub example: &'static str,
}

/// A key.
#[derive(Debug)]
pub struct Key {
    /// As it is written.
    pub name: &'static str,
    /// What stands behind `=`, in words.
    pub form: &'static str,
    /// The value in TOML that holds where nothing is said; none where that is not the same as any value.
    pub default: Option<&'static str>,
    /// Unit and limits in words, empty if there are none.
    pub limits: &'static str,
    /// What it does: one to four sentences.
    pub about: &'static str,
    /// A value in TOML as an example.
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

    /// The header and the lines of its example.
    pub fn example(&self) -> String {
        format!("{}\n{}", self.header(), self.example)
    }

    /// Whether it is one of those with the keys of a rule, which are told once for all.
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
    /// A line that sets it, `grace = "30s"`.
    pub fn example(&self) -> String {
        format!("{} = {}", self.name, self.example)
    }

    /// The form and the limits, in words.
    pub fn value(&self) -> String {
        match self.limits {
            "" => self.form.to_owned(),
            limits => format!("{}, {limits}", self.form),
        }
    }
}

/// The keys above every table.
pub fn top(sections: &'static [Section]) -> Option<&'static Section> {
    sections.iter().find(|section| section.kind == Kind::Top)
}

/// The table of this name.
pub fn table(sections: &'static [Section], name: &str) -> Option<&'static Section> {
    sections.iter().find(|section| section.kind != Kind::Top && section.name == name)
}

/// The names that may stand at the top: keys, then tables.
pub fn names(sections: &'static [Section]) -> Vec<&'static str> {
    let keys = top(sections).into_iter().flat_map(|section| section.keys).map(|key| key.name);
    let tables = sections.iter().filter(|section| section.kind != Kind::Top).map(|section| section.name);
    keys.chain(tables).collect()
}
