//! Root, or how to become root: with `sudo`, after a message that says so.

use std::{
    env,
    ffi::{OsStr, OsString},
    process::Command,
};

use anyhow::{Result, ensure};

use crate::command;

/// Whether we are root.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// The words before a command line that make it run as root: none when we are root, `sudo` otherwise.
///
/// `PATH` is handed on because sudo's own one lacks `~/.cargo/bin` and node version managers.
pub fn prefix(why: &str) -> Result<Vec<OsString>> {
    if is_root() {
        return Ok(Vec::new());
    }
    ensure!(command::find("sudo").is_some(), "{why} needs root: become root, or install sudo");
    command::say("xtask", &format!("{why} needs root: using sudo"));
    let mut path = OsString::from("PATH=");
    path.push(env::var_os("PATH").unwrap_or_default());
    Ok(vec!["sudo".into(), "-E".into(), "env".into(), path])
}

/// Has sudo ask for the password now, and not amid what is printed later. Whether it can is told where it is needed.
pub fn ask(why: &str) {
    if let Ok([sudo, ..]) = prefix(why).as_deref() {
        let _ = Command::new(sudo).arg("-v").status();
    }
}

/// A command for `program` that runs as root.
pub fn command(program: impl AsRef<OsStr>, why: &str) -> Result<Command> {
    Ok(command::behind(&prefix(why)?, &Command::new(program)))
}
