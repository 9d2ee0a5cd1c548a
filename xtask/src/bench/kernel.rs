//! Measures what an unrelated process costs in the kernel, by the kernel's own statistics: the run time
//! of each program divided by its runs.
//!
//! Empty programs on the same tracepoints in the same storm give the lower limit: their run time is the cost of
//! measuring. So the difference is stable where throughput is not, on a machine that does other work.

use std::{
    collections::BTreeMap,
    fs,
    io::{BufRead as _, BufReader},
    process::{Child, Command, Stdio},
};

use anyhow::{Context as _, Result, ensure};

use super::{
    Bench, storm,
    table::{Table, median},
};
use crate::command;

const FORK: &str = "sched_process_fork";
const EXEC: &str = "sched_process_exec";
const EXIT: &str = "sched_process_exit";

/// The aim: a fork and an exit together, more than empty programs, in nanoseconds.
const AIM: f64 = 60.0;

/// A storm is cut into this many: an interruption that falls into a run spoils one of them only.
const CUTS: u32 = 10;

/// Nanoseconds a run of each program of the daemon's, and of an empty one beside it.
pub fn cost(bench: &Bench<'_>) -> Result<Table> {
    let head = ["storm", "tracepoint", "runs", "orphand ns", "empty program ns", "more ns", "aim"];
    let mut table =
        Table::new("A stranger's process in the kernel, by the kernel's own account, medians", &head);
    for kind in ["fork", "spawn"] {
        let rounds = rounds(bench, kind)?;
        let tracepoints: &[_] = if kind == "fork" { &[FORK, EXIT] } else { &[FORK, EXEC, EXIT] };
        for name in tracepoints {
            let runs: u64 = rounds.iter().filter_map(|round| Some(round.ours.get(*name)?.runs)).sum();
            let ours = medians(&rounds, |round| nanoseconds(&round.ours, name))?;
            let empty = medians(&rounds, |round| nanoseconds(&round.empty, name))?;
            let more = medians(&rounds, |round| round.more(name))?;
            let cells = [ours, empty, more].map(|ns| format!("{ns:.0}"));
            let named = [storm::name(kind).into(), (*name).into(), runs.to_string()];
            table.row(named.into_iter().chain(cells).chain([String::new()]));
        }
        let more = medians(&rounds, |round| Ok(round.more(FORK)? + round.more(EXIT)?))?;
        let aim = format!("below {AIM:.0}{}", if more < AIM { "" } else { ", missed" });
        let named = [storm::name(kind).into(), "fork and exit together".into()];
        table.row(named.into_iter().chain(vec![String::new(); 3]).chain([format!("{more:.0}"), aim]));
    }
    Ok(table)
}

/// Storms of this kind by strangers, below the daemon and the empty programs.
fn rounds(bench: &Bench<'_>, kind: &str) -> Result<Vec<Round>> {
    let daemon = bench.start()?;
    let empty = Empty::start(bench)?;
    command::say("bench", &format!("kernel: {kind}: {} short storms", bench.args.rounds * CUTS as usize));
    let rounds = (0..bench.args.rounds * CUTS as usize)
        .map(|_| {
            let before = (account(daemon.pid())?, account(empty.0.id())?);
            storm::rate(bench, kind, &bench.actors.stranger, bench.window() / CUTS)?;
            let after = (account(daemon.pid())?, account(empty.0.id())?);
            Ok(Round { ours: since(&before.0, &after.0), empty: since(&before.1, &after.1) })
        })
        .collect::<Result<_>>()?;
    drop(empty);
    daemon.stop()?;
    Ok(rounds)
}

fn medians(rounds: &[Round], of: impl Fn(&Round) -> Result<f64>) -> Result<f64> {
    Ok(median(&rounds.iter().map(of).collect::<Result<Vec<_>>>()?))
}

/// What the kernel charged to a program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Account {
    nanoseconds: u64,
    runs: u64,
}

/// Accounts by tracepoint.
type Accounts = BTreeMap<String, Account>;

/// One storm.
struct Round {
    ours: Accounts,
    empty: Accounts,
}

impl Round {
    fn more(&self, tracepoint: &str) -> Result<f64> {
        Ok(nanoseconds(&self.ours, tracepoint)? - nanoseconds(&self.empty, tracepoint)?)
    }
}

/// Nanoseconds a run.
fn nanoseconds(accounts: &Accounts, tracepoint: &str) -> Result<f64> {
    let account = accounts.get(tracepoint).copied().unwrap_or_default();
    ensure!(account.runs > 0, "a program on {tracepoint} did not run, or the kernel does not take its time");
    #[expect(clippy::cast_precision_loss, reason = "nanoseconds of a few seconds")]
    Ok(account.nanoseconds as f64 / account.runs as f64)
}

fn since(before: &Accounts, after: &Accounts) -> Accounts {
    let change = |(name, now): (&String, &Account)| {
        let then = before.get(name).copied().unwrap_or_default();
        (
            name.clone(),
            Account { nanoseconds: now.nanoseconds - then.nanoseconds, runs: now.runs - then.runs },
        )
    };
    after.iter().map(change).collect()
}

/// The accounts of the programs that this process has attached to raw tracepoints.
fn account(pid: u32) -> Result<Accounts> {
    let dir = format!("/proc/{pid}/fdinfo");
    let entries = fs::read_dir(&dir).with_context(|| format!("cannot read {dir}"))?;
    // A descriptor may be closed meanwhile; those of the programs are not.
    Ok(join(entries.flatten().filter_map(|entry| fs::read_to_string(entry.path()).ok())))
}

/// A link says which program is on which tracepoint, a program says what it was charged.
fn join(descriptors: impl Iterator<Item = String>) -> Accounts {
    let (mut names, mut accounts) = (BTreeMap::new(), BTreeMap::new());
    for text in descriptors {
        let field = |name: &str| {
            text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
        };
        let number = |name: &str| field(name)?.parse::<u64>().ok();
        let Some(program) = number("prog_id") else { continue };
        if let Some(name) = field("tp_name") {
            names.insert(program, name.to_owned());
        }
        if let (Some(nanoseconds), Some(runs)) = (number("run_time_ns"), number("run_cnt")) {
            accounts.insert(program, Account { nanoseconds, runs });
        }
    }
    names.into_iter().filter_map(|(program, name)| Some((name, *accounts.get(&program)?))).collect()
}

/// The actor that has the empty programs, and has the kernel take the time of all programs. Its end ends both.
struct Empty(Child);

impl Empty {
    fn start(bench: &Bench<'_>) -> Result<Self> {
        let mut actor = Command::new(&bench.actors.stranger)
            .args(["empty", FORK, EXEC, EXIT])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot start the empty programs")?;
        let stdout = actor.stdout.take();
        let actor = Self(actor);
        let mut said = String::new();
        BufReader::new(stdout.context("no stdout")?).read_line(&mut said)?;
        ensure!(said == "attached\n", "the empty programs are not attached");
        Ok(actor)
    }
}

impl Drop for Empty {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_the_kernel_charged() {
        let descriptors = [
            "pos:\t0\nlink_type:\traw_tracepoint\nlink_id:\t3\nprog_tag:\tab\nprog_id:\t7\ntp_name:\tsched_process_exit\n",
            "prog_type:\t17\nprog_jited:\t1\nprog_id:\t7\nrun_time_ns:\t600\nrun_cnt:\t20\n",
            "prog_type:\t26\nprog_id:\t8\nrun_time_ns:\t5\nrun_cnt:\t1\n",
            "map_type:\t2\n",
        ];
        let before = join(descriptors.iter().map(ToString::to_string));
        let read: Vec<_> =
            before.iter().map(|(name, account)| (&**name, account.nanoseconds, account.runs)).collect();
        assert_eq!(read, [(EXIT, 600, 20)]);
        let after = Accounts::from([(EXIT.to_owned(), Account { nanoseconds: 1_000, runs: 30 })]);
        let change = since(&before, &after);
        assert_eq!(nanoseconds(&change, EXIT).unwrap().to_bits(), 40.0_f64.to_bits());
        assert!(nanoseconds(&change, FORK).is_err());
    }
}
