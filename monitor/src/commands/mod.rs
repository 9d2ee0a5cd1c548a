//! The commands of the command line, one module for each or for a few that belong together.

mod ask;
mod config;
mod doctor;
mod event_stream;
mod history;
mod offline;
mod reap;
mod replay;
mod run;
mod scan;

use std::io::{self, IsTerminal, Write};

use anyhow::Context;

use crate::cli::{Cli, ExitCode, Verb, pages};

/// Runs the command. An error is one line for standard error.
pub fn execute(cli: Cli) -> anyhow::Result<ExitCode> {
    match cli.verb {
        Verb::Run(flags) => run::run(&flags),
        Verb::Scan(flags) => scan::scan(&flags),
        Verb::Tree(flags) => scan::tree(&flags),
        Verb::Status(flags) => ask::status(&flags),
        Verb::Reap(flags) => reap::reap(&flags),
        Verb::Reload(flags) => ask::reload(&flags),
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

/// Writes a result to standard output. A reader that stops reading (`| head`) is no failure.
fn print(text: &str) -> anyhow::Result<()> {
    match io::stdout().write_all(text.as_bytes()).and_then(|()| io::stdout().flush()) {
        Err(e) if e.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written.context("cannot write to standard output"),
    }
}

fn on_terminal() -> bool {
    io::stdout().is_terminal()
}
