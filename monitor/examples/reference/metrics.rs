//! The families of metrics, from their table.

use orphand::sink::metrics::families::{ALL, Family};

use super::item;
use orphand_core::model::text::word;

pub fn series() -> String {
    ALL.iter().map(|family| item(&line(family))).collect()
}

fn line(family: &Family) -> String {
    let Family { name, kind, labels, help } = family;
    let labels: Vec<String> = labels.iter().map(|label| format!("`{label}`")).collect();
    let labels = if labels.is_empty() { String::new() } else { format!(", by {}", labels.join(", ")) };
    format!("`{name}` ({}{labels}): {help}", word(kind))
}
