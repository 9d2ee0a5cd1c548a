//! The released binary: one file that needs no dynamic linker, for every Linux of its architecture.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, bail, ensure};

use crate::{command, test::WHAT, workspace};

/// What a static glibc must not be asked: the answer may need a module of the name service, which it loads together
/// with a second glibc, and dies (SIGSEGV, even where both are the same version). `orphand` asks the host instead,
/// see its `os::users`.
///
/// `getpwuid_r` and `getgrouplist` are linked for functions of the standard library and of zbus that nobody calls:
/// of those only clippy.toml takes care.
const FORBIDDEN: [&str; 5] = ["getpwnam_r", "getpwnam", "getgrnam_r", "getgrnam", "getgrgid_r"];

/// The debug binary, dynamically linked: quick, and for this machine only. Built as `cargo xtask test` builds all,
/// so not twice.
pub fn debug() -> Result<PathBuf> {
    command::run(workspace::cargo().args(["build", "--quiet"]).args(WHAT).arg("--bins"))?;
    Ok(workspace::target_dir()?.join("debug/orphand"))
}

/// Builds the static binary, and makes sure that it is one.
pub fn release() -> Result<PathBuf> {
    let target = host()?;
    command::say("dist", &format!("building the static binary for {target} (some minutes, once)"));
    let home = env::var_os("CARGO_HOME")
        .map_or_else(|| PathBuf::from(env::var_os("HOME").unwrap_or_default()).join(".cargo"), PathBuf::from);
    // No folder of this machine in what is handed out, and the same bytes from another one.
    let flags = [
        "-Ctarget-feature=+crt-static".to_owned(),
        format!("--remap-path-prefix={}=/cargo", home.display()),
        format!("--remap-path-prefix={}=/orphand", workspace::root().display()),
    ];
    command::run(
        workspace::cargo()
            .args([
                "build",
                "--release",
                "--locked",
                "-p",
                "orphand",
                "--bin",
                "orphand",
                "--target",
                &target,
            ])
            // Flags that a developer has set are not meant for this build.
            .env_remove("RUSTFLAGS")
            .env("CARGO_ENCODED_RUSTFLAGS", flags.join("\u{1f}"))
            // Line tables make 14 MB 79 MB; a panic says file and line without them.
            .env("CARGO_PROFILE_RELEASE_DEBUG", "false"),
    )
    .context("where the linker finds no libc.a, install glibc's static one (Fedora: glibc-static)")?;
    let built = workspace::target_dir()?.join(&target).join("release/orphand");
    judge(&built)?;
    Ok(built)
}

/// The target that this machine's compiler builds for.
fn host() -> Result<String> {
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let said = command::output(Command::new(rustc).arg("-vV"))?;
    let host = said.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.context("rustc does not say what it builds for")?.to_owned())
}

/// The architecture by the name that archives of programs have it.
pub fn architecture() -> &'static str {
    env::consts::ARCH
}

/// Whether it is static, asks nothing that a static program must not, and starts where nothing else is.
fn judge(built: &Path) -> Result<()> {
    let headers = command::output(Command::new("readelf").args(["-lW"]).arg(built))?;
    ensure!(!headers.contains("INTERP"), "{} is not static: it asks for a dynamic linker", built.display());
    let symbols = command::output(Command::new("nm").arg(built))?;
    let asked = forbidden(&symbols);
    if !asked.is_empty() {
        bail!(
            "{} asks the static glibc for users or groups ({}), of which it may die: use `os::users` instead",
            built.display(),
            asked.join(", ")
        );
    }
    Ok(())
}

/// The functions among these symbols that must not be there.
fn forbidden(symbols: &str) -> Vec<&str> {
    let names = symbols.lines().filter_map(|line| line.split_whitespace().last());
    names.filter(|name| FORBIDDEN.contains(name)).collect()
}

/// Copies it without symbols.
pub fn strip(built: &Path, to: &Path) -> Result<()> {
    command::output(Command::new("strip").arg("-o").args([to, built]))?;
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(to, mode).with_context(|| format!("cannot make {} executable", to.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_static_program_must_not_ask_is_found_among_symbols() {
        let symbols = "00acf3e0 W getgrnam_r\n00acf190 T getgrouplist\n00 W getpwnam_r\n00 t main\n";
        assert_eq!(forbidden(symbols), ["getgrnam_r", "getpwnam_r"]);
        assert!(forbidden("00 T getgrnam_rs\n                 U getgroups\n").is_empty());
    }
}
