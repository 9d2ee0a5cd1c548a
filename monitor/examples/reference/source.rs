//! Reads types with their doc comments from source text that rustfmt has formatted.
//!
//! Invariant: a line that is not understood is an error, so that nothing is left out of the documentation in silence.

use anyhow::{Context as _, Result, bail, ensure};

/// A variant of an enumeration, or a structure.
#[derive(Debug, Default)]
pub struct Item {
    /// As it is written in an event.
    pub name: String,
    /// Its doc comment.
    pub about: String,
    /// Its fields.
    pub fields: Vec<Field>,
}

/// A field.
#[derive(Debug)]
pub struct Field {
    /// As it is written in an event.
    pub name: String,
    /// Its type in Rust.
    pub kind: String,
    /// Its doc comment.
    pub about: String,
    /// Whether it may be left out of an event.
    pub may_be_absent: bool,
    /// Whether the fields of its type stand in place of it.
    pub inline: bool,
}

/// The variants of `pub enum NAME`.
pub fn variants(text: &str, name: &str) -> Result<Vec<Item>> {
    let body = body(text, &format!("pub enum {name} {{"))?;
    let mut items: Vec<Item> = Vec::new();
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
            item.fields.push(field(line, &mut notes)?);
        }
    }
    Ok(items)
}

/// The fields of `pub struct NAME`.
pub fn fields(text: &str, name: &str) -> Result<Vec<Field>> {
    let body = body(text, &format!("pub struct {name} {{"))?;
    let mut notes = Notes::default();
    let mut fields = Vec::new();
    for line in body.lines().map(str::trim) {
        if notes.take(line) {
            continue;
        }
        let is_written = !notes.attributes.contains("serde(skip)]");
        let field = field(line, &mut notes)?;
        fields.extend(is_written.then_some(field));
    }
    Ok(fields)
}

/// What stands between this line and the brace that closes it.
fn body<'a>(text: &'a str, head: &str) -> Result<&'a str> {
    let (_, rest) = text.split_once(&format!("{head}\n")).with_context(|| format!("no `{head}`"))?;
    Ok(rest.split_once("\n}\n").with_context(|| format!("`{head}` has no end"))?.0)
}

fn field(line: &str, notes: &mut Notes) -> Result<Field> {
    let parts = line.strip_prefix("pub ").unwrap_or(line).strip_suffix(',').and_then(|l| l.split_once(": "));
    let Some((name, kind)) = parts.filter(|(name, _)| is_name(name)) else { bail!("what is `{line}`?") };
    let renamed = notes.attributes.split_once("rename = \"").and_then(|(_, rest)| rest.split_once('"'));
    let name = renamed.map_or(name, |(name, _)| name).to_owned();
    let may_be_absent = notes.attributes.contains("skip_serializing_if");
    let inline = notes.attributes.contains("flatten");
    Ok(Field { name, kind: kind.to_owned(), about: notes.about()?, may_be_absent, inline })
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
#[derive(Debug, Default)]
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
        let about = self.doc.join(" ");
        self.doc.clear();
        self.attributes.clear();
        ensure!(!about.is_empty(), "something has no doc comment");
        ensure!(!about.contains("[`"), "a reader of the documentation cannot follow the link in: {about}");
        Ok(about)
    }
}
