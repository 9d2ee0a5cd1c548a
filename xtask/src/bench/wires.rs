//! Measures a storm of programs that no rule knows, with both standard streams wires that a host made for them: each may be
//! a server, and is looked at. What do they cost, and is an orphan of another user judged in time?

use std::{path::Path, time::Duration};

use anyhow::{Context as _, Result};
use serde_json::Value;

use super::{
    Bench,
    latency::{Storms, is_about, leave},
    rest::Usage,
    storm::{in_turns, rate, row},
    table::{Table, quantile},
};
use crate::command;

const KIND: &str = "wires";
/// Orphans that are judged, idle and below the storm.
const ORPHANS: usize = 10;
/// How long their servers live: longer than the grace, and than the storm takes to delay the verdict by much.
const SERVER_MS: &str = "40000";
const PATIENCE: Duration = Duration::from_secs(30);

/// What the storm costs, and what it delays.
pub fn storm(bench: &Bench<'_>) -> Result<Table> {
    let mut table = Table::new("A storm of programs on wires that no rule knows", &["what", "measured"]);
    let mut told = |what: &str, measured: String| table.row([what.to_owned(), measured]);

    let program = &bench.actors.stranger;
    let pairs = in_turns(bench, KIND, program, || bench.start(), |daemon| daemon.stop().map(drop))?;
    if let [_, _, alone, observed, share, spread] = &row(KIND, "strangers", &pairs)[..] {
        told("processes a second, unmonitored and monitored", format!("{alone}, {observed}"));
        told("share, pairs from lowest to highest", format!("{share}, {spread}"));
    }

    let seconds = Duration::from_secs(bench.args.seconds);
    command::say("bench", &format!("{KIND}: {} seconds of storm", bench.args.seconds));
    let daemon = bench.start()?;
    let before = Usage::of(daemon.pid())?;
    let made = rate(bench, KIND, program, seconds)? * seconds.as_secs_f64();
    let after = Usage::of(daemon.pid())?;
    let lost = daemon.stop()?;
    #[expect(clippy::cast_precision_loss, reason = "ticks of a bench are few")]
    let each = (after.ticks - before.ticks) as f64 * 1e4 / made.max(1.0);
    told("processes, records lost", format!("{made:.0}, {lost}"));
    told("CPU time of the daemon for each", format!("{each:.0} us"));
    let megabytes =
        |usage: &Usage| format!("{}.{} MB", usage.rss_kib / 1024, usage.rss_kib % 1024 * 10 / 1024);
    told("resident memory before and after", format!("{}, {}", megabytes(&before), megabytes(&after)));

    told("orphans of another user, host idle", verdicts(bench, None)?);
    told("orphans of another user, below the storm", verdicts(bench, Some(program))?);
    Ok(table)
}

/// How many of the orphans were judged, and how long after the end of their grace.
fn verdicts(bench: &Bench<'_>, storm: Option<&Path>) -> Result<String> {
    command::say("bench", &format!("{KIND}: {ORPHANS} orphans"));
    let mut daemon = bench.start()?;
    let storms = storm.map(|program| Storms::start(bench, KIND, program)).transpose()?;
    let mut servers = Vec::new();
    for _ in 0..ORPHANS {
        servers.extend(leave(bench, &mut daemon, SERVER_MS, PATIENCE)?);
    }
    let mut late = Vec::new();
    while late.len() < servers.len() {
        let judged = daemon.wait_for(PATIENCE, |line| {
            line.kind() == "orphan_detected" && servers.iter().any(|server| is_about(&line.event, *server))
        });
        let Ok(line) = judged else { break };
        late.push(line.event.get("latency_ms").and_then(Value::as_f64).context("no latency_ms")?);
    }
    drop(storms);
    daemon.stop()?;
    let ms = |share| format!("{:.1}", quantile(&late, share));
    Ok(format!("{} of {ORPHANS}, {} ms late, at most {} ms", late.len(), ms(0.5), ms(1.0)))
}
