//! The commands of the command line, one module for each or for a few that belong together.

mod config;
mod decide;
mod doctor;
mod event_stream;
mod events;
pub(crate) mod explain;
mod history;
pub(crate) mod look;
pub(crate) mod offline;
mod ps;
mod reap;
mod release;
mod replay;
mod run;
mod spare;
mod status;

use std::io::{self, IsTerminal, Write};

use anyhow::Context;
use jiff::{Timestamp, Zoned};

use crate::{
    cli::{Cli, ExitCode, Places, Verb, logging, moment::Moment, pages},
    config::Config,
    host::{Proc, ProcessDir},
};
use orphand_core::model::Asked;

/// Runs the command. An error is one line for standard error.
pub fn execute(cli: Cli) -> anyhow::Result<ExitCode> {
    match cli.verb {
        Verb::Run(flags) => run::run(&flags),
        Verb::Ps(flags) => ps::ps(&flags),
        Verb::Top(flags) => crate::top::top(&flags),
        Verb::Status(flags) => status::status(&flags),
        Verb::Explain(flags) => explain::explain(&flags),
        Verb::Reap(flags) => reap::reap(&flags),
        Verb::Release(flags) => release::release(&flags),
        Verb::Reload(flags) => status::reload(&flags),
        Verb::Spare(flags) => spare::spare(&flags),
        Verb::Pause(flags) => decide::pause(&flags),
        Verb::Resume(flags) => decide::resume(&flags),
        Verb::Mode(flags) => decide::mode(&flags),
        Verb::Events(flags) => events::events(&flags),
        Verb::History(flags) => history::history(&flags),
        Verb::Doctor(flags) => doctor::doctor(&flags),
        Verb::Replay(flags) => replay::replay(&flags),
        Verb::Config(verb) => config::config(verb),
        Verb::Completions { shell } => {
            let mut script = Vec::new();
            pages::completions(shell, &mut script).context("cannot make the completions")?;
            print(&String::from_utf8_lossy(&script))?;
            Ok(ExitCode::Done)
        }
        Verb::Man { dir: None, page } => {
            let mut text = Vec::new();
            pages::man(page, &mut text).context("cannot make the manual page")?;
            print(&String::from_utf8_lossy(&text))?;
            Ok(ExitCode::Done)
        }
        Verb::Man { dir: Some(dir), .. } => {
            let pages = pages::man_pages(&dir)?;
            print(&format!("wrote {pages} pages into {}\n", dir.display()))?;
            Ok(ExitCode::Done)
        }
    }
}

/// The configuration with the flags of a command that logs to standard error.
fn configured(places: &Places) -> anyhow::Result<Config> {
    let config = places.load()?;
    logging::start();
    Ok(config)
}

/// Says what did not match, on standard error.
fn unmatched(what: &str) -> ExitCode {
    eprintln!("orphand: nothing matched: {what}");
    ExitCode::Unmatched
}

/// Writes a result to standard output. A reader that stops reading (`| head`) is no failure.
fn print(text: &str) -> anyhow::Result<()> {
    match io::stdout().write_all(text.as_bytes()).and_then(|()| io::stdout().flush()) {
        Err(e) if e.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written.context("cannot write to standard output"),
    }
}

/// The time that was typed, as of now.
fn resolve(typed: Moment, now: &Zoned) -> anyhow::Result<Timestamp> {
    typed.resolve(now).context("no calendar has this time")
}

fn on_terminal() -> bool {
    io::stdout().is_terminal()
}

/// The living process that a number or an id means.
fn living_process(proc: &Proc, asked: &Asked) -> Option<ProcessDir> {
    let pid = match asked {
        Asked::Pid(pid) => *pid,
        Asked::Id(id) => id.pid,
        Asked::Name(_) => return None,
    };
    proc.process(pid).ok().filter(|dir| asked.is(dir.id()) && dir.stat().is_alive())
}
