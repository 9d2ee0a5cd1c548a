//! `cargo xtask test`: runs all tests.
//!
//! There are two rounds of the same binaries. The first round runs the tests that any user can run, in parallel. The
//! second round runs the tests that are marked as ignored, one by one: they need root, the real kernel and the host
//! for themselves. No test is skipped silently: a test that cannot run is a failure. What the second round needs is
//! installed while the first round runs. What no test needs is built during the second round, which mostly waits
//! ([`crate::beside`]).
//!
//! Some tests are separate. `cargo xtask test vm` runs in a virtual machine ([`crate::vm`]).
//! `cargo xtask test package` tests the released files ([`dist::test`]). `cargo xtask test fresh` runs all of this
//! on a system where nothing is installed ([`fresh`]). `cargo xtask test judgement` prints the table of all
//! situations ([`crate::judgement`]), which the full test also runs.

use std::{
    io::{BufRead as _, BufReader},
    ops::AddAssign,
    process::{Command, Stdio},
};

use anyhow::{Context as _, Result, bail};

use crate::{beside::Beside, command, dist, fresh, fuzz, judgement, privilege, setup, vm, workspace};

/// The arguments of `test`.
#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Args {
    #[command(subcommand)]
    on: Option<On>,
    /// Only tests whose name contains this.
    filter: Option<String>,
    /// Only those that any user can run: quick, but not the whole truth.
    #[arg(long)]
    unprivileged: bool,
    /// Also the steps of `cargo xtask check` that compile, while tests wait: what CI does.
    #[arg(long, conflicts_with_all = ["filter", "unprivileged"])]
    check: bool,
}

/// A test that is not among all.
#[derive(clap::Subcommand)]
enum On {
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
        Some(On::Vm) => return vm::main(),
        Some(On::Package) => return dist::test(),
        Some(On::Fresh { filter }) => return fresh::main(filter.as_deref()),
        Some(On::Judgement(args)) => return judgement::main(args),
        None => {}
    }
    setup::bpf()?;
    // Asked for first: nobody should wait for a build to learn that a password is needed.
    let root =
        if args.unprivileged { Vec::new() } else { privilege::prefix("the tests on the real kernel")? };
    // Before the first round, which calls some of them. A user who may not install them sees which are missing.
    let tools = if args.unprivileged { setup::Tools::found()? } else { setup::tests()? };
    command::run(workspace::cargo().arg("build").args(WHAT).args(["--bins", "--tests"]))?;
    let mut count = Count::default();
    if args.unprivileged {
        count += round(args.filter.as_deref(), &only(&tools)?, &[], || Ok(()))?;
        return count.judge(args.filter.as_deref());
    }
    setup::dist()?;
    let fixtures = || Ok::<_, anyhow::Error>(Command::new(workspace::target_dir()?.join("debug/fixtures")));
    let prepared =
        Beside::start([Some(("fixtures", fixtures()?)), dist::building()].into_iter().flatten().collect())?;
    count += round(args.filter.as_deref(), &only(&tools)?, &[], || Ok(()))?;
    prepared.finish()?;
    dist::make(true)?;
    setup::fixtures(&mut fixtures()?)?;
    let mut beside = None;
    let rest = if args.filter.is_none() { rest(args.check)? } else { Vec::new() };
    // Examples and documentation have no tests that need root.
    let flags = ["--lib", "--bins", "--tests", "--", "--ignored", "--test-threads=1"];
    count += round(args.filter.as_deref(), &root, &flags, || {
        beside = Some(Beside::start(rest)?);
        Ok(())
    })?;
    let beside = beside.map_or(Ok(()), Beside::finish);
    if args.filter.is_none() {
        fuzz::briefly()?;
        // Last, because it puts the binary anew that tests run.
        installs()?;
    }
    count.judge(args.filter.as_deref()).and(beside)
}

/// What is compiled beside the second round: nothing of it touches what these tests run.
fn rest(check: bool) -> Result<Vec<(&'static str, Command)>> {
    let mut all = Vec::new();
    if check {
        let mut lints = Command::new(workspace::ourselves()?);
        lints.args(["check", "clippy", "clippy-bpf", "reference", "docs"]);
        all.push(("check", lints));
    }
    all.push(("fuzz", fuzz::building()?));
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

/// What came of the tests.
#[derive(Debug, Default, PartialEq, Eq)]
struct Count {
    passed: u64,
    failed: u64,
    /// Rounds that ended in failure, for whatever reason: a test program that crashed counts no test.
    broken: u64,
}

impl AddAssign for Count {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.broken += other.broken;
    }
}

impl Count {
    /// Says it, and whether it is good.
    fn judge(&self, filter: Option<&str>) -> Result<()> {
        println!("\nxtask: {} passed, {} failed", self.passed, self.failed);
        if self.failed > 0 || self.broken > 0 {
            bail!("{} tests failed, {} test programs ended in failure", self.failed, self.broken);
        }
        if self.passed == 0 {
            bail!("no test was run; is there one named like \"{}\"?", filter.unwrap_or_default());
        }
        Ok(())
    }

    /// Takes in a line such as `test result: ok. 9 passed; 0 failed; 1 ignored; 0 measured; ..`.
    fn read(&mut self, line: &str) {
        let Some((_, counts)) = line.strip_prefix("test result: ").and_then(|rest| rest.split_once(". "))
        else {
            return;
        };
        for part in counts.split("; ") {
            match part.split_once(' ') {
                Some((n, "passed")) => self.passed += n.parse().unwrap_or(0),
                Some((n, "failed")) => self.failed += n.parse().unwrap_or(0),
                _ => {}
            }
        }
    }
}

/// One round over all test programs, run by `runner`; what they print is passed on as it comes. `begun` is called
/// when all is built and cargo has let go of the target folder.
fn round(
    filter: Option<&str>,
    runner: &[String],
    flags: &[&str],
    begun: impl FnOnce() -> Result<()>,
) -> Result<Count> {
    let mut cargo = workspace::cargo();
    cargo.arg("test").args(WHAT).arg("--no-fail-fast");
    if !runner.is_empty() {
        // A list of strings is written the same way in TOML.
        cargo.args(["--config", &format!("target.'cfg(unix)'.runner={runner:?}")]);
    }
    let separator = (!flags.contains(&"--")).then_some("--");
    cargo.args(flags).args(separator).args(filter).stdout(Stdio::piped());
    let mut child = cargo.spawn().context("cannot start cargo test")?;
    let mut count = Count::default();
    let mut begun = Some(begun);
    if let Some(stdout) = child.stdout.take() {
        for line in BufReader::new(stdout).split(b'\n') {
            let line = line.context("cannot read what the tests print")?;
            let line = String::from_utf8_lossy(&line);
            println!("{line}");
            count.read(&line);
            if let Some(begun) = begun.take() {
                begun()?;
            }
        }
    }
    if !child.wait().context("cannot wait for cargo test")?.success() {
        count.broken += 1;
    }
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_closing_lines_of_test_programs() {
        let mut count = Count::default();
        count.read(
            "test result: ok. 9 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.01s",
        );
        count.read("test result: FAILED. 3 passed; 2 failed; 0 ignored; 0 measured; 7 filtered out; finished in 1.00s");
        count.read("test a::b ... ok");
        assert_eq!(count, Count { passed: 12, failed: 2, broken: 0 });
    }
}
