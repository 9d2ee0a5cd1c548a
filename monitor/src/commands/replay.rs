//! `orphand replay`.

use std::{io::Write, ops::ControlFlow};

use anyhow::Context;

use super::event_stream::format_of;
use crate::{
    cli::{self, ExitCode, logging},
    driver::replay,
    sink::{Format, wall_clock::WallClock},
    source::trace::TraceReader,
};
use orphand_core::engine::{Engine, Settings};

/// Writes the events that the daemon wrote when the trace was recorded.
pub fn replay(flags: &cli::Replay) -> anyhow::Result<ExitCode> {
    logging::start();
    let trace = TraceReader::open(&flags.file)?;
    let header = trace.header().clone();
    let settings = Settings::new(header.policy, header.ourselves)
        .with_context(|| format!("cannot read the rules in the trace {}", flags.file.display()))?;
    let wall = WallClock { offset_ns: header.realtime_offset_ns };
    let mut format = format_of(flags.format, wall);
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    let mut line = String::new();
    let mut failed = None;
    let replayed = replay::replay(trace, Engine::new(settings), |at, notice| {
        line.clear();
        format.write(at, &notice, &mut line);
        match out.write_all(line.as_bytes()) {
            Ok(()) => ControlFlow::Continue(()),
            Err(e) => {
                failed = Some(e);
                ControlFlow::Break(())
            }
        }
    });
    let flushed = failed.map_or_else(|| out.flush(), Err);
    match flushed {
        Err(e) if e.kind() == std::io::ErrorKind::BrokenPipe => return Ok(ExitCode::Done),
        written => written.context("cannot write to standard output")?,
    }
    replayed?;
    Ok(ExitCode::Done)
}
