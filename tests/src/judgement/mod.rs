//! The judgement table: all situations (`situations/`), what is true in each, and what a judge does.
//!
//! A situation is a script that creates real processes, says which of them are true orphans and which are in
//! use, and continues to use the latter. The judge is the daemon, or a command that prints the ids of the
//! processes that it would end. The result is seen from outside, by whether the processes live; what the
//! daemon said is only printed.

mod answer;
mod line;
mod page;
mod play;
mod said;
mod script;
mod shared;
mod stated;

use std::{path::Path, time::Duration};

use anyhow::{Context, Result, bail, ensure};

use self::{line::Fates, play::Situation, said::Said, shared::Shared};
pub use self::{
    line::{Line, Summary},
    page::page,
    script::{Script, scripts},
    stated::{GroundTruth, Stated, When},
};
use crate::{
    binary::orphand,
    daemon::Launch,
    scene::{Scene, scene},
};

/// How often a situation whose orphans stayed is played again.
const AGAIN: u32 = 2;

/// The grace period of the daemon.
const GRACE: &str = "6s";

/// What the daemon is told of programs of the situations.
const RULES: &str = r#"
[[agent]]
name = "threaded-gateway"
program = "threaded-gateway"
thread_scoped = true
[[agent]]
name = "job-daemon"
program = "job-daemon"
daemon = true
"#;

/// How long processes in use must be left running after they were built: the time between two questions about
/// wires under living owners, the grace period, the term timeout, and a reserve.
const STANDS: Duration = Duration::from_secs(29);

/// How long the end of a true orphan may take.
const ENDS: Duration = Duration::from_secs(40);

/// Plays all `scripts`. The judge is the daemon, or the shell command `judge`.
pub fn run(scripts: &[Script], judge: Option<&str>) -> Result<Vec<Line>> {
    ensure!(!scripts.is_empty(), "there is no such situation");
    let mut lines = Vec::new();
    scene(|s| {
        lines = match judge {
            None => by_the_daemon(s, scripts)?,
            Some(command) => by_command(s, scripts, command)?,
        };
        Ok(())
    })?;
    if judge.is_none() {
        for _ in 0..AGAIN {
            play_again(scripts, &mut lines)?;
        }
    }
    lines.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(lines)
}

/// A situation whose orphans stayed, or that could not be built while 200 others ran on a busy machine, is
/// played again alone. One in which a process in use was ended gets no second chance.
fn play_again(scripts: &[Script], lines: &mut [Line]) -> Result<()> {
    let is_left = |line: &&Line| !line.right && line.harmed == 0;
    let left: Vec<String> = lines.iter().filter(is_left).map(|line| line.name.clone()).collect();
    for script in scripts.iter().filter(|script| left.contains(&script.stated.name)) {
        eprintln!("judgement: once more, alone: {}", script.stated.name);
        let mut again = Vec::new();
        scene(|s| {
            again = by_the_daemon(s, std::slice::from_ref(script))?;
            Ok(())
        })?;
        for line in again {
            if let Some(old) = lines.iter_mut().find(|old| old.name == line.name) {
                *old = line;
            }
        }
    }
    Ok(())
}

fn by_the_daemon(s: &Scene, scripts: &[Script]) -> Result<Vec<Line>> {
    // Checked first, so that a missing daemon is noticed before everything is built.
    orphand()?;
    let shared = Shared::start(s, scripts)?;
    let before = play::build(s, scripts, &shared, |stated| stated.when == When::Before)?;
    let config = format!("abandoned_grace = \"{GRACE}\"\n{}{RULES}", shared.config());
    let daemon = s.daemon_with(&Launch { grace: GRACE, config, ..Launch::default() })?;
    let watched = play::build(s, scripts, &shared, |stated| stated.when == When::Watched)?;
    let mut plays: Vec<Situation> = before.into_iter().chain(watched).collect();
    play::wait_for_ends(&plays, STANDS, ENDS);
    // After this, everything that was suspect has been judged.
    s.barrier(&daemon)?;
    eprintln!("judgement: all have been judged");
    let events = daemon.events();
    let said: Vec<Said> = plays.iter().map(|play| Said::about(&play.cast, &events)).collect();
    let fates = plays.iter().map(Situation::fates).collect::<Vec<_>>();
    let uses = play::close(&mut plays);
    let all = plays.iter().zip(said).zip(fates).zip(uses);
    Ok(all.map(|(((play, said), fates), use_went_on)| line(play, &fates, use_went_on, said)).collect())
}

fn by_command(s: &Scene, scripts: &[Script], command: &str) -> Result<Vec<Line>> {
    let shared = Shared::start(s, scripts)?;
    let mut plays = play::build(s, scripts, &shared, |_| true)?;
    play::wait_for_ends(&plays, STANDS, Duration::ZERO);
    let answer = answer::run_judge(command)?;
    let fates = plays.iter().map(|play| answer::fates(&play.cast, &answer)).collect::<Vec<_>>();
    play::close(&mut plays);
    Ok(plays.iter().zip(fates).map(|(play, fates)| line(play, &fates, None, Said::default())).collect())
}

fn line(play: &Situation, fates: &Fates, use_went_on: Option<bool>, said: Said) -> Line {
    if play.broken.is_some() {
        Line::broken(&play.stated)
    } else {
        Line::new(&play.stated, fates, use_went_on, said)
    }
}

/// Fails unless all lines are right; the error names the others.
pub fn all_right(lines: &[Line]) -> Result<()> {
    let wrong: Vec<&str> = lines.iter().filter(|line| !line.right).map(|line| line.name.as_str()).collect();
    if !wrong.is_empty() {
        bail!("judged wrongly: {}", wrong.join(", "));
    }
    Ok(())
}

/// Writes the page with the whole table.
pub fn write(path: &Path, lines: &[Line]) -> Result<()> {
    std::fs::write(path, page(lines)).with_context(|| format!("write {}", path.display()))
}
