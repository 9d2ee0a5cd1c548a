//! Root, or how to become root: with `sudo`, after a message that says so.

use std::process::Command;

use anyhow::{Result, bail};

use crate::command;

/// Whether we are root.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// The words before a command line that make it run as root: none when we are root, `sudo` otherwise.
///
/// `PATH` is handed on because sudo's own one lacks `~/.cargo/bin` and node version managers.
pub fn prefix(why: &str) -> Result<Vec<String>> {
    if is_root() {
        return Ok(Vec::new());
    }
    if command::find("sudo").is_none() {
        bail!("{why} needs root: become root, or install sudo");
    }
    command::say("xtask", &format!("{why} needs root: using sudo"));
    let path = std::env::var("PATH").unwrap_or_default();
    Ok(["sudo", "-E", "env", &format!("PATH={path}")].map(str::to_owned).into())
}

/// A command for `program` that runs as root.
pub fn command(program: &str, why: &str) -> Result<Command> {
    Ok(words(&prefix(why)?, program))
}

/// A command for `program` behind the words of [`prefix`].
pub fn words(prefix: &[String], program: &str) -> Command {
    let mut words = prefix.iter().map(String::as_str).chain([program]);
    let mut command = Command::new(words.next().unwrap_or(program));
    command.args(words);
    command
}
