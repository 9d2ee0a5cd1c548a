//! Building from the source, as whoever has a checkout does it.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, ensure};
use tempfile::tempdir;

fn repository() -> Result<PathBuf> {
    let parent = Path::new(env!("CARGO_MANIFEST_DIR")).parent();
    Ok(parent.context("the package has no parent folder")?.to_owned())
}

/// A nested cargo. What this one tells of the package of the tests would have it build others anew.
fn cargo() -> Command {
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    for (name, _) in env::vars_os() {
        let text = name.to_string_lossy();
        if ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_", "CARGO_PRIMARY_"]
            .iter()
            .any(|p| text.starts_with(p))
        {
            cargo.env_remove(&name);
        }
    }
    cargo
}

/// `cargo install --path monitor` gives `orphand`, and nothing else.
#[test]
fn cargo_installs_it() -> Result<()> {
    let folder = tempdir()?;
    let mut cargo = cargo();
    cargo.args(["install", "--path", "monitor", "--debug", "--locked", "--offline", "--no-track", "--root"]);
    let output = cargo.arg(folder.path()).current_dir(repository()?).output()?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let installed = fs::read_dir(folder.path().join("bin"))?.flatten().map(|file| file.file_name());
    let installed: Vec<_> = installed.collect();
    ensure!(installed == ["orphand"], "{installed:?}");
    let said = Command::new(folder.path().join("bin/orphand")).arg("--version").output()?.stdout;
    ensure!(said.starts_with(b"orphand "), "{}", String::from_utf8_lossy(&said));
    Ok(())
}

/// Without what `cargo xtask setup` finds, the build says in one line that this is to be called.
#[test]
fn a_build_without_the_toolchain_says_what_to_do() -> Result<()> {
    let test = env::current_exe()?;
    // target/PROFILE/deps/TEST-HASH
    let built = test.ancestors().nth(2).context("no target folder")?.join("build");
    let scripts = fs::read_dir(&built).with_context(|| format!("read {}", built.display()))?.flatten();
    let scripts = scripts.map(|entry| entry.path().join("build-script-build"));
    let ours = |path: &PathBuf| path.is_file() && path.to_string_lossy().contains("/monitor-");
    let age = |path: &PathBuf| path.metadata().and_then(|about| about.modified()).ok();
    let script = scripts.filter(ours).max_by_key(age).context("monitor has no build script")?;
    let elsewhere = tempdir()?;
    let output = Command::new(script)
        .env("CARGO_MANIFEST_DIR", elsewhere.path().join("monitor"))
        .env("OUT_DIR", elsewhere.path())
        .output()?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors: Vec<&str> = said.lines().filter_map(|line| line.strip_prefix("cargo::error=")).collect();
    let whole =
        matches!(errors[..], [one] if one.contains("bpf.toml") && one.contains("`cargo xtask setup`"));
    ensure!(whole && output.stderr.is_empty(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}
