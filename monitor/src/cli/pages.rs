//! Completions and manual pages, generated from the definition of the command line.

use std::{fs, io, io::Write, path::Path};

use anyhow::Context as _;
use clap::{Command, CommandFactory, ValueEnum};
use clap_complete::Shell;
use clap_mangen::{
    Man,
    roff::{Roff, roman},
};

use super::{Cli, help::LONG_HELP};

mod config;

/// A manual page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Page {
    /// orphand(1)
    Orphand,
    /// orphand.toml(5), the configuration
    Config,
}

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
    let own = command.get_after_long_help().or(command.get_after_help()).map(ToString::to_string);
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
    let mut roff = Roff::new();
    // What stands below the help has titles. The exit status is that of all.
    let status = LONG_HELP.split("\n\n").filter(|part| name != "orphand" && part.starts_with("Exit status"));
    for part in own.iter().flat_map(|own| own.split("\n\n")).chain(status) {
        let Some((title, lines)) = part.split_once(":\n") else { continue };
        roff.control("SH", [title.to_uppercase().as_str()]);
        roff.control("nf", []);
        for line in lines.lines() {
            roff.text([roman(line)]);
        }
        roff.control("fi", []);
    }
    roff.to_writer(out)
}
