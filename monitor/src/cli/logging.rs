//! The log on standard error, about orphand itself. Events belong to the stream.
//!
//! In the journal each line is an entry with its priority. A stalled journald, pipe or terminal delays
//! nobody: lines that do not fit are dropped.
//!
//! The commands start the log once, as soon as they know the configuration; nothing is logged before.

use std::io::{self, IsTerminal as _};

use tracing::{Level, Metadata};
use tracing_subscriber::{
    Registry,
    filter::{LevelFilter, Targets},
    fmt::{self, MakeWriter},
    layer::SubscriberExt as _,
    registry, reload,
    util::SubscriberInitExt as _,
};

use crate::{
    cli::log_stream::NonBlockingLog,
    config::LogLevel,
    os::journald::{self, Journal, Priority},
};
use orphand_core::model::text;

/// Beats the configuration: a level for all, or levels of modules: `warn,orphand=trace` (`tracing_subscriber::filter::Targets`).
const VARIABLE: &str = "ORPHAND_LOG";

/// The log, to be told of another configuration.
#[derive(Debug)]
pub struct Log {
    /// Absent where a log was started before: that one goes on.
    handle: Option<reload::Handle<Targets, Registry>>,
}

impl Log {
    /// Sets the level of a new configuration. The variable still overrides it.
    pub fn set(&self, level: LogLevel) {
        if let Some(handle) = &self.handle {
            // It fails where the log is gone.
            let _ = handle.reload(filter(std::env::var(VARIABLE).ok().as_deref(), level).0);
        }
    }
}

/// Starts the log with the level of the configuration.
pub fn start(level: LogLevel) -> Log {
    let asked = std::env::var(VARIABLE).ok();
    let (filter, odd) = filter(asked.as_deref(), level);
    let (filter, handle) = reload::Layer::new(filter);
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
        None => log.with(lines.with_writer(NonBlockingLog::to_stderr())).try_init(),
    };
    let handle = started.is_ok().then_some(handle);
    if handle.is_some()
        && let Some(why) = odd
    {
        tracing::warn!("{VARIABLE} has a wrong value ({why}): use error, warn, info, debug or trace");
    }
    Log { handle }
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

/// A writer of one line.
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

/// What is logged, and what is wrong with the variable.
fn filter(variable: Option<&str>, level: LogLevel) -> (Targets, Option<String>) {
    let configured = || Targets::new().with_default(threshold(level));
    let asked = variable.unwrap_or_default().split(',').map(str::trim).filter(|one| !one.is_empty());
    let asked = asked.collect::<Vec<_>>().join(",");
    if asked.is_empty() {
        return (configured(), None);
    }
    match asked.parse() {
        Ok(asked) => (asked, None),
        Err(error) => (configured(), Some(error.to_string())),
    }
}

const fn threshold(level: LogLevel) -> LevelFilter {
    match level {
        LogLevel::Off => LevelFilter::OFF,
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Trace => LevelFilter::TRACE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variable_beats_the_file() {
        for (variable, level, effective) in [
            (None, LogLevel::Info, "info"),
            (None, LogLevel::Off, "off"),
            (Some(""), LogLevel::Debug, "debug"),
            (Some("warn"), LogLevel::Debug, "warn"),
            (Some("orphand=trace"), LogLevel::Error, "orphand=trace"),
            (Some(" warn, orphand=debug,"), LogLevel::Off, "orphand=debug,warn"),
        ] {
            let (filter, odd) = filter(variable, level);
            assert_eq!((filter.to_string().as_str(), odd), (effective, None), "{variable:?}");
        }
        let (filter, odd) = filter(Some("orphand=loud"), LogLevel::Warn);
        assert_eq!(filter.to_string(), "warn");
        assert!(odd.is_some());
    }
}
