//! Measures what an unrelated process costs in the kernel, by the kernel's own statistics: the run time
//! of each program divided by its runs.
//!
//! Empty programs on the same tracepoints in the same storm give the lower limit: their run time is the cost of
//! measuring. So the difference is stable where throughput is not, on a machine that does other work.

use std::{collections::BTreeMap, fs, process::Stdio};

use anyhow::{Context as _, Result, ensure};

use super::{
    Bench,
    daemon::{Actor, STRANGER},
    storm,
    table::{Table, median},
};
use crate::command;

const FORK: &str = "sched_process_fork";
const EXEC: &str = "sched_process_exec";
const EXIT: &str = "sched_process_exit";

/// The storms, and the tracepoints that each goes through.
const STORMS: [(&str, &str, &[&str]); 2] =
    [("fork", storm::FORK, &[FORK, EXIT]), ("spawn", storm::SPAWN, &[FORK, EXEC, EXIT])];

/// The aim: a fork and an exit together, more than empty programs, in nanoseconds.
const AIM: f64 = 60.0;

/// A storm is cut into this many: an interruption that falls into a run spoils one of them only.
const CUTS: u32 = 10;

/// Nanoseconds a run of each program of the daemon's, and of an empty one beside it.
pub fn cost(bench: &Bench<'_>) -> Result<Table> {
    let head = ["storm", "tracepoint", "runs", "orphand ns", "empty program ns", "more ns", "aim"];
    let mut table =
        Table::new("A stranger's process in the kernel, by the kernel's own account, medians", &head);
    for (kind, name, tracepoints) in STORMS {
        let rounds = rounds(bench, kind)?;
        let of = |tracepoint: &str| -> Result<Vec<(f64, f64)>> {
            rounds
                .iter()
                .map(|round| Ok((each(&round[0], tracepoint)?, each(&round[1], tracepoint)?)))
                .collect()
        };
        let more = |pairs: &[(f64, f64)]| pairs.iter().map(|pair| pair.0 - pair.1).collect::<Vec<_>>();
        for tracepoint in tracepoints {
            let runs: u64 = rounds.iter().filter_map(|round| Some(round[0].get(*tracepoint)?.1)).sum();
            let (ours, empty): (Vec<_>, Vec<_>) = of(tracepoint)?.into_iter().unzip();
            let ns = [ours, empty, more(&of(tracepoint)?)].map(|all| format!("{:.0}", median(&all)));
            let named = [name.into(), (*tracepoint).into(), runs.to_string()];
            table.row(named.into_iter().chain(ns).chain([String::new()]));
        }
        let together: Vec<f64> =
            more(&of(FORK)?).iter().zip(more(&of(EXIT)?)).map(|(fork, exit)| fork + exit).collect();
        let together = median(&together);
        let aim = format!("below {AIM:.0}{}", if together < AIM { "" } else { ", missed" });
        let cells = [name, "fork and exit together", "", "", "", &format!("{together:.0}"), &aim];
        table.row(cells.map(str::to_owned));
    }
    Ok(table)
}

/// What the kernel charged to the programs on each tracepoint: nanoseconds and runs.
type Accounts = BTreeMap<String, (u64, u64)>;

/// What storms of this kind by strangers were charged: to the daemon's programs, and to empty ones.
fn rounds(bench: &Bench<'_>, kind: &str) -> Result<Vec<[Accounts; 2]>> {
    let daemon = bench.start()?;
    // It has the kernel take the time of all programs, too.
    let mut empty = bench.actor(STRANGER);
    let empty = Actor::start(empty.args(["empty", FORK, EXEC, EXIT]).stdin(Stdio::piped()))?;
    ensure!(empty.said == "attached\n", "the empty programs are not attached");
    let count = bench.args.rounds * CUTS as usize;
    command::say("bench", &format!("kernel: {kind}: {count} short storms"));
    let accounts = || Ok::<_, anyhow::Error>([account(daemon.pid())?, account(empty.child.id())?]);
    let mut rounds = Vec::new();
    for _ in 0..count {
        let before = accounts()?;
        storm::rate(bench, kind, STRANGER, bench.args.window / u64::from(CUTS))?;
        let [ours, others] = accounts()?;
        rounds.push([since(&before[0], ours), since(&before[1], others)]);
    }
    drop(empty);
    daemon.stop()?;
    Ok(rounds)
}

/// Nanoseconds a run.
fn each(accounts: &Accounts, tracepoint: &str) -> Result<f64> {
    let (nanoseconds, runs) = accounts.get(tracepoint).copied().unwrap_or_default();
    ensure!(runs > 0, "a program on {tracepoint} did not run, or the kernel does not take its time");
    #[expect(clippy::cast_precision_loss, reason = "nanoseconds of a few seconds")]
    Ok(nanoseconds as f64 / runs as f64)
}

fn since(before: &Accounts, mut accounts: Accounts) -> Accounts {
    for (name, now) in &mut accounts {
        let then = before.get(name).copied().unwrap_or_default();
        *now = (now.0 - then.0, now.1 - then.1);
    }
    accounts
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
    let (mut names, mut accounts) = (Vec::new(), BTreeMap::new());
    for text in descriptors {
        let field = |name: &str| {
            text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
        };
        let number = |name: &str| field(name)?.parse::<u64>().ok();
        let Some(program) = number("prog_id") else { continue };
        names.extend(field("tp_name").map(|name| (program, name.to_owned())));
        accounts.extend(number("run_time_ns").zip(number("run_cnt")).map(|account| (program, account)));
    }
    names.into_iter().filter_map(|(program, name)| Some((name, *accounts.get(&program)?))).collect()
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
        assert_eq!(before, Accounts::from([(EXIT.to_owned(), (600, 20))]));
        let change = since(&before, Accounts::from([(EXIT.to_owned(), (1_000, 30))]));
        assert_eq!(each(&change, EXIT).unwrap().to_bits(), 40.0_f64.to_bits());
        assert!(each(&change, FORK).is_err());
    }
}
