//! `cargo xtask bench`: measures the cost and the latency of orphand, and prints a table for docs/performance.md.
//!
//! Everything is measured from outside on the built daemon, and on the same host without it, alternating: the noise
//! of the machine affects both. The figures of the pure core alone come from the benches of `orphand-core` and
//! `orphand`.

mod daemon;
mod kernel;
mod latency;
mod rest;
mod scene;
mod storm;
mod table;

use std::{env, path::PathBuf, process::Command};

use anyhow::Result;
use clap::ValueEnum;

use self::table::Table;
use crate::{command, privilege, run, workspace};

#[derive(clap::Args)]
pub struct Args {
    /// Only these parts; all of them, and the benches of the packages, if none is named.
    #[arg(value_enum)]
    parts: Vec<Part>,
    /// Rounds of each storm, monitored and not: the median is shown.
    #[arg(long, default_value_t = 7)]
    rounds: usize,
    /// Length of one storm in milliseconds.
    #[arg(long, default_value_t = 1_000)]
    window: u64,
    /// Processes that make a storm together; the number of cores if not given.
    #[arg(long)]
    jobs: Option<usize>,
    /// Owner exits to measure the latency over.
    #[arg(long, default_value_t = 1_000)]
    exits: usize,
    /// Seconds of the storm in which no record may be lost, and of the daemon's rest.
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// Measure this binary instead of building one.
    #[arg(long)]
    orphand: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    /// What a stranger's process costs in the kernel, beside empty programs on the same tracepoints.
    Kernel,
    /// Throughput of storms of new processes, monitored against unmonitored.
    Storm,
    /// Records lost in a long storm on all cores, and what that costs the daemon.
    Loss,
    /// From an owner's exit to the line about it, idle and under storm.
    Latency,
    /// Memory, wake-ups and CPU time at rest, and time to start.
    Rest,
    /// Verdicts on many servers that are due at once, beside many open files of others.
    Scene,
}

/// The programs that are measured and that measure.
struct Bench<'a> {
    args: &'a Args,
    orphand: PathBuf,
    /// Where the actors are.
    dir: PathBuf,
    /// Processes that make a storm together.
    jobs: usize,
}

impl Bench<'_> {
    fn start(&self) -> Result<daemon::Daemon> {
        daemon::Daemon::start(&self.orphand, &self.dir)
    }

    /// What starts an actor, by its name.
    fn actor(&self, name: &str) -> Command {
        Command::new(self.dir.join(name))
    }
}

pub fn main(args: &Args) -> Result<()> {
    let orphand =
        args.orphand.as_ref().map_or_else(|| run::build("release"), |path| Ok(path.canonicalize()?))?;
    if !privilege::is_root() {
        // What was built is handed on, so that root builds nothing of the daemon.
        let mut again = privilege::command(env::current_exe()?, "measuring the daemon")?;
        return command::run(again.args(env::args_os().skip(1)).arg("--orphand").arg(orphand));
    }
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let bench = Bench { args, orphand, dir: daemon::actors()?, jobs: args.jobs.unwrap_or(cores) };
    let uname = command::output(Command::new("uname").args(["-r", "-m"]))?;
    let model =
        command::output(Command::new("sed").args(["-n", "0,/^model name.*: /s///p", "/proc/cpuinfo"]))?;
    let (cpu, kernel, jobs, rounds) = (model.trim(), uname.trim(), bench.jobs, args.rounds);
    println!(
        "Machine: {cores} cores ({cpu}), Linux {kernel}; storms by {jobs} processes, {rounds} rounds of {} ms each.\n",
        args.window
    );
    let parts = if args.parts.is_empty() { Part::value_variants() } else { &args.parts };
    // A part that fails costs its own figures only.
    let measured = command::each("bench", parts, |part| part.measure(&bench).map(|told| println!("{told}")));
    let packages = || command::run(workspace::cargo().args(["bench", "-p", "orphand", "-p", "orphand-core"]));
    if args.parts.is_empty() { measured.and(packages()) } else { measured }
}

impl Part {
    fn measure(self, bench: &Bench<'_>) -> Result<Table> {
        match self {
            Self::Kernel => kernel::cost(bench),
            Self::Storm => storm::throughput(bench),
            Self::Loss => storm::loss(bench),
            Self::Latency => latency::latency(bench),
            Self::Rest => rest::rest(bench),
            Self::Scene => scene::scene(bench),
        }
    }
}
