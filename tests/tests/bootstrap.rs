//! Late daemons and losses: what was not witnessed is found in /proc, and only what was witnessed is proof.

use anyhow::{Result, ensure};
use rustix::process::Signal;
use serde_json::json;
use tests::{Launch, Part, Scene, scene, scene_alone};

/// An agent and its servers that were there first are tracked as if witnessed.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn what_was_there_first_is_known() -> Result<()> {
    scene(|s| {
        let mut plays = Vec::new();
        for n in ["a", "b"] {
            let launcher = s.start(&Part::agent(format!("{n}-launcher")))?;
            let agent = launcher.start(&Part::agent(format!("{n}-agent")).wire("inherit"))?;
            launcher.kill()?;
            let plain = agent.start(&Part::server(format!("{n}-plain")))?;
            let worker = plain.fork(&format!("{n}-worker"))?;
            let chain =
                agent.start(&Part::server(format!("{n}-chain")).wire("socket").setsid().below_shell())?;
            plays.push((agent, plain, worker, chain));
        }
        let daemon = s.daemon()?;
        let ready = daemon.wait("ready", |e| e.kind() == "ready")?;
        ensure!(
            ready["agents"].as_u64() >= Some(2) && ready["servers"].as_u64() >= Some(4),
            "{}",
            ready.line
        );
        for (agent, plain, _, chain) in &plays {
            for server in [plain, chain] {
                let started = daemon.wait_for("server_started", server.id)?;
                ensure!(agent.id == started["owner"], "another owner: {}", started.line);
            }
        }
        let (agent, plain, worker, chain) = &plays[0];
        agent.kill()?;
        daemon.reaped(&[plain.id, worker.id])?;
        daemon.reaped(&[chain.id])?;
        s.barrier(&daemon)?;
        let (agent, plain, worker, chain) = &plays[1];
        daemon.silent(&[agent.id, plain.id, worker.id, chain.id])
    })
}

/// A home-made host with one server, both there first: the wire tells whose it is.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn an_implied_agent_that_was_there_first() -> Result<()> {
    scene(|s| {
        let mut hosts = Vec::new();
        for n in ["a", "b"] {
            let host = s.start(&Part::new("home-made-host.py", format!("{n}-host")))?;
            let server = host.start(&Part::server(format!("{n}-server")))?;
            hosts.push((host, server));
        }
        let daemon = s.daemon()?;
        hosts[0].0.kill()?;
        daemon.reaped(&[hosts[0].1.id])?;
        s.barrier(&daemon)?;
        daemon.silent(&[hosts[1].0.id, hosts[1].1.id])
    })
}

/// Servers found without an owner. One that nobody can talk to any more, and that is nobody's child, is an orphan without doubt. Of
/// one whose wire a pool worker of the dead host holds nobody saw what happened: it is told of and left alone.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn found_without_an_owner() -> Result<()> {
    scene(|s| {
        let agent = s.start(&Part::agent("agent"))?;
        let server = agent.start(&Part::server("server"))?;
        let chain = agent.start(&Part::server("chain").setsid().below_shell())?;
        let host = s.start(&Part::new("home-made-host.py", "host"))?;
        let held = host.start(&Part::server("held"))?;
        let worker = host.fork("worker")?;
        agent.kill()?;
        host.kill()?;
        let daemon = s.daemon()?;
        for (one, dies) in [(&server, true), (&chain, true), (&held, false)] {
            let event = if dies { "orphan_detected" } else { "orphan_unproven" };
            let detected = daemon.wait_for(event, one.id)?;
            let evidence = detected.list("evidence");
            ensure!(
                evidence.contains(&"no_owner") && !evidence.contains(&"owner_exited"),
                "{}",
                detected.line
            );
            ensure!(evidence.contains(&"stdin_hangup") == dies, "{}", detected.line);
        }
        for one in [server.id, chain.id] {
            daemon.wait_for("orphan_reaped", one)?;
            one.wait_gone()?;
        }
        s.barrier(&daemon)?;
        ensure!(held.id.alive() && worker.id.alive(), "ended without proof");
        Ok(())
    })
}

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

/// A fork bomb of another user, bounded, rages while an agent's history goes on: no record of that is lost.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn a_fork_bomb_next_door_loses_nothing() -> Result<()> {
    const BOMB: &str = "import os\n\
        def burst(n):\n  \
          for _ in range(n):\n    \
            p = os.fork()\n    \
            if p == 0: os._exit(0)\n    \
            os.waitpid(p, 0)\n\
        for _ in range(4):\n  \
          if os.fork() == 0: burst(2500); os._exit(0)\n\
        for _ in range(4): os.wait()\n";
    scene_alone(|s| {
        let daemon = s.daemon()?;
        let uid = ["--reuid=65534", "--regid=65534", "--clear-groups", "/usr/bin/python3", "-c", BOMB];
        let bomb = s.spawn(s.command("/usr/bin/setpriv")?.args(uid))?;
        let mut rounds = 0;
        while bomb.alive() || rounds < 3 {
            let agent = s.start(&Part::agent(format!("agent{rounds}")))?;
            let server = agent.start(&Part::server(format!("server{rounds}")).below_shell())?;
            let worker = server.fork(&format!("worker{rounds}"))?;
            agent.kill()?;
            daemon.reaped(&[server.id, worker.id])?;
            rounds += 1;
        }
        s.mark(&daemon)?;
        let lost = daemon.events().into_iter().find(|e| matches!(e.kind(), "lost" | "resynced"));
        ensure!(lost.is_none(), "{lost:?}");
        Ok(())
    })
}
