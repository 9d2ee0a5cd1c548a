//! Notices as entries of the journal: the sentence for people, fields for programs.
//!
//! Invariants: every kind of event has a `MESSAGE_ID` of its own, which never changes; every entry has all of MESSAGE, `MESSAGE_ID`,
//! PRIORITY, `ORPHAND_EVENT` and `ORPHAND_JSON`, the line that the stream would have. For an [`super::outlet::Outlet`] alone.

pub mod message;

use std::{io, thread, time::Duration};

use jiff::tz::TimeZone;

use self::message::message;
use super::{Format, human::Text, outlet::Target, paint::Paint, stream::Json, text::sanitise, wall::Wall};
use crate::os::journald::{Journal, field, head, is_absent};
use orphand_core::model::{BootTime, EventSubject, Notice};

/// Between two tries to reach a journald that is not there.
const ABSENT: Duration = Duration::from_secs(1);

/// Writes notices as entries, one for each.
#[derive(Clone, Debug)]
pub struct Entries {
    text: Text,
    json: Json,
}

impl Entries {
    /// Entries whose first has the `seq` 1 in its JSON.
    pub const fn new(wall: Wall) -> Self {
        Self { text: Text::new(wall, TimeZone::UTC, Paint::new(false)), json: Json::new(wall) }
    }
}

impl Format for Entries {
    fn write(&mut self, at: BootTime, notice: &Notice, out: &mut String) {
        let kind = notice.kind();
        let message = message(kind);
        head(out, &self.text.plain(at, notice), message.priority);
        field(out, "MESSAGE_ID", message.id);
        // daemon, syslog(3).
        field(out, "SYSLOG_FACILITY", "3");
        field(out, "ORPHAND_EVENT", kind.name());
        let about = EventSubject::of(notice);
        let mut optional = |name, value: Option<String>| {
            if let Some(value) = value {
                field(out, name, &sanitise(&value));
            }
        };
        optional("OBJECT_PID", about.pid.map(|pid| pid.to_string()));
        optional("ORPHAND_SERVER", about.server.map(|server| server.name.clone()));
        optional("ORPHAND_AGENT", about.agent());
        optional("ORPHAND_GENERATION", about.generation().map(|number| number.to_string()));
        optional("ORPHAND_RSS_BYTES", about.rss_bytes.map(|bytes| bytes.to_string()));
        if let Some((name, unit)) = about.unit() {
            field(out, name, &sanitise(unit));
        }
        let mut line = String::new();
        self.json.write(at, notice, &mut line);
        field(out, "ORPHAND_JSON", line.trim_end());
    }
}

impl Target for Journal {
    /// Each entry by itself.
    const BATCH: usize = 0;

    fn write(&mut self, entry: &str) -> io::Result<()> {
        loop {
            match self.send(entry) {
                // While it is started anew what happens waits in the queue.
                Err(error) if is_absent(&error) => thread::sleep(ABSENT),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                sent => return sent,
            }
        }
    }
}

#[cfg(test)]
mod tests;
