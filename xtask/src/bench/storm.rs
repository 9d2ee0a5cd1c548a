//! Measures storms of new processes: how many per second with and without the daemon, and whether records are lost.

use std::{io::Read, process::Stdio, time::Duration};

use anyhow::{Context as _, Result, ensure};

use super::{
    Bench,
    daemon::{AGENT, Actor, NOTHING, STRANGER},
    rest::Usage,
    table::{Table, median},
};
use crate::command;

/// What a storm is made of, by its word and its name; who makes it, and the share of its throughput that the daemon has
/// to leave. On wires of its own, which a host made, each process may be a server that no rule knows, and is looked at.
const STORMS: [(&str, &str, &str, &str); 9] = [
    ("vfork", VFORK, STRANGER, "0.96"),
    ("vfork", VFORK, AGENT, "0.90"),
    ("fork", FORK, STRANGER, "0.98"),
    ("fork", FORK, AGENT, "0.96"),
    ("spawn", SPAWN, STRANGER, "0.99"),
    ("spawn", SPAWN, AGENT, "0.98"),
    ("wires", "fork + exec of `cat` on two pipes", STRANGER, ""),
    ("tcp", TCP, STRANGER, "0.98"),
    ("tcp", TCP, AGENT, "0.95"),
];
const TCP: &str = "TCP connection within the host";
const VFORK: &str = "vfork + exit";
pub const FORK: &str = "fork + exit";
pub const SPAWN: &str = "posix_spawn of a static program";

/// Throughput monitored against unmonitored.
pub fn throughput(bench: &Bench<'_>) -> Result<Table> {
    let head =
        ["storm", "made by", "unmonitored /s", "monitored /s", "share", "pairs, lowest to highest", "aim"];
    let mut table = Table::new("Throughput of storms, medians", &head);
    for (kind, name, by, aim) in STORMS {
        command::say("bench", &format!("{name} by {by}"));
        let pairs = in_turns(bench, kind, by)?;
        let (alone, observed): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
        let (alone, observed) = (median(&alone), median(&observed));
        let shares = pairs.iter().map(|pair| pair.1 / pair.0);
        let (lowest, highest) = (shares.clone().fold(f64::INFINITY, f64::min), shares.fold(0.0, f64::max));
        table.row([
            name.into(),
            if by == AGENT { "an agent's descendants" } else { "strangers" }.into(),
            format!("{alone:.0}"),
            format!("{observed:.0}"),
            format!("{:.3}", observed / alone),
            format!("{lowest:.2} to {highest:.2}"),
            aim.into(),
        ]);
    }
    Ok(table)
}

/// Pairs of rates, without and with the daemon, the order changing from pair to pair.
fn in_turns(bench: &Bench<'_>, kind: &str, by: &str) -> Result<Vec<(f64, f64)>> {
    let alone = || rate(bench, kind, by, bench.args.window);
    let observed = || -> Result<f64> {
        let daemon = bench.start()?;
        let rate = alone();
        daemon.stop()?;
        rate
    };
    // The first storm after a build finds cold caches.
    alone()?;
    let pair = |round| {
        if round % 2 == 0 {
            return Ok((alone()?, observed()?));
        }
        let with = observed()?;
        Ok((alone()?, with))
    };
    (0..bench.args.rounds).map(pair).collect()
}

/// Storms by `bench.jobs` copies of an actor, which end after `ms` milliseconds or when they are dropped.
pub fn start(bench: &Bench<'_>, kind: &str, by: &str, ms: u64) -> Result<Vec<(Actor, impl Read)>> {
    let mut storm = bench.actor(by);
    storm.args([kind, &ms.to_string()]).arg(bench.dir.join(NOTHING)).stdin(Stdio::null());
    (0..bench.jobs).map(|_| Actor::spawn(&mut storm)).collect()
}

/// Processes a second that they make together.
pub fn rate(bench: &Bench<'_>, kind: &str, by: &str, ms: u64) -> Result<f64> {
    start(bench, kind, by, ms)?.into_iter().try_fold(0.0, |sum, (_storm, mut stdout)| {
        let mut said = String::new();
        stdout.read_to_string(&mut said)?;
        Ok(sum + said.trim().parse::<f64>().with_context(|| format!("a storm said {said:?}"))?)
    })
}

/// Records lost while a storm is made on all cores: by an agent's own descendants, or on wires by strangers.
pub fn loss(bench: &Bench<'_>) -> Result<Table> {
    let head =
        ["storm", "seconds", "processes", "lost", "CPU of the daemon for each", "memory before and after"];
    let mut table = Table::new("Records lost in a storm of whom the daemon follows", &head);
    let seconds = bench.args.seconds;
    for (kind, name, by, _) in STORMS.into_iter().filter(|(kind, _, by, _)| *by == AGENT || *kind == "wires")
    {
        command::say("bench", &format!("{name}: {seconds} seconds of storm"));
        let daemon = bench.start()?;
        let before = Usage::of(daemon.pid())?;
        let made = rate(bench, kind, by, seconds * 1_000)? * Duration::from_secs(seconds).as_secs_f64();
        ensure!(made >= 1.0, "a storm that makes no process proves nothing");
        let after = Usage::of(daemon.pid())?;
        table.row([
            name.into(),
            seconds.to_string(),
            format!("{made:.0}"),
            daemon.stop()?.to_string(),
            format!("{:.0} us", (after.cpu_ms - before.cpu_ms) * 1e3 / made),
            format!("{}, {}", before.megabytes(), after.megabytes()),
        ]);
    }
    Ok(table)
}
