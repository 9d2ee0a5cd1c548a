//! The commands of the command line, one module for each or for a few that belong together.

mod ask;
mod config;
mod doctor;
mod event_stream;
mod events;
pub(crate) mod explain;
mod history;
pub(crate) mod offline;
mod ps;
mod reap;
mod run;
mod spare;

use std::io::{self, IsTerminal, Write};

use anyhow::Context;
use jiff::{Timestamp, Zoned};

use serde::Serialize;

use crate::{
    cli::{Cli, ExitCode, Places, Verb, complete, logging, moment::Moment, pages},
    control::client::{Client, ClientError},
    host::{Proc, ProcessDir},
    os::clock,
    sink::{paint::Paint, report, wall_clock::WallClock},
};
use orphand_core::model::{Asked, Decision};

pub fn execute(cli: Cli) -> anyhow::Result<ExitCode> {
    match cli.verb {
        Verb::Run(flags) => run::run(&flags),
        Verb::Ps(flags) => ps::ps(&flags),
        Verb::Top(flags) => crate::top::top(&flags),
        Verb::Status(flags) => ask::status(&flags),
        Verb::Explain(flags) => explain::explain(&flags),
        Verb::Reap(flags) => reap::reap(&flags),
        Verb::Release(flags) => ask::release(&flags),
        Verb::Reload(flags) => ask::reload(&flags),
        Verb::Spare(flags) => spare::spare(&flags),
        Verb::Pause(flags) => ask::pause(&flags),
        Verb::Resume(flags) => ask::decide(&flags, Decision::Resume),
        Verb::Mode(flags) => ask::mode(&flags),
        Verb::Events(flags) => events::events(&flags),
        Verb::History(flags) => history::history(&flags),
        Verb::Doctor(flags) => doctor::doctor(&flags),
        Verb::Replay(flags) => event_stream::replay(&flags),
        Verb::Config(verb) => config::config(verb),
        Verb::Completions { shell } => {
            print(&complete::script(&shell.to_string()).context("cannot make the completions")?)
        }
        Verb::Man { dir: None, page } => print(&pages::man(page).context("cannot make the manual page")?),
        Verb::Man { dir: Some(dir), .. } => {
            let pages = pages::man_pages(&dir)?;
            print(&format!("wrote {pages} pages into {}\n", dir.display()))
        }
    }
}

const UNWRITTEN: &str = "cannot write to standard output";

/// Where the arguments name no verb: the help or the version that was asked for. What is wrong with them ends the program.
pub fn help(asked: &clap::Error) -> anyhow::Result<ExitCode> {
    if asked.use_stderr() {
        asked.exit();
    }
    written(asked.print().and_then(|()| io::stdout().flush()).context(UNWRITTEN))
}

/// The daemon, for a command that logs to standard error.
fn daemon(places: &Places) -> Client {
    logging::start();
    Client::new(places.socket())
}

/// The daemon's answer. Inside: why there is none, where no daemon runs or may be asked, and the caller looks for himself.
fn asked<T>(answer: Result<T, ClientError>) -> Result<Result<T, ClientError>, ClientError> {
    match answer {
        Err(why @ (ClientError::NoDaemon { .. } | ClientError::Forbidden { .. })) => Ok(Err(why)),
        answer => answer.map(Ok),
    }
}

/// Prints a result: as JSON, with times as RFC 3339, or as text.
fn answer<T: Serialize>(json: bool, found: &T, text: impl FnOnce(&T) -> String) -> anyhow::Result<ExitCode> {
    print(&if json { report::json_with_times(found, wall_clock())? } else { text(found) })
}

pub(crate) fn wall_clock() -> WallClock {
    WallClock { offset_ns: clock::realtime_offset() }
}

fn paint() -> Paint {
    Paint::of(&io::stdout())
}

fn unmatched(what: &str) -> ExitCode {
    tell_aside(&format!("orphand: nothing matched: {what}"));
    ExitCode::Unmatched
}

/// Writes a line to standard error. Nobody may read it any more (`2>&1 | head`), which is no reason to end otherwise.
pub fn tell_aside(line: &str) {
    // There is nowhere else to say that it could not be said.
    let _ = writeln!(io::stderr(), "{line}");
}

fn print(text: &str) -> anyhow::Result<ExitCode> {
    written(write(text))
}

fn write(text: &str) -> anyhow::Result<()> {
    let wrote = io::stdout().write_all(text.as_bytes()).and_then(|()| io::stdout().flush());
    wrote.context(UNWRITTEN)
}

/// A reader that stops reading (`| head`) is no failure.
fn written(done: anyhow::Result<()>) -> anyhow::Result<ExitCode> {
    match done {
        Err(error) if is_broken_pipe(&error) => Ok(ExitCode::Done),
        done => done.map(|()| ExitCode::Done),
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

fn resolve(typed: Moment, now: &Zoned) -> anyhow::Result<Timestamp> {
    typed.resolve(now).context("no calendar has this time")
}

fn on_terminal() -> bool {
    io::stdout().is_terminal()
}

fn living_process(proc: &Proc, asked: &Asked) -> Option<ProcessDir> {
    let pid = match asked {
        Asked::Pid(pid) => *pid,
        Asked::Id(id) => id.pid,
        Asked::Name(_) => return None,
    };
    proc.process(pid).ok().filter(|dir| asked.is(dir.id()) && dir.stat().is_alive())
}
