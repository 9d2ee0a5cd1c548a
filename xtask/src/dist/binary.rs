//! The released binary: one file that needs no dynamic linker, for every Linux of its architecture.

use std::{env, path::Path, path::PathBuf, process::Command};

use anyhow::{Context as _, Result, ensure};

use crate::{command, workspace};

/// What a static glibc must not be asked: the answer may need a module of the name service, which it loads together
/// with a second glibc, and dies (SIGSEGV, even where both are the same version). `orphand` asks the host instead,
/// see its `os::users`.
///
/// `getpwuid_r` and `getgrouplist` are linked for functions of the standard library that nobody calls:
/// of those only clippy.toml takes care.
const FORBIDDEN: [&str; 5] = ["getpwnam_r", "getpwnam", "getgrnam_r", "getgrnam", "getgrgid_r"];

/// Builds the static binary, and makes sure that it is one.
pub fn release() -> Result<PathBuf> {
    let target = host()?;
    command::say("dist", &format!("building the static binary for {target} (some minutes, once)"));
    // No folder of this machine in what is handed out, and the same bytes from another one.
    let flags = [
        "-Ctarget-feature=+crt-static".to_owned(),
        format!("--remap-path-prefix={}=/cargo", workspace::cargo_home().display()),
        format!("--remap-path-prefix={}=/orphand", workspace::root().display()),
    ];
    let mut cargo = workspace::cargo();
    cargo.args("build --release --locked -p orphand --bin orphand --target".split(' ')).arg(&target);
    // Flags that a developer has set are not meant for this build.
    cargo.env_remove("RUSTFLAGS").env("CARGO_ENCODED_RUSTFLAGS", flags.join("\u{1f}"));
    // Line tables make 14 MB 79 MB; a panic says file and line without them.
    command::run(cargo.env("CARGO_PROFILE_RELEASE_DEBUG", "false"))
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

/// Whether it is static, asks nothing that a static program must not, and starts where nothing else is.
fn judge(built: &Path) -> Result<()> {
    let headers = command::output(Command::new("readelf").args(["-lW"]).arg(built))?;
    ensure!(!headers.contains("INTERP"), "{} is not static: it asks for a dynamic linker", built.display());
    let symbols = command::output(Command::new("nm").arg(built))?;
    let asked = forbidden(&symbols);
    ensure!(
        asked.is_empty(),
        "{} asks the static glibc for users or groups ({}), of which it may die: use `os::users` instead",
        built.display(),
        asked.join(", ")
    );
    Ok(())
}

/// The functions among these symbols that must not be there.
fn forbidden(symbols: &str) -> Vec<&str> {
    let names = symbols.lines().filter_map(|line| line.split_whitespace().last());
    names.filter(|name| FORBIDDEN.contains(name)).collect()
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
