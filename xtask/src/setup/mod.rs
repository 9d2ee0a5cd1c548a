//! `cargo xtask setup`: installs what is needed to build the eBPF programs and to run every test.
//!
//! The result is written to `.toolchain/bpf.toml` ([`Bpf`]), which the build script of the product reads. A second
//! call is cheap: [`bpf()`] only checks whether the things that the file names still exist. Setup never removes or
//! replaces what is installed. What it cannot install is named in one line.

mod bpf;
mod packages;
mod programs;

use std::{fs::File, path::PathBuf, process::Command, thread};

use anyhow::{Context as _, Result, anyhow, bail};

pub use self::{
    bpf::{Bpf, TARGET},
    programs::{DIST, FRESH, PACKAGE, VM, found},
};
use crate::{command, files, privilege, workspace};

#[derive(clap::Args)]
pub struct Args {
    /// Also install what the tests need: Python, Node.js, chromium and the published MCP packages.
    #[arg(long)]
    tests: bool,
}

pub fn main(args: &Args) -> Result<()> {
    let bpf = bpf()?;
    command::say("setup", &format!("eBPF is built by {bpf}"));
    if args.tests {
        tests()?;
        fixtures(workspace::cargo().args(["run", "--quiet", "-p", "tests", "--bin", "fixtures"]))?;
        command::say("setup", "everything the tests need is there");
    }
    Ok(())
}

/// Makes sure that eBPF can be built, and that the kernel's file systems that eBPF uses are mounted.
pub fn bpf() -> Result<Bpf> {
    begin()?.finish()
}

/// The same, as far as nothing has to be installed for it.
pub fn begin() -> Result<Setup> {
    mount_missing();
    let there = || Bpf::read(&home()).filter(Bpf::stands);
    if let Some(bpf) = there() {
        return Ok(Setup::Done(bpf));
    }
    let lock = files::lock(&home())?;
    // Another setup may have done it while we waited.
    if let Some(bpf) = there() {
        return Ok(Setup::Done(bpf));
    }
    if let Some(bpf) = Bpf::find() {
        bpf.write(&home())?;
        return Ok(Setup::Done(bpf));
    }
    privilege::ask("installing packages");
    Ok(Setup::Begun(lock))
}

/// A way to build eBPF, or the lock of whoever has to install one: the build script of the product waits for it.
pub enum Setup {
    Done(Bpf),
    Begun(File),
}

impl Setup {
    fn finish(self) -> Result<Bpf> {
        match self {
            Self::Done(bpf) => Ok(bpf),
            Self::Begun(_lock) => {
                let bpf = install_compiler()?;
                bpf.write(&home())?;
                Ok(bpf)
            }
        }
    }

    /// Installs what is missing, and this besides, while something builds.
    pub fn beside<T>(self, besides: fn() -> Result<()>, build: impl FnOnce() -> Result<T>) -> Result<T> {
        thread::scope(|scope| {
            let setup = scope.spawn(|| self.finish().and_then(|_| besides()));
            let outcome = build();
            // Without the setup nothing can be built, so its error is the one to tell.
            setup.join().map_err(|_| anyhow!("the setup panicked"))?.and(outcome)
        })
    }
}

fn home() -> PathBuf {
    workspace::root().join(".toolchain")
}

/// Makes sure that the programs the tests call are there, those of both rounds.
pub fn tests() -> Result<()> {
    install(programs::TESTS)
}

/// Makes sure that these programs are there.
pub fn install(programs: &'static str) -> Result<()> {
    packages::install_programs(programs)
}

/// Has the tests' own installer fetch the published MCP packages; it is idempotent.
pub fn fixtures(installer: &mut Command) -> Result<()> {
    command::run(installer.stdout(std::process::Stdio::null()))
        .context("cannot install the published MCP packages that the tests use")
}

/// Installs the clippy of the distribution's compiler for BPF, where that was there without it.
pub fn clippy() -> Result<()> {
    packages::install("the clippy of the compiler for BPF", CLIPPY)
}

/// A compiler with a prebuilt `core` for BPF and the tools of its LLVM, and its clippy for `cargo xtask check`.
const COMPILER: &str = "rustc-web libstd-rust-web-dev-bpf rust-web-llvm";
const CLIPPY: &str = "rust-web-clippy";

fn install_compiler() -> Result<Bpf> {
    let mut failures = Vec::new();
    let package: fn() -> Result<()> = || packages::install("a compiler with a core for BPF", COMPILER);
    for install in [package, bpf::install_by_rustup] {
        if let Err(error) = install() {
            failures.push(format!("{error:#}"));
        } else if let Some(bpf) = Bpf::find() {
            return Ok(bpf);
        }
    }
    bail!("eBPF cannot be built here ({}). {}", failures.join("; "), packages::ADVICE);
}

/// Mounts what is missing of the kernel's file systems that eBPF uses, where root can: tracefs (for the setsid
/// tracepoint), which older kernels put elsewhere, and bpffs. The first word is the list of mounts. The daemon says for
/// itself what it lacks, so a failure is no error.
const MOUNT: &str = "
grep -qE '^[^ ]+ /sys/kernel/(debug/)?tracing tracefs ' \"$0\" || ! [ -d /sys/kernel/tracing ] ||
    mount -t tracefs tracefs /sys/kernel/tracing
grep -q '^[^ ]* /sys/fs/bpf bpf ' \"$0\" || ! [ -d /sys/fs/bpf ] || mount -t bpf bpf /sys/fs/bpf";

fn mount_missing() {
    if privilege::is_root()
        && let Err(error) = command::output(Command::new("sh").args(["-c", MOUNT, "/proc/self/mounts"]))
    {
        command::say("setup", &format!("cannot mount what eBPF uses: {error:#}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mount_is_kind_and_place() {
        let dir = tempfile::tempdir().unwrap();
        let mounts = dir.path().join("mounts");
        let tracefs = "-t tracefs tracefs /sys/kernel/tracing\n";
        let bpf = "-t bpf bpf /sys/fs/bpf\n";
        for (there, missing) in [
            ("proc /proc proc rw 0 0\nt /sys/kernel/debug/tracing tracefs rw 0 0\n", bpf.to_owned()),
            ("t /sys/kernel/tracing tracefs rw 0 0\nb /sys/fs/bpf bpf rw 0 0\n", String::new()),
            ("proc /sys/fs/bpf proc rw 0 0\n", format!("{tracefs}{bpf}")),
        ] {
            files::write(&mounts, there).unwrap();
            let script = format!("mount() {{ echo \"$@\"; }}\n{MOUNT}");
            let said = command::output(Command::new("sh").args(["-c", &script]).arg(&mounts)).unwrap();
            assert_eq!(said, missing);
        }
    }
}
