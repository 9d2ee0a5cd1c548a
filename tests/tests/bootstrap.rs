//! Late daemons and losses: what was not witnessed is found in /proc, and only what was witnessed is proof.

use anyhow::{Result, ensure};
use rustix::process::Signal;
use serde_json::json;
use tests::{Launch, Part, Scene, scene_alone};

/// The ring overflows while the daemon stands still; it says so, repairs its picture, and judges rightly
/// what happened before, meanwhile and afterwards.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn a_loss_is_told_and_repaired() -> Result<()> {
    scene_alone(|s| {
        let daemon = s.daemon_with(&Launch { args: vec!["--ring-size", "4096"], ..Launch::default() })?;
        let doomed = s.start(&Part::agent("doomed"))?;
        let before = doomed.start(&Part::server("before"))?;
        let agent = s.start(&Part::agent("agent"))?;
        let kept = agent.start(&Part::server("kept"))?;
        let ended = agent.start(&Part::server("ended"))?;
        s.mark(&daemon)?;

        daemon.signal(Signal::STOP)?;
        overflow(s, &agent)?;
        let meanwhile = agent.start(&Part::server("meanwhile"))?;
        ended.kill()?;
        doomed.kill()?;
        daemon.signal(Signal::CONT)?;

        let lost = daemon.wait("lost", |e| e.kind() == "lost")?;
        ensure!(
            lost["records"].as_object().is_some_and(|r| r.values().any(|n| n.as_u64() > Some(0))),
            "{}",
            lost.line
        );
        daemon.wait("resynced", |e| e.kind() == "resynced" && e["seq"].as_u64() > lost["seq"].as_u64())?;
        // The owner's exit was lost with the rest, or it was not; either way the server has none.
        daemon.wait_for("orphan_detected", before.id)?;
        let after = agent.start(&Part::server("after"))?;
        s.barrier(&daemon)?;
        daemon.silent(&[agent.id, kept.id, meanwhile.id, after.id])?;
        agent.kill()?;
        for server in [&kept, &meanwhile, &after] {
            daemon.reaped(&[server.id])?;
        }
        Ok(())
    })
}

/// More records of members than a page holds.
fn overflow(s: &Scene, agent: &tests::Actor) -> Result<()> {
    for i in 0..20 {
        let name = format!("storm{i}");
        agent.send_order(&json!({ "do": "start", "argv": ["/bin/true", "x".repeat(200)] }))?;
        agent.fork(&name)?.exit()?;
    }
    ensure!(s.members().len() > 2, "the storm took the cast with it");
    Ok(())
}
