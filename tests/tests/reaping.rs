//! How orphans are ended, and who is not.

use anyhow::{Result, ensure};
use rustix::process::Signal;
use tests::{Launch, Part, Scene, scene_alone};

/// While a server's last process ignores SIGTERM, the number of one that heeded it goes to an innocent
/// process: SIGKILL must not reach that.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn a_reused_number_is_another_process() -> Result<()> {
    scene_alone(|s| {
        let daemon = s.daemon()?;
        let (agent, deaf, child) = deaf_with_child(s)?;
        agent.kill()?;
        child.id.wait_gone()?;
        let mut innocent = tests::reuse(s, child.id.pid)?;
        let reaped = daemon.reaped(&[deaf.id, child.id])?;
        ensure!(reaped["signal"] == "KILL", "{}", reaped.line);
        s.barrier(&daemon)?;
        ensure!(innocent.unharmed()?, "an innocent process was signalled");
        Ok(())
    })
}

/// The same while the server is a suspect: the number of a server that ended in its grace is not its own.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn a_reused_number_is_no_suspect() -> Result<()> {
    scene_alone(|s| {
        let daemon = s.daemon_with(&Launch { grace: "1s", ..Launch::default() })?;
        let agent = s.start(&Part::agent("agent"))?;
        let server = agent.start(&Part::server("server"))?;
        agent.kill()?;
        server.signal(Signal::KILL)?;
        server.id.wait_gone()?;
        let mut innocent = tests::reuse(s, server.id.pid)?;
        daemon.wait_for("orphan_cleared", server.id)?;
        s.barrier(&daemon)?;
        ensure!(innocent.unharmed()?, "an innocent process was signalled");
        Ok(())
    })
}

fn deaf_with_child(s: &Scene) -> Result<(tests::Actor, tests::Actor, tests::Actor)> {
    let agent = s.start(&Part::agent("agent"))?;
    let deaf = agent.start(&Part::server("deaf"))?;
    let child = deaf.fork("child")?;
    deaf.act("ignore_term")?;
    Ok((agent, deaf, child))
}
