//! Indented JSON, the output of `--json`.

use serde::Serialize;
use serde_json::{Result, Value};

use super::{text, wall_clock::WallClock};

/// What is written, with further fields.
pub fn with<const N: usize>(report: &impl Serialize, more: [(&str, Value); N]) -> Result<Value> {
    let mut all = serde_json::to_value(report)?;
    if let Some(fields) = all.as_object_mut() {
        fields.extend(more.map(|(field, value)| (field.to_owned(), value)));
    }
    Ok(all)
}

pub fn json(report: &impl Serialize) -> Result<String> {
    Ok(harmless(&serde_json::to_string_pretty(report)?))
}

/// The same, with the times of processes and deadlines as RFC 3339. Only for processes of this boot.
pub fn json_with_times(report: &impl Serialize, wall: WallClock) -> Result<String> {
    let mut told = String::new();
    wall.tell_times(&serde_json::to_string_pretty(report)?, &mut told);
    Ok(harmless(&told))
}

fn harmless(json: &str) -> String {
    let mut out = String::new();
    text::push_json(json, &mut out);
    out + "\n"
}

#[cfg(test)]
pub(super) mod tests;
