//! The packages of the distribution, and how they are installed.
//!
//! This works only on Debian and its derivatives, only with `apt-get`, and only if no package has to be removed.

use std::path::Path;

use anyhow::{Context as _, Result, bail, ensure};

use super::programs::{missing, named};
use crate::{command, files, privilege};

/// Installs what is missing of a list of programs.
pub fn install_programs(list: &'static str) -> Result<()> {
    let missing = missing(list);
    if missing.is_empty() {
        return Ok(());
    }
    let (names, packages) = named(&missing);
    install(&names, &packages)?;
    let broken = missing.iter().find(|program| !program.is_there());
    broken.map_or(Ok(()), |one| bail!("{} was installed but does not work: `{}`", one.name, one.proof))
}

/// What to do where we could not install it.
pub const ADVICE: &str = "On Debian, as root: apt-get install rustc-web libstd-rust-web-dev-bpf rust-web-llvm. Elsewhere: \
    rustup toolchain install nightly --component rust-src --component llvm-tools; then call this again";

/// Installs packages; a failure is tried once more with fresh lists.
pub fn install(what: &str, packages: &str) -> Result<()> {
    let apt_get = command::find("apt-get");
    ensure!(apt_get.is_some(), "{what} is missing, and there is no apt-get to install {packages}");
    command::say("setup", &format!("installing {what}: apt-get install {packages}"));
    let install = format!("install --no-install-recommends --no-remove {packages}");
    // Whether apt has ever fetched its lists.
    let lists = files::list(Path::new("/var/lib/apt/lists")).unwrap_or_default();
    let known = lists.iter().any(|list| files::name(list).contains("_Packages"));
    let first = if known { apt(&install) } else { Err(anyhow::anyhow!("no lists")) };
    first
        .or_else(|_| apt("update").and_then(|()| apt(&install)))
        .with_context(|| format!("{what} is missing"))
}

fn apt(words: &str) -> Result<()> {
    let mut apt = privilege::command("apt-get", "installing packages")?;
    apt.args(["-y", "-q", "-o", "DPkg::Lock::Timeout=120"])
        .args(words.split(' '))
        .env("DEBIAN_FRONTEND", "noninteractive");
    command::output(&mut apt).map(drop)
}
