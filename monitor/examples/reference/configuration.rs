//! The keys of the configuration, from the table of options.

use std::fmt::Write as _;

use orphand::config::options::{self, Key, Kind, Section};

use super::{item, prose};

pub fn keys() -> String {
    let mut text = String::new();
    for section in options::sections().filter(|section| !section.is_rules) {
        if section.kind == Kind::Top {
            text.push_str("### Above every table\n\n");
        } else {
            let _ = write!(text, "### `{}`\n\n{}\n", section.header(), prose(&section.about));
        }
        push(section, &mut text);
    }
    let rules = || options::sections().filter(|section| section.is_rules);
    text.push_str("### Tables of rules\n\n");
    rules().for_each(|section| {
        text.push_str(&item(&format!("`{}`: {}", section.header(), section.about)));
    });
    text.push_str("\n### Keys of a rule\n\n");
    rules().take(1).for_each(|section| push(section, &mut text));
    text
}

fn push(section: &Section, text: &mut String) {
    section.keys.iter().for_each(|key| text.push_str(&item(&line(key))));
    text.push('\n');
}

fn line(key: &Key) -> String {
    let default = key.default.as_ref().map(|value| format!(" Default: `{value}`.")).unwrap_or_default();
    format!("`{}`: {} Value: {}.{default}", key.name, key.about, key.value)
}
