//! Reads types with their doc comments from source text that rustfmt has formatted.
//!
//! Invariant: a line that is not understood is an error, so that nothing is left out of the documentation in silence.

use std::{fs, path::Path};

use anyhow::{Context as _, Result, bail, ensure};

/// Where the types are that are written.
const FILES: [&str; 3] = ["core/src/model", "src/sink/history/leaks.rs", "src/sink/plan.rs"];

/// What fields of these names are, where they have no doc comment of their own.
#[rustfmt::skip]
const USUAL: &[(&str, &str)] = &[
    ("agent", "The agent."), ("class", "What was left behind."), ("ending", "How its main process ended."),
    ("evidence", "The facts that speak for an orphan."), ("guards", "What forbids ending it."),
    ("hints", "By what a person recognises it."), ("hooks", "The kernel hooks in use."), ("kernel", "The kernel's release."),
    ("name", "Its name."), ("owner", "Its owner."), ("pid", "Its process id."), ("rss_bytes", "Resident memory in bytes."),
    ("run", "The run."), ("server", "The server."), ("start", "Its start time in clock ticks since boot."),
    ("uid", "Its real user id."), ("version", "orphand's version."),
];

/// A type, as it is written in JSON.
pub enum Type {
    Object(Vec<Field>),
    /// With the field that says which variant it is, if it has one.
    Variants(Vec<Item>, Option<String>),
}

#[derive(Default)]
pub struct Item {
    /// As it is written in an event.
    pub name: String,
    pub about: String,
    pub fields: Vec<Field>,
}

pub struct Field {
    /// As it is written in an event.
    pub name: String,
    /// Its type in Rust.
    pub kind: String,
    pub about: String,
    pub may_be_absent: bool,
    /// Whether the fields of its type stand in place of it.
    pub inline: bool,
}

/// The text of all these files.
pub struct Sources(String);

impl Sources {
    pub fn read() -> Result<Self> {
        let mut text = String::new();
        for file in FILES {
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
            let mut paths = vec![path.clone()];
            if path.is_dir() {
                paths = fs::read_dir(&path)?.flatten().map(|entry| entry.path()).collect();
            }
            paths.retain(|path| path.extension().is_some_and(|end| end == "rs"));
            paths.sort();
            for path in paths {
                text += &fs::read_to_string(&path).with_context(|| path.display().to_string())?;
            }
        }
        Ok(Self(text))
    }

    pub fn get(&self, name: &str) -> Result<Type> {
        if let Some((_, body)) = self.find("struct", name) {
            let object = items(body, vec![Item::default()])?.pop().unwrap_or_default();
            return Ok(Type::Object(object.fields));
        }
        let found = self.find("enum", name);
        let (attributes, body) = found.with_context(|| format!("no file has the type {name}"))?;
        let mut variants = items(body, Vec::new())?;
        if attributes.contains("UPPERCASE") {
            for item in &mut variants {
                item.name.make_ascii_uppercase();
            }
        }
        Ok(Type::Variants(variants, quoted(attributes, "serde(tag = ").map(str::to_owned)))
    }

    pub fn variants(&self, name: &str) -> Result<Vec<Item>> {
        let Type::Variants(all, _) = self.get(name)? else { bail!("{name} is no enumeration") };
        Ok(all)
    }

    pub fn fields(&self, name: &str) -> Result<Vec<Field>> {
        let Type::Object(fields) = self.get(name)? else { bail!("{name} is no structure") };
        Ok(fields)
    }

    /// The attributes of a type, and what stands between its braces.
    fn find(&self, what: &str, name: &str) -> Option<(&str, &str)> {
        let (before, rest) = self.0.split_once(&format!("pub {what} {name} {{\n"))?;
        Some((before.rsplit("\n\n").next()?, rest.split_once("\n}\n")?.0))
    }
}

/// The variants of an enumeration. Fields that come first belong to the item that is there already.
fn items(body: &str, mut items: Vec<Item>) -> Result<Vec<Item>> {
    let mut notes = Notes::default();
    for line in body.lines().map(str::trim) {
        if notes.take(line) || line == "}," {
            continue;
        }
        if let Some(name) = line.strip_suffix(" {").or_else(|| line.strip_suffix(',').filter(|l| is_name(l)))
        {
            items.push(Item { name: snake_case(name), about: notes.about()?, fields: Vec::new() });
        } else {
            let item = items.last_mut().with_context(|| format!("no variant above `{line}`"))?;
            let is_written = !notes.attributes.contains("serde(skip)]");
            let field = field(line, &mut notes)?;
            item.fields.extend(is_written.then_some(field));
        }
    }
    Ok(items)
}

fn field(line: &str, notes: &mut Notes) -> Result<Field> {
    let parts = line.strip_prefix("pub ").unwrap_or(line).strip_suffix(',').and_then(|l| l.split_once(": "));
    let Some((name, kind)) = parts.filter(|(name, _)| is_name(name)) else { bail!("what is `{line}`?") };
    let usual = USUAL.iter().find(|(usual, _)| *usual == name && notes.doc.is_empty());
    notes.doc.extend(usual.map(|(_, about)| (*about).to_owned()));
    let name = quoted(&notes.attributes, "rename = ").unwrap_or(name).to_owned();
    let may_be_absent = notes.attributes.contains("skip_serializing_if");
    let inline = notes.attributes.contains("flatten");
    Ok(Field { name, kind: kind.to_owned(), about: notes.about()?, may_be_absent, inline })
}

/// What an attribute has in quotes after these words.
fn quoted<'a>(attributes: &'a str, words: &str) -> Option<&'a str> {
    attributes.split_once(words)?.1.split('"').nth(1)
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || c == '_')
}

fn snake_case(name: &str) -> String {
    let mut snake = String::new();
    for c in name.chars() {
        if c.is_uppercase() && !snake.is_empty() {
            snake.push('_');
        }
        snake.extend(c.to_lowercase());
    }
    snake
}

/// Doc comments and attributes above a line.
#[derive(Default)]
struct Notes {
    doc: Vec<String>,
    attributes: String,
}

impl Notes {
    /// Whether this line is one of them.
    fn take(&mut self, line: &str) -> bool {
        if let Some(text) = line.strip_prefix("///") {
            self.doc.push(text.trim().to_owned());
        } else if line.starts_with("#[") {
            self.attributes.push_str(line);
        } else {
            return false;
        }
        true
    }

    /// The doc comment as prose; both are used up.
    fn about(&mut self) -> Result<String> {
        let Self { doc, .. } = std::mem::take(self);
        let about = doc.join(" ");
        ensure!(!about.is_empty(), "something has no doc comment");
        ensure!(!about.contains("[`"), "a reader of the documentation cannot follow the link in: {about}");
        Ok(about)
    }
}
