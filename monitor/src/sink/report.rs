//! Indented JSON, the output of `--json`.

use serde::Serialize;

use super::{text, wall_clock::WallClock};

/// A report as indented JSON with a line feed at the end.
pub fn json(report: &impl Serialize) -> Result<String, serde_json::Error> {
    let mut out = String::new();
    text::push_json(&serde_json::to_string_pretty(report)?, &mut out);
    out.push('\n');
    Ok(out)
}

/// The same, with the times of processes and deadlines as RFC 3339. Only for processes of this boot.
pub fn json_with_times(report: &impl Serialize, wall: WallClock) -> Result<String, serde_json::Error> {
    let mut told = String::new();
    wall.tell_times(&serde_json::to_string_pretty(report)?, &mut told);
    let mut out = String::new();
    text::push_json(&told, &mut out);
    out.push('\n');
    Ok(out)
}

#[cfg(test)]
pub(super) mod tests;
