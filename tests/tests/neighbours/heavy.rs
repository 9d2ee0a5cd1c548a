//! A look that takes its time: a server of so many processes that reading about them takes seconds.

use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use tests::{
    Launch, Scene,
    neighbours::{Honest, hostile},
    scene, within,
};

use super::{AGENT, BECOME, GRACE, room::program};

/// A server of many processes, each with many open files.
const HEAVY: &str = "#!/usr/bin/python3
import os, signal, sys
for n in range(int(sys.argv[2])):
    os.open('/dev/null', os.O_RDONLY)
for n in range(int(sys.argv[1]) - 1):
    if os.fork() == 0:
        break
while True:
    signal.pause()
";

/// Processes of the server.
const PROCESSES: u64 = 1500;
/// Open files of each.
const FILES: u64 = 40;

/// The server of the hostile user is orphaned first, and the honest user's while it is being looked at.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn a_look_that_takes_seconds_delays_nobody_else() -> Result<()> {
    scene(|s| {
        let daemon = s.daemon_with(&Launch::default())?;
        let honest = Honest::at_work(s, "honest")?;
        let agent = heavy(s)?;
        within("its processes are there", || {
            let status = daemon.ask(&["ps"]).ok()?;
            let servers =
                status["agents"].as_array()?.iter().filter_map(|a| a["servers"].as_array()).flatten();
            let mut of_it = servers.filter(|one| one["server"]["name"] == "mcp-server-heavy");
            (of_it.next()?["server"]["processes_total"] == PROCESSES).then_some(())
        })?;
        let began = Instant::now();
        agent.signal(rustix::process::Signal::KILL).context("kill the hostile user's agent")?;
        let took = honest.judged_in_time(&daemon, GRACE)?;
        let detected = daemon.wait("the large one is judged", |event| {
            matches!(event.kind(), "orphan_detected" | "orphan_unproven")
                && event["server"]["name"] == "mcp-server-heavy"
        })?;
        let whole = began.elapsed();
        ensure!(detected.kind() == "orphan_detected", "{}", detected.line);
        let other = daemon.wait_for("orphan_detected", honest.server())?;
        ensure!(
            other["seq"].as_u64() < detected["seq"].as_u64(),
            "the honest one had to wait: {}",
            other.line
        );
        ensure!(detected["server"]["processes_total"] == PROCESSES, "{}", detected.line);
        let reaped = daemon.wait("it is ended", |event| {
            matches!(event.kind(), "orphan_reaped" | "reap_failed")
                && event["server"]["name"] == "mcp-server-heavy"
        })?;
        ensure!(reaped.kind() == "orphan_reaped", "{}", reaped.line);
        println!(
            "a server of {PROCESSES} processes with {FILES} open files each: judged after {whole:?}, the honest one after \
             {took:?}"
        );
        Ok(())
    })
}

/// The agent of a hostile user, whose server is large.
fn heavy(s: &Scene) -> Result<tests::Identity> {
    let agent = program(s, "claude", AGENT.as_bytes())?;
    let server = program(s, "mcp-server-heavy", HEAVY.as_bytes())?;
    hostile(s, BECOME, &[&agent, &server, &PROCESSES.to_string(), &FILES.to_string()])
}
