//! The log on standard error, about orphand itself. Events belong to the stream.
//!
//! In the journal each line is an entry with its priority. A stalled journald, pipe or terminal delays
//! nobody: lines that do not fit are dropped, and it is told how many.
//!
//! The commands start the log once; nothing is logged before.

use std::{
    fmt,
    fs::File,
    io::{self, IsTerminal, Write},
    os::fd::{AsFd as _, OwnedFd},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::{
    filter::{LevelFilter, Targets},
    fmt::{
        FmtContext, FormatEvent, FormatFields,
        format::{Writer, format},
        layer,
    },
    layer::SubscriberExt as _,
    registry,
    registry::LookupSpan,
    util::SubscriberInitExt as _,
};

use crate::os::journald::{self, Priority};
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
    let lines = layer()
        .with_target(false)
        // A log that cannot be written is no reason to end.
        .log_internal_errors(false)
        .with_ansi(io::stderr().is_terminal())
        .with_writer(Arc::new(NonBlockingLog::to_stderr()));
    let log = registry().with(filter);
    // Fails where a log was started before: that one goes on.
    let started = if journald::is_at(io::stderr()) {
        log.with(lines.event_format(ForJournal)).try_init()
    } else {
        log.with(lines).try_init()
    };
    if let Some(why) = odd.filter(|_| started.is_ok()) {
        tracing::warn!("{VARIABLE} has a wrong value ({why}): use error, warn, info, debug or trace");
    }
}

/// In the journal the beginning of a line gives its priority, sd-daemon(3).
struct ForJournal;

impl<S: Subscriber + for<'a> LookupSpan<'a>, N: for<'a> FormatFields<'a> + 'static> FormatEvent<S, N>
    for ForJournal
{
    fn format_event(
        &self,
        about: &FmtContext<'_, S, N>,
        mut out: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        write!(out, "<{}>", priority(*event.metadata().level()) as u8)?;
        let line = format().with_target(false).with_level(false).without_time();
        line.format_event(about, out, event)
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
    // Without this a word that is no level would be taken for the name of a module, and all other modules would be silent.
    let no_level = asked.split(',').find(|one| !one.contains('=') && one.parse::<LevelFilter>().is_err());
    if let Some(word) = no_level {
        return (usual(), Some(format!("{word} is no level")));
    }
    match asked.parse() {
        Ok(asked) => (asked, None),
        Err(error) => (usual(), Some(error.to_string())),
    }
}

/// A writable pipe accepts this many bytes without blocking (`PIPE_BUF`).
const AT_ONCE: usize = 4096;

#[derive(Debug)]
pub struct NonBlockingLog {
    /// Absent if the descriptor could not be duplicated; then nothing is logged.
    out: Option<File>,
    lost: AtomicU64,
    /// Whether the log contains colours, because it goes to a terminal.
    colours: bool,
}

impl NonBlockingLog {
    pub fn to_stderr() -> Self {
        Self::to(io::stderr().as_fd().try_clone_to_owned().ok())
    }

    fn to(out: Option<OwnedFd>) -> Self {
        let colours = out.as_ref().is_some_and(IsTerminal::is_terminal);
        Self { out: out.map(File::from), lost: AtomicU64::default(), colours }
    }

    fn line(&self, line: &[u8]) -> io::Result<()> {
        let lost = self.lost.load(Ordering::Relaxed);
        if lost > 0 {
            let notice = format!("{lost} lines of the log are missing here: they were not read in time\n");
            if self.write(notice.as_bytes())? {
                self.lost.fetch_sub(lost, Ordering::Relaxed);
            } else {
                self.lost.fetch_add(1, Ordering::Relaxed);
                return Ok(());
            }
        }
        if !self.write(line)? {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Writes as much as is possible without blocking. Returns whether that was everything.
    fn write(&self, text: &[u8]) -> io::Result<bool> {
        let Some(out) = &self.out else { return Ok(false) };
        for piece in text.chunks(AT_ONCE) {
            let mut ready = [PollFd::new(out, PollFlags::OUT)];
            let now = Timespec::default();
            if poll(&mut ready, Some(&now))? == 0 {
                return Ok(false);
            }
            (&mut &*out).write_all(piece)?;
        }
        Ok(true)
    }
}

impl Write for &NonBlockingLog {
    /// `tracing` calls this once for a whole line.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let shown = String::from_utf8_lossy(line);
        self.line(text::log_line(&shown, self.colours).as_bytes()).map(|()| line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
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
        for wrong in ["orphand=loud", "debg", "debug,orphand"] {
            let (filter, odd) = filter(Some(wrong), LevelFilter::WARN);
            assert_eq!(filter.to_string(), "warn");
            assert!(odd.is_some(), "{wrong}");
        }
    }

    mod log_stream {
        use std::io::Read as _;

        use super::super::*;

        #[test]
        fn a_name_begins_no_other_line() {
            let (mut reader, writer) = io::pipe().unwrap();
            let log = NonBlockingLog::to(Some(writer.into()));
            (&log).write_all(b"WARN a\nERROR forged\x1b[2J\n").unwrap();
            drop(log);
            let mut heard = String::new();
            reader.read_to_string(&mut heard).unwrap();
            assert_eq!(heard, "WARN a\\nERROR forged\\x1b[2J\n");
        }

        #[test]
        fn a_reader_that_sleeps_delays_nobody_and_hears_how_much_it_missed() {
            let (mut reader, writer) = io::pipe().unwrap();
            let log = NonBlockingLog::to(Some(writer.into()));
            let line = [&[b'x'; 999][..], b"\n"].concat();
            for _ in 0..1000 {
                (&log).write_all(&line).unwrap();
            }
            let lost = log.lost.load(Ordering::Relaxed);
            assert!((900..1000).contains(&lost), "{lost}");
            let mut heard = vec![0; 1 << 20];
            let got = reader.read(&mut heard).unwrap();
            assert_eq!(got, (1000 - usize::try_from(lost).unwrap()) * 1000);
            (&log).write_all(b"again\n").unwrap();
            let got = reader.read(&mut heard).unwrap();
            let notice = String::from_utf8_lossy(&heard[..got]).into_owned();
            assert_eq!(
                notice,
                format!("{lost} lines of the log are missing here: they were not read in time\nagain\n")
            );
            drop(reader);
            crate::os::forks_of_tests::settle();
            assert!((&log).write_all(b"to nobody\n").is_err());
        }
    }
}
