//! Compilers that can build for BPF: they have a prebuilt `core` for it, or the source of `core`.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, bail};

use super::bpf::TARGET;
use crate::command;

/// A compiler that can build for BPF.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compiler {
    /// Its path.
    pub rustc: PathBuf,
    /// Whether `core` has to be built from source.
    pub build_std: bool,
    /// Whether it takes unstable features only with `RUSTC_BOOTSTRAP=1`: aya-ebpf needs `asm_experimental_arch`.
    pub bootstrap: bool,
    /// The name by which rustup knows it.
    pub toolchain: Option<String>,
    /// The major version of its LLVM.
    pub llvm: u32,
}

impl Compiler {
    /// All there are, the best first: made for this (nightly), then ready to use, then the rest.
    pub fn all() -> Vec<Self> {
        let mut all: Vec<_> = rustup_toolchains()
            .into_iter()
            .filter_map(|(name, rustc)| Self::judge(&rustc, Some(name)))
            .collect();
        all.extend(Self::judge(Path::new("/usr/bin/rustc"), None));
        all.sort_by_key(|compiler| (compiler.bootstrap, compiler.build_std));
        all
    }

    /// What this compiler can do; nothing if it is not there or cannot build for BPF.
    pub fn judge(rustc: &Path, toolchain: Option<String>) -> Option<Self> {
        if !command::is_executable(rustc) {
            return None;
        }
        // The sysroot does not change between these two questions, but asking both at once is not possible.
        let version = command::output(Command::new(rustc).arg("-vV")).ok()?;
        let sysroot = command::output(Command::new(rustc).args(["--print", "sysroot"])).ok()?;
        let rustlib = Path::new(sysroot.trim()).join("lib/rustlib");
        let prebuilt = has_core(&rustlib.join(TARGET).join("lib"));
        if !prebuilt && !rustlib.join("src/rust/library/core/src/lib.rs").is_file() {
            return None;
        }
        let about = About::parse(&version)?;
        Some(Self {
            rustc: rustc.to_path_buf(),
            build_std: !prebuilt,
            bootstrap: !about.nightly,
            toolchain,
            llvm: about.llvm,
        })
    }
}

/// Whether a folder has a compiled `core`.
fn has_core(lib: &Path) -> bool {
    fs::read_dir(lib).is_ok_and(|entries| {
        entries.flatten().any(|entry| {
            let name = entry.file_name();
            let name = Path::new(&name);
            name.extension().is_some_and(|e| e == "rlib") && name.to_string_lossy().starts_with("libcore-")
        })
    })
}

/// What `rustc -vV` says, as far as we care.
#[derive(Debug, PartialEq, Eq)]
struct About {
    nightly: bool,
    llvm: u32,
}

impl About {
    fn parse(text: &str) -> Option<Self> {
        let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
        let release = field("release")?;
        let llvm = field("LLVM version")?.split('.').next()?.parse().ok()?;
        Some(Self { nightly: release.contains("-nightly") || release.contains("-dev"), llvm })
    }
}

/// The toolchains that rustup has installed: their names and compilers.
fn rustup_toolchains() -> Vec<(String, PathBuf)> {
    let Ok(list) = command::output(Command::new("rustup").args(["toolchain", "list"])) else {
        return Vec::new();
    };
    let names = list.lines().filter_map(|line| line.split_whitespace().next());
    names
        .filter_map(|name| {
            let sysroot =
                Command::new("rustup").args(["run", name, "rustc", "--print", "sysroot"]).output().ok()?;
            let sysroot = String::from_utf8(sysroot.stdout).ok()?;
            let rustc = Path::new(sysroot.trim()).join("bin/rustc");
            rustc.is_file().then(|| (name.to_owned(), rustc))
        })
        .collect()
}

/// Has rustup install the source of `core` for a nightly compiler.
pub fn install_by_rustup() -> Result<()> {
    if command::find("rustup").is_none() {
        bail!("there is no rustup");
    }
    command::say("setup", "asking rustup for a nightly compiler with the source of core");
    let nightly = rustup_toolchains().into_iter().find(|(name, _)| name.starts_with("nightly"));
    let mut rustup = Command::new("rustup");
    match nightly {
        Some((name, _)) => rustup.args(["component", "add", "rust-src", "--toolchain", &name]),
        None => rustup.args([
            "toolchain",
            "install",
            "nightly",
            "--component",
            "rust-src",
            "--profile",
            "minimal",
        ]),
    };
    command::output(&mut rustup).map(drop).context("rustup cannot install it")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_a_compiler_says_of_itself() {
        let stable = "rustc 1.96.0 (ac68faa20 2026-05-25)\nrelease: 1.96.0\nLLVM version: 22.1.8\n";
        assert_eq!(About::parse(stable), Some(About { nightly: false, llvm: 22 }));
        let nightly = "rustc 1.99.0-nightly\nrelease: 1.99.0-nightly\nLLVM version: 23.0\n";
        assert_eq!(About::parse(nightly), Some(About { nightly: true, llvm: 23 }));
        assert_eq!(About::parse("release: 1.96.0\n"), None);
    }

    #[test]
    fn a_core_is_a_compiled_library() {
        let dir = tempfile::tempdir().unwrap();
        assert!(!has_core(dir.path()));
        fs::write(dir.path().join("libcore-1.rmeta"), "").unwrap();
        fs::write(dir.path().join("liballoc-1.rlib"), "").unwrap();
        assert!(!has_core(dir.path()));
        fs::write(dir.path().join("libcore-1.rlib"), "").unwrap();
        assert!(has_core(dir.path()));
    }
}
