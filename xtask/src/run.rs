//! `cargo xtask run`: build the daemon and become it.

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
    let orphand = build(args.debug)?;
    let mut daemon = as_root(&orphand)?;
    daemon.arg("run").args(&args.args);
    Err(daemon.exec()).with_context(|| format!("cannot start {}", orphand.display()))
}

/// Builds the binary, what that needs included, and tells where it is.
pub fn build(debug: bool) -> Result<PathBuf> {
    setup::bpf()?;
    let mut cargo = workspace::cargo();
    cargo.args(["build", "-p", "orphand", "--bin", "orphand"]).args((!debug).then_some("--release"));
    command::run(&mut cargo)?;
    Ok(workspace::target_dir()?.join(if debug { "debug" } else { "release" }).join("orphand"))
}

/// A command for the daemon as root.
pub fn as_root(orphand: &std::path::Path) -> Result<Command> {
    privilege::command(&orphand.to_string_lossy(), "watching every process of the host")
}
