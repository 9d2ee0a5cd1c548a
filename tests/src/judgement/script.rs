//! The scripts of the situations.

use std::{
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use super::stated::Stated;
use crate::host::output;

/// A situation that can be played.
#[derive(Clone, Debug, Deserialize)]
pub struct Script {
    /// Where its story is.
    pub path: PathBuf,
    #[serde(flatten)]
    pub stated: Stated,
}

/// All situations whose name contains `filter`, sorted by name, including those that are built before the
/// daemon starts.
pub fn scripts(filter: Option<&str>) -> Result<Vec<Script>> {
    let folder = folder();
    let mut paths = Vec::new();
    for group in fs::read_dir(&folder).with_context(|| format!("read {}", folder.display()))? {
        let group = group?.path();
        // `__pycache__` and the like are not groups.
        let hidden = group.file_name().is_none_or(|n| n.to_string_lossy().starts_with(['_', '.']));
        if group.is_dir() && !hidden {
            for file in fs::read_dir(&group)? {
                paths.push(file?.path());
            }
        }
    }
    let mut all = described(paths)?;
    all.sort_by(|a, b| a.stated.name.cmp(&b.stated.name));
    let names: Vec<&str> = all.iter().map(|script| &*script.stated.name).collect();
    for script in &all {
        check(script, &names)?;
    }
    Ok(all.into_iter().filter(|script| filter.is_none_or(|f| script.stated.name.contains(f))).collect())
}

/// The folder of all situations.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("situations")
}

pub fn in_folder(folder: &Path) -> Result<Vec<Script>> {
    let files = fs::read_dir(folder).with_context(|| format!("read {}", folder.display()))?;
    described(files.map(|file| Ok(file?.path())).collect::<Result<_>>()?)
}

fn described(mut paths: Vec<PathBuf>) -> Result<Vec<Script>> {
    paths.retain(|path| path.extension().is_some_and(|e| e == "py"));
    paths.sort();
    describe(&paths)
}

/// The command that plays the script that follows.
pub fn player() -> Vec<OsString> {
    vec!["/usr/bin/python3".into(), "-SB".into(), folder().join("play.py").into()]
}

/// One process describes all scripts, because starting a hundred interpreters takes long.
fn describe(paths: &[PathBuf]) -> Result<Vec<Script>> {
    let mut python = Command::new("/usr/bin/env");
    python.args(player()).arg("--describe").args(paths);
    let told = output(&mut python).context("ask the situations what they are")?;
    ensure!(told.status.success(), "they cannot be read: {}", String::from_utf8_lossy(&told.stderr));
    let text = String::from_utf8_lossy(&told.stdout);
    let lines =
        text.lines().map(|line| serde_json::from_str(line).with_context(|| format!("what is {line}?")));
    let all = lines.collect::<Result<Vec<Script>>>()?;
    for path in paths {
        ensure!(all.iter().any(|script| script.path == *path), "{} states nothing", path.display());
    }
    Ok(all)
}

fn check(script: &Script, names: &[&str]) -> Result<()> {
    let stated = &script.stated;
    ensure!(
        names.iter().filter(|name| **name == stated.name).count() == 1,
        "two call themselves {}",
        stated.name
    );
    ensure!(!stated.description.is_empty(), "{} does not say what it is", stated.name);
    let twin = stated.twin.as_ref().is_none_or(|twin| names.contains(&&**twin));
    ensure!(twin, "{} has a twin that is not there: {:?}", stated.name, stated.twin);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_situation_states_itself() {
        let all = scripts(None).unwrap();
        assert!(all.len() >= 60, "{} situations", all.len());
    }

    #[test]
    fn a_filter_that_fits_nothing_finds_nothing() {
        assert!(scripts(Some("no such situation")).unwrap().is_empty());
    }
}
