//! `cargo xtask trace`: records what the kernel reports, so that `orphand replay` can play it again.

use std::{os::unix::process::CommandExt as _, path::PathBuf};

use anyhow::{Context as _, Result};

use crate::{command, privilege, run};

/// The arguments of `trace`.
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
    let orphand = run::build(run::Profile::Quick)?;
    let file = std::path::absolute(&args.file).context("there is no working directory")?;
    command::say("trace", &format!("recording to {0}; afterwards: orphand replay {0}", file.display()));
    let mut daemon = match args.seconds {
        Some(seconds) => {
            let mut timeout = privilege::command("timeout", "watching every process of the host")?;
            timeout
                .args(["--foreground", "--preserve-status", "--signal=INT", &seconds.to_string()])
                .arg(&orphand);
            timeout
        }
        None => run::as_root(&orphand)?,
    };
    daemon.args(["run", "--observe", "--record"]).arg(&file);
    Err(daemon.exec()).with_context(|| format!("cannot start {}", orphand.display()))
}
