//! The program under test, and others that were built beside the tests.

use std::{
    env, fs,
    path::{Path, PathBuf},
    time::SystemTime,
};

use anyhow::{Context, Result, ensure};

/// The binary under test: `ORPHAND_BIN`, or the one next to this test. It must not be older than its sources.
pub fn orphand() -> Result<PathBuf> {
    if let Some(path) = env::var_os("ORPHAND_BIN") {
        return Ok(path.into());
    }
    let path = built("orphand")?;
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("the package has no parent folder")?;
    let sources = ["monitor/src", "monitor/core/src", "monitor-common/src", "monitor-ebpf/src"];
    let sources = sources.map(|d| newest(&root.join(d)));
    let built = path.metadata().and_then(|m| m.modified()).context("the age of the binary")?;
    ensure!(
        sources.into_iter().flatten().all(|source| source <= built),
        "{} is older than its sources: run `cargo build -p orphand` first",
        path.display()
    );
    Ok(path)
}

/// The binary `name` in the folder of this program.
pub(crate) fn built(name: &str) -> Result<PathBuf> {
    let program = env::current_exe()?;
    // target/PROFILE/deps/TEST-HASH, or target/PROFILE/PROGRAM
    let folder = program.parent().context("no target folder")?;
    let deps = folder.file_name().is_some_and(|name| name == "deps");
    let path = if deps { folder.with_file_name(name) } else { folder.join(name) };
    ensure!(path.exists(), "{} is missing: run `cargo build -p orphand -p tests` first", path.display());
    Ok(path)
}

/// When something below `folder` was last written, without tests, which are no part of the binary.
fn newest(folder: &Path) -> Option<SystemTime> {
    let entries = fs::read_dir(folder).ok()?.flatten();
    entries
        .filter(|e| {
            let stem = e.path().file_stem().map(|s| s.to_string_lossy().into_owned());
            stem.is_none_or(|stem| !stem.ends_with("tests") && stem != "snapshots")
        })
        .filter_map(|e| {
            if e.file_type().ok()?.is_dir() { newest(&e.path()) } else { e.metadata().ok()?.modified().ok() }
        })
        .max()
}
