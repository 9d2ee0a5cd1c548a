//! `cargo xtask setup`: installs what is needed to build the eBPF programs and to run every test.
//!
//! The result is written to `.toolchain/bpf.toml` ([`Bpf`]), which the build script of the product reads. A second
//! call is cheap: [`bpf()`] only checks whether the things that the file names still exist. Setup never removes or
//! replaces what is installed. What it cannot install is named in one line.

mod bpf;
mod compiler;
mod linker;
mod mounts;
mod packages;
mod programs;
mod tools;

use std::{fs, path::Path};

use anyhow::{Context as _, Result, bail};
use rustix::fs::FlockOperation;

pub use bpf::{Bpf, TARGET};
use compiler::Compiler;
pub use packages::install_clippy;
pub use tools::Tools;

use crate::{command, workspace};

/// The arguments of `setup`.
#[derive(clap::Args)]
pub struct Args {
    /// Also install what the tests need: Python, Node.js, chromium and the published MCP packages.
    #[arg(long)]
    tests: bool,
}

/// The verb.
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
    mounts::mount_missing();
    let home = workspace::root().join(".toolchain");
    if let Some(bpf) = Bpf::read(&home).filter(Bpf::stands) {
        return Ok(bpf);
    }
    fs::create_dir_all(&home).with_context(|| format!("cannot create {}", home.display()))?;
    let _lock = lock(&home)?;
    // Another setup may have done it while we waited.
    if let Some(bpf) = Bpf::read(&home).filter(Bpf::stands) {
        return Ok(bpf);
    }
    let bpf = find_or_install()?;
    bpf.write(&home)?;
    Ok(bpf)
}

/// Makes sure that the programs the tests call are there, those of both rounds.
pub fn tests() -> Result<Tools> {
    packages::install_programs(&programs::TESTS)?;
    Tools::found()
}

/// Makes sure that the programs are there that the test on a machine of its own calls.
pub fn vm() -> Result<()> {
    packages::install_programs(&programs::VM)
}

/// Makes sure that the programs are there that pack what is handed out.
pub fn dist() -> Result<()> {
    packages::install_programs(&programs::DIST)
}

/// Makes sure that the programs are there that the test of what is handed out calls.
pub fn package() -> Result<()> {
    packages::install_programs(&programs::PACKAGE)
}

/// Makes sure that the programs are there that the test on a machine without any of them calls.
pub fn fresh() -> Result<()> {
    packages::install_programs(&programs::FRESH)
}

/// Has the tests' own installer fetch the published MCP packages; it is idempotent.
pub fn fixtures(installer: &mut std::process::Command) -> Result<()> {
    command::run(installer.stdout(std::process::Stdio::null()))
        .context("cannot install the published MCP packages that the tests use")
}

/// One setup at a time in a checkout.
fn lock(home: &Path) -> Result<fs::File> {
    let path = home.join("lock");
    let file = fs::File::create(&path).with_context(|| format!("cannot create {}", path.display()))?;
    rustix::fs::flock(&file, FlockOperation::LockExclusive)
        .with_context(|| format!("cannot lock {}", path.display()))?;
    Ok(file)
}

/// What is there is preferred to what would have to be built, and that to what would have to be installed.
fn find_or_install() -> Result<Bpf> {
    let mut failures = Vec::new();
    if let Some(bpf) = first(&mut failures) {
        return Ok(bpf);
    }
    for install in [packages::install_compiler, compiler::install_by_rustup] {
        match install() {
            Ok(()) => {
                if let Some(bpf) = first(&mut failures) {
                    return Ok(bpf);
                }
            }
            Err(error) => failures.push(format!("{error:#}")),
        }
    }
    bail!("eBPF cannot be built here ({}). {}", failures.join("; "), packages::advice());
}

/// The first compiler that has a linker, or gets one.
fn first(failures: &mut Vec<String>) -> Option<Bpf> {
    let compilers = Compiler::all();
    let ready = compilers.iter().find_map(|c| Some(Bpf::new(c, &linker::find(c.llvm)?)));
    ready.or_else(|| {
        compilers.iter().find_map(|c| match linker::install(c.llvm) {
            Ok(dir) => Some(Bpf::new(c, &dir)),
            Err(error) => {
                failures.push(format!("{}: {error:#}", c.rustc.display()));
                None
            }
        })
    })
}
