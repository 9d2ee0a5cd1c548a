//! The verbs, carried out.

mod ask;
mod doctor;
mod history;
mod look;
mod reap;
mod run;
mod trace;

use std::io::{self, IsTerminal, Write};

use anyhow::Context;

use crate::{
    cli::{self, Cli, Verb, pages},
    config::Config,
    exit_code::ExitCode,
};

/// Carries out what the command line says. An error is one line for standard error.
pub fn execute(cli: Cli) -> anyhow::Result<ExitCode> {
    match cli.verb {
        Verb::Run(flags) => run::run(&flags),
        Verb::Scan(flags) => look::scan(&flags),
        Verb::Tree(flags) => look::tree(&flags),
        Verb::Status(flags) => ask::status(&flags),
        Verb::Reap(flags) => reap::reap(&flags),
        Verb::Reload(flags) => ask::reload(&flags),
        Verb::History(flags) => history::history(&flags),
        Verb::Doctor(flags) => doctor::doctor(&flags),
        Verb::Replay(flags) => trace::replay(&flags),
        Verb::Config(verb) => config(verb),
        Verb::Completions { shell } => {
            pages::completions(shell, &mut io::stdout()).context("cannot write the completions")?;
            Ok(ExitCode::Done)
        }
        Verb::Man { dir: None } => {
            pages::man(&mut io::stdout()).context("cannot write the manual page")?;
            Ok(ExitCode::Done)
        }
        Verb::Man { dir: Some(dir) } => {
            let pages = pages::man_pages(&dir)?;
            print(&format!("wrote {pages} pages into {}\n", dir.display()))?;
            Ok(ExitCode::Done)
        }
    }
}

fn config(verb: cli::Config) -> anyhow::Result<ExitCode> {
    match verb {
        cli::Config::Check { file, json } => {
            let config = Config::load(Some(&file))?;
            let text = if json {
                format!("{}\n", serde_json::json!({ "file": file, "valid": true, "config": config }))
            } else {
                format!("{}: valid\n", file.display())
            };
            print(&text)?;
        }
        cli::Config::Show { config, json } => {
            let config = Config::load(config.as_deref())?;
            print(&if json {
                format!("{}\n", serde_json::to_string_pretty(&config)?)
            } else {
                config.render()
            })?;
        }
    }
    Ok(ExitCode::Done)
}

/// Writes a result to standard output. A reader that has seen enough (`| head`) is no failure.
fn print(text: &str) -> anyhow::Result<()> {
    match io::stdout().write_all(text.as_bytes()).and_then(|()| io::stdout().flush()) {
        Err(e) if e.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written.context("cannot write to standard output"),
    }
}

fn on_terminal() -> bool {
    io::stdout().is_terminal()
}
