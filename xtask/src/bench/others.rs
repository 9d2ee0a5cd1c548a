//! Measures what other observers of the same events cost, for comparison, if they are installed.

use std::{
    io::{BufRead as _, BufReader},
    process::{Child, Command, Stdio},
    thread,
};

use anyhow::{Context as _, Result};

use super::{Bench, storm, table::Table};
use crate::command;

/// The same events as orphand's, printed.
const PROGRAM: &str = r#"BEGIN { printf("ready\n") }
tracepoint:sched:sched_process_fork { printf("fork %d %d\n", args->parent_pid, args->child_pid) }
tracepoint:sched:sched_process_exec { printf("exec %d %s\n", pid, str(args->filename)) }
tracepoint:sched:sched_process_exit { printf("exit %d\n", pid) }"#;

/// A name and a command line whose first line of output says that it is watching.
const OBSERVERS: [(&str, &[&str]); 2] =
    [("bpftrace", &["bpftrace", "-e", PROGRAM]), ("forkstat", &["forkstat", "-e", "fork,exec,exit", "-l"])];

/// Throughput of storms by strangers below each of them.
pub fn throughput(bench: &Bench<'_>) -> Result<Table> {
    let head = ["storm", "observer", "unmonitored /s", "monitored /s", "share", "pairs, lowest to highest"];
    let mut table = Table::new("The same storms below other observers of processes", &head);
    for (name, line) in OBSERVERS {
        if command::find(name).is_none() {
            command::say("bench", &format!("{name} is not installed: no comparison with it"));
            continue;
        }
        for (kind, ..) in storm::KINDS {
            let pairs = storm::in_turns(bench, kind, &bench.actors.stranger, || watch(line), end)?;
            table.row(storm::row(kind, name, &pairs));
        }
    }
    Ok(table)
}

/// Starts an observer and waits for its first line; the rest of what it prints is read and dropped.
fn watch(line: &[&str]) -> Result<Child> {
    let (program, args) = line.split_first().context("an observer has a name")?;
    let mut child = Command::new(program)
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .with_context(|| format!("cannot start {program}"))?;
    let mut stdout = BufReader::new(child.stdout.take().context("an observer has no stdout")?);
    let mut first = String::new();
    // bpftrace first says how many probes it attaches.
    while !(first.contains("ready") || first.contains("Time")) {
        first.clear();
        if stdout.read_line(&mut first).with_context(|| format!("cannot read from {program}"))? == 0 {
            anyhow::bail!("{program} ended before it watched: {}", child.wait()?);
        }
    }
    thread::spawn(move || {
        let _ = std::io::copy(&mut stdout, &mut std::io::sink());
    });
    Ok(child)
}

fn end(mut child: Child) -> Result<()> {
    child.kill().context("cannot stop an observer")?;
    child.wait().map(drop).context("cannot wait for an observer")
}
