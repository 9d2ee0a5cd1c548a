//! The log on standard error, about orphand itself. Events belong to the stream.
//!
//! In the journal each line is an entry with its priority. A stalled journald, pipe or terminal delays
//! nobody: lines that do not fit are dropped.
//!
//! The commands start the log once; nothing is logged before.

use std::{
    io::{self, IsTerminal as _},
    sync::Arc,
};

use tracing::{Level, Metadata};
use tracing_subscriber::{
    filter::{LevelFilter, Targets},
    fmt::{self, MakeWriter},
    layer::SubscriberExt as _,
    registry,
    util::SubscriberInitExt as _,
};

use crate::{
    cli::log_stream::NonBlockingLog,
    os::journald::{self, Journal, Priority},
};
use orphand_core::model::text;

/// A level for all, or levels of modules: `warn,orphand=trace` (`tracing_subscriber::filter::Targets`).
const VARIABLE: &str = "ORPHAND_LOG";

pub fn start() {
    start_at(LevelFilter::INFO);
}

/// Starts the log with this level, unless the variable gives another one.
pub fn start_at(level: LevelFilter) {
    let asked = std::env::var(VARIABLE).ok();
    let (filter, odd) = filter(asked.as_deref(), level);
    let lines = fmt::layer()
        .with_target(false)
        // A log that cannot be written is no reason to end.
        .log_internal_errors(false)
        .with_ansi(io::stderr().is_terminal());
    let journal = journald::is_at(io::stderr()).then(|| Journal::open(false).ok()).flatten();
    let log = registry().with(filter);
    // Fails where a log was started before: that one goes on.
    let started = match journal {
        Some(journal) => {
            log.with(lines.with_level(false).without_time().with_writer(JournalWriter { journal })).try_init()
        }
        None => log.with(lines.with_writer(Arc::new(NonBlockingLog::to_stderr()))).try_init(),
    };
    if let Some(why) = odd.filter(|_| started.is_ok()) {
        tracing::warn!("{VARIABLE} has a wrong value ({why}): use error, warn, info, debug or trace");
    }
}

/// Writes each line as a journal entry.
struct JournalWriter {
    journal: Journal,
}

impl<'a> MakeWriter<'a> for JournalWriter {
    type Writer = EntryWriter<'a>;

    fn make_writer(&'a self) -> EntryWriter<'a> {
        EntryWriter { journal: &self.journal, priority: Priority::Info }
    }

    fn make_writer_for(&'a self, about: &Metadata<'_>) -> EntryWriter<'a> {
        EntryWriter { journal: &self.journal, priority: priority(*about.level()) }
    }
}

struct EntryWriter<'a> {
    journal: &'a Journal,
    priority: Priority,
}

impl io::Write for EntryWriter<'_> {
    /// `tracing` calls this once for a whole line.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let mut entry = String::new();
        let line_of_text = String::from_utf8_lossy(line);
        journald::head(&mut entry, &text::log_line(line_of_text.trim_end(), false), self.priority);
        self.journal.send(&entry).map(|()| line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

const fn priority(level: Level) -> Priority {
    match level {
        Level::ERROR => Priority::Error,
        Level::WARN => Priority::Warning,
        Level::INFO => Priority::Info,
        Level::DEBUG | Level::TRACE => Priority::Debug,
    }
}

fn filter(variable: Option<&str>, level: LevelFilter) -> (Targets, Option<String>) {
    let usual = || Targets::new().with_default(level);
    let asked = variable.unwrap_or_default().split(',').map(str::trim).filter(|one| !one.is_empty());
    let asked = asked.collect::<Vec<_>>().join(",");
    if asked.is_empty() {
        return (usual(), None);
    }
    match asked.parse() {
        Ok(asked) => (asked, None),
        Err(error) => (usual(), Some(error.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variable_says_what_is_logged() {
        for (variable, level, effective) in [
            (None, LevelFilter::INFO, "info"),
            (None, LevelFilter::OFF, "off"),
            (Some(""), LevelFilter::DEBUG, "debug"),
            (Some("warn"), LevelFilter::DEBUG, "warn"),
            (Some("orphand=trace"), LevelFilter::ERROR, "orphand=trace"),
            (Some(" warn, orphand=debug,"), LevelFilter::OFF, "orphand=debug,warn"),
        ] {
            let (filter, odd) = filter(variable, level);
            assert_eq!((filter.to_string().as_str(), odd), (effective, None), "{variable:?}");
        }
        let (filter, odd) = filter(Some("orphand=loud"), LevelFilter::WARN);
        assert_eq!(filter.to_string(), "warn");
        assert!(odd.is_some());
    }
}
