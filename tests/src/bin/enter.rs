//! `enter CGROUP.PROCS PROGRAM ARGS..`: moves itself into a cgroup, then execs PROGRAM. Scenes start programs
//! through it, because only unsafe code could run between fork and exec in the test itself.

use std::{env, fs, os::unix::process::CommandExt, process::Command};

use anyhow::{Context, Result};

fn main() -> Result<()> {
    let mut args = env::args_os().skip(1);
    let procs = args.next().context("usage: enter CGROUP.PROCS PROGRAM ARGS..")?;
    fs::write(&procs, std::process::id().to_string())
        .with_context(|| format!("write {}", procs.display()))?;
    let program = args.next().context("no program given")?;
    let error = Command::new(&program).args(args).exec();
    Err(error).with_context(|| format!("exec {}", program.display()))
}
