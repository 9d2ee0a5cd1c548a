//! `cargo xtask test`: runs all tests.
//!
//! There are two rounds of the same programs. The first round runs the tests that any user can run, program by program.
//! The second round runs the tests that are marked as ignored, on the real kernel and as root: several side by side, each
//! in a process of its own, then those that have the host for themselves ([`alone`]). No test is skipped silently: a
//! test that cannot run is a failure, and what is left out because nothing of it changed is named ([`groups`]).
//! What the second round needs is installed while the first round runs. What no test needs is built during the second
//! round, which mostly waits ([`beside`]).
//!
//! Some tests are separate. `cargo xtask test vm` runs in a virtual machine ([`crate::vm`]).
//! `cargo xtask test package` tests the released files ([`dist::test`]). `cargo xtask test fresh` runs all of this
//! on a system where nothing is installed ([`fresh`]). `cargo xtask test judgement` prints the table of all
//! situations ([`crate::judgement`]), which the full test also runs.

mod alone;
mod beside;
mod count;
mod groups;
mod pool;
mod programs;

use std::{process::Command, thread};

use anyhow::{Context as _, Result, bail};

use self::{beside::Beside, groups::Group, pool::Job, programs::Program};
use crate::{command, dist, fresh, fuzz, judgement, privilege, setup, vm, workspace};

/// The arguments of `test`.
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
    /// Only the others: those that need root and the real kernel.
    #[arg(long, conflicts_with = "unprivileged")]
    privileged: bool,
    /// Also the steps of `cargo xtask check` that compile, while tests wait: what CI does.
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

/// monitor-ebpf is not built for this machine, so it has no tests on it.
pub const WHAT: [&str; 3] = ["--workspace", "--exclude", "monitor-ebpf"];

/// The verb.
pub fn main(args: &Args) -> Result<()> {
    match &args.on {
        Some(On::All) => every(&Args::default(), &[]),
        Some(On::Vm) => vm::main(),
        Some(On::Package) => dist::test(),
        Some(On::Fresh { filter }) => fresh::main(filter.as_deref()),
        Some(On::Judgement(args)) => judgement::main(args),
        // Whoever names a test wants it.
        None if args.filter.is_some() => every(args, &[]),
        None => every(args, &groups::left_out()),
    }
}

/// Both rounds, without these groups.
fn every(args: &Args, left_out: &[&Group]) -> Result<()> {
    let filter = args.filter.as_deref();
    setup::bpf()?;
    // Asked for first: nobody should wait for a build to learn that a password is needed.
    let root =
        if args.unprivileged { Vec::new() } else { privilege::prefix("the tests on the real kernel")? };
    // Before the first round, which calls some of them. A user who may not install them sees which are missing.
    let tools = if args.unprivileged { setup::Tools::found()? } else { setup::tests()? };
    command::say("test", "building");
    command::run(workspace::cargo().arg("build").args(WHAT).args(["--bins", "--tests"]))?;
    let programs = Program::all()?;
    let plain = if args.privileged { Vec::new() } else { plain(&programs, &only(&tools)?, filter) };
    if args.unprivileged {
        return pool::run("for any user", Vec::new(), plain, 2)?.count().judge(filter);
    }
    let Privileged { in_turn, shared, alone } = privileged(&programs, &root, filter, left_out)?;
    let packages = shared.iter().any(|job| job.name.starts_with("package "));
    setup::dist()?;
    let fixtures = || Ok::<_, anyhow::Error>(Command::new(workspace::target_dir()?.join("debug/fixtures")));
    let packer = if packages { dist::building() } else { None };
    let prepared = Beside::start([Some(("fixtures", fixtures()?)), packer].into_iter().flatten().collect())?;
    let mut count = pool::run("for any user", Vec::new(), plain, 2)?.count();
    prepared.finish()?;
    if packages {
        dist::make(true)?;
    }
    setup::fixtures(&mut fixtures()?)?;
    let runs = |group: &Group| filter.is_none() && !left_out.iter().any(|left| left.name == group.name);
    let beside = Beside::start(rest(args.check, runs(&groups::FUZZ))?)?;
    let beside_others = pool::run("side by side", in_turn, shared, side_by_side())?;
    let alone = pool::run("one by one", Vec::new(), alone, 1)?;
    let beside = beside.finish();
    // Nothing is compiled beside them now, either.
    count += beside_others.again_alone()?;
    count += alone.again_alone()?;
    if runs(&groups::FUZZ) {
        fuzz::briefly()?;
    }
    if runs(&groups::INSTALL) {
        // Last, because it puts the binary anew that tests run.
        installs()?;
    }
    count.judge(filter).and(beside)
}

/// How many tests run side by side: most of them mostly wait.
fn side_by_side() -> usize {
    2 * thread::available_parallelism().map_or(2, usize::from)
}

/// The first round: a job for each program, and one for the examples in the documentation.
fn plain(programs: &[Program], runner: &[String], filter: Option<&str>) -> Vec<Job> {
    let filter: Vec<&str> = filter.into_iter().collect();
    let mut jobs: Vec<Job> =
        programs.iter().map(|program| program.job(program.name.clone(), runner, &filter)).collect();
    let mut examples = workspace::cargo();
    examples.args(["test", "--quiet", "--doc"]).args(WHAT).arg("--").args(filter);
    jobs.sort_by_key(|job| place(&alone::FIRST, &job.name));
    jobs.push(Job { name: "examples in the documentation".to_owned(), command: examples });
    jobs
}

/// Where a program is in a list; behind all of them where it is not.
fn place(list: &[&str], program: &str) -> usize {
    list.iter().position(|one| *one == program).unwrap_or(list.len())
}

/// The second round.
struct Privileged {
    /// Those of which one runs at a time, beside others.
    in_turn: Vec<Job>,
    /// Those that run side by side.
    shared: Vec<Job>,
    /// Those that have the host for themselves.
    alone: Vec<Job>,
}

/// What of it is run.
fn privileged(
    programs: &[Program],
    root: &[String],
    filter: Option<&str>,
    left_out: &[&Group],
) -> Result<Privileged> {
    const FLAGS: [&str; 2] = ["--ignored", "--test-threads=1"];
    let in_turn = alone::IN_TURN.map(|(program, _)| program);
    let mut jobs = Vec::new();
    let mut names = Vec::new();
    for program in programs {
        let tests = program.privileged(filter)?;
        let whole = tests.is_none() || alone::WHOLE.contains(&program.name.as_str());
        let tests = match tests {
            Some(tests) if tests.is_empty() => continue,
            _ if whole => vec![None],
            tests => tests.unwrap_or_default().into_iter().map(Some).collect(),
        };
        for test in tests {
            let name = test.as_ref().map_or(program.name.clone(), |test| format!("{} {test}", program.name));
            names.push(name.clone());
            if left_out.iter().any(|group| group.programs.contains(&program.name.as_str())) {
                continue;
            }
            let one = test.as_deref().map(|test| ["--exact", test]);
            let args: Vec<&str> = FLAGS
                .into_iter()
                .chain(one.into_iter().flatten())
                .chain(filter.filter(|_| test.is_none()))
                .collect();
            let places = (place(&in_turn, &program.name), place(&alone::FIRST, &program.name));
            jobs.push((places, program.job(name, root, &args)));
        }
    }
    if filter.is_none() {
        alone::stand_for_tests(&names)?;
    }
    jobs.sort_by_key(|(places, _)| *places);
    let (alone, beside): (Vec<_>, Vec<_>) = jobs.into_iter().partition(|(_, job)| alone::is_alone(&job.name));
    let (in_turn, shared): (Vec<_>, Vec<_>) =
        beside.into_iter().partition(|((at, _), _)| *at < in_turn.len());
    let [in_turn, shared, alone] =
        [in_turn, shared, alone].map(|jobs| jobs.into_iter().map(|(_, job)| job).collect());
    Ok(Privileged { in_turn, shared, alone })
}

/// What is compiled beside the second round: nothing of it touches what these tests run.
fn rest(check: bool, fuzz: bool) -> Result<Vec<(&'static str, Command)>> {
    let mut all = Vec::new();
    if check {
        let mut lints = Command::new(workspace::ourselves()?);
        lints.args(["check", "clippy", "clippy-bpf", "reference", "docs"]);
        all.push(("check", lints));
    }
    if fuzz {
        all.push(("fuzz", fuzz::building()?));
    }
    Ok(all)
}

/// What runs the tests of the first round: they find these programs and no others.
fn only(tools: &setup::Tools) -> Result<Vec<String>> {
    let folder = workspace::target_dir()?.join("tools");
    tools.link(&folder)?;
    let env = command::find("env").context("env is not in PATH")?;
    Ok([env.to_string_lossy().into_owned(), format!("PATH={}", folder.display())].into())
}

/// Tries what the README says: `cargo install --path monitor` gives `orphand`, and nothing else.
fn installs() -> Result<()> {
    command::say("test", "cargo install --path monitor");
    let folder = workspace::root().join("target/installed");
    let mut cargo = workspace::cargo();
    cargo.args(["install", "--quiet", "--path", "monitor", "--debug", "--locked", "--force", "--root"]);
    command::run(cargo.arg(&folder))?;
    let orphand = folder.join("bin/orphand");
    let said = command::output(Command::new(&orphand).arg("--version"))?;
    if said.trim() != format!("orphand {}", workspace::version()?) {
        bail!("{} says it is {said}", orphand.display());
    }
    Ok(())
}
