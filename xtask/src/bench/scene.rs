//! Measures verdicts on many servers that are due at once, beside the open files of a busy host.

use std::{
    io::Read as _,
    os::unix::process::CommandExt as _,
    process::{Child, Command, Stdio},
    time::Duration,
};

use anyhow::{Context as _, Result};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::{Bench, daemon::Line, rest::Usage, table::Table};
use crate::command;

/// Servers of one agent that are due at once.
const DUE: [usize; 4] = [1, 100, 1_000, 10_000];
/// Open files of processes that have nothing to do with any server.
const FOREIGN: usize = 400_000;
/// How many of them one process has.
const OF_ONE: usize = 10_000;
/// Another user, whose only server is due at the same time.
const OTHER: u32 = 64_020;
/// How long the daemon may take to tell of the next server.
const PATIENCE: Duration = Duration::from_secs(60);

/// From the end of the grace to the verdicts, by the number of servers that are due.
pub fn scene(bench: &Bench<'_>) -> Result<Table> {
    let title = format!("Verdicts on servers that are due at once, beside {FOREIGN} open files of others");
    let head = ["due at once", "first verdict", "last verdict", "another user's", "CPU time", "aim"];
    let mut table = Table::new(&title, &head);
    let files = |_| {
        let mut holder = Command::new(&bench.actors.stranger);
        gather(holder.arg("files").arg(OF_ONE.to_string()))
    };
    let foreign: Vec<Actor> = (0..FOREIGN / OF_ONE).map(files).collect::<Result<_>>()?;
    for due in DUE {
        command::say("bench", &format!("scene: {due} servers"));
        table.row(row(bench, due)?);
    }
    drop(foreign);
    Ok(table)
}

fn row(bench: &Bench<'_>, due: usize) -> Result<[String; 6]> {
    let mut daemon = bench.start()?;
    let owner = |count: usize| {
        let mut owner = Command::new(&bench.actors.agent);
        owner.arg("owner").arg(&bench.actors.server).arg(count.to_string());
        owner
    };
    let (many, other) = (gather(&mut owner(due))?, gather(owner(1).uid(OTHER).gid(OTHER))?);
    let mut servers = Vec::new();
    for _ in 0..=due {
        let told = daemon.wait_for(PATIENCE, |line| line.kind() == "server_started");
        servers.push(pid(&told.context("not all servers are known")?)?);
    }
    let before = Usage::of(daemon.pid())?;
    drop((many, other));
    let (mut all, mut others) = (Vec::new(), 0.0);
    for _ in 0..=due {
        let line = daemon.wait_for(PATIENCE, |line| line.kind() == "orphan_detected");
        let line = line.context("not all servers are judged")?;
        let latency = line.event.get("latency_ms").and_then(Value::as_f64).context("no latency")?;
        if number(&line, "/server/processes/0/uid")? == u64::from(OTHER) {
            others = latency;
        } else {
            all.push(latency);
        }
    }
    let spent = Usage::of(daemon.pid())?.ticks - before.ticks;
    daemon.stop()?;
    for server in servers {
        kill_process(server, Signal::KILL).context("cannot end a server")?;
    }
    let ms = |ms: Option<f64>| format!("{:.0} ms", ms.unwrap_or(0.0));
    let aim = if due == 1_000 { "last below 2 s" } else { "" };
    Ok([
        due.to_string(),
        ms(all.iter().copied().reduce(f64::min)),
        ms(all.iter().copied().reduce(f64::max)),
        ms(Some(others)),
        format!("{} ms", spent * 10),
        aim.to_owned(),
    ])
}

fn number(line: &Line, place: &str) -> Result<u64> {
    let found = line.event.pointer(place).and_then(Value::as_u64);
    found.with_context(|| format!("an event has no {place}"))
}

fn pid(line: &Line) -> Result<Pid> {
    let pid = i32::try_from(number(line, "/server/processes/0/pid")?)?;
    Pid::from_raw(pid).context("a process has no number")
}

/// A program that has said that it is there. It is killed when dropped.
struct Actor(Child);

fn gather(program: &mut Command) -> Result<Actor> {
    let program = program.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut actor = Actor(program.spawn().context("cannot start an actor")?);
    let stdout = actor.0.stdout.as_mut().context("an actor has no stdout")?;
    stdout.read_exact(&mut [0]).context("an actor is not there")?;
    Ok(actor)
}

impl Drop for Actor {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
