//! Manual pages, generated from the definition of the command line.

use std::{fs, io, path::Path};

use clap::{Command, CommandFactory, ValueEnum};
use clap_mangen::{
    Man,
    roff::{Roff, italic, roman},
};

use super::Cli;
use crate::config::{DEFAULT_PATH, options::DEFAULT_FILE};

/// A manual page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Page {
    /// orphand(1)
    Orphand,
    /// orphand.toml(5), the configuration
    Config,
}

pub fn man(which: Page) -> io::Result<String> {
    match which {
        Page::Orphand => page("orphand", orphand()),
        Page::Config => Ok(page_of_configuration()),
    }
}

/// Writes the page of `orphand`, one for each verb, and that of the configuration into `dir`. Returns how
/// many.
pub fn man_pages(dir: &Path) -> anyhow::Result<usize> {
    let mut pages = vec![("orphand".to_owned(), orphand())];
    collect(&orphand(), "orphand", &mut pages);
    let verbs = pages.into_iter().map(|(name, command)| (format!("{name}.1"), page(&name, command)));
    let all: Vec<_> = verbs.chain([(NAME.to_owned(), Ok(page_of_configuration()))]).collect();
    for (name, text) in &all {
        let path = dir.join(name);
        let written =
            text.as_ref().map_err(|error| error.kind().into()).and_then(|text| fs::write(&path, text));
        written.map_err(|error| {
            anyhow::anyhow!(
                "cannot write {}: {error}; make the directory, or give another one",
                path.display()
            )
        })?;
    }
    Ok(all.len())
}

fn orphand() -> Command {
    let mut command = Cli::command().disable_help_subcommand(true);
    command.build();
    command
}

fn collect(command: &Command, name: &str, pages: &mut Vec<(String, Command)>) {
    for verb in command.get_subcommands() {
        let name = format!("{name}-{}", verb.get_name());
        pages.push((name.clone(), verb.clone()));
        collect(verb, &name, pages);
    }
}

fn page(name: &str, command: Command) -> io::Result<String> {
    let mut out = Vec::new();
    let has_verbs = command.has_subcommands();
    let own = command.get_after_long_help().or(command.get_after_help()).map(ToString::to_string);
    let man = Man::new(command)
        .section("1")
        .manual("orphand")
        .source(concat!("orphand ", env!("CARGO_PKG_VERSION")));
    man.render_title(&mut out)?;
    man.render_name_section(&mut out)?;
    man.render_synopsis_section(&mut out)?;
    man.render_description_section(&mut out)?;
    man.render_options_section(&mut out)?;
    if has_verbs {
        man.render_subcommands_section(&mut out)?;
    }
    let mut roff = Roff::new();
    // What stands below the help has titles. The exit status is that of all.
    let status = LONG_HELP.split("\n\n").filter(|part| name != "orphand" && part.starts_with("Exit status"));
    for part in own.iter().flat_map(|own| own.split("\n\n")).chain(status) {
        let Some((title, lines)) = part.split_once(":\n") else { continue };
        roff.control("SH", [title.to_uppercase().as_str()]);
        verbatim(lines, &mut roff);
    }
    roff.to_writer(&mut out)?;
    Ok(String::from_utf8_lossy(&out).into_owned())
}

fn verbatim(lines: &str, roff: &mut Roff) {
    roff.control("nf", []);
    for line in lines.lines() {
        roff.text([roman(line)]);
    }
    roff.control("fi", []);
}

const NAME: &str = "orphand.toml.5";

const DESCRIPTION: [&str; 6] = [
    "The configuration of orphand(1) is TOML. None is needed: every key has a default, or may be absent.",
    "/etc/orphand/config.toml is read first, then /etc/orphand/conf.d/*.toml in the order of the bytes of their names; with \
     --config FILE, FILE and conf.d/*.toml beside it. Either may be absent, but a FILE that was named must be there. Names that \
     begin with a dot or do not end in .toml are passed over. A later file beats an earlier one key by key; the tables of a list, \
     such as [[agent]], are added to those before. The flags of the command line beat all files.",
    "An unknown key, a value that cannot be, and a file that cannot be read are mistakes, and orphand does not start. orphand \
     config check names the first, with file, line and column; orphand config show --origin prints the effective values and \
     where they came from.",
    "As root, or with capabilities, orphand refuses a file that others could change: every directory and link on the way to it, \
     and conf.d itself, must belong to root or the user it runs as, and be writable by nobody else.",
    "A duration is written like \"500ms\", \"10s\", \"5m\" or \"1h 30m\".",
    "A rule says what a program is to orphand. Of the rules in the tables of one name the first that matches counts; of several \
     tables the first in this order. All come before the built-in rules. The kernel side looks for file names: a rule whose program \
     has wildcards is noticed below agents, behind interpreters and launchers, and at the start of the daemon, not for a binary that \
     anybody starts.",
];

fn page_of_configuration() -> String {
    let mut roff = Roff::new();
    let source = concat!("orphand ", env!("CARGO_PKG_VERSION"));
    // No date, because it would change with every build.
    roff.control("TH", ["orphand.toml", "5", "\"\"", source, "orphand"]);
    roff.control("SH", ["NAME"]);
    roff.text([roman("orphand.toml - the configuration of orphand")]);
    roff.control("SH", ["SYNOPSIS"]);
    roff.text([italic(DEFAULT_PATH), roman(", "), italic("/etc/orphand/conf.d/*.toml")]);
    roff.control("SH", ["DESCRIPTION"]);
    for paragraph in DESCRIPTION {
        roff.control("PP", []);
        roff.text([roman(paragraph)]);
    }
    roff.control("SH", ["KEYS"]);
    // Each with its form, its default and an example.
    verbatim(DEFAULT_FILE.split_once("\n\n").map_or(DEFAULT_FILE, |(_, keys)| keys), &mut roff);
    roff.control("SH", ["SEE ALSO"]);
    let others = ["orphand", "orphand-config-check", "orphand-run"];
    roff.text([roman(others.map(|page| format!("{page}(1)")).join(", "))]);
    roff.render()
}

pub(super) const EXAMPLES: &str = "\
Examples:
  sudo orphand run --observe     watch and judge, end nothing
  sudo orphand ps                servers and orphans that are there now, worst first";

pub(super) const LONG_HELP: &str = "\
Examples:
  sudo orphand run --observe     watch and judge, end nothing
  sudo orphand ps                servers and orphans that are there now, worst first

Environment:
  ORPHAND_LOG  what is logged to standard error: error, warn, info (default), debug,
               trace
  NO_COLOR     if set to any value, no colours

Files:
  /etc/orphand/config.toml     the configuration, see orphand.toml(5); it may be absent
  /etc/orphand/conf.d/*.toml   further files of it, by name; later ones beat earlier ones
  /var/lib/orphand/orphand.db  the store: runs, their numbers, orphans; it outlives restarts
  /run/orphand/lock            what the running daemon keeps locked, so that there is one

Exit status:
  0  success
  1  failure; one line on standard error says what, why, and what to do
  2  wrong usage
  3  ps --exit-code found an orphan
  4  nothing matched what was asked for";

pub(super) const RELOAD_EXAMPLES: &str = "Examples:
  sudo orphand config check && sudo orphand reload
  sudo orphand reload --json | jq .later               keys that take effect only at the next start";
