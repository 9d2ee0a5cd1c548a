//! An event in a sentence that anybody may read.

use serde_json::{Value, json};

use crate::sink::{
    human::Text,
    paint::{self, appearance},
    wall_clock::WallClock,
};
use orphand_core::model::{BootTime, Notice};

/// What the page is told of the event with this number: when it was (milliseconds since 1970), in one word what happened, how
/// it is meant, and a sentence. Nothing for events that say little without a process number.
pub fn happening(id: u64, wall: WallClock, at: BootTime, notice: &Notice) -> Option<Value> {
    if matches!(notice, Notice::AgentsFolded { .. } | Notice::ServerDetached { .. }) {
        return None;
    }
    let look = appearance(notice.kind());
    let tone = match look.style {
        paint::ALARM => "alarm",
        paint::GOOD => "good",
        _ if matches!(notice, Notice::Stopping { .. }) => "warning",
        paint::WARNING => "warning",
        _ => "note",
    };
    let (time, text) = (wall.timestamp(at).as_millisecond(), Text::public(wall, at, notice));
    Some(json!({ "id": id, "time": time, "kind": look.word, "tone": tone, "text": text }))
}
