//! A report as JSON: what `--json` prints.

use super::text;
use crate::model::Report;

/// The report as JSON for people and programs, with a line feed at the end.
pub fn json(report: &Report) -> Result<String, serde_json::Error> {
    json_of(report)
}

/// Any answer as JSON, with a line feed at the end.
pub fn json_of(report: &impl serde::Serialize) -> Result<String, serde_json::Error> {
    let mut out = String::new();
    text::push_json(&serde_json::to_string_pretty(report)?, &mut out);
    out.push('\n');
    Ok(out)
}

#[cfg(test)]
pub(super) mod tests;
