//! Completions and manual pages, generated from the definition of the command line.

use std::{fs, io, io::Write, path::Path};

use anyhow::Context as _;
use clap::{Command, CommandFactory, ValueEnum};
use clap_complete::Shell;
use clap_mangen::{
    Man,
    roff::{Roff, bold, roman},
};

use super::Cli;

mod config;

/// A manual page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Page {
    /// orphand(1)
    Orphand,
    /// orphand.toml(5), the configuration
    Config,
}

/// The exit codes and their meaning.
const EXIT_STATUS: [(&str, &str); 5] = [
    ("0", "Success."),
    ("1", "Failure; one line on standard error says what, why, and what to do."),
    ("2", "Wrong usage."),
    ("3", "ps --exit-code found an orphan."),
    ("4", "Nothing matched what was asked for."),
];

const ENVIRONMENT: [(&str, &str); 2] = [
    (
        "ORPHAND_LOG",
        "What is logged to standard error: error, warn, info, debug or trace; overrides log in the configuration; the default is info.",
    ),
    ("NO_COLOR", "If set to any value, there are no colours."),
];

const FILES: [(&str, &str); 4] = [
    (crate::config::DEFAULT_PATH, "The configuration, see orphand.toml(5). It may be absent."),
    (
        "/etc/orphand/conf.d/*.toml",
        "Further files of the configuration, in the order of their names; later ones override earlier ones.",
    ),
    (
        "/var/lib/orphand/orphand.db",
        "The store, which keeps runs, their numbers, and orphans across restarts.",
    ),
    (super::LOCK, "The lock file of the running daemon, which contains its process id."),
];

/// Writes the completions for `shell`.
pub fn completions(shell: Shell, out: &mut dyn Write) -> io::Result<()> {
    out.write_all(&super::complete::script(&shell.to_string())?)
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

/// Writes the page of `orphand`, one for each verb, and that of the configuration into `dir`. Returns how
/// many.
pub fn man_pages(dir: &Path) -> anyhow::Result<usize> {
    let mut command = Cli::command().disable_help_subcommand(true);
    command.build();
    let mut pages = vec![("orphand".to_owned(), command.clone())];
    collect(&command, "orphand", &mut pages);
    let write = |name: &str, make: &dyn Fn(&mut Vec<u8>) -> io::Result<()>| {
        let path = dir.join(name);
        let mut text = Vec::new();
        let written = make(&mut text).and_then(|()| fs::write(&path, text));
        written.with_context(|| format!("cannot write {}", path.display()))
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
