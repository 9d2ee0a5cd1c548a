//! Compilers that can build for BPF, and `.toolchain/bpf.toml`: the way to do it, as found by setup. The build script of
//! the product reads this file.

use std::{
    fmt, fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, ensure};
use serde::{Deserialize, Serialize};

use crate::{command, files};

/// The BPF target of this machine's byte order.
pub const TARGET: &str =
    if cfg!(target_endian = "little") { "bpfel-unknown-none" } else { "bpfeb-unknown-none" };

const HEADER: &str =
    "# Written by `cargo xtask setup`, read by monitor/build.rs. Delete it to have setup look again.\n";

/// A way to build eBPF.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bpf {
    /// The compiler.
    pub rustc: PathBuf,
    /// LLVM's compiler of bitcode: of the compiler's LLVM, or of a newer one, as it reads what the compiler wrote.
    pub llc: PathBuf,
    /// Whether there is no compiled `core`: `-Z build-std=core`.
    pub build_std: bool,
    /// Whether the compiler takes unstable features only with `RUSTC_BOOTSTRAP=1`: aya-ebpf needs
    /// `asm_experimental_arch`.
    pub bootstrap: bool,
    /// The name by which rustup knows the compiler.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub toolchain: Option<String>,
}

impl Bpf {
    /// The best of what is there: made for this (nightly), then ready to use, then the rest.
    pub fn find() -> Option<Self> {
        let toolchains = rustup_toolchains();
        let theirs = toolchains.iter().filter_map(|(name, rustc)| Self::judge(rustc, Some(name)));
        theirs
            .chain(Self::judge(Path::new("/usr/bin/rustc"), None))
            .min_by_key(|way| (way.bootstrap, way.build_std))
    }

    /// What this compiler can do; nothing if it is not there or cannot build for BPF.
    fn judge(rustc: &Path, toolchain: Option<&str>) -> Option<Self> {
        let version = command::output(Command::new(rustc).arg("-vV")).ok()?;
        let sysroot = command::output(Command::new(rustc).args(["--print", "sysroot"])).ok()?;
        let rustlib = Path::new(sysroot.trim()).join("lib/rustlib");
        let prebuilt = has_core(&rustlib.join(TARGET).join("lib"));
        if !prebuilt && !rustlib.join("src/rust/library/core/src/lib.rs").is_file() {
            return None;
        }
        let about = About::read(&version)?;
        // rustup's component `llvm-tools`, a package of Debian, or whatever is there.
        let places = [
            Some(rustlib.join(about.host).join("bin/llc")),
            Some(format!("/usr/lib/llvm-{}/bin/llc", about.llvm).into()),
            command::find("llc"),
        ];
        let fits = |llc: &PathBuf| {
            let said = command::output(Command::new(llc).arg("--version")).ok();
            said.and_then(|said| llvm_of(&said)).is_some_and(|its| its >= about.llvm)
        };
        Some(Self {
            rustc: rustc.to_path_buf(),
            llc: places.into_iter().flatten().find(fits)?,
            build_std: !prebuilt,
            bootstrap: !about.nightly,
            toolchain: toolchain.map(str::to_owned),
        })
    }

    /// What was found before; nothing if there is no file, or one that an older setup wrote.
    pub fn read(home: &Path) -> Option<Self> {
        toml::from_str(&files::read(&home.join("bpf.toml")).ok()?).ok()
    }

    /// Writes the file, whole or not at all.
    pub fn write(&self, home: &Path) -> Result<()> {
        let fresh = home.join("bpf.toml.new");
        files::write(&fresh, format!("{HEADER}{}", toml::to_string(self)?))?;
        fs::rename(&fresh, home.join("bpf.toml")).context("cannot write bpf.toml")
    }

    /// Whether it is still there: an upgrade of the distribution may have taken the compiler or changed its LLVM.
    pub fn stands(&self) -> bool {
        Self::judge(&self.rustc, self.toolchain.as_deref()).is_some_and(|now| now == *self)
    }
}

impl fmt::Display for Bpf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let core = if self.build_std { "core from source" } else { "prebuilt core" };
        write!(f, "{} ({core}) and {}", self.rustc.display(), self.llc.display())
    }
}

/// Whether a folder has a compiled `core`.
fn has_core(lib: &Path) -> bool {
    files::ending(lib, "rlib")
        .is_ok_and(|all| all.iter().any(|file| files::name(file).starts_with("libcore-")))
}

/// What `rustc -vV` says, as far as we care.
#[derive(Debug, PartialEq, Eq)]
struct About<'a> {
    nightly: bool,
    /// The major version of its LLVM.
    llvm: u32,
    host: &'a str,
}

impl<'a> About<'a> {
    fn read(text: &'a str) -> Option<Self> {
        let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
        let release = field("release")?;
        let nightly = release.contains("-nightly") || release.contains("-dev");
        Some(Self { nightly, llvm: major(field("LLVM version")?)?, host: field("host")? })
    }
}

/// The major version in what a program of LLVM says of itself: `LLVM version 22.1.8`.
fn llvm_of(said: &str) -> Option<u32> {
    major(said.split_once("LLVM version ")?.1)
}

fn major(version: &str) -> Option<u32> {
    version.split('.').next()?.parse().ok()
}

/// The toolchains that rustup has installed: their names and compilers.
fn rustup_toolchains() -> Vec<(String, PathBuf)> {
    let rustup = |args: &[&str]| command::output(Command::new("rustup").args(args)).ok();
    let list = rustup(&["toolchain", "list"]).unwrap_or_default();
    let names = list.lines().filter_map(|line| line.split_whitespace().next());
    names
        .filter_map(|name| {
            let sysroot = rustup(&["run", name, "rustc", "--print", "sysroot"])?;
            Some((name.to_owned(), Path::new(sysroot.trim()).join("bin/rustc")))
        })
        .collect()
}

/// Has rustup install the source of `core` and the tools of LLVM for a nightly compiler.
pub fn install_by_rustup() -> Result<()> {
    ensure!(command::find("rustup").is_some(), "there is no rustup");
    command::say(
        "setup",
        "asking rustup for a nightly compiler with the source of core and the tools of LLVM",
    );
    let nightly = rustup_toolchains().into_iter().find(|(name, _)| name.starts_with("nightly"));
    let mut rustup = Command::new("rustup");
    match nightly {
        Some((name, _)) => rustup.args(["component", "add", "rust-src", "llvm-tools", "--toolchain", &name]),
        None => rustup.args(
            "toolchain install nightly --profile minimal --component rust-src --component llvm-tools"
                .split(' '),
        ),
    };
    command::output(&mut rustup).map(drop).context("rustup cannot install it")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Bpf {
        Bpf {
            rustc: "/usr/bin/rustc".into(),
            llc: "/nowhere/llc".into(),
            build_std: false,
            bootstrap: true,
            toolchain: None,
        }
    }

    #[test]
    fn what_is_written_is_read_again() {
        let home = tempfile::tempdir().unwrap();
        assert_eq!(Bpf::read(home.path()), None);
        sample().write(home.path()).unwrap();
        assert_eq!(Bpf::read(home.path()), Some(sample()));
        fs::write(home.path().join("bpf.toml"), "rustc = 3").unwrap();
        assert_eq!(Bpf::read(home.path()), None);
    }

    #[test]
    fn a_file_that_names_what_is_gone_does_not_stand() {
        assert!(!sample().stands());
    }

    #[test]
    fn reads_what_a_compiler_says_of_itself() {
        let stable =
            "rustc 1.96.0 (ac68faa20 2026-05-25)\nhost: a-b\nrelease: 1.96.0\nLLVM version: 22.1.8\n";
        assert_eq!(About::read(stable), Some(About { nightly: false, llvm: 22, host: "a-b" }));
        let nightly = "rustc 1.99.0-nightly\nhost: c\nrelease: 1.99.0-nightly\nLLVM version: 23.0\n";
        assert_eq!(About::read(nightly), Some(About { nightly: true, llvm: 23, host: "c" }));
        assert_eq!(About::read("release: 1.96.0\n"), None);
    }

    #[test]
    fn reads_what_a_tool_of_llvm_says_of_itself() {
        assert_eq!(llvm_of("Debian LLVM version 22.1.8\n  Optimized build.\n"), Some(22));
        assert_eq!(
            llvm_of("LLVM (http://llvm.org/):\n  LLVM version 23.1.0-rust-1.99.0-nightly\n"),
            Some(23)
        );
        assert_eq!(llvm_of("llc 1.0"), None);
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
