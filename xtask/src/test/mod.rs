//! `cargo xtask test`: runs all tests.
//!
//! There are two rounds of the same programs. The first round runs the tests that any user can run, program by program.
//! The second round runs the tests that are marked as ignored, on the real kernel and as root: several side by side, each
//! in a process of its own, then those of which few run at a time, then those that have the host for themselves ([`alone`]). No
//! test is skipped silently: a test that cannot run is a failure, and what is left out because nothing of it changed is
//! named ([`groups`]).
//! What they call is installed while they are built, and what only the second round needs while the first one runs. What
//! no test needs is built, and what only computes is run, while the others wait ([`beside`]).
//!
//! Some tests are separate: [`vm`], `package` ([`dist::test`]), [`fresh`] and [`judgement`].

mod alone;
mod beside;
mod groups;
pub mod pool;
mod programs;

use std::{collections::BTreeMap, ffi::OsString, process::Command, thread};

use anyhow::{Result, ensure};

use self::{beside::Beside, groups::Group, pool::Job, programs::Program};
use crate::{command, dist, fresh, fuzz, judgement, privilege, setup, vm, workspace};

#[derive(Default, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Args {
    #[command(subcommand)]
    on: Option<On>,
    /// Only tests whose name contains this.
    filter: Option<String>,
    /// Only those that any user can run: quick, but not the whole truth.
    #[arg(long)]
    unprivileged: bool,
    /// Also the steps of `cargo xtask check` that compile, but clippy, while tests wait: what CI does.
    #[arg(long, conflicts_with_all = ["filter", "unprivileged"])]
    check: bool,
}

/// A test that is not among all.
#[derive(clap::Subcommand)]
enum On {
    /// Every test, also what is left out while its inputs stay: packages, fuzzing, published software.
    All,
    /// The untether day on a machine of its own: a distribution's kernel, cgroup2, systemd as pid 1, in QEMU.
    Vm,
    /// The static binary and the packages that people get, in a system with next to nothing in it, and what lintian
    /// says.
    Package,
    /// This command itself, on a Debian that has nothing but Rust, gcc and git, started as nohup starts it.
    Fresh {
        /// Only tests whose name contains this.
        filter: Option<String>,
    },
    /// Every situation: what is true in it, how it is judged; writes docs/judgement.md. Another tool may judge, too.
    Judgement(judgement::Args),
}

pub fn main(args: &Args) -> Result<()> {
    match &args.on {
        Some(On::All) => every(&Args::default(), &[]),
        Some(On::Vm) => vm::main(),
        Some(On::Package) => dist::test(),
        Some(On::Fresh { filter }) => fresh::main(filter.as_deref()),
        Some(On::Judgement(args)) => judgement::judgement(args),
        // Whoever names a test wants it.
        None if args.filter.is_some() => every(args, &[]),
        None => every(args, &groups::left_out()),
    }
}

/// Both rounds, without these groups.
fn every(args: &Args, left_out: &[&Group]) -> Result<()> {
    let filter = args.filter.as_deref();
    let setup = setup::begin()?;
    // Asked for first: nobody should wait for a build to learn that a password is needed.
    let root =
        if args.unprivileged { Vec::new() } else { privilege::prefix("the tests on the real kernel")? };
    command::say("test", "building");
    // The first round calls some of what is installed. A user who may not install it sees what is missing.
    let besides = if args.unprivileged { setup::found } else { setup::tests };
    let programs = setup.beside(besides, Program::all)?;
    let built = workspace::target_dir()?.join("debug");
    let runs = |group: &str| !left_out.iter().any(|left| left.name == group);
    let plain = plain(&programs, filter, runs(groups::LAWS));
    let for_any_user = |jobs| pool::run("for any user", Vec::new(), jobs, 2);
    if args.unprivileged {
        return for_any_user(plain)?.count().judge(filter);
    }
    let Privileged { in_turn, shared, few, alone } = privileged(&programs, &root, filter, left_out)?;
    let packages = shared.iter().any(|job| job.name.starts_with("package "));
    setup::install(setup::DIST)?;
    // Tests that use it wait for it.
    let fixtures = Beside::start(beside::WANTED, [("fixtures", Command::new(built.join("fixtures")))])?;
    let packer = Beside::start(beside::WANTED, dist::building().filter(|_| packages))?;
    let (computing, plain): (Vec<_>, Vec<_>) = plain.into_iter().partition(|job| job.name == alone::COMPUTES);
    let computing = computing.into_iter().map(|job| (alone::COMPUTES, job.command));
    let runs = |group: &str| filter.is_none() && runs(group);
    let beside = Beside::start(beside::IDLE, rest(args.check, runs(groups::FUZZ)).chain(computing))?;
    let first = for_any_user(plain)?;
    packer.finish()?;
    if packages {
        dist::make(true)?;
    }
    let beside_others = pool::run("side by side", in_turn, shared, mostly_waiting())?;
    fixtures.finish()?;
    let mut of_few = Vec::new();
    for ((round, at_a_time, _), jobs) in alone::FEW.into_iter().zip(few) {
        of_few.push(pool::run(round, Vec::new(), jobs, at_a_time)?);
    }
    let one_by_one = pool::run("one by one", Vec::new(), alone, 1)?.count();
    let beside = beside.finish();
    // Nothing is compiled beside them now, either.
    let mut count = one_by_one + beside.as_ref().copied().unwrap_or_default();
    for round in [first, beside_others].into_iter().chain(of_few) {
        count = count + round.again_alone()?;
    }
    if runs(groups::FUZZ) {
        fuzz::briefly()?;
    }
    if runs(groups::INSTALL) {
        // Last, because it puts the binary anew that tests run.
        installs()?;
    }
    count.judge(filter).and(beside.map(drop))
}

/// How many tests run at a time of those that mostly wait.
fn mostly_waiting() -> usize {
    3 * thread::available_parallelism().map_or(2, usize::from)
}

/// The first round: a job for each program.
fn plain(programs: &[Program], filter: Option<&str>, in_depth: bool) -> Vec<Job> {
    let filter: Vec<&str> = filter.into_iter().collect();
    let mut programs: Vec<&Program> = programs.iter().collect();
    programs.sort_by_key(|program| place(&alone::FIRST, &program.name));
    let job = |program: &&Program| {
        let mut job = program.job(program.name.clone(), &[], &filter);
        job.command.envs(in_depth.then_some(("ORPHAND_LAWS", groups::STORIES)));
        if program.name != alone::COMPUTES {
            job.command.env("RUST_TEST_THREADS", mostly_waiting().to_string());
        }
        job
    };
    programs.iter().map(job).collect()
}

/// Where a test or its program is in a list; behind all of them where it is not.
fn place(list: &[&str], name: &str) -> usize {
    list.iter().position(|one| alone::is_of(one, name)).unwrap_or(list.len())
}

/// The jobs of the second round.
struct Privileged {
    /// Of each of these one runs at a time beside others.
    in_turn: Vec<Vec<Job>>,
    shared: Vec<Job>,
    /// Those of each round of [`alone::FEW`].
    few: [Vec<Job>; alone::FEW.len()],
    /// They have the host for themselves.
    alone: Vec<Job>,
}

fn privileged(
    programs: &[Program],
    root: &[OsString],
    filter: Option<&str>,
    left_out: &[&Group],
) -> Result<Privileged> {
    let mut jobs = Vec::new();
    for program in programs {
        jobs.extend(program.privileged(root, filter)?);
    }
    if filter.is_none() {
        alone::stand_for_tests(&jobs)?;
    }
    jobs.retain(|job| !left_out.iter().any(|group| group.has(&job.name)));
    let order = alone::IN_TURN.map(|(program, _)| program);
    jobs.sort_by_key(|job| (place(&order, &job.name), place(&alone::FIRST, &job.name)));
    let (alone, beside): (Vec<_>, Vec<_>) = jobs.into_iter().partition(|job| alone::is_alone(&job.name));
    let (mut in_turn, mut shared) = (BTreeMap::<_, Vec<Job>>::new(), Vec::new());
    let mut few = alone::FEW.map(|_| Vec::new());
    for job in beside {
        let round = alone::few(&job.name).and_then(|round| few.get_mut(round));
        match (round, alone::turn(&job.name)) {
            (Some(round), _) => round.push(job),
            (None, Some(why)) => in_turn.entry(why).or_default().push(job),
            (None, None) => shared.push(job),
        }
    }
    Ok(Privileged { in_turn: in_turn.into_values().collect(), shared, few, alone })
}

/// What is compiled beside the tests: nothing of it touches what these run.
fn rest(check: bool, fuzz: bool) -> impl Iterator<Item = (&'static str, Command)> {
    let mut lints = workspace::cargo();
    lints.args(["xtask", "check", "clippy-bpf", "reference", "docs"]);
    let all = [(check, "check", lints), (fuzz, "fuzz", fuzz::building())];
    all.into_iter().filter_map(|(wanted, name, command)| wanted.then_some((name, command)))
}

/// Tries what the README says: `cargo install --path monitor` gives `orphand`, and nothing else.
fn installs() -> Result<()> {
    command::say("test", "cargo install --path monitor");
    let folder = workspace::root().join("target/installed");
    let mut cargo = workspace::cargo();
    cargo.args("install --quiet --path monitor --debug --locked --force --root".split(' '));
    command::run(cargo.arg(&folder))?;
    let said = command::output(Command::new(folder.join("bin/orphand")).arg("--version"))?;
    ensure!(said.trim() == format!("orphand {}", workspace::VERSION), "what is installed says it is {said}");
    Ok(())
}
