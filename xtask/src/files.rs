//! Files and folders. An error names them.

use std::{
    fs::{self, File},
    io::ErrorKind,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};
use rustix::fs::{FlockOperation, flock};

/// The text of a file.
pub fn read(file: &Path) -> Result<String> {
    fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))
}

pub fn write(file: &Path, text: impl AsRef<[u8]>) -> Result<()> {
    fs::write(file, text).with_context(|| format!("cannot write {}", file.display()))
}

/// Makes a folder where there is none.
pub fn folder(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))
}

/// Makes a folder with nothing in it.
pub fn empty(at: &Path) -> Result<()> {
    match fs::remove_dir_all(at) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot empty {}", at.display()))
        }
        _ => folder(at),
    }
}

/// What is in a folder, by name.
pub fn list(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    Ok(paths)
}

/// The files directly in a folder whose names end so, by name.
pub fn ending(at: &Path, extension: &str) -> Result<Vec<PathBuf>> {
    Ok(list(at)?.into_iter().filter(|file| file.extension().is_some_and(|its| its == extension)).collect())
}

/// The name of a file or folder.
pub fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Waits until nobody else has the lock of this folder, and has it until the file is closed.
pub fn lock(at: &Path) -> Result<File> {
    folder(at)?;
    let lock = File::create(at.join("lock")).map_err(anyhow::Error::from);
    let lock = lock.and_then(|file| Ok(flock(&file, FlockOperation::LockExclusive).map(|()| file)?));
    lock.with_context(|| format!("cannot lock {}", at.display()))
}
