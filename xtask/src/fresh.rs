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

use crate::{command, files, privilege, setup, workspace};

/// What Debian with Rust and git has: a linker for Rust, git, and whom to trust in the network.
const WITH: &str = "gcc,libc6-dev,git,ca-certificates";

/// How cargo compiles is handed on, where whoever calls has a wish.
const WISHES: [&str; 4] =
    ["CARGO_BUILD_JOBS", "CARGO_INCREMENTAL", "CARGO_PROFILE_DEV_DEBUG", "CARGO_TERM_COLOR"];

/// The test.
pub fn main(filter: Option<&str>) -> Result<()> {
    let as_root = privilege::prefix("a system of its own")?;
    setup::install(setup::FRESH)?;
    let (rust, repository) = (toolchain()?, workspace::root());
    let folder = repository.join("target/fresh");
    let [checkout, system, cache] = ["checkout", "root", "cache"].map(|name| folder.join(name));
    let _lock = files::lock(&folder)?;
    // What is checked in.
    let git = |args: &[&str]| command::output(Command::new("git").args(args).current_dir(&repository));
    if !git(&["status", "--porcelain"])?.trim().is_empty() {
        command::say("test", "what is not committed is not tested");
    }
    files::empty(&checkout)?;
    git(&["clone", "--quiet", "--no-hardlinks", ".", &checkout.to_string_lossy()])?;
    command::say("test", "making a clean root");
    command::run(command::behind(&as_root, &clean_root()).args([&system, Path::new(WITH)]))
        .context("cannot make a clean root")?;
    // The way to the registries out of cargo's own configuration, if there is one; not how things are compiled here.
    let config = fs::read_to_string(workspace::cargo_home().join("config.toml")).unwrap_or_default();
    files::folder(&cache.join("cargo"))?;
    files::write(
        &cache.join("cargo/config.toml"),
        way(&config).context("cannot read cargo's configuration")?,
    )?;

    command::say("test", "cargo xtask test, in the clean root; Ctrl-C ends it at its next word");
    let mut inside = command::behind(&as_root, &Command::new("unshare"));
    inside.args(["--mount", "--propagation", "private"]).arg(repository.join("tests/stage/system.sh"));
    inside.args([&system, &cache, &rust, &checkout, &env::temp_dir().join("orphand-tests.lock")]);
    inside.args(env::vars().filter(|(name, value)| is_for_it(name, value)).map(|(n, v)| format!("{n}={v}")));
    inside.arg("--").args(filter).stdin(std::process::Stdio::null());
    let why = || format!("on a fresh machine `cargo xtask test` fails (it is in {})", system.display());
    command::run(&mut inside).with_context(why)?;
    println!("xtask: fresh: `cargo xtask test` does all it needs by itself");
    command::run(
        command::behind(&as_root, &Command::new("rm")).args(["-rf", "--one-file-system"]).arg(&system),
    )
}

/// What makes Debian's smallest root.
fn clean_root() -> Command {
    Command::new(workspace::root().join("tests/stage/clean_root.sh"))
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

fn way(text: &str) -> Result<String> {
    let mut table: toml::Table = text.parse()?;
    table.retain(|key, _| ["http", "net", "registries", "registry", "source"].contains(&key));
    Ok(table.to_string())
}

/// Whether a variable is handed on: a proxy, whom to trust, how to compile.
fn is_for_it(name: &str, value: &str) -> bool {
    name.to_lowercase().ends_with("_proxy") || value.starts_with("/etc/ssl/") || WISHES.contains(&name)
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

    /// Of apt's sources it takes the distribution's own, not what others offer for it; of its configuration the way to
    /// them: proxies, and whether dates count.
    #[test]
    fn mmdebstrap_is_told_the_distributions_own_sources_and_the_way_to_them() {
        let dir = tempfile::tempdir().unwrap();
        let program = |name: &str, script: &str| {
            let file = dir.path().join(name);
            fs::write(&file, format!("#!/bin/sh\n{script}\n")).unwrap();
            fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        };
        program("apt-get", "printf 'Debian|deb https://a/ b c\nOthers|deb https://b/ b c\n|deb c d e\n'");
        let configured = "APT::Architecture \"amd64\";\nAcquire::http::Proxy \"a\";\nAcquire::Languages \"none\";\n\
                          Acquire::Check-Date \"false\";\n";
        program("apt-config", &format!("cat <<'END'\n{configured}END"));
        program("mmdebstrap", "printf '%s\\n' \"$@\"; cat");
        let (folder, path) = (dir.path().join("root"), std::env::var("PATH").unwrap());
        let mut script = clean_root();
        let script = script.arg(&folder).arg("x,y").env("PATH", format!("{}:{path}", dir.path().display()));
        let said = command::output(script).unwrap();
        let ways = "--aptopt=Acquire::http::Proxy \"a\";\n--aptopt=Acquire::Check-Date \"false\";";
        let told = format!("--quiet\n--variant=minbase\n--include=x,y\n{ways}\n\n{}\n-\n", folder.display());
        assert_eq!(said, told + "deb https://a/ b c\n");
    }
}
