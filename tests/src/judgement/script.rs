//! The scripts of the situations.

use std::{
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, ensure};

use super::stated::Stated;
use crate::host::output;

/// A situation that can be played.
#[derive(Clone, Debug)]
pub struct Script {
    /// Where it is.
    pub path: PathBuf,
    /// What it states.
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
    let all = described(paths)?;
    let names: Vec<String> = all.iter().map(|script| script.stated.name.clone()).collect();
    for script in &all {
        check(script, &names)?;
    }
    Ok(all.into_iter().filter(|script| filter.is_none_or(|f| script.stated.name.contains(f))).collect())
}

/// The folder of all situations.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("situations")
}

/// The scripts in this folder.
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
    vec!["/usr/bin/python3".into(), "-B".into(), folder().join("play.py").into()]
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
    let all = lines.collect::<Result<Vec<Stated>>>()?;
    ensure!(all.len() == paths.len(), "{} of {} say what they are", all.len(), paths.len());
    Ok(paths.iter().zip(all).map(|(path, stated)| Script { path: path.clone(), stated }).collect())
}

fn check(script: &Script, names: &[String]) -> Result<()> {
    let Script { path, stated } = script;
    ensure!(stated.name == name(path), "{} calls itself {}", path.display(), stated.name);
    ensure!(!stated.description.is_empty(), "{} does not say what it is", stated.name);
    let twin = stated.twin.as_ref().is_none_or(|twin| names.contains(twin));
    ensure!(twin, "{} has a twin that is not there: {:?}", stated.name, stated.twin);
    Ok(())
}

/// `group/name`.
fn name(path: &Path) -> String {
    let group = path.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy().into_owned();
    format!("{group}/{}", path.file_stem().unwrap_or_default().to_string_lossy())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_situation_states_itself() {
        let all = scripts(None).unwrap();
        assert!(all.len() >= 60, "{} situations", all.len());
        let twins = all.iter().filter_map(|s| s.stated.twin.as_ref());
        let truth = |name: &str| all.iter().find(|s| s.stated.name == name).map(|s| s.stated.truth);
        for twin in twins {
            assert!(truth(twin).is_some(), "{twin}");
        }
    }

    #[test]
    fn a_filter_that_fits_nothing_finds_nothing() {
        assert!(scripts(Some("no such situation")).unwrap().is_empty());
    }
}
