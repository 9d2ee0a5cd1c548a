//! `cargo xtask test package`: tests the released files in a system with almost nothing else installed.
//!
//! The tests are those in `tests/tests/package.rs`. Plain `cargo xtask test` runs them, too, with a debug build in
//! an overlay of this machine. Here they get the static binary and Debian's smallest root, newly created by
//! mmdebstrap.

use std::{fs, path::Path, process::Command};

use anyhow::{Context as _, Result, ensure};

use super::make;
use crate::{clean_root, command, privilege, setup, workspace};

/// What the smallest root gets beside: what makes users where systemd is not, and what people read and complete with.
const WITH: [&str; 3] = ["systemd-standalone-sysusers", "man-db", "bash-completion"];

/// The test that fails if a static binary asks its own glibc for a user that is in no file: the binary crashes.
const STRANGERS: &str = "strangers_are_refused";

/// The verb.
pub fn test() -> Result<()> {
    setup::package()?;
    let root = privilege::prefix("a system of its own")?;
    let files = make(false)?;
    let package = files.iter().find(|file| file.extension().is_some_and(|e| e == "deb"));
    let package = package.context("no package was made")?;
    lint(package)?;
    let binary = workspace::root().join("target/package/usr/bin/orphand");
    alone(&root, &binary)?;
    let clean = clean_root::make(&root, &workspace::root().join("target/clean-root"), &WITH)?;
    let test = |program: &str, only: &[&str]| {
        let mut cargo = workspace::cargo();
        if !root.is_empty() {
            // A list of strings is written the same way in TOML.
            cargo.args(["--config", &format!("target.'cfg(unix)'.runner={root:?}")]);
        }
        cargo.args(["test", "-p", "tests", "--test", program, "--"]).args(only);
        cargo.args(["--include-ignored", "--test-threads=1"]);
        cargo
    };
    let folder = package.parent().unwrap_or(package);
    command::run(test("package", &[]).env("ORPHAND_PACKAGES", folder).env("ORPHAND_TEST_ROOT", &clean))?;
    command::run(test("front", &["--exact", STRANGERS]).env("ORPHAND_BIN", &binary))
}

/// Whether it needs nothing: it is the only file of its world.
fn alone(root: &[String], binary: &Path) -> Result<()> {
    let world = workspace::root().join("target/empty-root");
    fs::create_dir_all(&world).with_context(|| format!("cannot create {}", world.display()))?;
    fs::copy(binary, world.join("orphand")).with_context(|| format!("cannot copy {}", binary.display()))?;
    command::output(privilege::words(root, "chroot").arg(&world).args(["/orphand", "config", "show"]))
        .context("the binary is not static, or needs more than itself")
        .map(drop)
}

/// Whatever lintian finds is a failure; what is as it is for a reason stands in packaging/deb/lintian-overrides.
fn lint(package: &Path) -> Result<()> {
    command::say("test", "asking lintian");
    let found = command::output(Command::new("lintian").args(["--fail-on", "warning"]).arg(package))?;
    ensure!(found.trim().is_empty(), "lintian: {found}");
    Ok(())
}
