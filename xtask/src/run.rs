//! `cargo xtask run`: builds the daemon and executes it in place of this process.

use std::{ffi::OsString, os::unix::process::CommandExt as _, path::PathBuf, process::Command};

use anyhow::{Context as _, Result};

use crate::{command, privilege, setup, workspace};

/// The arguments of `run`.
#[derive(clap::Args)]
pub struct Args {
    /// Build without optimisation: quicker to build, slower to run.
    #[arg(long)]
    debug: bool,
    /// Arguments of `orphand run`: `cargo xtask run -- --observe --grace 2s`.
    #[arg(last = true)]
    args: Vec<OsString>,
}

/// The verb. Does not come back: the daemon takes our place, so that signals and its exit code are its own.
pub fn main(args: &Args) -> Result<()> {
    let orphand = build(if args.debug { Profile::Debug } else { Profile::Quick })?;
    let mut daemon = as_root(&orphand)?;
    daemon.arg("run").args(&args.args);
    Err(daemon.exec()).with_context(|| format!("cannot start {}", orphand.display()))
}

/// How the binary is built; Cargo.toml has the profiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profile {
    /// Without optimisation.
    Debug,
    /// With a little: it is there in half the time of a release.
    Quick,
    /// As it is handed out. What is measured is built so.
    Release,
}

/// Builds the binary, and what that needs. Gives its path.
pub fn build(profile: Profile) -> Result<PathBuf> {
    setup::bpf()?;
    let (name, folder) = match profile {
        Profile::Debug => ("dev", "debug"),
        Profile::Quick => ("quick", "quick"),
        Profile::Release => ("release", "release"),
    };
    let mut cargo = workspace::cargo();
    cargo.args(["build", "-p", "orphand", "--bin", "orphand", "--profile", name]);
    command::run(&mut cargo)?;
    Ok(workspace::target_dir()?.join(folder).join("orphand"))
}

/// A command for the daemon as root.
pub fn as_root(orphand: &std::path::Path) -> Result<Command> {
    privilege::command(&orphand.to_string_lossy(), "watching every process of the host")
}
