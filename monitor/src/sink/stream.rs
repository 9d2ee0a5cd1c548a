//! The event stream: one JSON object per line (NDJSON), a contract with users.
//!
//! Invariants: every line is complete and has `event`, `seq`, `time` and `boot_ns`. `seq` counts 1, 2, 3
//! without a gap, because it is assigned when the line is written. No line contains control or bidirectional
//! characters, so it is safe on a terminal. The same notices give the same bytes.

use std::fmt::Write as _;

use super::{Format, text, wall_clock::WallClock};
use orphand_core::model::{BootTime, Notice};

#[derive(Clone, Debug, Default)]
pub struct Json {
    wall: WallClock,
    written: u64,
}

impl Json {
    /// A stream whose first line has `seq` 1.
    pub const fn new(wall: WallClock) -> Self {
        Self::after(wall, 0)
    }

    pub const fn after(wall: WallClock, written: u64) -> Self {
        Self { wall, written }
    }
}

impl Format for Json {
    fn write(&mut self, at: BootTime, notice: &Notice, out: &mut String) {
        // A notice is `{"event":"name", its fields}`: the common fields are inserted after the tag.
        let body = match serde_json::to_string(notice) {
            Ok(body) => body,
            Err(error) => return tracing::error!(%error, ?notice, "cannot format an event as JSON"),
        };
        let parts = body.strip_prefix(r#"{"event":""#).and_then(|tail| tail.split_once('"'));
        let Some((event, fields)) = parts else {
            return tracing::error!(%body, "an event has no name");
        };
        self.written += 1;
        let start = out.len();
        let (seq, time, boot_ns) = (self.written, self.wall.rfc3339(at), at.0);
        // Writing to a string cannot fail.
        let _ = write!(out, r#"{{"event":"{event}","seq":{seq},"time":"{time}","boot_ns":{boot_ns}"#);
        if let Some(next) = notice.next() {
            let _ = write!(out, r#","next":"{}""#, text::word(next));
        }
        let mut told = String::with_capacity(fields.len());
        self.wall.tell_times(fields, &mut told);
        text::push_json(&told, out);
        out.push('\n');
        debug_assert!(out.get(start..).is_some_and(|line| line.ends_with("}\n")));
    }
}

#[cfg(test)]
mod tests;
