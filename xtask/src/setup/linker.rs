//! `bpf-linker`. It reads the bitcode of the compiler, so its LLVM must be that of the compiler, or newer.

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, ensure};

use super::packages;
use crate::{command, workspace};

/// The release that is built where none is found.
const VERSION: &str = "0.13.0";
/// The major versions of LLVM that this release can be built for.
const LLVMS: [u32; 3] = [21, 22, 23];

/// How it is compiled: what takes long in it is LLVM, which is compiled already. Its own profile optimises and has
/// debug information for all of its dependencies, which takes twice as long to build.
const PROFILE: [(&str, &str); 3] = [
    ("CARGO_PROFILE_RELEASE_OPT_LEVEL", "0"),
    ("CARGO_PROFILE_RELEASE_DEBUG", "false"),
    ("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "256"),
];

/// The folder of a linker that is there already and fits: one of ours, or one in `PATH`.
pub fn find(llvm: u32) -> Option<PathBuf> {
    let ours = folder(llvm).join("bin");
    if runs(&ours.join("bpf-linker")) {
        return Some(ours);
    }
    let theirs = command::find("bpf-linker").filter(|theirs| runs(theirs))?;
    llvm_of(&theirs).filter(|its| *its >= llvm).and(theirs.parent()).map(Path::to_path_buf)
}

/// Builds one, for all checkouts of this user, and gives its folder.
pub fn install(llvm: u32) -> Result<PathBuf> {
    ensure!(
        LLVMS.contains(&llvm),
        "bpf-linker {VERSION} cannot be built for its LLVM {llvm}, only for {LLVMS:?}"
    );
    if llvm_prefix(llvm).is_none() {
        packages::install(&format!("LLVM {llvm}"), &format!("llvm-{llvm}-dev"))?;
    }
    let prefix = llvm_prefix(llvm);
    let prefix = prefix.with_context(|| format!("the development files of LLVM {llvm} cannot be found"))?;
    command::say("setup", &format!("building bpf-linker {VERSION} for LLVM {llvm} (half a minute, once)"));
    let root = folder(llvm);
    let mut cargo = workspace::cargo();
    cargo.args([
        "install",
        "--quiet",
        "--locked",
        "bpf-linker",
        "--version",
        VERSION,
        "--no-default-features",
    ]);
    cargo.args(["--features", &format!("llvm-{llvm}"), "--root"]).arg(&root);
    command::run(cargo.env("LLVM_PREFIX", prefix).envs(PROFILE))?;
    find(llvm).with_context(|| format!("what was built below {} does not run", root.display()))
}

/// Where our linker for this LLVM lives: in the user's cache folder (XDG Base Directory Specification), below the
/// repository for whoever has no home. The path says which release it is, and which LLVM it is for.
fn folder(llvm: u32) -> PathBuf {
    let set = |name: &str| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let cache = set("XDG_CACHE_HOME").or_else(|| Some(set("HOME")?.join(".cache")));
    let cache = cache.unwrap_or_else(|| workspace::root().join(".toolchain"));
    cache.join(format!("orphand/bpf-linker-{VERSION}-llvm-{llvm}"))
}

fn runs(linker: &Path) -> bool {
    command::is_executable(linker) && command::output(Command::new(linker).arg("--version")).is_ok()
}

/// The folder below which the headers and libraries of this LLVM are: Debian has one for each major version,
/// others have one LLVM and `llvm-config` tells which.
fn llvm_prefix(llvm: u32) -> Option<PathBuf> {
    let debian = PathBuf::from(format!("/usr/lib/llvm-{llvm}"));
    if command::is_executable(&debian.join("bin/llvm-config")) {
        return Some(debian);
    }
    [format!("llvm-config-{llvm}"), "llvm-config".into()].iter().find_map(|name| {
        let ask = |what| command::output(Command::new(name).arg(what)).ok();
        let version = ask("--version")?;
        let major: u32 = version.split('.').next()?.parse().ok()?;
        (major == llvm).then(|| ask("--prefix"))?.map(|prefix| prefix.trim().into())
    })
}

/// The major version of the LLVM that a linker was built with, from the producer string that LLVM puts into
/// bitcode (`LLVM22.1.8`): it is in the linker itself or in the shared library that it loads.
fn llvm_of(linker: &Path) -> Option<u32> {
    const SCRIPT: &str = "library=$(ldd \"$0\" | sed -n 's/.*libLLVM.* => \\([^ ]*\\).*/\\1/p')
        grep -aoE 'LLVM[0-9]{2}\\.' \"${library:-$0}\" | head -n 1";
    let said = command::output(Command::new("sh").args(["-c", SCRIPT]).arg(linker)).ok()?;
    said.trim().strip_prefix("LLVM")?.strip_suffix('.')?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_llvm_out_of_a_binary() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("linker");
        for (text, llvm) in [
            ("\0\0LLVM tools\0LLVM22.1.8\0LLVM23.1\0", Some(22)),
            ("LLVMContext LLVM-22 LLVM22", None),
            ("", None),
        ] {
            std::fs::write(&file, text).unwrap();
            assert_eq!(llvm_of(&file), llvm);
        }
    }
}
