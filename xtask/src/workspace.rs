//! The paths of the repository, and how cargo is called in it.

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result};
use serde::Deserialize;

use crate::command;

/// All packages that are built for this machine: monitor-ebpf is not, so it has no tests on it.
pub const WHAT: [&str; 3] = ["--workspace", "--exclude", "monitor-ebpf"];

/// The root of the repository.
pub fn root() -> PathBuf {
    let package =
        env::var_os("CARGO_MANIFEST_DIR").map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), PathBuf::from);
    package.parent().map_or_else(|| package.clone(), Path::to_path_buf)
}

/// cargo, in the root of the repository.
///
/// `cargo run` tells its child about the package it runs; a nested cargo that inherits this would rebuild
/// every crate that watches those variables each time one goes from `cargo build` to `cargo xtask` and back.
pub fn cargo() -> Command {
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    let told = ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_", "CARGO_PRIMARY_"];
    for (name, _) in env::vars_os() {
        if told.iter().any(|start| name.to_string_lossy().starts_with(start)) {
            cargo.env_remove(&name);
        }
    }
    cargo.current_dir(root());
    cargo
}

/// Where cargo keeps what it downloads, and its configuration.
pub fn cargo_home() -> PathBuf {
    let home = || PathBuf::from(env::var_os("HOME").unwrap_or_default()).join(".cargo");
    env::var_os("CARGO_HOME").map_or_else(home, PathBuf::from)
}

/// What `cargo metadata` says, as far as we care.
#[derive(Deserialize)]
pub struct Metadata {
    pub target_directory: PathBuf,
    /// Every package of the lock file, the workspace's own included.
    pub packages: Vec<Package>,
}

#[derive(Deserialize)]
pub struct Package {
    pub name: String,
    pub version: String,
    /// Its SPDX licence expression, if it states one.
    pub license: Option<String>,
    /// Where it comes from; nothing for the workspace's own.
    pub source: Option<String>,
    #[serde(default)]
    pub authors: Vec<String>,
    pub manifest_path: PathBuf,
}

/// Asks `cargo metadata`; `extra` are further arguments of it.
pub fn metadata(extra: &[&str]) -> Result<Metadata> {
    let text = command::output(cargo().args(["metadata", "--format-version", "1"]).args(extra))?;
    serde_json::from_str(&text).context("cannot read what `cargo metadata` says")
}

/// Builds what the tests run, and nothing twice; gives the folder of the programs.
pub fn build() -> Result<PathBuf> {
    command::run(cargo().arg("build").args(WHAT).arg("--bins"))?;
    Ok(target_dir()?.join("debug"))
}

/// Where cargo puts what it builds.
pub fn target_dir() -> Result<PathBuf> {
    Ok(metadata(&["--no-deps"])?.target_directory)
}

/// The version of the workspace's packages, of which this one is one.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
