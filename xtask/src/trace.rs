//! `cargo xtask trace`: records what the kernel reports, so that `orphand replay` can play it again.

use std::{os::unix::process::CommandExt as _, path::PathBuf};

use anyhow::{Context as _, Result};

use crate::{command, privilege, run};

#[derive(clap::Args)]
pub struct Args {
    /// The file to record to.
    #[arg(default_value = "recorded.orphtrace")]
    file: PathBuf,
    /// Stop after this many seconds; without it, at Ctrl-C.
    #[arg(long)]
    seconds: Option<u32>,
}

/// The verb. The daemon only observes: recording on a host must not change it.
pub fn main(args: &Args) -> Result<()> {
    let orphand = run::build("quick")?;
    let file = std::path::absolute(&args.file).context("there is no working directory")?;
    command::say("trace", &format!("recording to {0}; afterwards: orphand replay {0}", file.display()));
    // 0 is no limit.
    let mut daemon = privilege::command("timeout", run::WHY)?;
    let seconds = args.seconds.unwrap_or_default().to_string();
    daemon.args(["--foreground", "--preserve-status", "--signal=INT", &seconds]).arg(&orphand);
    daemon.args(["run", "--observe", "--record"]).arg(&file);
    Err(daemon.exec()).with_context(|| format!("cannot start {}", orphand.display()))
}
