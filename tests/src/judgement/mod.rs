//! The judgement table: all situations (`situations/`), what is true in each, and what a judge does.
//!
//! A situation is a script that creates real processes, says which of them are true orphans and which are in
//! use, and continues to use the latter. The judge is the daemon, or a command that prints the ids of the
//! processes that it would end. The result is seen from outside, by whether the processes live; what the
//! daemon said is only printed.

mod answer;
mod hunt;
mod line;
mod page;
mod play;
mod said;
mod script;
mod shared;
mod stated;

use std::{
    path::Path,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};

pub use self::{
    hunt::{Hunt, hunt},
    line::{Line, Summary},
    page::page,
    script::{Script, scripts},
    stated::{GroundTruth, Stated, When},
};
use self::{line::Fates, play::Situation, said::Said, shared::Shared};
use crate::{
    binary::orphand,
    daemon::Launch,
    event::Event,
    scene::{Scene, scene},
};

/// How often a situation whose orphans stayed is played again.
const AGAIN: u32 = 2;

/// The grace period of the daemon.
const GRACE: &str = "6s";

/// For how long it lets tools work.
const WORK_GRACE: &str = "8s";

/// What the daemon is told of programs of the situations.
const RULES: &str = r#"
[[agent]]
name = "threaded-gateway"
program = "threaded-gateway"
thread_scoped = true
[[agent]]
name = "tidy-gateway"
program = "tidy-gateway"
idle_duplicates = "5s"
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

/// Between two restarts of the daemon while situations are built, at least.
const RESTARTS: Duration = Duration::from_secs(2);

/// Who judges.
#[derive(Clone, Copy, Debug)]
pub enum Judge<'a> {
    /// The daemon.
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
            for (scripts, restarts) in [(other, false), (restarted, true)] {
                lines.extend(by_daemons(&scripts, restarts)?);
            }
        }
        Judge::Command(command) => scene(|s| {
            lines = by_command(s, scripts, command)?;
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
        lines = by_the_daemon(s, scripts, restarts)?;
        Ok(())
    })?;
    Ok(lines)
}

/// Situations whose orphans stayed, or that could not be built while 200 others ran on a busy machine, are played
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
    eprintln!("judgement: once more: {}", names.join(", "));
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

fn by_the_daemon(s: &Scene, scripts: &[Script], restarts: bool) -> Result<Vec<Line>> {
    // Checked first, so that a missing daemon is noticed before everything is built.
    orphand()?;
    let shared = Shared::start(s, scripts)?;
    let before = play::build(s, scripts, &shared, |stated| stated.when == When::Before, || Ok(()))?;
    let config =
        format!("abandoned_grace = \"{GRACE}\"\nwork_grace = \"{WORK_GRACE}\"\n{}{RULES}", shared.config());
    let launch = Launch { grace: GRACE, config, ..Launch::default() };
    let mut daemons = vec![s.daemon_with(&launch)?];
    let next = Launch { state: "../daemon0/state", ..launch };
    let mut restarted = Instant::now();
    let mut restart = |at_once: bool| {
        if restarts && (at_once || restarted.elapsed() >= RESTARTS) {
            if let Some(daemon) = daemons.last() {
                daemon.kill()?;
            }
            daemons.push(s.daemon_with(&next)?);
            restarted = Instant::now();
        }
        Ok(())
    };
    let watched = play::build(s, scripts, &shared, |stated| stated.when == When::Watched, || restart(false))?;
    restart(true)?;
    let mut plays: Vec<Situation> = before.into_iter().chain(watched).collect();
    play::wait_for_ends(&plays, STANDS, ENDS);
    // After this, everything that was suspect has been judged.
    if let Some(daemon) = daemons.last() {
        s.barrier(daemon)?;
    }
    eprintln!("judgement: all have been judged by {} daemons", daemons.len());
    let events: Vec<_> = daemons.iter().flat_map(|daemon| daemon.events()).collect();
    let said: Vec<Said> = plays.iter().map(|play| Said::about(&play.cast, &events)).collect();
    let fates = plays.iter().map(Situation::fates).collect::<Vec<_>>();
    for event in fates.iter().filter(|fates| !fates.harmed.is_empty()).flat_map(|fates| told(fates, &events))
    {
        eprintln!("{event:?}");
    }
    let uses = play::close(&mut plays);
    let all = plays.iter().zip(said).zip(fates).zip(uses);
    Ok(all.map(|(((play, said), fates), use_went_on)| line(play, &fates, use_went_on, said)).collect())
}

/// All that the daemon said about this situation.
fn told<'a>(fates: &Fates, events: &'a [Event]) -> impl Iterator<Item = &'a Event> {
    let cast: Vec<_> = fates.cast.all().collect();
    events.iter().filter(move |event| event.has_any(&cast))
}

fn by_command(s: &Scene, scripts: &[Script], command: &str) -> Result<Vec<Line>> {
    let shared = Shared::start(s, scripts)?;
    let mut plays = play::build(s, scripts, &shared, |_| true, || Ok(()))?;
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
