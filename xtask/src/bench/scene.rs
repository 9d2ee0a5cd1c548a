//! Measures verdicts on many servers that are due at once, beside the open files of a busy host.

use std::{os::unix::process::CommandExt as _, process::Stdio, time::Duration};

use anyhow::{Context as _, Result};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::{
    Bench,
    daemon::{AGENT, Actor, Line, SERVER, STRANGER},
    rest::{Usage, many},
    table::Table,
};
use crate::command;

/// Servers of one agent that are due at once.
const DUE: [usize; 4] = [1, 100, 1_000, 4_000];
/// Open files of processes that have nothing to do with any server, and how many of them one process has.
const FOREIGN: usize = 400_000;
const OF_ONE: usize = 10_000;
/// Another user, whose only server is due at the same time.
const OTHER: u32 = 64_020;
/// How long the daemon may take to tell of the next server.
const PATIENCE: Duration = Duration::from_secs(60);

/// From the end of the grace to the verdicts, by the number of servers that are due.
pub fn scene(bench: &Bench<'_>) -> Result<Table> {
    let title = format!("Verdicts on servers that are due at once, beside {FOREIGN} open files of others");
    let mut table =
        Table::new(&title, &["due at once", "first", "last", "another user's", "CPU time", "aim"]);
    let foreign = (0..FOREIGN / OF_ONE).map(|_| many(bench, ["files", STRANGER, "-"], OF_ONE));
    let _foreign: Vec<Actor> = foreign.collect::<Result<_>>()?;
    for due in DUE {
        command::say("bench", &format!("scene: {due} servers"));
        table.row(row(bench, due)?);
    }
    Ok(table)
}

fn row(bench: &Bench<'_>, due: usize) -> Result<[String; 6]> {
    let mut daemon = bench.start()?;
    let server = bench.dir.join(SERVER).display().to_string();
    let mut owner = many(bench, ["owner", AGENT, &server], due)?;
    let mut other = bench.actor(AGENT);
    let mut other = Actor::start(other.args(["owner", &server, "1"]).uid(OTHER).stdin(Stdio::piped()))?;
    let mut servers = Servers(Vec::new());
    for _ in 0..=due {
        let told = daemon.wait_for(PATIENCE, |line| line.is("server_started"));
        let server = first(&told.context("not all servers are known")?, "pid")?;
        servers.0.extend(Pid::from_raw(i32::try_from(server)?));
    }
    let before = Usage::of(daemon.pid())?;
    // Killed: they cannot end their servers.
    owner.child.kill()?;
    other.child.kill()?;
    let (mut all, mut others) = (Vec::new(), 0.0);
    for _ in 0..=due {
        let line = daemon.wait_for(PATIENCE, |line| line.is("orphan_detected"));
        let line = line.context("not all servers are judged")?;
        let latency = line.event.get("latency_ms").and_then(Value::as_f64).context("no latency")?;
        if first(&line, "uid")? == i64::from(OTHER) {
            others = latency;
        } else {
            all.push(latency);
        }
    }
    let spent = Usage::of(daemon.pid())?.cpu_ms - before.cpu_ms;
    daemon.stop()?;
    let [least, most] = [f64::min, f64::max].map(|of| all.iter().copied().reduce(of).unwrap_or_default());
    let aim = if due == 1_000 { "last below 2 s" } else { "" };
    let ms = |ms: f64| format!("{ms:.0} ms");
    Ok([due.to_string(), ms(least), ms(most), ms(others), ms(spent), aim.to_owned()])
}

/// What the owners left. It is ended when this is dropped.
struct Servers(Vec<Pid>);

impl Drop for Servers {
    fn drop(&mut self) {
        for server in &self.0 {
            let _ = kill_process(*server, Signal::KILL);
        }
    }
}

/// A number of the server's first process.
fn first(line: &Line, what: &str) -> Result<i64> {
    let found = line.event.pointer(&format!("/server/processes/0/{what}")).and_then(Value::as_i64);
    found.with_context(|| format!("an event has no {what}"))
}
