//! `cargo xtask test judgement` and `cargo xtask hunt`: programs of the tests that play situations with real processes,
//! those of tests/situations and those that are made up.

use std::{ffi::OsString, process::Command};

use anyhow::Result;

use crate::{command, privilege, setup, workspace};

#[derive(clap::Args)]
pub struct Args {
    /// What the program takes: `-- --help` tells.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    args: Vec<OsString>,
}

/// Plays all situations, prints the facts and the verdict of each, and writes docs/judgement.md.
pub fn judgement(args: &Args) -> Result<()> {
    let mut program = built("judgement", "judging real processes")?;
    setup::tests()?;
    setup::fixtures(&mut Command::new(workspace::target_dir()?.join("debug/fixtures")))?;
    command::run(program.args(&args.args))
}

/// Plays what is made up, for as long as a person lets it, and keeps what was judged wrongly.
pub fn hunt(args: &Args) -> Result<()> {
    command::run(built("hunt", "hunting with real processes")?.args(&args.args))
}

/// Runs as root; nobody should wait for a build to learn that a password is needed.
fn built(program: &str, why: &str) -> Result<Command> {
    setup::bpf()?;
    let command = privilege::command(workspace::target_dir()?.join("debug").join(program), why)?;
    workspace::build().map(|_| command)
}
