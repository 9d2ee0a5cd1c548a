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
mod wires;

use std::{env, ffi::OsString, path::PathBuf, process::Command, time::Duration};

use anyhow::{Result, bail};
use clap::ValueEnum;

use crate::{command, privilege, run, workspace};
use table::Table;

/// The arguments of `bench`.
#[derive(clap::Args)]
pub struct Args {
    /// Only these parts; all of them if none is named.
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

/// A part of the bench.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    /// What a stranger's process costs in the kernel, beside empty programs on the same tracepoints.
    Kernel,
    /// Throughput of storms of new processes, monitored against unmonitored.
    Storm,
    /// A storm of programs that no rule knows on wires of their own, each of which may be a server.
    Wires,
    /// Records lost in a long storm on all cores.
    Loss,
    /// From an owner's exit to the line about it, idle and under storm.
    Latency,
    /// Memory, wake-ups and CPU time at rest, and time to start.
    Rest,
    /// Verdicts on many servers that are due at once, beside many open files of others.
    Scene,
    /// The pure core alone: events a second, bytes a process.
    Engine,
    /// A scrape of the metrics with 600 servers in 64 generations.
    Scrape,
    /// The store: time for a fact, growth, start-up with 100,000 rows.
    Store,
    /// Resident memory of 600 processes, read again and again: below 5 ms.
    Memory,
}

/// The programs that are measured and that measure.
struct Bench<'a> {
    args: &'a Args,
    orphand: PathBuf,
    /// Actors and storms: the `storm` binary of this package and its other names.
    actors: daemon::Actors,
    jobs: usize,
}

impl Bench<'_> {
    fn start(&self) -> Result<daemon::Daemon> {
        daemon::Daemon::start(&self.orphand, &self.actors)
    }

    fn window(&self) -> Duration {
        Duration::from_millis(self.args.window)
    }
}

/// The verb.
pub fn main(args: &Args) -> Result<()> {
    let orphand = match &args.orphand {
        Some(path) => path.clone(),
        None => run::build(run::Profile::Release)?,
    };
    if !privilege::is_root() {
        return again_as_root(&orphand);
    }
    // Unoptimised, like this program: it does little but call the kernel, and what it depends on is built already.
    command::run(workspace::cargo().args(["build", "--quiet", "-p", "xtask", "--bin", "storm"]))?;
    let storm = workspace::target_dir()?.join("debug/storm");
    let jobs = args.jobs.or_else(|| std::thread::available_parallelism().ok().map(usize::from)).unwrap_or(1);
    let bench = Bench { args, orphand, actors: daemon::Actors::new(&storm)?, jobs };

    println!("{}\n", machine(&bench));
    let parts = if args.parts.is_empty() { Part::value_variants() } else { &args.parts };
    let mut failed = Vec::new();
    for part in parts {
        // A part that fails costs its own figures only.
        match part.measure(&bench) {
            Ok(table) => println!("{table}"),
            Err(error) => {
                let name = part.to_possible_value().map(|v| v.get_name().to_owned()).unwrap_or_default();
                command::say("bench", &format!("{name}: {error:#}"));
                failed.push(name);
            }
        }
    }
    if failed.is_empty() { Ok(()) } else { bail!("not measured: {}", failed.join(", ")) }
}

impl Part {
    fn measure(self, bench: &Bench<'_>) -> Result<Table> {
        match self {
            Self::Kernel => kernel::cost(bench),
            Self::Storm => storm::throughput(bench),
            Self::Wires => wires::storm(bench),
            Self::Loss => storm::loss(bench),
            Self::Latency => latency::latency(bench),
            Self::Rest => rest::rest(bench),
            Self::Scene => scene::scene(bench),
            Self::Engine => of_cargo("orphand-core", "engine"),
            Self::Scrape => of_cargo("orphand", "scrape"),
            Self::Store => of_cargo("orphand", "store"),
            Self::Memory => of_cargo("orphand", "memory"),
        }
    }
}

/// The same command line as root; what was built is handed on, so that root builds nothing of the daemon.
fn again_as_root(orphand: &std::path::Path) -> Result<()> {
    let this: OsString = env::current_exe()?.into();
    let mut again = privilege::command(&this.to_string_lossy(), "measuring the daemon")?;
    again.args(env::args_os().skip(1)).arg("--orphand").arg(orphand);
    command::run(&mut again)
}

/// What was measured on.
fn machine(bench: &Bench<'_>) -> String {
    let kernel = command::output(Command::new("uname").args(["-r", "-m"])).unwrap_or_default();
    let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpuinfo.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or_default();
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    format!(
        "Machine: {cores} cores ({}), Linux {}; storms by {} processes, {} rounds of {:?} each.",
        model.trim_start_matches([' ', '\t', ':']),
        kernel.trim(),
        bench.jobs,
        bench.args.rounds,
        bench.window(),
    )
}

/// A bench of a package, which prints its figures itself.
fn of_cargo(package: &str, name: &str) -> Result<Table> {
    command::run(workspace::cargo().args(["bench", "-p", package, "--bench", name]))?;
    Ok(Table::default())
}
