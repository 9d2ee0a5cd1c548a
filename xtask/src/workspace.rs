//! The paths of the repository, and how cargo is called in it.

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result};
use serde::Deserialize;

use crate::command;

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
    for (name, _) in env::vars_os() {
        let text = name.to_string_lossy();
        if ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_", "CARGO_PRIMARY_"]
            .iter()
            .any(|p| text.starts_with(p))
        {
            cargo.env_remove(&name);
        }
    }
    cargo.current_dir(root());
    cargo
}

/// Where this program is. The tests may have built it anew meanwhile: then the kernel says that the one that runs
/// was deleted, `proc_pid_exe(5)`.
pub fn ourselves() -> Result<PathBuf> {
    let own = env::current_exe().context("cannot tell where this program is")?;
    let text = own.to_string_lossy();
    Ok(text.strip_suffix(" (deleted)").map_or(own.clone(), PathBuf::from))
}

/// What `cargo metadata` says, as far as we care.
#[derive(Deserialize)]
pub struct Metadata {
    /// Where cargo builds.
    pub target_directory: PathBuf,
    /// Every package of the lock file, the workspace's own included.
    pub packages: Vec<Package>,
}

/// A package.
#[derive(Deserialize)]
pub struct Package {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Its SPDX licence expression, if it states one.
    pub license: Option<String>,
    /// Where it comes from; nothing for the workspace's own.
    pub source: Option<String>,
    /// Who wrote it, where it says so.
    #[serde(default)]
    pub authors: Vec<String>,
    /// Its Cargo.toml.
    pub manifest_path: PathBuf,
}

/// Asks `cargo metadata`; `extra` are further arguments of it.
pub fn metadata(extra: &[&str]) -> Result<Metadata> {
    let text = command::output(cargo().args(["metadata", "--format-version", "1"]).args(extra))?;
    serde_json::from_str(&text).context("cannot read what `cargo metadata` says")
}

/// Where cargo puts what it builds.
pub fn target_dir() -> Result<PathBuf> {
    Ok(metadata(&["--no-deps"])?.target_directory)
}

/// The version of the workspace's packages.
pub fn version() -> Result<String> {
    let packages = metadata(&["--no-deps"])?.packages;
    let ours = packages.into_iter().find(|package| package.name == "orphand");
    Ok(ours.context("the workspace has no package `orphand`")?.version)
}
