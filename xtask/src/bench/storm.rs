//! Measures storms of new processes: how many per second with and without the daemon, and whether records are lost.

use std::{
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

use anyhow::{Context as _, Result, bail};

use super::{
    Bench,
    table::{Table, median},
};
use crate::command;

/// What a storm is made of, and the share of its throughput that the daemon has to leave: to strangers, and to
/// an agent's own descendants.
pub const KINDS: [(&str, f64, f64); 3] = [("vfork", 0.96, 0.90), ("fork", 0.98, 0.96), ("spawn", 0.99, 0.98)];

/// Throughput monitored against unmonitored.
pub fn throughput(bench: &Bench<'_>) -> Result<Table> {
    let head =
        ["storm", "made by", "unmonitored /s", "monitored /s", "share", "pairs, lowest to highest", "aim"];
    let mut table = Table::new("Throughput of storms, medians", &head);
    for (kind, strangers, own) in KINDS {
        for (program, by, aim) in [
            (&bench.actors.stranger, "strangers", strangers),
            (&bench.actors.agent, "an agent's descendants", own),
        ] {
            let pairs = in_turns(bench, kind, program, || bench.start(), |daemon| daemon.stop().map(drop))?;
            table.row(row(kind, by, &pairs).into_iter().chain([format!("{aim:.2}")]));
        }
    }
    Ok(table)
}

/// Pairs of rates, without and with an observer, the order changing from pair to pair.
pub fn in_turns<O>(
    bench: &Bench<'_>,
    kind: &str,
    program: &Path,
    start: impl Fn() -> Result<O>,
    stop: impl Fn(O) -> Result<()>,
) -> Result<Vec<(f64, f64)>> {
    let observed = || -> Result<f64> {
        let observer = start()?;
        let rate = rate(bench, kind, program, bench.window());
        stop(observer)?;
        rate
    };
    let alone = || rate(bench, kind, program, bench.window());
    // The first storm after a build finds cold caches.
    alone()?;
    (0..bench.args.rounds)
        .map(|round| {
            command::say("bench", &format!("{kind} by {}: round {}", program.display(), round + 1));
            if round % 2 == 0 {
                let before = alone()?;
                Ok((before, observed()?))
            } else {
                let with = observed()?;
                Ok((alone()?, with))
            }
        })
        .collect()
}

/// The cells of a row about such pairs.
pub fn row(kind: &str, by: &str, pairs: &[(f64, f64)]) -> Vec<String> {
    let alone = median(&pairs.iter().map(|pair| pair.0).collect::<Vec<_>>());
    let observed = median(&pairs.iter().map(|pair| pair.1).collect::<Vec<_>>());
    let shares = pairs.iter().map(|pair| pair.1 / pair.0);
    let lowest = shares.clone().fold(f64::INFINITY, f64::min);
    let highest = shares.fold(0.0, f64::max);
    vec![
        name(kind).into(),
        by.into(),
        format!("{alone:.0}"),
        format!("{observed:.0}"),
        format!("{:.3}", observed / alone),
        format!("{lowest:.2} to {highest:.2}"),
    ]
}

/// The name of a kind in a table.
pub fn name(kind: &str) -> &str {
    match kind {
        "vfork" => "vfork + exit",
        "fork" => "fork + exit",
        "wires" => "fork + exec of `cat` on two pipes",
        _ => "posix_spawn of a static program",
    }
}

/// Processes a second that `bench.jobs` copies of `program` make together.
pub fn rate(bench: &Bench<'_>, kind: &str, program: &Path, window: Duration) -> Result<f64> {
    let storms: Vec<_> = (0..bench.jobs)
        .map(|_| command(bench, kind, program, window).stdout(Stdio::piped()).spawn())
        .collect::<Result<_, _>>()
        .with_context(|| format!("cannot start {}", program.display()))?;
    storms.into_iter().try_fold(0.0, |sum, storm| {
        let output = storm.wait_with_output().context("cannot wait for a storm")?;
        let text = String::from_utf8_lossy(&output.stdout);
        let rate: f64 = text.trim().parse().with_context(|| format!("a storm said \"{}\"", text.trim()))?;
        Ok(sum + rate)
    })
}

/// The command line of one storm.
pub fn command(bench: &Bench<'_>, kind: &str, program: &Path, window: Duration) -> Command {
    let mut storm = Command::new(program);
    storm.arg(kind).arg(window.as_millis().to_string()).arg(&bench.actors.nothing).stdin(Stdio::null());
    storm
}

/// Records lost while an agent's own descendants storm on all cores.
pub fn loss(bench: &Bench<'_>) -> Result<Table> {
    let mut table = Table::new(
        "Records lost in a storm of an agent's own descendants",
        &["storm", "seconds", "processes", "lost"],
    );
    for (kind, ..) in KINDS {
        command::say("bench", &format!("{kind}: {} seconds of storm", bench.args.seconds));
        let daemon = bench.start()?;
        let window = Duration::from_secs(bench.args.seconds);
        let rate = rate(bench, kind, &bench.actors.agent, window)?;
        let lost = daemon.stop()?;
        let made = rate * window.as_secs_f64();
        table.row([
            name(kind).into(),
            bench.args.seconds.to_string(),
            format!("{made:.0}"),
            lost.to_string(),
        ]);
        if made < 1.0 {
            bail!("a storm that makes no process proves nothing");
        }
    }
    Ok(table)
}
