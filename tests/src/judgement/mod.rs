//! The judgement table: every situation there is (`situations/`), what is true in it, and what a judge makes of it.
//!
//! A situation is a script that builds itself from real processes, tells who of them is a true orphan and who is in use, and goes on using what
//! is in use. The judge is the daemon, or any command that prints the numbers of those it would end. What happened is seen from outside, by
//! whether the processes live; what the daemon said is only told.

mod answer;
mod line;
mod page;
mod play;
mod said;
mod script;
mod stated;

use std::{path::Path, time::Duration};

use anyhow::{Context, Result, bail, ensure};

use self::{line::Fates, play::Play, said::Said};
pub use self::{
    line::{Line, Summary},
    page::page,
    script::{Script, scripts},
    stated::{Stated, Truth, When},
};
use crate::{
    daemon::{Launch, orphand},
    scene::{Scene, scene},
};

/// How often what was left is played once more.
const AGAIN: u32 = 2;

/// The daemon's grace.
const GRACE: &str = "6s";

/// How long what is in use must have stood after it was built: the grace, the term timeout, and time to spare.
const STANDS: Duration = Duration::from_secs(14);

/// How long a true orphan may take to be ended.
const ENDS: Duration = Duration::from_secs(40);

/// Plays all `scripts` and judges them: by the daemon, or by what `judge`, a command for the shell, prints.
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

/// What was only left, or could not be built, while two hundred others were played on a busy machine is played once more with nobody
/// beside it. Who was ended wrongly gets no second chance.
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
    // Asked for first: nobody should wait for all to be built to learn that there is no judge.
    orphand()?;
    let before = play::build(s, scripts, |stated| stated.when == When::Before)?;
    let daemon = s.daemon_with(&Launch { grace: GRACE, ..Launch::default() })?;
    let watched = play::build(s, scripts, |stated| stated.when == When::Watched)?;
    let mut plays: Vec<Play> = before.into_iter().chain(watched).collect();
    play::settle(&plays, STANDS, ENDS);
    // What was suspect until now has been judged after this.
    s.barrier(&daemon)?;
    eprintln!("judgement: all have been judged");
    let events = daemon.events();
    let said: Vec<Said> = plays.iter().map(|play| Said::about(&play.cast, &events)).collect();
    let fates = plays.iter().map(Play::look).collect::<Vec<_>>();
    let uses = play::close(&mut plays);
    let all = plays.iter().zip(said).zip(fates).zip(uses);
    Ok(all.map(|(((play, said), fates), use_went_on)| line(play, &fates, use_went_on, said)).collect())
}

fn by_command(s: &Scene, scripts: &[Script], command: &str) -> Result<Vec<Line>> {
    let mut plays = play::build(s, scripts, |_| true)?;
    play::settle(&plays, STANDS, Duration::ZERO);
    let answer = answer::ask(command)?;
    let fates = plays.iter().map(|play| answer::fates(&play.cast, &answer)).collect::<Vec<_>>();
    play::close(&mut plays);
    Ok(plays.iter().zip(fates).map(|(play, fates)| line(play, &fates, None, Said::default())).collect())
}

fn line(play: &Play, fates: &Fates, use_went_on: Option<bool>, said: Said) -> Line {
    if play.broken.is_some() {
        Line::broken(&play.stated)
    } else {
        Line::new(&play.stated, fates, use_went_on, said)
    }
}

/// Fails unless all lines are right; says which are not.
pub fn all_right(lines: &[Line]) -> Result<()> {
    let wrong: Vec<&str> = lines.iter().filter(|line| !line.right).map(|line| line.name.as_str()).collect();
    if !wrong.is_empty() {
        bail!("judged wrongly: {}", wrong.join(", "));
    }
    Ok(())
}

/// Writes the page of the whole table.
pub fn write(path: &Path, lines: &[Line]) -> Result<()> {
    std::fs::write(path, page(lines)).with_context(|| format!("write {}", path.display()))
}
