//! The help of every verb, as `orphand help VERB` prints it.

use std::fmt::Write as _;

use clap::{Command, CommandFactory as _};
use orphand::cli::Cli;

/// The width of the help in columns, whatever the terminal.
const WIDTH: usize = 100;

pub fn all() -> String {
    let mut command = Cli::command().term_width(WIDTH);
    command.build();
    let mut text = String::new();
    verb(&mut command, "orphand", &mut text);
    text
}

fn verb(command: &mut Command, name: &str, text: &mut String) {
    let help = command.render_long_help().to_string();
    let lines: Vec<&str> = help.trim_end().lines().map(str::trim_end).collect();
    let _ = write!(text, "### {name}\n\n```text\n{}\n```\n\n", lines.join("\n"));
    for below in command.get_subcommands_mut().filter(|below| below.get_name() != "help") {
        let name = format!("{name} {}", below.get_name());
        verb(below, &name, text);
    }
}
