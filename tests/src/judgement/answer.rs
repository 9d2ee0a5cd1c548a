//! The answer of another judge: a command that prints the ids of the processes that it would end.

use std::{
    collections::BTreeSet,
    process::{Command, Stdio},
};

use anyhow::{Context, Result, ensure};

use super::{
    line::Fates,
    play::{Judging, Situation},
    said::Said,
    stated::Cast,
};
use crate::host::Identity;

/// The command judges.
#[derive(Debug)]
pub struct ByCommand<'a> {
    command: &'a str,
    answer: BTreeSet<u32>,
}

impl<'a> ByCommand<'a> {
    pub fn new(command: &'a str) -> Self {
        Self { command, answer: BTreeSet::new() }
    }
}

impl Judging for ByCommand<'_> {
    fn meanwhile(&mut self, _: bool) -> Result<()> {
        Ok(())
    }

    /// It ends nothing.
    fn waits_for_ends(&self) -> bool {
        false
    }

    fn ask(&mut self) -> Result<()> {
        self.answer = run_judge(self.command)?;
        Ok(())
    }

    fn has_answered(&mut self) -> Result<bool> {
        Ok(true)
    }

    fn result(&mut self, plays: &[Situation]) -> Vec<(Fates, Said)> {
        plays.iter().map(|play| (fates(&play.cast, &self.answer), Said::default())).collect()
    }
}

/// Runs `command` in a shell and reads its answer.
fn run_judge(command: &str) -> Result<BTreeSet<u32>> {
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", command]).stdin(Stdio::null()).stderr(Stdio::inherit());
    let told = shell.output().with_context(|| format!("run {command:?}"))?;
    ensure!(told.status.success(), "{command:?} ended with {}", told.status);
    numbers(&String::from_utf8_lossy(&told.stdout))
}

/// Parses one number per line; empty lines are skipped.
fn numbers(text: &str) -> Result<BTreeSet<u32>> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.map(|line| line.parse().with_context(|| format!("not a number of a process: {line:?}"))).collect()
}

/// What the answer means for `cast`.
fn fates(cast: &Cast, answer: &BTreeSet<u32>) -> Fates {
    let named = |all: &[Identity]| all.iter().filter(|one| answer.contains(&one.pid)).copied().collect();
    Fates { cast: cast.clone(), ended: named(&cast.orphans), harmed: named(&cast.in_use) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_numbers_and_nothing_else() {
        assert_eq!(numbers("7\n\n 12 \n").unwrap(), BTreeSet::from([7, 12]));
        assert!(numbers("").unwrap().is_empty());
        assert!(numbers("7 mcp-server").is_err());
    }

    #[test]
    fn who_is_named_would_be_ended() {
        let [a, b] = [7, 8].map(|pid| Identity { pid, start: 1 });
        let cast = Cast { orphans: vec![a], in_use: vec![b], ..Cast::default() };
        let fates = fates(&cast, &BTreeSet::from([8]));
        assert_eq!((fates.ended, fates.harmed), (vec![], vec![b]));
    }
}
