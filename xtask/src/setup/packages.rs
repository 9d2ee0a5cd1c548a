//! The packages of the distribution, and how they are installed.
//!
//! This works only on Debian and its derivatives, only with `apt-get`, and only if no package has to be removed.

use std::fs;

use anyhow::{Context as _, Result, bail};

use super::programs::Program;
use crate::{command, privilege};

/// A compiler with a prebuilt `core` for BPF, and its clippy for `cargo xtask check`.
const COMPILER: [&str; 3] = ["rustc-web", "libstd-rust-web-dev-bpf", CLIPPY];
const CLIPPY: &str = "rust-web-clippy";

/// Installs a compiler that can build for BPF.
pub fn install_compiler() -> Result<()> {
    install("a compiler with a core for BPF", &COMPILER)
}

/// Installs the clippy of that compiler, where the compiler was there without it.
pub fn install_clippy() -> Result<()> {
    install("the clippy of the compiler for BPF", &[CLIPPY])
}

/// Installs the development files of an LLVM.
pub fn install_llvm(major: u32) -> Result<()> {
    install(&format!("LLVM {major}"), &[&format!("llvm-{major}-dev")])
}

/// Installs what is missing of these programs.
pub fn install_programs(programs: &[Program]) -> Result<()> {
    let missing: Vec<&Program> = programs.iter().filter(|program| !program.is_there()).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let names: Vec<&str> = missing.iter().map(|program| program.name).collect();
    let packages: Vec<&str> = missing.iter().flat_map(|program| program.packages).copied().collect();
    install(&names.join(", "), &packages)?;
    match missing.iter().find(|program| !program.is_there()) {
        Some(program) => {
            bail!("{} was installed but does not work: `{}`", program.name, program.proof.join(" "))
        }
        None => Ok(()),
    }
}

/// What to do where we could not install it.
pub fn advice() -> &'static str {
    let os = fs::read_to_string("/etc/os-release").unwrap_or_default();
    match family(&os) {
        Family::Debian => {
            "As root: apt-get install rustc-web libstd-rust-web-dev-bpf, and the llvm-NN-dev of its LLVM \
             (rustc -vV tells NN); or: rustup toolchain install nightly --component rust-src, and cargo binstall bpf-linker"
        }
        Family::Fedora => "As root: dnf install rust rust-src llvm-devel; then call this again",
        Family::Arch => {
            "pacman -S rustup llvm; rustup toolchain install nightly --component rust-src; then call this again"
        }
        Family::Other => {
            "rustup toolchain install nightly --component rust-src, and cargo binstall bpf-linker; then call this again"
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Family {
    Debian,
    Fedora,
    Arch,
    Other,
}

/// The family of a distribution, from os-release(5).
fn family(os_release: &str) -> Family {
    let mut ids = os_release
        .lines()
        .filter_map(|line| line.strip_prefix("ID=").or_else(|| line.strip_prefix("ID_LIKE=")))
        .flat_map(|value| value.trim_matches('"').split_whitespace());
    ids.find_map(|id| match id {
        "debian" | "ubuntu" => Some(Family::Debian),
        "fedora" | "rhel" => Some(Family::Fedora),
        "arch" => Some(Family::Arch),
        _ => None,
    })
    .unwrap_or(Family::Other)
}

/// Installs packages; a failure is tried once more with fresh lists.
fn install(what: &str, packages: &[&str]) -> Result<()> {
    if command::find("apt-get").is_none() {
        bail!("{what} is missing, and there is no apt-get to install {}", packages.join(" "));
    }
    command::say("setup", &format!("installing {what}: apt-get install {}", packages.join(" ")));
    if !has_lists() {
        apt(&["update"])?;
    }
    let words = ["install", "--no-install-recommends", "--no-remove"];
    let words: Vec<&str> = words.iter().chain(packages).copied().collect();
    apt(&words)
        .or_else(|_| apt(&["update"]).and_then(|()| apt(&words)))
        .with_context(|| format!("{what} is missing"))
}

fn apt(words: &[&str]) -> Result<()> {
    let mut apt = privilege::command("apt-get", "installing packages")?;
    apt.args(["-y", "-q", "-o", "DPkg::Lock::Timeout=120"])
        .args(words)
        .env("DEBIAN_FRONTEND", "noninteractive");
    command::output(&mut apt).map(drop)
}

/// Whether apt has ever fetched its lists.
fn has_lists() -> bool {
    fs::read_dir("/var/lib/apt/lists")
        .is_ok_and(|entries| entries.flatten().any(|e| e.file_name().to_string_lossy().contains("_Packages")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_distribution_belongs_to_a_family() {
        assert_eq!(family("ID=debian\n"), Family::Debian);
        assert_eq!(family("NAME=\"Linux Mint\"\nID=linuxmint\nID_LIKE=\"ubuntu debian\"\n"), Family::Debian);
        assert_eq!(family("ID=\"rocky\"\nID_LIKE=\"rhel centos fedora\"\n"), Family::Fedora);
        assert_eq!(family("ID=arch\n"), Family::Arch);
        assert_eq!(family("ID=nixos\n"), Family::Other);
    }
}
