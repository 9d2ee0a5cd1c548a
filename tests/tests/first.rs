//! The thinnest line from the kernel to a reaped orphan.

use anyhow::{Result, ensure};
use tests::{Part, scene};

/// An agent with one server is killed: the daemon witnesses, suspects, waits out the grace and reaps.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn a_killed_agent_leaves_an_orphan_that_is_reaped() -> Result<()> {
    scene(|s| {
        let daemon = s.daemon()?;
        let agent = s.start(&Part::agent("agent"))?;
        let server = agent.start(&Part::server("server"))?;
        let started = daemon.wait_for("server_started", server.id)?;
        ensure!(agent.id == started["owner"], "another owner: {}", started.line);
        agent.kill()?;
        let reaped = daemon.reaped(&[server.id])?;
        ensure!(reaped["signal"] == "TERM", "{}", reaped.line);
        Ok(())
    })
}

/// The same without the kill: silence.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn a_living_agent_keeps_its_server() -> Result<()> {
    scene(|s| {
        let daemon = s.daemon()?;
        let agent = s.start(&Part::agent("agent"))?;
        let server = agent.start(&Part::server("server"))?;
        s.barrier(&daemon)?;
        daemon.silent(&[server.id])
    })
}
