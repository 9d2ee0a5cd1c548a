//! Building from the source without having prepared it. (`cargo install` is tried by `cargo xtask test` itself, at its end: it puts
//! a binary where other tests have theirs.)

use std::{env, fs, path::PathBuf, process::Command};

use anyhow::{Context, Result, ensure};
use tempfile::tempdir;

/// Without what `cargo xtask setup` finds, the build says in one line that this is to be called.
#[test]
fn a_build_without_the_toolchain_says_what_to_do() -> Result<()> {
    let test = env::current_exe()?;
    // target/PROFILE/deps/TEST-HASH
    let built = test.ancestors().nth(2).context("no target folder")?.join("build");
    let scripts = fs::read_dir(&built).with_context(|| format!("read {}", built.display()))?.flatten();
    let scripts = scripts.map(|entry| entry.path().join("build-script-build"));
    let ours = |path: &PathBuf| path.is_file() && path.to_string_lossy().contains("/orphand-");
    let age = |path: &PathBuf| path.metadata().and_then(|about| about.modified()).ok();
    let script = scripts.filter(ours).max_by_key(age).context("orphand has no build script")?;
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
