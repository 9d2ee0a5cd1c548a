//! Completions and manual pages, made from the command line's own description.

use std::{
    fs, io,
    io::Write,
    path::{Path, PathBuf},
};

use clap::{Command, CommandFactory, ValueEnum};
use clap_complete::Shell;
use clap_mangen::{
    Man,
    roff::{Roff, bold, roman},
};

use super::Cli;

mod config;

/// A page that can be printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Page {
    /// orphand(1)
    Orphand,
    /// orphand.toml(5), the configuration
    Config,
}

/// What the exit codes mean.
const EXIT_STATUS: [(&str, &str); 4] = [
    ("0", "Done."),
    ("1", "Failed; one line on standard error says what, why, and what to do."),
    ("2", "Wrong usage."),
    ("3", "scan --exit-code found an orphan."),
];

const ENVIRONMENT: [(&str, &str); 2] = [
    (
        "ORPHAND_LOG",
        "What is logged to standard error: error, warn, info, debug or trace; beats log in the configuration, info by default.",
    ),
    ("NO_COLOR", "No colours, if set to anything."),
];

const FILES: [(&str, &str); 4] = [
    (
        crate::config::DEFAULT_PATH,
        "The configuration, see orphand.toml(5); the built-in defaults hold where it is absent.",
    ),
    (
        "/etc/orphand/conf.d/*.toml",
        "Further files of it, in the order of their names; later ones beat earlier ones.",
    ),
    (
        "/var/lib/orphand/orphand.db",
        "What outlives the daemon: runs and their numbers, orphans, what was freed.",
    ),
    (super::LOCK, "Held by the running daemon, with its process number in it."),
];

/// A page that could not be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {}: {source}", path.display())]
pub struct PageError {
    /// The page.
    pub path: PathBuf,
    /// Why.
    pub source: io::Error,
}

/// Writes the completions for `shell`.
pub fn completions(shell: Shell, out: &mut dyn Write) -> io::Result<()> {
    // The generators panic when they cannot write: let them write to memory.
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "orphand", &mut script);
    out.write_all(&script)
}

/// Writes a manual page.
pub fn man(which: Page, out: &mut dyn Write) -> io::Result<()> {
    if which == Page::Config {
        return config::page(out);
    }
    let mut command = Cli::command().disable_help_subcommand(true);
    command.build();
    page("orphand", command, out)
}

/// Writes a page for `orphand`, one for each verb and that of the configuration into `dir`; returns how many.
pub fn man_pages(dir: &Path) -> Result<usize, PageError> {
    let mut command = Cli::command().disable_help_subcommand(true);
    command.build();
    let mut pages = vec![("orphand".to_owned(), command.clone())];
    collect(&command, "orphand", &mut pages);
    let write = |name: &str, make: &dyn Fn(&mut Vec<u8>) -> io::Result<()>| {
        let path = dir.join(name);
        let mut text = Vec::new();
        let written = make(&mut text).and_then(|()| fs::write(&path, text));
        written.map_err(|source| PageError { path, source })
    };
    for (name, command) in &pages {
        write(&format!("{name}.1"), &|text| page(name, command.clone(), text))?;
    }
    write(config::NAME, &|text| config::page(text))?;
    Ok(pages.len() + 1)
}

fn collect(command: &Command, name: &str, pages: &mut Vec<(String, Command)>) {
    for verb in command.get_subcommands() {
        let name = format!("{name}-{}", verb.get_name());
        pages.push((name.clone(), verb.clone()));
        collect(verb, &name, pages);
    }
}

fn page(name: &str, command: Command, out: &mut dyn Write) -> io::Result<()> {
    let has_verbs = command.has_subcommands();
    let is_main = name == "orphand";
    let examples = command.get_after_help().map(ToString::to_string);
    let man = Man::new(command)
        .section("1")
        .manual("orphand")
        .source(concat!("orphand ", env!("CARGO_PKG_VERSION")));
    man.render_title(out)?;
    man.render_name_section(out)?;
    man.render_synopsis_section(out)?;
    man.render_description_section(out)?;
    man.render_options_section(out)?;
    if has_verbs {
        man.render_subcommands_section(out)?;
    }
    section("EXIT STATUS", &EXIT_STATUS, out)?;
    if is_main {
        section("ENVIRONMENT", &ENVIRONMENT, out)?;
        section("FILES", &FILES, out)?;
    }
    if let Some(examples) = examples {
        let examples = examples.trim_start_matches("Examples:\n").trim_start_matches("Example:\n");
        let mut roff = Roff::new();
        roff.control("SH", ["EXAMPLES"]);
        roff.control("nf", []);
        for line in examples.lines() {
            roff.text([roman(line)]);
        }
        roff.control("fi", []);
        roff.to_writer(out)?;
    }
    Ok(())
}

fn section(title: &str, entries: &[(&str, &str)], out: &mut dyn Write) -> io::Result<()> {
    let mut roff = Roff::new();
    roff.control("SH", [title]);
    for (term, text) in entries {
        roff.control("TP", []);
        roff.text([bold(*term)]);
        roff.text([roman(*text)]);
    }
    roff.to_writer(out)
}
