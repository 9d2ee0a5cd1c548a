//! The judgement table: all situations (`situations/`), what is true in each, and what a judge does.
//!
//! A situation is a script that creates real processes, says which of them are true orphans and which are in
//! use, and continues to use the latter. The judge is the daemon, or a command that prints the ids of the
//! processes that it would end. The result is seen from outside, by whether the processes live; what the
//! daemon said is only printed.

mod answer;
mod daemon;
mod hunt;
mod line;
mod page;
mod play;
mod said;
mod script;
mod shared;
mod stated;

use std::{path::Path, thread};

use anyhow::{Context, Result, bail, ensure};

use self::{answer::ByCommand, daemon::ByDaemon, shared::Shared};
pub use self::{
    hunt::{Hunt, hunt},
    line::{Line, Summary},
    page::page,
    script::{Script, scripts},
    stated::{GroundTruth, Stated, When},
};
use crate::scene::scene;

/// How often a situation whose orphans stayed is played again.
const AGAIN: u32 = 2;

#[derive(Clone, Copy, Debug)]
pub enum Judge<'a> {
    Daemon {
        /// Whether it is restarted in all situations, not only in those that state it.
        restarts: bool,
    },
    /// A shell command.
    Command(&'a str),
}

/// Plays all `scripts`.
pub fn run(scripts: &[Script], judge: Judge<'_>) -> Result<Vec<Line>> {
    ensure!(!scripts.is_empty(), "there is no such situation");
    let mut lines = Vec::new();
    match judge {
        Judge::Daemon { restarts } => {
            let (restarted, other): (Vec<_>, Vec<_>) =
                scripts.iter().cloned().partition(|script| restarts || script.stated.restart);
            // Each has a scene with a daemon of its own, and most of the time both only wait.
            let [other, restarted] = thread::scope(|threads| {
                let restarted = threads.spawn(|| by_daemons(&restarted, true));
                let other = by_daemons(&other, false);
                [other, restarted.join().unwrap_or_else(|_| bail!("the restarted daemons: a panic"))]
            });
            lines.extend(other?);
            lines.extend(restarted?);
        }
        Judge::Command(command) => scene(|s| {
            let shared = Shared::start(s, scripts)?;
            lines = play::play(s, scripts, &shared, Vec::new(), &mut ByCommand::new(command))?;
            Ok(())
        })?,
    }
    lines.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(lines)
}

/// Plays these once under the daemon, whatever comes of it.
fn once(scripts: &[Script], restarts: bool) -> Result<Vec<Line>> {
    let mut lines = Vec::new();
    scene(|s| {
        let shared = Shared::start(s, scripts)?;
        lines = ByDaemon::new(s, &shared, restarts)?.play(scripts)?;
        Ok(())
    })?;
    Ok(lines)
}

/// Situations whose orphans stayed, or that could not be built while others ran on a busy machine, are played
/// again, without those others. One in which a process in use was ended gets no second chance.
fn play_again(scripts: &[Script], restarts: bool, lines: &mut [Line]) -> Result<()> {
    let is_left = |line: &&Line| !line.right && line.harmed == 0;
    let left: Vec<String> = lines.iter().filter(is_left).map(|line| line.name.clone()).collect();
    let left: Vec<Script> =
        scripts.iter().filter(|script| left.contains(&script.stated.name)).cloned().collect();
    if left.is_empty() {
        return Ok(());
    }
    let names: Vec<&str> = left.iter().map(|script| script.stated.name.as_str()).collect();
    eprintln!("NOTE judgement: once more: {}", names.join(", "));
    for line in once(&left, restarts)? {
        if let Some(old) = lines.iter_mut().find(|old| old.name == line.name) {
            *old = line;
        }
    }
    Ok(())
}

fn by_daemons(scripts: &[Script], restarts: bool) -> Result<Vec<Line>> {
    if scripts.is_empty() {
        return Ok(Vec::new());
    }
    let mut lines = once(scripts, restarts)?;
    for _ in 0..AGAIN {
        play_again(scripts, restarts, &mut lines)?;
    }
    Ok(lines)
}

/// Fails unless all lines are right; the error consists of the others.
pub fn all_right(lines: &[Line]) -> Result<()> {
    let wrong: Vec<String> = lines.iter().filter(|line| !line.right).map(Line::to_string).collect();
    if !wrong.is_empty() {
        bail!("judged wrongly:\n{}", wrong.join("\n"));
    }
    Ok(())
}

/// Writes the page with the whole table.
pub fn write(path: &Path, lines: &[Line]) -> Result<()> {
    std::fs::write(path, page(lines)).with_context(|| format!("write {}", path.display()))
}
