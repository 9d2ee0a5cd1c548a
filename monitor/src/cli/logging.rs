//! The log on standard error, about orphand itself. Events belong to the stream.
//!
//! In the journal each line is an entry with its priority. A stalled journald, pipe or terminal delays
//! nobody: lines that do not fit are dropped.
//!
//! The commands start the log once, as soon as they know the configuration; nothing is logged before.

use std::{
    fmt,
    io::{self, IsTerminal},
};

use tracing::{Level, Metadata};
use tracing_subscriber::{EnvFilter, fmt::MakeWriter};

use crate::{
    cli::log_stream::NonBlockingLog,
    config::LogLevel,
    os::journald::{self, Journal, Priority},
};
use orphand_core::model::text;

/// The variable that overrides the configuration: a level, or directives of `tracing_subscriber::EnvFilter`.
const VARIABLE: &str = "ORPHAND_LOG";

/// The log. It can follow a new configuration.
pub struct Log {
    /// Absent if a log was already started, which then continues.
    set: Option<Box<dyn Fn(EnvFilter)>>,
}

impl fmt::Debug for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Log").finish_non_exhaustive()
    }
}

impl Log {
    /// Sets the level of a new configuration. The variable still overrides it.
    pub fn set(&self, level: LogLevel) {
        if let Some(set) = &self.set {
            set(filter(std::env::var(VARIABLE).ok().as_deref(), level).0);
        }
    }
}

/// Starts the log with the level of the configuration.
pub fn start(level: LogLevel) -> Log {
    let asked = std::env::var(VARIABLE).ok();
    let (filter, odd) = filter(asked.as_deref(), level);
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_target(false)
        // A log that cannot be written is no reason to end.
        .log_internal_errors(false)
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(NonBlockingLog::to_stderr());
    let journal = journald::is_at(io::stderr()).then(|| Journal::open(false).ok()).flatten();
    // Fails if a log was already started, which then continues.
    let set: Option<Box<dyn Fn(EnvFilter)>> = if let Some(journal) = journal {
        let log = log.with_level(false).without_time().with_writer(JournalWriter { journal });
        let log = log.with_filter_reloading();
        let handle = log.reload_handle();
        log.try_init().is_ok().then(|| Box::new(move |filter| drop(handle.reload(filter))) as _)
    } else {
        let log = log.with_filter_reloading();
        let handle = log.reload_handle();
        log.try_init().is_ok().then(|| Box::new(move |filter| drop(handle.reload(filter))) as _)
    };
    if set.is_some()
        && let Some(why) = odd
    {
        tracing::warn!("{VARIABLE} has a wrong value ({why}): use error, warn, info, debug or trace");
    }
    Log { set }
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

/// The filter, and what is wrong with the variable.
fn filter(variable: Option<&str>, level: LogLevel) -> (EnvFilter, Option<String>) {
    let configured = || EnvFilter::new(level.as_str());
    match variable.map(str::trim).filter(|text| !text.is_empty()).map(EnvFilter::try_new) {
        None => (configured(), None),
        Some(Ok(asked)) => (asked, None),
        Some(Err(error)) => (configured(), Some(error.to_string())),
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
        ] {
            let (filter, odd) = filter(variable, level);
            assert_eq!((filter.to_string().as_str(), odd), (effective, None), "{variable:?}");
        }
        let (filter, odd) = filter(Some("orphand=loud"), LogLevel::Warn);
        assert_eq!(filter.to_string(), "warn");
        assert!(odd.is_some());
    }
}
