//! `cargo xtask test package`: what people get, in a system that has next to nothing else.
//!
//! The tests are those of the packaging in `tests/tests/package.rs`, which plain `cargo xtask test` has, too, with a debug build
//! in an overlay of this machine. Here they get the static binary and Debian's smallest root, made anew by mmdebstrap.

use std::{
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context as _, Result, ensure};

use super::make;
use crate::{command, privilege, setup, workspace};

/// What the smallest root gets beside: what makes users where systemd is not, and what people read and complete with.
const WITH: &str = "--include=systemd-standalone-sysusers,man-db,bash-completion";

/// The test in which a static binary dies that asks its own glibc for a user of whom no file tells.
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
    let clean = clean_root(&root)?;
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
    command::output(words(root, "chroot").arg(&world).args(["/orphand", "config", "show"]))
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

/// Makes the root from the sources that this machine's apt has.
fn clean_root(root: &[String]) -> Result<PathBuf> {
    let folder = workspace::root().join("target/clean-root");
    command::say("test", "making a clean root");
    if folder.exists() {
        let mut remove = words(root, "rm");
        command::run(remove.args(["-rf", "--one-file-system"]).arg(&folder))?;
    }
    fs::create_dir_all(workspace::root().join("target")).context("cannot create target")?;
    let asked = ["indextargets", "--format", "$(ORIGIN)|deb $(REPO_URI) $(RELEASE) $(COMPONENT)"];
    let said = command::output(Command::new("apt-get").args(asked).arg("Created-By: Packages"))?;
    let sources = of_distribution(&said);
    ensure!(!sources.is_empty(), "apt has no sources of Debian or Ubuntu: apt-get update");
    let mut child = words(root, "mmdebstrap")
        .args(["--quiet", "--variant=minbase", WITH, ""])
        .arg(&folder)
        .arg("-")
        .stdin(Stdio::piped())
        .spawn()
        .context("cannot start mmdebstrap")?;
    let told = child.stdin.take().map(|mut stdin| stdin.write_all(sources.as_bytes()));
    ensure!(child.wait()?.success(), "mmdebstrap cannot make a root");
    told.transpose().context("cannot tell mmdebstrap the sources")?;
    Ok(folder)
}

/// The sources of the distribution itself, not what others offer for it.
fn of_distribution(said: &str) -> String {
    let theirs = |line: &str| {
        let (origin, source) = line.split_once('|')?;
        ["Debian", "Ubuntu"].contains(&origin).then(|| format!("{source}\n"))
    };
    said.lines().filter_map(theirs).collect()
}

/// A command with the words before it that make it run as root.
fn words(root: &[String], program: &str) -> Command {
    let mut words = root.iter().map(String::as_str).chain([program]);
    let mut command = Command::new(words.next().unwrap_or(program));
    command.args(words);
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_distributions_own_sources() {
        let said = "Debian|deb https://a/ stable main\nOthers|deb https://b/ stable main\n|deb c d e\n";
        assert_eq!(of_distribution(said), "deb https://a/ stable main\n");
    }
}
