//! Writes the effective configuration with origins. Pure.

use std::fmt::Write as _;

use super::{
    Config, Origins,
    options::{self, Kind},
};

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
    for section in options::sections() {
        match (section.kind, table.get(&section.name)) {
            (Kind::Top, _) => {
                for key in &section.keys {
                    let Some(value) = table.get(&key.name) else { continue };
                    let _ = writeln!(out, "{} = {value}  {}", key.name, from(&key.name, 0));
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
                    let _ = writeln!(out, "\n{}  {}", section.header(), from(&section.name, index));
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
