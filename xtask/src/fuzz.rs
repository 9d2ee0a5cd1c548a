//! `cargo xtask fuzz`: runs libFuzzer on the code of orphand that parses input from outside.
//!
//! The stable compiler can count which code is reached, with a pass of LLVM. Only `orphand`, `orphand-core` and the
//! fuzz targets are compiled in this way. For this, cargo calls this program in place of the compiler
//! ([`as_compiler`]). The dependencies are the same as in every other build.

use std::{
    env, fs,
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
    thread,
};

use anyhow::{Context as _, Result, anyhow, bail};

use crate::{command, workspace};

/// The arguments of `fuzz`.
#[derive(clap::Args)]
pub struct Args {
    /// Only this target: a folder of tests/fuzz/corpus. Without it, one after the other.
    target: Option<String>,
    /// How long to try each.
    #[arg(long, default_value_t = 60)]
    seconds: u32,
}

/// Set while cargo calls us for a compiler.
const COMPILER: &str = "ORPHAND_COVERAGE";

/// What makes the compiler count the code that is reached, and the comparisons.
const COUNTERS: [&str; 5] = [
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
];

/// The crates that are counted in.
const COUNTED: [&str; 3] = ["orphand", "orphand_core", "fuzz"];

/// Where the targets' inputs are, in the repository.
const CORPUS: &str = "tests/fuzz/corpus";

/// Megabytes of memory that are too much for an input of some kilobytes.
const MEMORY_MB: u32 = 1024;

/// Seconds that are too many for one.
const SLOW: u32 = 10;

/// The verb.
pub fn main(args: &Args) -> Result<()> {
    let program = build()?;
    let all = targets()?;
    let chosen: Vec<&String> =
        all.iter().filter(|name| args.target.as_ref().is_none_or(|only| only == *name)).collect();
    if chosen.is_empty() {
        bail!(
            "there is no target \"{}\"; there are {}",
            args.target.as_deref().unwrap_or_default(),
            all.join(", ")
        );
    }
    let mut failed = Vec::new();
    for name in chosen {
        command::say("fuzz", &format!("{name}, {} s", args.seconds));
        if let Err(error) =
            engine(&program, name, args.seconds).and_then(|mut engine| command::run(&mut engine))
        {
            eprintln!("xtask: {name}: {error:#}");
            failed.push(name.as_str());
        }
    }
    verdict(&failed)
}

/// An error, if targets failed.
fn verdict(failed: &[&str]) -> Result<()> {
    if failed.is_empty() {
        return Ok(());
    }
    bail!(
        "what made {} fail is in {}, to be run again as `cargo test -p fuzz` once it is moved to {CORPUS}",
        failed.join(", "),
        found()?.display()
    )
}

/// The names of the targets.
fn targets() -> Result<Vec<String>> {
    let folder = workspace::root().join(CORPUS);
    let entries = fs::read_dir(&folder).with_context(|| format!("cannot list {}", folder.display()))?;
    let mut names: Vec<String> =
        entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
    names.sort();
    Ok(names)
}

/// Where inputs that make a target fail are written.
fn found() -> Result<PathBuf> {
    Ok(workspace::target_dir()?.join("fuzz/found"))
}

/// The targets with counters and engine.
fn build() -> Result<PathBuf> {
    command::say("fuzz", "building the targets");
    command::run(&mut building()?)?;
    Ok(workspace::target_dir()?.join("debug/fuzz"))
}

/// What builds them.
pub fn building() -> Result<Command> {
    let mut cargo = workspace::cargo();
    cargo.args(["build", "--quiet", "--package", "fuzz", "--features", "engine"]);
    cargo.env("RUSTC_WORKSPACE_WRAPPER", workspace::ourselves()?).env(COMPILER, "1");
    Ok(cargo)
}

/// What tries one target for so many seconds. What it finds worth keeping lies in the target directory; the corpus
/// of the repository is only read.
fn engine(program: &Path, name: &str, seconds: u32) -> Result<Command> {
    let grown = workspace::target_dir()?.join("fuzz/corpus").join(name);
    let found = found()?;
    for folder in [&grown, &found] {
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    }
    let mut engine = Command::new(program);
    engine
        .arg(&grown)
        .arg(workspace::root().join(CORPUS).join(name))
        .arg(format!("-max_total_time={seconds}"))
        .arg(format!("-timeout={SLOW}"))
        .arg(format!("-rss_limit_mb={MEMORY_MB}"))
        .arg(format!("-artifact_prefix={}/{name}-", found.display()))
        .args(["-print_final_stats=1", "-verbosity=0", "-close_fd_mask=1"])
        .env("ORPHAND_FUZZ_TARGET", name);
    Ok(engine)
}

/// Where cargo calls us in place of the compiler: the compiler, with counters for the crates that are counted.
pub fn as_compiler() -> Option<ExitCode> {
    env::var_os(COMPILER)?;
    let mut arguments = env::args_os().skip(1);
    let compiler =
        arguments.next().filter(|first| Path::new(first).file_stem().is_some_and(|stem| stem == "rustc"))?;
    let arguments: Vec<_> = arguments.collect();
    let name =
        arguments.windows(2).find(|pair| pair.iter().next().is_some_and(|word| word == "--crate-name"));
    let counted =
        name.is_some_and(|pair| pair.iter().any(|word| COUNTED.iter().any(|crate_name| word == crate_name)));
    let mut rustc = Command::new(compiler);
    rustc.args(arguments);
    if counted {
        rustc.args(COUNTERS);
    }
    let error = rustc.exec();
    eprintln!("xtask: cannot start the compiler: {error}");
    Some(ExitCode::FAILURE)
}

/// A moment of each target, for `cargo xtask test`: as many at a time as there are processors.
pub fn briefly() -> Result<()> {
    const SECONDS: u32 = 2;
    command::say(
        "test",
        &format!("every fuzz target for {SECONDS} s: cargo xtask fuzz [TARGET] --seconds N"),
    );
    let program = build()?;
    let all = targets()?;
    let jobs = thread::available_parallelism().map_or(1, usize::from);
    let mut failed = Vec::new();
    for some in all.chunks(jobs) {
        let ended: Vec<_> = thread::scope(|scope| {
            let try_one =
                |name| engine(&program, name, SECONDS).and_then(|mut engine| command::output(&mut engine));
            let started: Vec<_> =
                some.iter().map(|name| (name, scope.spawn(move || try_one(name)))).collect();
            started.into_iter().map(|(name, thread)| (name, thread.join())).collect()
        });
        for (name, ended) in ended {
            let Err(error) = ended.unwrap_or_else(|_| Err(anyhow!("the thread that waits for it panicked")))
            else {
                continue;
            };
            eprintln!("xtask: {name}: {error:#}");
            failed.push(name.as_str());
        }
    }
    verdict(&failed)
}
