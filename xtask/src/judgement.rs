//! `cargo xtask test judgement`: plays all situations, prints the facts and the verdict of each, and writes
//! docs/judgement.md.

use std::process::Command;

use anyhow::Result;

use crate::{command, privilege, setup, test::WHAT, workspace};

/// The arguments of `test judgement`.
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

/// The verb.
pub fn main(args: &Args) -> Result<()> {
    setup::bpf()?;
    let folder = workspace::target_dir()?.join("debug");
    let mut judgement =
        privilege::command(&folder.join("judgement").to_string_lossy(), "judging real processes")?;
    command::run(workspace::cargo().arg("build").args(WHAT).arg("--bins"))?;
    setup::tests()?;
    setup::fixtures(&mut Command::new(folder.join("fixtures")))?;
    judgement.args(&args.filter);
    if let Some(judge) = &args.judge {
        judgement.args(["--judge", judge]);
    }
    if args.restart {
        judgement.arg("--restart");
    }
    command::run(&mut judgement)
}
