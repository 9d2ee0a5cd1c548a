//! `cargo xtask test vm`: orphand on a machine of its own, under a kernel of Debian's and with systemd as the real pid 1.
//!
//! The tests on this machine's kernel boot systemd in namespaces, beside what the machine runs: in its kernel and on its cgroups.
//! This one has neither from it. QEMU boots a distribution's kernel with cgroup2 and nothing else; a service that leaves its
//! servers behind is restarted there, a daemon observes it, a second one reaps (`tests/src/bin/guest.rs`). The guest tells
//! what was the case, [`judge`] says here whether that is right.

mod account;
mod judge;
mod kernel;
mod machine;
mod root;

use std::{fs, path::Path, time::Instant};

use anyhow::{Context as _, Result, anyhow};
use rustix::fs::FlockOperation;

use crate::{command, setup, test, workspace};
use account::Account;
use kernel::Kernel;

/// The test.
pub fn main() -> Result<()> {
    setup::bpf()?;
    setup::vm()?;
    let kernel = Kernel::provide()?;
    // What the other tests build, so that neither makes the other build anew.
    command::run(workspace::cargo().arg("build").args(test::WHAT).arg("--bins"))?;

    let target = workspace::target_dir()?;
    let dir = target.join("vm");
    fs::create_dir_all(&dir).with_context(|| format!("cannot create {}", dir.display()))?;
    let _lock = lock(&dir)?;
    let image = root::build(&dir, &target.join("debug"), &kernel)?;
    command::say("vm", &format!("booting Linux {}", kernel.version));
    let begun = Instant::now();
    let told = machine::run(&dir, &kernel, &image)?;
    let verdict = Account::read(&told).and_then(|account| judge::judge(&account));
    let verdict =
        verdict.map_err(|error| anyhow!("{error:#} (told.log and console.log in {})", dir.display()))?;
    println!("xtask: vm: {verdict}; {:.1} s", begun.elapsed().as_secs_f64());
    Ok(())
}

/// One machine at a time in a build folder.
fn lock(dir: &Path) -> Result<fs::File> {
    let path = dir.join("lock");
    let file = fs::File::create(&path).with_context(|| format!("cannot create {}", path.display()))?;
    rustix::fs::flock(&file, FlockOperation::LockExclusive)
        .with_context(|| format!("cannot lock {}", path.display()))?;
    Ok(file)
}
