//! `cargo xtask run`: builds the daemon and executes it in place of this process.

use std::{ffi::OsString, os::unix::process::CommandExt as _, path::PathBuf};

use anyhow::{Context as _, Result};

use crate::{command, privilege, setup, workspace};

#[derive(clap::Args)]
pub struct Args {
    /// Build without optimisation: quicker to build, slower to run.
    #[arg(long)]
    debug: bool,
    /// Arguments of `orphand run`: `cargo xtask run -- --observe --grace 2s`.
    #[arg(last = true)]
    args: Vec<OsString>,
}

/// The priority of the packaged unit (`Nice=`, `CPUSchedulingResetOnFork=`), for the daemon's loop alone: it runs before what it
/// watches.
const FIRST: [&str; 6] = ["--reset-on-fork", "--other", "0", "nice", "-n", "-10"];

/// What it needs root for.
const WHY: &str = "watching every process of the host";

/// The verb. Does not come back: the daemon takes our place, so that signals and its exit code are its own.
pub fn main(args: &Args) -> Result<()> {
    let orphand = build(if args.debug { "dev" } else { "quick" })?;
    let mut daemon = privilege::command("chrt", WHY)?;
    daemon.args(FIRST).arg(&orphand).arg("run").args(&args.args);
    Err(daemon.exec()).with_context(|| format!("cannot start {}", orphand.display()))
}

/// Builds the binary in this profile of Cargo.toml, and what that needs meanwhile. Gives its path.
pub fn build(profile: &str) -> Result<PathBuf> {
    let setup = setup::begin()?;
    let what = ["build", "-p", "orphand", "--bin", "orphand", "--profile", profile];
    setup.beside(|| Ok(()), || command::run(workspace::cargo().args(what)))?;
    let folder = if profile == "dev" { "debug" } else { profile };
    Ok(workspace::target_dir()?.join(folder).join("orphand"))
}
