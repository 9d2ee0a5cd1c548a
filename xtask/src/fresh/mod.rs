//! `cargo xtask test fresh`: follows the README on a Debian that has nothing but Rust, gcc and git.
//!
//! The other tests run on a machine that has been prepared, by them or by its user. This test creates a new root,
//! puts a clone of `HEAD` into it, and runs `cargo xtask test` there as `nohup .. &` would: with SIGHUP, SIGINT and
//! SIGQUIT ignored. Kernel, processes and cgroups are those of this machine. Downloaded and compiled files are kept
//! in `target/fresh` for the next time. Installed packages and results of the setup are not kept.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, ensure};
use rustix::fs::FlockOperation;

use crate::{clean_root, command, privilege, setup, workspace};

/// What makes the root such a system.
const SYSTEM: &str = include_str!("system.sh");

/// What Debian with Rust and git has: a linker for Rust, git, and whom to trust in the network.
const WITH: [&str; 4] = ["gcc", "libc6-dev", "git", "ca-certificates"];

/// How cargo compiles is handed on, where whoever calls has a wish.
const WISHES: [&str; 4] =
    ["CARGO_BUILD_JOBS", "CARGO_INCREMENTAL", "CARGO_PROFILE_DEV_DEBUG", "CARGO_TERM_COLOR"];

/// The test.
pub fn main(filter: Option<&str>) -> Result<()> {
    let root = privilege::prefix("a system of its own")?;
    setup::fresh()?;
    let rust = toolchain()?;
    let folder = workspace::root().join("target/fresh");
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let _lock = lock(&folder)?;
    let checkout = clone(&folder.join("checkout"))?;
    let system = clean_root::make(&root, &folder.join("root"), &WITH)?;
    let cache = folder.join("cache");
    fs::create_dir_all(cache.join("cargo")).with_context(|| format!("cannot create {}", cache.display()))?;
    fs::write(cache.join("cargo/config.toml"), registries()?)
        .context("cannot write cargo's configuration")?;
    let script = folder.join("system.sh");
    fs::write(&script, SYSTEM).with_context(|| format!("cannot write {}", script.display()))?;

    command::say("test", "cargo xtask test, in the clean root; Ctrl-C ends it at its next word");
    let mut inside = privilege::words(&root, "unshare");
    inside.args(["--mount", "--propagation", "private", "bash"]);
    inside.args([&script, &system, &cache, &rust, &checkout, &env::temp_dir().join("orphand-tests.lock")]);
    inside.args(env::vars().filter(|(name, value)| is_for_it(name, value)).map(|(n, v)| format!("{n}={v}")));
    inside.arg("--").args(filter).stdin(std::process::Stdio::null());
    let status = inside.status().context("cannot start unshare")?;
    ensure!(
        status.success(),
        "on a fresh machine `cargo xtask test` fails: {status} (it is in {})",
        system.display()
    );
    println!("xtask: fresh: `cargo xtask test` does all it needs by itself");
    clean_root::remove(&root, &system)
}

/// The folder of the toolchain that runs us.
fn toolchain() -> Result<PathBuf> {
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let sysroot = PathBuf::from(command::output(Command::new(rustc).args(["--print", "sysroot"]))?.trim());
    ensure!(
        sysroot != Path::new("/usr") && command::is_executable(&sysroot.join("bin/cargo")),
        "Rust has no folder of its own here ({}): a fresh system cannot be given it alone; rustup makes one",
        sysroot.display()
    );
    Ok(sysroot)
}

/// Clones what is checked in.
fn clone(to: &Path) -> Result<PathBuf> {
    let from = workspace::root();
    let git = || {
        let mut git = Command::new("git");
        git.current_dir(&from);
        git
    };
    let changes = command::output(git().args(["status", "--porcelain"]))?;
    if !changes.trim().is_empty() {
        command::say("test", "what is not committed is not tested");
    }
    if to.exists() {
        fs::remove_dir_all(to).with_context(|| format!("cannot remove {}", to.display()))?;
    }
    command::output(git().args(["clone", "--quiet", "--no-hardlinks"]).args([&from, to]))?;
    Ok(to.to_owned())
}

/// The way to the registries out of cargo's own configuration, if there is one; not how things are compiled here.
fn registries() -> Result<String> {
    let home = env::var_os("CARGO_HOME")
        .map_or_else(|| PathBuf::from(env::var_os("HOME").unwrap_or_default()).join(".cargo"), PathBuf::from);
    let text = fs::read_to_string(home.join("config.toml")).unwrap_or_default();
    way(&text).with_context(|| format!("cannot read {}", home.join("config.toml").display()))
}

fn way(text: &str) -> Result<String> {
    let mut table: toml::Table = text.parse()?;
    table.retain(|key, _| ["http", "net", "registries", "registry", "source"].contains(&key));
    Ok(table.to_string())
}

/// Whether a variable is handed on: a proxy, whom to trust, how to compile.
fn is_for_it(name: &str, value: &str) -> bool {
    name.to_lowercase().ends_with("_proxy") || value.starts_with("/etc/ssl/") || WISHES.contains(&name)
}

/// One system at a time in a checkout.
fn lock(folder: &Path) -> Result<fs::File> {
    let path = folder.join("lock");
    let file = fs::File::create(&path).with_context(|| format!("cannot create {}", path.display()))?;
    rustix::fs::flock(&file, FlockOperation::LockExclusive)
        .with_context(|| format!("cannot lock {}", path.display()))?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_way_to_the_registries_is_taken_along() {
        let text =
            "[build]\nrustc-wrapper = \"x\"\n[source.crates-io]\nreplace-with = \"m\"\n[net]\nretry = 3\n";
        let taken: toml::Table = way(text).unwrap().parse().unwrap();
        assert_eq!(taken.keys().collect::<Vec<_>>(), ["net", "source"]);
        assert_eq!(way("").unwrap(), "");
    }

    #[test]
    fn nothing_of_the_environment_that_helps_is_taken_along() {
        assert!(is_for_it("https_proxy", "x") && is_for_it("SSL_CERT_FILE", "/etc/ssl/certs/c.crt"));
        assert!(
            !is_for_it("PATH", "/opt/node/bin") && !is_for_it("CARGO", "/x") && !is_for_it("RUSTFLAGS", "-g")
        );
    }
}
