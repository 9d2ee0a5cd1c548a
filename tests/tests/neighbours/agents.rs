//! Agents by the thousands, each for a moment.

use std::{fs, time::Instant};

use anyhow::{Result, ensure};
use tests::{
    Event, Launch,
    neighbours::{HOSTILE, Honest, hostile},
    scene, within,
};

use super::{GRACE, room::program};

/// Starts programs as fast as it can, so many, and stays.
const STORM: &str = "
import os, signal, sys
for n in range(int(sys.argv[2])):
    os.waitpid(os.posix_spawn(sys.argv[1], sys.argv[1:2], os.environ), 0)
signal.pause()
";

const AGENTS: u64 = 2000;

/// A program that is called like an agent is run again and again.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn a_storm_of_agents_is_a_line_a_second() -> Result<()> {
    scene(|s| {
        let daemon = s.daemon_with(&Launch::default())?;
        let agent = program(s, "claude", &fs::read("/usr/bin/true")?)?;
        let began = Instant::now();
        let storm = hostile(s, STORM, &[&agent, &AGENTS.to_string()])?;
        daemon.wait("the storm has begun", |event| event.kind() == "agent_started")?;
        // Its agent is told of by itself, with its number, in the midst of it.
        let honest = Honest::at_work(s, "honest")?;
        let owner = daemon.wait_for("server_started", honest.server())?;
        ensure!(owner["owner"]["generation"] == 1, "{}", owner.line);
        let took = honest.judged_in_time(&daemon, GRACE)?;
        let folded = || -> Vec<Event> {
            let all = daemon.events().into_iter();
            all.filter(|event| event.kind() == "agents_folded" && event["uid"] == HOSTILE).collect()
        };
        let told = |kind: &str| daemon.events().iter().filter(|event| event.kind() == kind).count();
        // All are accounted for: told, or counted. One is the honest user's.
        let count = || {
            let counted: u64 = folded().iter().filter_map(|event| event["count"].as_u64()).sum();
            counted + told("agent_started") as u64 - 1
        };
        within("the storm is accounted for", || (count() >= AGENTS).then_some(()))?;
        ensure!(count() == AGENTS, "{} of {AGENTS} agents are accounted for", count());
        ensure!(storm.alive(), "the storm's own process is gone");
        let (lines, folded) = (told("agent_started") + told("agent_exited"), folded().len());
        // At once, and each second; one is the honest user's, and each has two lines.
        let room = 64 + 10 * (usize::try_from(began.elapsed().as_secs())? + 1) + 1;
        ensure!(lines <= 2 * room, "{lines} lines about {AGENTS} agents, of which {room} may be told");
        let runs = daemon.history()?["runs"].as_array().map_or(0, Vec::len);
        ensure!(runs <= room, "the store has {runs} runs, of which {room} have room");
        println!(
            "{AGENTS} agents: {lines} lines and {folded} that count; the honest one judged after {took:?}"
        );
        Ok(())
    })
}
