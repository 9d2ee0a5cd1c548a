//! Writes the configuration: the commented default file, and the effective configuration with origins. Pure.

use std::fmt::Write as _;

use super::{
    Config, Origins,
    options::{Key, Kind, SECTIONS, Section},
};

/// The width of the text in characters.
const WIDTH: usize = 100;

const HEAD: [&str; 2] = [
    "The configuration of orphand: /etc/orphand/config.toml, and conf.d/*.toml beside it, which beat it. orphand.toml(5) \
     explains it: `orphand man config | man -l -`. `orphand config check` checks it.",
    "A line that begins with # and no space is a default: take the # away, and change it. A line that begins with # and five \
     spaces is an example.",
];

const RULES: &str = "The tables below are lists of rules: each may be there as often as wanted. A rule holds if each of its keys \
                     holds; in a pattern * stands for any text, ? for any character. The keys of a rule:";

/// The default file. With all commented defaults uncommented it is the default configuration.
pub fn default_file() -> String {
    default_file_of(SECTIONS)
}

pub(super) fn default_file_of(sections: &[Section]) -> String {
    let mut out = String::new();
    let mut first_rules = true;
    for text in HEAD {
        comment(text, &mut out);
        out.push_str("#\n");
    }
    for section in sections {
        match section.kind {
            Kind::Top => section.keys.iter().for_each(|key| top_key(key, &mut out)),
            Kind::Table | Kind::List => {
                if section.is_rules() && std::mem::take(&mut first_rules) {
                    out.push('\n');
                    comment(RULES, &mut out);
                    keys_below(section, &mut out);
                }
                table(section, &mut out);
            }
        }
    }
    out
}

fn top_key(key: &Key, out: &mut String) {
    out.push('\n');
    comment(&format!("{} Value: {}.", key.about, key.value), out);
    match key.default {
        // Writing to a string cannot fail.
        Some(default) => {
            let _ = writeln!(out, "#{} = {default}", key.name);
        }
        None => example(&key.example(), out),
    }
}

fn table(section: &Section, out: &mut String) {
    out.push('\n');
    comment(section.about, out);
    if !section.is_rules() {
        keys_below(section, out);
    }
    example(&section.example(), out);
}

fn keys_below(section: &Section, out: &mut String) {
    for key in section.keys {
        let default = key.default.map(|value| format!(" Default: {value}.")).unwrap_or_default();
        comment(&format!("- {}: {} Value: {}.{default}", key.name, key.about, key.value), out);
    }
}

fn example(lines: &str, out: &mut String) {
    for line in lines.lines() {
        let _ = writeln!(out, "#     {line}");
    }
}

fn comment(text: &str, out: &mut String) {
    let mut line = String::from("#");
    for word in text.split_whitespace() {
        if line.chars().count() + 1 + word.chars().count() > WIDTH {
            let _ = writeln!(out, "{line}");
            line = String::from("#");
        }
        line.push(' ');
        line.push_str(word);
    }
    let _ = writeln!(out, "{line}");
}

/// The effective configuration as TOML; a comment after each value says where it comes from.
pub fn with_origins(config: &Config, origins: &Origins) -> String {
    let mut out = String::new();
    // Cannot fail, as in `Config::render`.
    let table = toml::Table::try_from(config).unwrap_or_default();
    let from = |key: &str, index: usize| match origins.location(key, index) {
        Some(location) => format!("# {}", super::Location { column: None, ..location }),
        None => "# default".to_owned(),
    };
    // Values come first, because everything below a header belongs to its table.
    for section in SECTIONS {
        match (section.kind, table.get(section.name)) {
            (Kind::Top, _) => {
                for key in section.keys {
                    let Some(value) = table.get(key.name) else { continue };
                    let _ = writeln!(out, "{} = {value}  {}", key.name, from(key.name, 0));
                }
            }
            (Kind::Table, Some(toml::Value::Table(below))) => {
                let _ = writeln!(out, "\n{}", section.header());
                for (name, value) in below {
                    let origin = from(&format!("{}.{name}", section.name), 0);
                    let _ = writeln!(out, "{name} = {value}  {origin}");
                }
            }
            (Kind::List, Some(toml::Value::Array(items))) => {
                for (index, item) in items.iter().enumerate() {
                    let _ = writeln!(out, "\n{}  {}", section.header(), from(section.name, index));
                    let below = item.as_table().into_iter().flatten();
                    below.for_each(|(name, value)| {
                        let _ = writeln!(out, "{name} = {value}");
                    });
                }
            }
            _ => {}
        }
    }
    out
}
