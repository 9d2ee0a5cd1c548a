//! The hunt: situations that `situations/plan.py` makes up are played against the daemon. One that is judged wrongly is
//! made smaller, for as long as it stays wrong, and is kept as a script.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Instant,
};

use anyhow::{Context, Result, ensure};

use super::{Line, Script, once, script};
use crate::host::output;

/// How many made-up situations are played side by side under one daemon.
const BATCH: usize = 24;

/// What a hunt came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hunt {
    /// Situations that were played to their end.
    pub played: usize,
    /// True orphans in them, by situation, and those of which all were ended.
    pub orphaned: usize,
    /// See `orphaned`.
    pub cleaned: usize,
    /// Situations that could not be built: a mistake of the plan or a machine that is too busy.
    pub unbuilt: usize,
    /// Scripts of what was judged wrongly, made small.
    pub wrong: Vec<PathBuf>,
}

/// Plays batches of made-up situations until `until`, one at least. `keep` is the folder for what was judged wrongly, made
/// small, which takes minutes for each; without it they are only told.
pub fn hunt(mut seed: u64, until: Instant, keep: Option<&Path>) -> Result<Hunt> {
    let work = tempfile::Builder::new().prefix("hunt").tempdir().context("make a folder")?;
    let mut hunt = Hunt::default();
    loop {
        let folder = work.path().join(format!("made{seed}"));
        let made = plan(&["--make", &seed.to_string(), &BATCH.to_string()], &folder)?;
        // In every other batch the daemon is restarted again and again.
        let restarts = seed.is_multiple_of(2);
        let wrong = hunt.add(&once(&made, restarts)?);
        for name in wrong {
            let script =
                made.iter().find(|script| script.stated.name == name).context("a line of no script")?;
            hunt.wrong.push(match keep {
                Some(folder) => kept(script, restarts, work.path(), folder)?,
                None => script.path.clone(),
            });
        }
        eprintln!(
            "hunt: seed {seed}: {} played, {} not built, {} wrong",
            hunt.played,
            hunt.unbuilt,
            hunt.wrong.len()
        );
        seed += 1;
        if Instant::now() >= until {
            return Ok(hunt);
        }
    }
}

impl Hunt {
    /// Counts these, prints what was not right, and gives the names of what was judged wrongly.
    fn add(&mut self, lines: &[Line]) -> Vec<String> {
        let (played, unbuilt): (Vec<&Line>, Vec<&Line>) = lines.iter().partition(|line| !line.is_broken());
        self.unbuilt += unbuilt.len();
        self.played += played.len();
        self.orphaned += played.iter().filter(|line| line.cleaned.is_some()).count();
        self.cleaned += played.iter().filter(|line| line.cleaned == Some(true)).count();
        for line in played.iter().filter(|line| !line.right) {
            println!("{line}\n    {}", line.description);
        }
        played.iter().filter(|line| line.is_false_kill()).map(|line| line.name.clone()).collect()
    }
}

/// Makes a situation small and keeps it as a script in `folder`.
fn kept(script: &Script, restarts: bool, work: &Path, folder: &Path) -> Result<PathBuf> {
    let small = smallest(script, restarts, work)?;
    fs::create_dir_all(folder)?;
    let kept = folder.join(small.path.file_name().context("a script has a name")?);
    plan(&["--keep", &small.path.to_string_lossy()], &kept)?;
    println!("made small: {}", kept.display());
    Ok(kept)
}

/// The smallest situation found that is still judged wrongly: of all that have one thing less, the first one that is.
fn smallest(script: &Script, restarts: bool, work: &Path) -> Result<Script> {
    let mut small = script.clone();
    for step in 0.. {
        let stem = small.path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let folder = work.join(format!("{stem}-{step}"));
        let smaller = plan(&["--smaller", &small.path.to_string_lossy()], &folder)?;
        if smaller.is_empty() {
            break;
        }
        let lines = once(&smaller, restarts)?;
        let wrong: BTreeSet<&str> =
            lines.iter().filter(|l| l.is_false_kill()).map(|l| l.name.as_str()).collect();
        let Some(next) = smaller.iter().find(|script| wrong.contains(script.stated.name.as_str())) else {
            break;
        };
        let path = folder.join(script.path.file_name().context("a script has a name")?);
        fs::rename(&next.path, &path)?;
        small = Script { path, ..next.clone() };
    }
    Ok(small)
}

/// Runs `plan.py` and describes the scripts that it wrote into `folder`.
fn plan(arguments: &[&str], folder: &Path) -> Result<Vec<Script>> {
    let situations = script::folder();
    let mut python = Command::new("/usr/bin/python3");
    python.arg("-B").arg(situations.join("plan.py")).args(arguments).arg(folder);
    let told = output(&mut python).context("make situations up")?;
    ensure!(told.status.success(), "plan.py: {}", String::from_utf8_lossy(&told.stderr));
    if folder.is_dir() { script::in_folder(folder) } else { Ok(Vec::new()) }
}
