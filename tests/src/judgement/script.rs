//! The scripts of the situations: which there are and what they state.

use std::{
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

/// All situations whose name contains `filter`, by name; those that build before the daemon starts are among them.
pub fn scripts(filter: Option<&str>) -> Result<Vec<Script>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("situations");
    let mut paths = Vec::new();
    for group in fs::read_dir(&folder).with_context(|| format!("read {}", folder.display()))? {
        let group = group?.path();
        // `__pycache__` and the like are no groups.
        let hidden = group.file_name().is_none_or(|n| n.to_string_lossy().starts_with(['_', '.']));
        if group.is_dir() && !hidden {
            for file in fs::read_dir(&group)? {
                paths.push(file?.path());
            }
        }
    }
    paths.retain(|path| path.extension().is_some_and(|e| e == "py"));
    paths.sort();
    let names: Vec<String> = paths.iter().map(|path| name(path)).collect();
    let wanted = paths.iter().zip(&names).filter(|(_, name)| filter.is_none_or(|f| name.contains(f)));
    wanted.map(|(path, name)| describe(path, name, &names)).collect()
}

fn describe(path: &Path, name: &str, names: &[String]) -> Result<Script> {
    let told =
        output(Command::new(path).arg("--describe")).with_context(|| format!("ask {}", path.display()))?;
    let text = String::from_utf8_lossy(&told.stdout);
    ensure!(told.status.success(), "{name} --describe: {}", String::from_utf8_lossy(&told.stderr));
    let stated: Stated = serde_json::from_str(&text).with_context(|| format!("{name} states {text:?}"))?;
    ensure!(stated.name == *name, "{name} calls itself {}", stated.name);
    ensure!(!stated.description.is_empty(), "{name} does not say what it is");
    let twin = stated.twin.as_ref().is_none_or(|twin| names.contains(twin));
    ensure!(twin, "{name} has a twin that is not there: {:?}", stated.twin);
    Ok(Script { path: path.to_owned(), stated })
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
