//! Builds the eBPF programs and leaves the object in `OUT_DIR`, for the library to embed.
//!
//! How to build for BPF is found out once by `cargo xtask setup`, which writes `.toolchain/bpf.toml`.

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, anyhow, bail};
use serde::Deserialize;

const TARGET: &str = "bpfel-unknown-none";
const OBJECT: &str = "orphand-ebpf";

fn main() {
    if let Err(error) = build() {
        // cargo shows this in one line, and what a build script writes elsewhere in ten.
        println!("cargo::error={error:#}");
    }
}

fn build() -> Result<()> {
    let package = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?);
    let root = package.parent().context("the package is not in its repository")?;
    let out = PathBuf::from(env::var("OUT_DIR")?);
    for source in ["monitor-ebpf", "monitor-common", "Cargo.lock", ".toolchain/bpf.toml"] {
        println!("cargo:rerun-if-changed={}", root.join(source).display());
    }

    let way = Way::read(&root.join(".toolchain"))?;
    // One for all profiles and sets of features: most of the time goes into what the programs are built with.
    let target_dir =
        out.ancestors().nth(4).context("OUT_DIR is not below a target directory")?.join("for-bpf");
    let mut cargo = way.command(root)?;
    cargo
        .args(["build", "--quiet", "--profile", "bpf", "--locked", "--target", TARGET])
        .arg("--target-dir")
        .arg(&target_dir)
        .current_dir(root.join("monitor-ebpf"));
    let status = cargo.status().with_context(|| format!("cannot run {}", cargo.get_program().display()))?;
    if !status.success() {
        bail!("the eBPF programs do not build (above); if the toolchain is at fault, run: cargo xtask setup");
    }
    let built = target_dir.join(TARGET).join("bpf").join(OBJECT);
    std::fs::copy(&built, out.join(OBJECT)).with_context(|| format!("cannot copy {}", built.display()))?;
    Ok(())
}

/// What the outer build sets up for itself (clippy's driver, its flags, its compiler, its profile): the beginnings of variables.
const OUTER: &str = "CARGO_PROFILE_ CARGO_TARGET_ CARGO_CFG_ CARGO_FEATURE_ CARGO_BUILD_ RUSTC CARGO_ENCODED_RUSTFLAGS \
    CARGO_MAKEFLAGS CLIPPY_ARGS CLIPPY_CONF_DIR";

/// The way to build for BPF on this machine.
#[derive(Deserialize)]
struct Way {
    rustc: String,
    llc: String,
    build_std: bool,
    bootstrap: bool,
    toolchain: Option<String>,
}

impl Way {
    fn read(home: &Path) -> Result<Self> {
        // Setup may be at work beside us, and has the lock as long.
        let lock = std::fs::File::open(home.join("lock"));
        let _lock = lock.and_then(|lock| lock.lock_shared().map(|()| lock));
        let path = home.join("bpf.toml");
        let advice = "run `cargo xtask setup` once, in the folder of the repository";
        let text = std::fs::read_to_string(&path)
            .map_err(|why| anyhow!("cannot read {} ({why}): {advice}", path.display()))?;
        toml::from_str(&text)
            .with_context(|| format!("{} is not as setup writes it: {advice}", path.display()))
    }

    fn command(&self, root: &Path) -> Result<Command> {
        let mut cargo = match &self.toolchain {
            Some(toolchain) => {
                let mut rustup = Command::new("rustup");
                rustup.args(["run", toolchain, "cargo"]);
                rustup
            }
            None => Command::new(env::var("CARGO")?),
        };
        for (name, _) in env::vars_os() {
            if OUTER.split(' ').any(|begin| name.to_string_lossy().starts_with(begin)) {
                cargo.env_remove(name);
            }
        }
        // llc knows no memcpy() of a length that the compiler does not know. Those of the log are of known lengths, but only
        // where it is inlined.
        let inline = "-Cllvm-args=-inline-cold-callsite-threshold=5000 -inline-threshold=3000";
        let linker = format!("-Clinker={}", root.join("monitor-ebpf/link").display());
        cargo.env_remove("RUSTFLAGS").env("CARGO_ENCODED_RUSTFLAGS", [inline, &linker].join("\u{1f}"));
        cargo.env("LLC", &self.llc).env("RUSTC", &self.rustc);
        if self.bootstrap {
            cargo.env("RUSTC_BOOTSTRAP", "1");
        }
        if self.build_std {
            cargo.arg("-Zbuild-std=core");
        }
        Ok(cargo)
    }
}
