//! Every situation is judged right: the true orphans are ended, nothing in use is.

use anyhow::{Context as _, Result};
use tests::judgement::{self, Judge, Script};

/// Plays all situations for which `wanted` holds; `cargo xtask test judgement` prints the table.
fn judged_right(wanted: impl Fn(&Script) -> bool) -> Result<()> {
    let scripts: Vec<Script> =
        judgement::scripts(None)?.into_iter().filter(|script| wanted(script)).collect();
    scripts.first().context("there is no such situation")?;
    let lines = judgement::run(&scripts, Judge::Daemon { restarts: false })?;
    println!("\n{}", judgement::Summary::of(&lines));
    judgement::all_right(&lines)
}

#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn every_situation_is_judged_right() -> Result<()> {
    judged_right(|script| !script.stated.restart)
}

/// Those in which the daemon is restarted again and again. They are few.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn daemons_that_are_restarted_judge_right() -> Result<()> {
    judged_right(|script| script.stated.restart)
}
