//! The Debian package, built by cargo-deb. `[package.metadata.deb]` in monitor/Cargo.toml lists its contents.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, ensure};

use super::Release;
use crate::{command, workspace};

/// The release of cargo-deb that is used.
const VERSION: &str = "3.8.0";

/// The version of the packaging, where the program's own does not change.
const REVISION: u32 = 1;

/// Whom Debian's files name. There is no public address yet; `.invalid` is one for sure (RFC 2606).
pub const MAINTAINER: &str = "The orphand authors <orphand@orphand.invalid>";

/// The version as Debian writes it.
pub fn version(release: &Release) -> String {
    format!("{}-{REVISION}", release.version)
}

/// cargo-deb of this version: the one below `.toolchain`, which is built once.
///
/// Without its own compression (it then calls `xz`) and without optimisation: built in half a minute instead of two,
/// and packing takes as long.
pub fn tool() -> Result<PathBuf> {
    if let Some(mut building) = building() {
        command::say("dist", &format!("building cargo-deb {VERSION} (about a minute, once)"));
        command::run(&mut building)?;
    }
    let tool = folder().join("bin/cargo-deb");
    ensure!(command::is_executable(&tool), "{} was built but is not there", tool.display());
    Ok(tool)
}

/// What builds it, where it is not built yet.
pub fn building() -> Option<Command> {
    if command::is_executable(&folder().join("bin/cargo-deb")) {
        return None;
    }
    let mut cargo = workspace::cargo();
    cargo.args(["install", "--quiet", "--locked", "--debug", "cargo-deb", "--version", VERSION]);
    cargo.args(["--no-default-features", "--root"]).arg(folder());
    Some(cargo)
}

fn folder() -> PathBuf {
    workspace::root().join(format!(".toolchain/cargo-deb-{VERSION}"))
}

/// Packs the tree; gives the package, which cargo-deb names. No dpkg is needed for it.
pub fn pack(tool: &Path, release: &Release, fast: bool) -> Result<PathBuf> {
    command::output(
        Command::new(tool)
            .args(["--no-build", "--no-strip", "--quiet", "--package", "orphand"])
            .args(["--deb-version", &version(release), "--maintainer", MAINTAINER])
            .args(["--compress-system", "--output"])
            .arg(&release.out)
            .args(fast.then_some("--fast"))
            .env("SOURCE_DATE_EPOCH", release.epoch.to_string())
            .current_dir(workspace::root()),
    )?;
    let entries =
        fs::read_dir(&release.out).with_context(|| format!("cannot read {}", release.out.display()))?;
    let mut files = entries.flatten().map(|entry| entry.path());
    files.find(|file| file.extension().is_some_and(|e| e == "deb")).context("cargo-deb made no package")
}
