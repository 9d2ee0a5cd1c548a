//! Notices as journal entries: the sentence for people, fields for programs.
//!
//! Invariants: every kind of event has its own `MESSAGE_ID`, which never changes; every entry has MESSAGE,
//! `MESSAGE_ID`, PRIORITY, `ORPHAND_EVENT`, and `ORPHAND_JSON` with the line of the stream. Use it only with
//! [`super::event_writer::EventWriter`].

use std::{io, thread, time::Duration};

use jiff::tz::TimeZone;

use super::{
    Format,
    event_writer::Output,
    human::Text,
    paint::{Paint, appearance},
    stream::Json,
    text::sanitise,
    wall_clock::WallClock,
};
use crate::os::journald::{Journal, field, head, is_absent};
use orphand_core::model::{BootTime, EventSubject, Notice};

/// The time between two attempts to reach journald while it is not running.
const ABSENT: Duration = Duration::from_secs(1);

#[derive(Clone, Debug)]
pub struct JournalEntries {
    text: Text,
    json: Json,
}

impl JournalEntries {
    pub const fn new(wall: WallClock) -> Self {
        Self { text: Text::new(wall, TimeZone::UTC, Paint::new(false)), json: Json::new(wall) }
    }
}

impl Format for JournalEntries {
    fn write(&mut self, at: BootTime, notice: &Notice, out: &mut String) {
        let kind = notice.kind();
        let look = appearance(kind);
        head(out, &self.text.plain(at, notice), look.priority);
        field(out, "MESSAGE_ID", look.id);
        // Facility "daemon", syslog(3).
        field(out, "SYSLOG_FACILITY", "3");
        field(out, "ORPHAND_EVENT", kind.name());
        let about = EventSubject::of(notice);
        let number = |number: Option<u64>| number.map(|number| number.to_string());
        for (name, value) in [
            ("OBJECT_PID", number(about.pid.map(u64::from))),
            ("ORPHAND_SERVER", about.server.map(|server| server.name.clone())),
            ("ORPHAND_AGENT", about.agent().map(str::to_owned)),
            ("ORPHAND_GENERATION", number(about.generation())),
            ("ORPHAND_RSS_BYTES", number(about.rss_bytes)),
        ] {
            if let Some(value) = value {
                field(out, name, &sanitise(&value));
            }
        }
        if let Some((name, unit)) = about.unit() {
            field(out, name, &sanitise(unit));
        }
        let mut line = String::new();
        self.json.write(at, notice, &mut line);
        field(out, "ORPHAND_JSON", line.trim_end());
    }
}

impl Output for Journal {
    /// 0: each entry is a message of its own.
    const BATCH: usize = 0;

    fn write(&mut self, entry: &str) -> io::Result<()> {
        loop {
            match self.send(entry) {
                // While journald restarts, events wait in the queue.
                Err(error) if is_absent(&error) => thread::sleep(ABSENT),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                sent => return sent,
            }
        }
    }
}

#[cfg(test)]
mod tests;
