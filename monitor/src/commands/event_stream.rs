//! Where `orphand run` writes events to, in which format `run` and `replay` write them, and `orphand replay`.

use std::{
    io::{self, Write},
    path::Path,
};

use anyhow::Context;

use crate::{
    cli::{self, ExitCode, Format, logging},
    driver,
    events::{self, Latest},
    os::{
        clock,
        journald::{self, Journal},
    },
    sink::{
        self,
        event_writer::{self, EventWriter, EventWriters},
        human::Text,
        journal::JournalEntries,
        paint::Paint,
        stream::Json,
        wall_clock::WallClock,
    },
    source::trace::TraceReader,
};
use orphand_core::engine::Engine;

/// Starts the writers: to standard output, to the journal if standard error leads there, and to what keeps events for their
/// readers. Where an event would be in the journal twice it is there once: as an entry, unless lines were asked for.
pub(super) fn open(
    asked: Option<Format>,
    wall: WallClock,
    state_dir: &Path,
) -> anyhow::Result<(EventWriters, Latest)> {
    let ways = ways(journald::is_at(io::stdout()), journald::is_at(io::stderr()), asked.is_some());
    let mut writers = Vec::new();
    if ways.lines {
        let format = format_of(asked, wall);
        let writer = EventWriter::start("stream", io::stdout(), format, event_writer::QUEUE);
        writers.push(writer.context("cannot start the writer of the stream")?);
    }
    if ways.entries {
        let journal = Journal::open().context("cannot open a way to the journal")?;
        let writer =
            EventWriter::start("journal", journal, Box::new(JournalEntries::new(wall)), event_writer::QUEUE);
        writers.push(writer.context("cannot start the writer of the journal")?);
    }
    let (keeper, latest, opened) = events::open(state_dir, wall);
    if let Err(error) = opened {
        tracing::warn!(
            "cannot keep events in {}: {error}; `orphand events` has the latest only",
            state_dir.display()
        );
    }
    let writer = EventWriter::start("events", keeper, Box::new(Json::new(wall)), event_writer::QUEUE);
    writers.push(writer.context("cannot start the writer of kept events")?);
    Ok((EventWriters(writers), latest))
}

/// Where events are written to: lines to standard output, entries to the journal.
#[derive(Debug, PartialEq, Eq)]
struct Ways {
    lines: bool,
    entries: bool,
}

/// `out`, `error`: whether these streams lead to the journal. `asked`: whether lines in a given format were asked for.
const fn ways(out: bool, error: bool, asked: bool) -> Ways {
    let entries = error && !(out && asked);
    Ways { lines: !(out && entries), entries }
}

/// The format that was asked for; otherwise text on a terminal, JSON to a program.
pub(super) fn format_of(format: Option<Format>, wall: WallClock) -> Box<dyn sink::Format> {
    match Format::or_default(format, super::on_terminal()) {
        Format::Json => Box::new(Json::new(wall)),
        Format::Text => Box::new(Text::new(wall, clock::zone(), Paint::of(&io::stdout()))),
    }
}

pub fn replay(flags: &cli::Replay) -> anyhow::Result<ExitCode> {
    logging::start();
    let trace = TraceReader::open(&flags.file)?;
    let header = trace.header().clone();
    let engine = Engine::new(header.policy, header.ourselves)
        .with_context(|| format!("cannot read the rules in the trace {}", flags.file.display()))?;
    let wall = WallClock { offset_ns: header.realtime_offset_ns };
    let mut format = format_of(flags.lines.format(), wall);
    let mut out = io::BufWriter::new(io::stdout().lock());
    let mut line = String::new();
    let replayed = driver::replay(trace, engine, |at, notice| {
        line.clear();
        format.write(at, &notice, &mut line);
        out.write_all(line.as_bytes()).context(super::UNWRITTEN)
    });
    // What a broken trace told until then is told, too.
    let flushed = out.flush().context(super::UNWRITTEN);
    super::written(replayed.and(flushed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_in_the_journal_once() {
        let (lines, entries) = (Ways { lines: true, entries: false }, Ways { lines: false, entries: true });
        let both = Ways { lines: true, entries: true };
        // As systemd starts it, and with --format.
        assert_eq!(ways(true, true, false), entries);
        assert_eq!(ways(true, true, true), lines);
        // A pipe or a file beside the journal.
        assert_eq!(ways(false, true, false), both);
        assert_eq!(ways(false, true, true), both);
        for asked in [false, true] {
            assert_eq!(ways(false, false, asked), lines);
            assert_eq!(ways(true, false, asked), lines);
        }
    }
}
