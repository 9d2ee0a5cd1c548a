//! More to end than there is room for: hundreds of servers at once, servers of hundreds of processes, and all of them deaf.

use std::{fs, os::unix::fs::PermissionsExt as _, time::Instant};

use anyhow::{Context as _, Result, ensure};
use tests::{
    Daemon, Event, Identity, Launch, Scene,
    neighbours::{Honest, hostile},
    scene, within,
};

use super::{BECOME, GRACE};

/// An agent that starts servers and keeps their wires until it ends. What it starts does not hear SIGTERM.
const AGENT: &str = "#!/usr/bin/python3
import os, signal, sys
signal.signal(signal.SIGTERM, signal.SIG_IGN)
wires = []
for n in range(int(sys.argv[1])):
    reads, writes = os.pipe()
    answers, answer = os.pipe()
    streams = [(os.POSIX_SPAWN_DUP2, reads, 0), (os.POSIX_SPAWN_DUP2, answer, 1)]
    os.posix_spawn(sys.argv[2], sys.argv[2:], os.environ, file_actions=streams)
    os.close(reads)
    os.close(answer)
    # Descriptors are scarce.
    if n < 100:
        wires.append((writes, answers))
    else:
        os.close(writes)
        os.close(answers)
signal.pause()
";

/// A server of many processes.
const MANY: &str = "#!/usr/bin/python3
import os, signal, sys
for n in range(int(sys.argv[1])):
    if os.fork() == 0:
        break
while True:
    signal.pause()
";

/// More than are held by a descriptor at a time (512).
const CROWD: usize = 600;

/// What the daemon may take.
const MEMORY_KIB: u64 = 64 * 1024;

/// A program of the hostile user's.
pub fn program(s: &Scene, name: &str, text: &[u8]) -> Result<String> {
    let folder = s.folder().join("hostile");
    fs::create_dir_all(&folder).context("make a folder for the hostile user")?;
    let path = folder.join(name);
    fs::write(&path, text).with_context(|| format!("write {}", path.display()))?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
    Ok(path.to_string_lossy().into_owned())
}

/// The events of this kind about servers of this name.
fn told(daemon: &Daemon, kind: &str, server: &str) -> Vec<Event> {
    let all = daemon.events().into_iter();
    // Where neighbours keep the host busy, what was judged may be unreadable for a moment, and is judged again.
    let all = all.filter(|event| event["again"] != true);
    all.filter(|event| {
        event.kind() == kind && event.pointer("/server/name").is_some_and(|name| name == server)
    })
    .collect()
}

/// An agent of the hostile user with `count` servers, all told of.
fn crowd(s: &Scene, daemon: &Daemon, count: usize, server: &[&str], name: &str) -> Result<Identity> {
    let agent = program(s, "claude", AGENT.as_bytes())?;
    let count_in_words = count.to_string();
    let agent = hostile(s, BECOME, &[&[&*agent, &*count_in_words], server].concat())?;
    within("the servers are told of", || {
        (told(daemon, "server_started", name).len() == count).then_some(())
    })?;
    Ok(agent)
}

/// The most memory that a process had, in KiB.
fn peak(process: Identity) -> Result<u64> {
    let status = fs::read_to_string(format!("/proc/{}/status", process.pid))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).context("no VmHWM")?;
    Ok(line.trim().trim_end_matches("kB").trim().parse()?)
}

/// Hundreds of deaf servers are orphaned at once.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn all_of_a_crowd_are_ended_and_delay_nobody() -> Result<()> {
    scene(|s| {
        let daemon = s.daemon_with(&Launch::default())?;
        let honest = Honest::at_work(s, "honest")?;
        let server = program(s, "mcp-server-deaf", &fs::read("/usr/bin/sleep")?)?;
        let agent = crowd(s, &daemon, CROWD, &[&server, "1000"], "mcp-server-deaf")?;
        let began = Instant::now();
        agent.signal(rustix::process::Signal::KILL)?;
        daemon.wait("the first of the crowd", |event| {
            event.kind() == "orphan_detected" && event["server"]["name"] == "mcp-server-deaf"
        })?;
        let took = honest.judged_in_time(&daemon, GRACE)?;
        within("the crowd is ended", || {
            let failed = told(&daemon, "reap_failed", "mcp-server-deaf");
            let ended = told(&daemon, "orphan_reaped", "mcp-server-deaf").len();
            (ended == CROWD || !failed.is_empty()).then_some(())
        })?;
        let failed = told(&daemon, "reap_failed", "mcp-server-deaf");
        ensure!(failed.is_empty(), "{} could not be ended: {:?}", failed.len(), failed.first());
        println!(
            "{CROWD} deaf servers: ended after {:?}; the honest one judged after {took:?}",
            began.elapsed()
        );
        Ok(())
    })
}

/// One orphan has more deaf processes than are held at a time.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn a_server_of_hundreds_of_processes_is_one_case() -> Result<()> {
    scene(|s| {
        let daemon = s.daemon_with(&Launch::default())?;
        let honest = Honest::at_work(s, "honest")?;
        let server = program(s, "mcp-server-many", MANY.as_bytes())?;
        let count = CROWD.to_string();
        let agent = crowd(s, &daemon, 1, &[&server, &count], "mcp-server-many")?;
        let whole = u64::try_from(CROWD)? + 1;
        within("its processes are there", || {
            let status = daemon.ask(&["ps"]).ok()?;
            let servers =
                status["agents"].as_array()?.iter().filter_map(|a| a["servers"].as_array()).flatten();
            let mut of_it = servers.filter(|one| one["server"]["name"] == "mcp-server-many");
            (of_it.next()?["server"]["processes_total"] == whole).then_some(())
        })?;
        agent.signal(rustix::process::Signal::KILL)?;
        let took = honest.judged_in_time(&daemon, GRACE)?;
        let reaped = daemon.wait("it is ended", |event| {
            matches!(event.kind(), "orphan_reaped" | "reap_failed")
                && event["server"]["name"] == "mcp-server-many"
        })?;
        ensure!(reaped.kind() == "orphan_reaped", "{}", reaped.line);
        for event in daemon.events().iter().filter(|event| event["server"]["name"] == "mcp-server-many") {
            let shown = event["server"]["processes"].as_array().map_or(0, Vec::len);
            ensure!(shown <= 64, "{shown} processes in {}", event.kind());
        }
        let [detected] = &*told(&daemon, "orphan_detected", "mcp-server-many") else {
            anyhow::bail!("not judged once");
        };
        ensure!(detected["server"]["processes_total"] == whole, "{}", detected.line);
        let peak = peak(daemon.id)?;
        ensure!(peak < MEMORY_KIB, "the daemon took {peak} KiB");
        println!("a server of {whole} processes: the honest one judged after {took:?}, {peak} KiB");
        Ok(())
    })
}
