//! A server whose processes have an unusual shape: a line of thousands, or thousands that share one pipe.

use std::{
    fs,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use tests::{
    Launch, in_time,
    neighbours::{Honest, hostile},
    scene, within,
};

use super::{AGENT, BECOME, GRACE, room::program};

/// A server of so many processes in this shape.
const SHAPED: (&str, &str) = (
    "mcp-server-shaped",
    "#!/usr/bin/python3
import os, signal, sys
shape, count, link = sys.argv[1], int(sys.argv[2]), sys.argv[3]
def become(*streams):
    os.setsid()
    for n, stream in enumerate(streams):
        os.dup2(stream, n)
    os.closerange(3, 64)
if shape == 'line':
    # Each started the next one.
    os.spawnv(os.P_NOWAIT, link, [link, str(count - 2)])
elif shape == 'crowd':
    # All have both ends of one pipe, and nothing else of the server.
    reads, writes = os.pipe()
    for n in range(count - 1):
        if os.fork() == 0:
            become(reads, writes, writes)
            break
elif shape == 'sessions':
    # Beside thousands of processes one starts others without end, each in a session of its own.
    for n in range(count - 2):
        if os.fork() == 0:
            signal.pause()
    if os.fork() == 0:
        while True:
            if os.fork() == 0:
                os.setsid()
                os._exit(0)
            os.wait()
elif shape == 'relay':
    # Each writes to the one before it. The last one is joined with the server.
    reads, writes = os.pipe()
    server, _ = os.pipe()
    null = os.open('/dev/null', os.O_RDWR)
    for n in range(count - 1):
        next_reads, next_writes = os.pipe()
        if os.fork() == 0:
            become(server if n == count - 2 else next_reads, writes, null)
            break
        os.close(reads)
        os.close(writes)
        reads, writes = next_reads, next_writes
while True:
    signal.pause()
",
);

/// A line of processes. A program that forks without an exec would need ever longer for it.
const LINK: &str = "#!/bin/dash
[ $1 -gt 0 ] && \"$0\" $(($1 - 1))
exec sleep 1000
";

/// The most that the daemon's loop may be held on a machine that is as fast as usual. It takes half a second
/// there. What once took two seconds with so many processes would not be noticed: the time of a busy machine differs by as much.
const HELD: Duration = Duration::from_secs(5);

/// While the server is judged the daemon's loop answers, and the orphan of another user is ended in time.
fn delays_nobody(shape: &str, count: u64) -> Result<()> {
    scene(|s| {
        let daemon = s.daemon_with(&Launch::default())?;
        let honest = Honest::at_work(s, "honest")?;
        let agent = program(s, "claude", AGENT.as_bytes())?;
        let server = program(s, SHAPED.0, SHAPED.1.as_bytes())?;
        let link = program(s, "link", LINK.as_bytes())?;
        let agent = hostile(s, BECOME, &[&agent, &server, shape, &count.to_string(), &link])?;
        within("its processes are there", || {
            let status = daemon.ask(&["ps"]).ok()?;
            let agents = status.pointer("/agents")?.as_array()?.iter();
            let servers = agents.filter_map(|agent| agent.pointer("/servers")?.as_array()).flatten();
            let mut ours =
                servers.filter(|one| one.pointer("/server/name").is_some_and(|name| name == SHAPED.0));
            (ours.next()?.pointer("/server/processes_total")?.as_u64()? >= count).then_some(())
        })?;
        agent.signal(rustix::process::Signal::KILL).context("kill the hostile user's agent")?;
        let mut held = Duration::ZERO;
        let judged = within("the shaped one is judged", || {
            let asked = Instant::now();
            let answered = daemon.ask(&["status"]);
            held = held.max(asked.elapsed());
            answered.ok()?;
            daemon.events().into_iter().find(|event| {
                matches!(event.kind(), "orphan_detected" | "orphan_unproven")
                    && event.pointer("/server/name").is_some_and(|name| name == SHAPED.0)
            })
        })?;
        ensure!(held < in_time(HELD)?, "{shape}, {count}: held the loop for {held:?}");
        let took = honest.judged_in_time(&daemon, GRACE)?;
        println!(
            "{shape}, {count}: {}, loop held for {held:?}, the honest one judged after {took:?}",
            judged.kind()
        );
        Ok(())
    })
}

#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn a_long_line_of_processes_delays_nobody() -> Result<()> {
    delays_nobody("line", 3000)
}

#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn a_crowd_at_one_pipe_delays_nobody() -> Result<()> {
    delays_nobody("crowd", 2000)
}

#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn a_relay_of_processes_delays_nobody() -> Result<()> {
    delays_nobody("relay", 1000)
}

/// What a server does without a pause, beside thousands of its processes, costs others nothing.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn a_storm_of_sessions_delays_nobody() -> Result<()> {
    delays_nobody("sessions", 500)
}

/// A line of processes, each of which started the next one. Its shell is named like a Python.
const PYTHONS: &str = "exec </dev/null >/dev/null 2>&1
[ $3 -gt 0 ] && \"$1\" \"$0\" \"$1\" \"$2\" $(($3 - 1))
: > \"$2\"
exec sleep 1000
";

/// Each of them may be a server that has moved its wire.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn a_line_of_pythons_keeps_no_daemon_from_its_start() -> Result<()> {
    scene(|s| {
        let began = std::env::temp_dir().join(format!("orphand-pythons-{}", std::process::id()));
        let python = program(s, "python", &fs::read("/bin/dash").context("read a shell")?)?;
        let line = program(s, "line", PYTHONS.as_bytes())?;
        hostile(s, BECOME, &[&*python, &line, &python, &began.to_string_lossy(), "3000"])?;
        within("the line", || began.exists().then_some(()))?;
        fs::remove_file(&began)?;
        let asked = Instant::now();
        let daemon = s.daemon_with(&Launch::default())?;
        let ready = asked.elapsed();
        ensure!(ready < in_time(Duration::from_secs(60))?, "the start took {ready:?}");
        let took = Honest::at_work(s, "honest")?.judged_in_time(&daemon, GRACE)?;
        println!("3,000 Pythons in a line: ready after {ready:?}, judged after {took:?}");
        Ok(())
    })
}
