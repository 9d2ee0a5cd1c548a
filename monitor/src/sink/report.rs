//! Indented JSON, the output of `--json`.

use serde::Serialize;

use super::text;

/// A report as indented JSON with a line feed at the end.
pub fn json(report: &impl Serialize) -> Result<String, serde_json::Error> {
    let mut out = String::new();
    text::push_json(&serde_json::to_string_pretty(report)?, &mut out);
    out.push('\n');
    Ok(out)
}

/// The word for a value in events.
pub(super) fn word(value: impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        _ => "unknown".to_owned(),
    }
}

#[cfg(test)]
pub(super) mod tests;
