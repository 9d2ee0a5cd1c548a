//! Measures the time from the kernel's timestamp of an owner's exit to the line about it at a reader, and how late an
//! orphan is judged.

use std::{process::Stdio, time::Duration};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use super::{
    Bench,
    daemon::{AGENT, Actor, Daemon, SERVER, STRANGER},
    storm,
    table::{Table, quantile},
};
use crate::command;

/// What is waited for, how many owners leave a server together, how long each server lives after that in milliseconds,
/// and after how long its line counts as missed.
type Wait = (&'static str, usize, &'static str, Duration);

/// The server lives long enough to be suspected, short of the grace.
const SUSPECTED: Wait = ("orphan_suspected", 1, "1000", Duration::from_secs(2));
/// It lives longer than the grace, and than a storm takes to delay the verdict by much. What is measured is how long
/// after the end of the grace the verdict comes.
const DETECTED: Wait = ("orphan_detected", 10, "40000", Duration::from_secs(60));

/// Far longer than a series: the storm is ended before.
const LONG: u64 = 600_000;

/// The latency idle and below a storm on all cores.
pub fn latency(bench: &Bench<'_>) -> Result<Table> {
    let head = ["line", "host", "owner exits", "missed", "p50 ms", "p99 ms", "max ms", "aim"];
    let mut table = Table::new("From an owner's exit to a line, or from the end of the grace", &head);
    for (wait, host, storm, aim) in [
        (SUSPECTED, "idle", None, "p99 below 2 ms"),
        (SUSPECTED, "fork storm on all cores", Some(("fork", AGENT)), ""),
        (DETECTED, "idle", None, ""),
        (DETECTED, "storm of another user's `cat` on wires", Some(("wires", STRANGER)), ""),
    ] {
        let exits = if wait == SUSPECTED { bench.args.exits } else { wait.1 };
        command::say("bench", &format!("latency: {}, {host}, {exits} owner exits", wait.0));
        let mut daemon = bench.start()?;
        let storms = storm.map(|(kind, by)| storm::start(bench, kind, by, LONG)).transpose()?;
        let mut seen = Vec::new();
        for round in 0..exits / wait.1 {
            seen.extend(together(bench, &mut daemon, wait)?);
            ensure!(round < 5 || !seen.is_empty(), "the daemon says nothing about five owner exits");
        }
        drop(storms);
        daemon.stop()?;
        let ms = |share| format!("{:.3}", quantile(&seen, share));
        let missed = (exits - seen.len()).to_string();
        let (line, exits) = (format!("`{}`", wait.0), exits.to_string());
        table.row([line, host.into(), exits, missed, ms(0.5), ms(0.99), ms(1.0), aim.into()]);
    }
    Ok(table)
}

/// Agents start a server each and are killed: the milliseconds until the line about it, of those that came.
fn together(bench: &Bench<'_>, daemon: &mut Daemon, (kind, count, ms, patience): Wait) -> Result<Vec<f64>> {
    let mut servers = Vec::new();
    for _ in 0..count {
        servers.extend(leave(bench, daemon, ms, patience)?);
    }
    let mut late = Vec::new();
    while late.len() < servers.len() {
        let wanted = daemon
            .wait_for(patience, |line| line.is(kind) && servers.iter().any(|server| line.is_about(*server)));
        let Ok(line) = wanted else { break };
        let after_grace = line.event.get("latency_ms").and_then(Value::as_f64);
        late.push(if kind == SUSPECTED.0 { line.age_ms() } else { after_grace.context("no latency_ms")? });
    }
    Ok(late)
}

/// An agent starts a server that lives for `ms`, and is killed. The process of the server; `None` if the daemon did not
/// get to know it.
///
/// It is killed only when the daemon has told of the server: real agents live longer than that, and one that is
/// not yet confirmed does not wake the daemon.
fn leave(bench: &Bench<'_>, daemon: &mut Daemon, ms: &str, patience: Duration) -> Result<Option<u64>> {
    let mut agent = bench.actor(AGENT);
    let agent = Actor::start(agent.arg("agent").arg(bench.dir.join(SERVER)).arg(ms).stdin(Stdio::null()))?;
    let server: u64 = agent.said.trim().parse().with_context(|| format!("an agent said {:?}", agent.said))?;
    let known = daemon.wait_for(patience, |line| line.is("server_started") && line.is_about(server)).is_ok();
    Ok(known.then_some(server))
}
