//! `cargo xtask test vm`: orphand in a virtual machine, with a Debian kernel and with systemd as the real pid 1.
//!
//! The other tests start systemd in namespaces of this machine, so they use its kernel and its cgroups. This test
//! uses neither. QEMU boots a kernel of the distribution, with cgroup2 only. In the guest a service that leaves its
//! servers behind is restarted; one daemon observes it, and a second daemon reaps (`tests/src/bin/guest.rs`). The
//! guest reports what happened, and [`judge`] decides here whether that is right.

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
