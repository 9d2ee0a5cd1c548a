//! `orphand events`: what the daemon told since a time, and with `--follow` what it tells now.
//!
//! The daemon is asked first, because a user who may ask it need not have access to its files.

use std::{path::Path, thread, time::Duration};

use jiff::Timestamp;

use super::{is_broken_pipe, tell_aside, written};
use crate::{
    cli::{self, ExitCode, Format},
    control::client::{Client, ClientError, EventLines},
    events::{Cursor, EventLine, EventQuery, seq, stored},
    os::clock,
    sink::{Format as _, human::Text, wall_clock::WallClock},
};
use orphand_core::model::text;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Between two tries to reach a daemon that is gone.
const AGAIN: Duration = Duration::from_millis(500);

pub fn events(flags: &cli::Events) -> anyhow::Result<ExitCode> {
    let now = Timestamp::now().to_zoned(clock::zone());
    let since = match flags.since {
        Some(typed) => Some(super::resolve(typed, &now)?),
        None if flags.follow => None,
        None => Some(now.timestamp().checked_sub(DAY)?),
    };
    let mut printer = Printer::new(flags.lines.format());
    let (client, dir) = (super::daemon(&flags.places), flags.places.state_dir());
    if flags.places.names_store_alone() {
        anyhow::ensure!(!flags.follow, "--follow asks the daemon; give its --socket beside --state-dir");
        return written(kept(dir, since, &mut printer));
    }
    let query = EventQuery { since, follow: flags.follow, after: None };
    match super::asked(client.events(query))? {
        Ok(lines) if flags.follow => written(follow(&client, lines, &mut printer)),
        Ok(mut lines) => written(lines.try_for_each(|line| printer.print(&line))),
        Err(error @ ClientError::NoDaemon { .. }) if flags.follow => {
            // Nobody tells what happens now. What was told is worth showing all the same.
            if since.is_some() {
                written(kept(dir, since, &mut printer))?;
            }
            Err(error.into())
        }
        Err(asked) => {
            let read = kept(dir, since, &mut printer);
            written(read.map_err(|read| {
                if is_broken_pipe(&read) {
                    return read;
                }
                anyhow::anyhow!("{asked}; what it has kept cannot be read either: {read:#}")
            }))
        }
    }
}

fn kept(dir: &Path, since: Option<Timestamp>, printer: &mut Printer) -> anyhow::Result<()> {
    let mut result = Ok(());
    let read = stored(dir, since, |line| {
        result = printer.print(line);
        result.is_ok()
    });
    let damaged = read.map_err(|error| {
        anyhow::anyhow!(
            "cannot read events in {}: {error}; --state-dir names where the daemon keeps them",
            dir.display()
        )
    })?;
    if damaged > 0 {
        let lines = text::count(damaged as u64, "line is", "lines are");
        tell_aside(&format!("orphand: {lines} damaged in the events in {}, and left out", dir.display()));
    }
    result
}

/// Prints what comes. If the daemon goes, it is waited for, and what was told meanwhile is not missed.
fn follow(client: &Client, mut lines: EventLines, printer: &mut Printer) -> anyhow::Result<()> {
    let mut seen = Cursor { life: lines.life, seq: 0 };
    loop {
        let life = lines.life;
        for line in &mut lines {
            printer.print(&line)?;
            let Some(number) = seq(&line) else { continue };
            // What another daemon told before comes first.
            let life = if number == 1 { life } else { seen.life };
            seen = Cursor { life, seq: number };
        }
        tell_aside("orphand: the daemon has ended or closed the connection; waiting for it");
        lines = loop {
            thread::sleep(AGAIN);
            // Before the first event there is nothing to continue after, but for where the events of that daemon began.
            let query = EventQuery { since: None, follow: true, after: Some(seen.clone()) };
            match client.events(query) {
                Ok(lines) => break lines,
                Err(ClientError::Response { what, .. } | ClientError::Forbidden { what, .. })
                    if !what.contains("busy") =>
                {
                    anyhow::bail!(what)
                }
                Err(_) => {}
            }
        };
        tell_aside("orphand: the daemon is there again");
    }
}

struct Printer {
    text: Option<Text>,
}

impl Printer {
    fn new(asked: Option<Format>) -> Self {
        let text = || Text::new(WallClock::default(), clock::zone(), super::paint());
        let is_text = Format::or_default(asked, super::on_terminal()) == Format::Text;
        Self { text: is_text.then(text) }
    }

    fn print(&mut self, line: &str) -> anyhow::Result<()> {
        let mut out = String::new();
        if let (Some(text), Some(event)) = (&mut self.text, EventLine::read(line)) {
            text.wall = event.wall;
            text.write(event.at, &event.notice, &mut out);
        } else {
            // An event that only a newer orphand knows is shown as it came: no line has anything that a terminal obeys.
            out.push_str(line);
            out.push('\n');
        }
        super::write(&out)
    }
}
