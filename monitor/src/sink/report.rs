//! Indented JSON, the output of `--json`.

use serde::Serialize;

use super::{text, wall_clock::WallClock};

pub fn json(report: &impl Serialize) -> Result<String, serde_json::Error> {
    Ok(harmless(&serde_json::to_string_pretty(report)?))
}

/// The same, with the times of processes and deadlines as RFC 3339. Only for processes of this boot.
pub fn json_with_times(report: &impl Serialize, wall: WallClock) -> Result<String, serde_json::Error> {
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
