//! Measures the time from the kernel's timestamp of an owner's exit to the line about it at a reader.

use std::{
    io::{BufRead as _, BufReader},
    os::unix::process::CommandExt as _,
    path::Path,
    process::{Child, Command, Stdio},
    time::Duration,
};

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use super::{
    Bench,
    daemon::{Daemon, Line},
    storm,
    table::{Table, quantile},
};
use crate::command;

/// How long a server outlives its owner: long enough to be suspected, short of the grace.
const SERVER_MS: &str = "1000";
/// The first of those who storm beside the user who is measured.
const FIRST_USER: u32 = 64_010;
/// An exit whose line has not come by then counts as missed.
const PATIENCE: Duration = Duration::from_secs(2);

/// The latency idle and below a storm on all cores.
pub fn latency(bench: &Bench<'_>) -> Result<Table> {
    let head = ["host", "owner exits", "missed", "p50 ms", "p99 ms", "max ms", "aim"];
    let mut table = Table::new("From an owner's exit to the line `orphan_suspected`", &head);
    let idle = series(bench)?;
    table.row(row("idle", &idle, "p99 below 2 ms"));
    let storms = Storms::start(bench, "fork", &bench.actors.agent)?;
    let under_storm = series(bench)?;
    drop(storms);
    table.row(row("fork storm on all cores", &under_storm, ""));
    let storms = Storms::of_users(bench, 3)?;
    let beside_others = series(bench)?;
    drop(storms);
    table.row(row("vfork storms below agents of three other users", &beside_others, "none missed"));
    Ok(table)
}

/// A storm in the background; over when dropped.
pub struct Storms(Vec<Child>);

impl Storms {
    /// `bench.jobs` copies of `program`.
    pub fn start(bench: &Bench<'_>, kind: &str, program: &Path) -> Result<Self> {
        // Far longer than the series: it is ended before.
        let long = Duration::from_secs(600);
        let start = |_| storm::command(bench, kind, program, long).stdout(Stdio::null()).spawn();
        (0..bench.jobs).map(start).collect::<Result<_, _>>().map(Self).context("cannot start a storm")
    }

    /// Below an agent of each of so many users who own nothing else.
    fn of_users(bench: &Bench<'_>, users: u32) -> Result<Self> {
        let long = Duration::from_secs(600);
        let start = |n| {
            let mut storm = storm::command(bench, "vfork", &bench.actors.agent, long);
            storm.uid(FIRST_USER + n).gid(FIRST_USER + n).stdout(Stdio::null()).spawn()
        };
        (0..users)
            .map(start)
            .collect::<Result<_, _>>()
            .map(Self)
            .context("cannot start a storm of another user")
    }
}

impl Drop for Storms {
    fn drop(&mut self) {
        for storm in &mut self.0 {
            let _ = storm.kill();
            let _ = storm.wait();
        }
    }
}

/// Milliseconds of each exit; nothing for a missed one.
fn series(bench: &Bench<'_>) -> Result<Vec<Option<f64>>> {
    command::say("bench", &format!("latency: {} owner exits", bench.args.exits));
    let mut daemon = bench.start()?;
    let mut all = Vec::with_capacity(bench.args.exits);
    for _ in 0..bench.args.exits {
        all.push(one(bench, &mut daemon)?);
        if all.len() == 5 && all.iter().all(Option::is_none) {
            bail!("the daemon says nothing about five owner exits");
        }
    }
    daemon.stop()?;
    Ok(all)
}

/// An agent starts a server and is killed: how long until the line about that server?
fn one(bench: &Bench<'_>, daemon: &mut Daemon) -> Result<Option<f64>> {
    let Some(server) = leave(bench, daemon, SERVER_MS, PATIENCE)? else { return Ok(None) };
    let line =
        daemon.wait_for(PATIENCE, |line| line.kind() == "orphan_suspected" && is_about(&line.event, server));
    #[expect(clippy::cast_precision_loss, reason = "nanoseconds of a latency are few")]
    Ok(line.ok().map(|line| line.read_ns.saturating_sub(line.boot_ns()) as f64 / 1e6))
}

/// Whether an event is about the server with this process.
pub fn is_about(event: &Value, server: u64) -> bool {
    let processes = event.pointer("/server/processes").and_then(Value::as_array);
    processes.is_some_and(|all| all.iter().any(|p| p.get("pid").and_then(Value::as_u64) == Some(server)))
}

/// An agent starts a server that lives for `ms`, and is killed. The process of the server; `None` if the daemon did not
/// get to know it.
///
/// It is killed only when the daemon has told of the server: real agents live longer than that, and one that is
/// not yet confirmed does not wake the daemon.
pub fn leave(bench: &Bench<'_>, daemon: &mut Daemon, ms: &str, patience: Duration) -> Result<Option<u64>> {
    let mut agent = Command::new(&bench.actors.agent)
        .arg("agent")
        .arg(&bench.actors.server)
        .arg(ms)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot start an agent")?;
    let mut said = String::new();
    BufReader::new(agent.stdout.take().context("an agent has no stdout")?).read_line(&mut said)?;
    let server: u64 = said.trim().parse().with_context(|| format!("an agent said \"{}\"", said.trim()))?;
    let started = |line: &Line| line.kind() == "server_started" && is_about(&line.event, server);
    let known = daemon.wait_for(patience, started).is_ok();
    agent.kill().and_then(|()| agent.wait()).context("cannot end an agent")?;
    Ok(known.then_some(server))
}

fn row(host: &str, all: &[Option<f64>], aim: &str) -> [String; 7] {
    let seen: Vec<f64> = all.iter().flatten().copied().collect();
    let ms = |share| format!("{:.3}", quantile(&seen, share));
    let missed = all.len() - seen.len();
    [host.into(), all.len().to_string(), missed.to_string(), ms(0.5), ms(0.99), ms(1.0), aim.into()]
}
