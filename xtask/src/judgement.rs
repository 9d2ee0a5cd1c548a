//! `cargo xtask test judgement`: plays all situations, prints the facts and the verdict of each, and writes
//! docs/judgement.md.

use std::process::Command;

use anyhow::Result;

use crate::{command, privilege, setup, workspace};

#[derive(clap::Args)]
pub struct Args {
    /// Only situations whose name (group/name) contains this; the page is not written then.
    filter: Option<String>,
    /// Another judge than our daemon: a command that prints the numbers of the processes it would end, one a line.
    #[arg(long, value_name = "COMMAND")]
    judge: Option<String>,
    /// Restarts the daemon again and again while the situations are built; the page is not written then.
    #[arg(long, conflicts_with = "judge")]
    restart: bool,
}

pub fn main(args: &Args) -> Result<()> {
    let mut judgement = privilege::built("judgement", "judging real processes")?;
    setup::tests()?;
    setup::fixtures(&mut Command::new(workspace::target_dir()?.join("debug/fixtures")))?;
    judgement.args(&args.filter).args(args.restart.then_some("--restart"));
    judgement.args(args.judge.iter().flat_map(|judge| ["--judge", judge]));
    command::run(&mut judgement)
}
