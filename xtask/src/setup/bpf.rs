//! `.toolchain/bpf.toml`: how to build eBPF, as found by setup. The build script of the product reads this file.

use std::{
    fmt, fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};

use super::compiler::Compiler;
use crate::command;

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
    /// The folder of `bpf-linker`.
    pub linker_dir: PathBuf,
    /// Whether `core` has to be built from source: `-Z build-std=core`.
    pub build_std: bool,
    /// Whether the compiler needs `RUSTC_BOOTSTRAP=1` to accept unstable features.
    pub bootstrap: bool,
    /// The name by which rustup knows the compiler.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub toolchain: Option<String>,
    /// The major version of the compiler's LLVM; the linker was chosen by it.
    pub llvm: u32,
}

impl Bpf {
    /// This compiler with the linker in this folder.
    pub fn new(compiler: &Compiler, linker_dir: &Path) -> Self {
        Self {
            rustc: compiler.rustc.clone(),
            linker_dir: linker_dir.to_path_buf(),
            build_std: compiler.build_std,
            bootstrap: compiler.bootstrap,
            toolchain: compiler.toolchain.clone(),
            llvm: compiler.llvm,
        }
    }

    /// What was found before; nothing if there is no file, or one that an older setup wrote.
    pub fn read(home: &Path) -> Option<Self> {
        toml::from_str(&fs::read_to_string(home.join("bpf.toml")).ok()?).ok()
    }

    /// Writes the file, whole or not at all.
    pub fn write(&self, home: &Path) -> Result<()> {
        let path = home.join("bpf.toml");
        let text = format!("{HEADER}{}", toml::to_string(self)?);
        let fresh = home.join("bpf.toml.new");
        fs::write(&fresh, text)
            .and_then(|()| fs::rename(&fresh, &path))
            .with_context(|| format!("cannot write {}", path.display()))
    }

    /// Whether it is still there: an upgrade of the distribution may have taken the compiler or changed its LLVM.
    pub fn stands(&self) -> bool {
        command::is_executable(&self.linker_dir.join("bpf-linker"))
            && Compiler::judge(&self.rustc, self.toolchain.clone())
                .is_some_and(|now| Self::new(&now, &self.linker_dir) == *self)
    }
}

impl fmt::Display for Bpf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let core = if self.build_std { "core from source" } else { "prebuilt core" };
        let linker = self.linker_dir.join("bpf-linker");
        write!(f, "{} (LLVM {}, {core}) and {}", self.rustc.display(), self.llvm, linker.display())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Bpf {
        Bpf {
            rustc: "/usr/bin/rustc".into(),
            linker_dir: "/nowhere/bin".into(),
            build_std: false,
            bootstrap: true,
            toolchain: None,
            llvm: 22,
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
}
