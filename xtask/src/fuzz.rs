//! `cargo xtask fuzz`: runs libFuzzer on the code of orphand that parses input from outside. `tests/fuzz/rustc.sh` has
//! the compiler count which code is reached.

use std::{path::Path, process::Command, thread};

use anyhow::{Result, ensure};

use crate::{
    command, files,
    test::pool::{self, Job},
    workspace,
};

#[derive(clap::Args)]
pub struct Args {
    /// Only this target: a folder of tests/fuzz/corpus. Without it, one after the other.
    target: Option<String>,
    /// How long to try each.
    #[arg(long, default_value_t = 60)]
    seconds: u32,
}

/// Where the targets' inputs are, in the repository.
const CORPUS: &str = "tests/fuzz/corpus";

/// Megabytes of memory that are too much for an input of some kilobytes.
const MEMORY_MB: u32 = 1024;

/// Seconds that are too many for one.
const SLOW: u32 = 10;

pub fn main(args: &Args) -> Result<()> {
    play(args.target.as_deref(), args.seconds, 1)
}

/// A moment of each target, for `cargo xtask test`: as many at a time as there are processors.
pub fn briefly() -> Result<()> {
    play(None, 2, thread::available_parallelism().map_or(1, usize::from))
}

/// Tries one target or all, so many at a time.
fn play(only: Option<&str>, seconds: u32, at_a_time: usize) -> Result<()> {
    command::say("fuzz", &format!("building the targets, to try each for {seconds} s"));
    command::run(&mut building())?;
    let target = workspace::target_dir()?;
    let (program, found) = (target.join("debug/fuzz"), target.join("fuzz/found"));
    let all = files::list(&workspace::root().join(CORPUS))?;
    let names = all.iter().map(|folder| files::name(folder));
    let chosen: Vec<String> = names.clone().filter(|name| only.is_none_or(|only| only == name)).collect();
    let there = names.collect::<Vec<_>>().join(", ");
    ensure!(!chosen.is_empty(), "there is no target {:?}; there are {there}", only.unwrap_or_default());
    let job = |name: String| Ok(Job { command: engine(&program, &name, seconds, &found)?, name });
    let jobs = chosen.into_iter().map(job).collect::<Result<_>>()?;
    let failed = pool::run("fuzz targets", Vec::new(), jobs, at_a_time)?.failed;
    let failed: Vec<&str> = failed.iter().map(|job| job.name.as_str()).collect();
    ensure!(
        failed.is_empty(),
        "what made {} fail is in {}, to be run again as `cargo test -p fuzz` once it is moved to {CORPUS}",
        failed.join(", "),
        found.display()
    );
    Ok(())
}

pub fn building() -> Command {
    let mut cargo = workspace::cargo();
    cargo.args(["build", "--quiet", "--package", "fuzz", "--features", "engine"]);
    cargo.env("RUSTC_WORKSPACE_WRAPPER", workspace::root().join("tests/fuzz/rustc.sh"));
    cargo
}

/// What tries one target for so many seconds. What it finds worth keeping lies in the target directory; the corpus
/// of the repository is only read.
fn engine(program: &Path, name: &str, seconds: u32, found: &Path) -> Result<Command> {
    let grown = found.with_file_name("corpus").join(name);
    files::folder(&grown).and(files::folder(found))?;
    let mut engine = Command::new(program);
    engine.args([&grown, &workspace::root().join(CORPUS).join(name)]);
    engine.arg(format!("-max_total_time={seconds}")).arg(format!("-timeout={SLOW}"));
    engine.arg(format!("-rss_limit_mb={MEMORY_MB}"));
    engine.arg(format!("-artifact_prefix={}/{name}-", found.display()));
    engine.args(["-print_final_stats=1", "-verbosity=0", "-close_fd_mask=1"]);
    engine.env("ORPHAND_FUZZ_TARGET", name);
    Ok(engine)
}
