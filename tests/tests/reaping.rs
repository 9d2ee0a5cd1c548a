//! How orphans are ended, and who is not.

use anyhow::{Context, Result, ensure};
use rustix::process::Signal;
use serde_json::json;
use tests::{Launch, Part, Scene, scene, scene_alone};

/// A server that ignores SIGTERM is killed after the term timeout; one that heeds it is not.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn the_deaf_are_killed() -> Result<()> {
    scene(|s| {
        let daemon = s.daemon()?;
        let agent = s.start(&Part::agent("agent"))?;
        let deaf = agent.start(&Part::server("deaf"))?;
        deaf.act("ignore_term")?;
        let good = agent.start(&Part::server("good"))?;
        agent.kill()?;
        let reaped = daemon.reaped(&[good.id])?;
        ensure!(reaped["signal"] == "TERM", "{}", reaped.line);
        ensure!(reaped["took_ms"].as_u64() < Some(1000), "{}", reaped.line);
        let reaped = daemon.reaped(&[deaf.id])?;
        ensure!(reaped["signal"] == "KILL", "{}", reaped.line);
        ensure!(reaped["took_ms"].as_u64() >= Some(1000), "{}", reaped.line);
        Ok(())
    })
}

/// What a server forks while it is being ended belongs to it, and is ended too.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn forks_of_the_dying_are_reaped() -> Result<()> {
    scene(|s| {
        let daemon = s.daemon()?;
        let agent = s.start(&Part::agent("agent"))?;
        let stays = agent.start(&Part::server("stays"))?;
        stays.send_order(&json!({ "do": "fork_on_term", "aliases": ["late1", "late2"], "stay": true }))?;
        let goes = agent.start(&Part::server("goes"))?;
        goes.send_order(&json!({ "do": "fork_on_term", "aliases": ["late3", "late4", "late5"] }))?;
        agent.kill()?;
        for (server, late) in [(&stays, vec!["late1", "late2"]), (&goes, vec!["late3", "late4", "late5"])] {
            let late = late.into_iter().map(|l| s.actor(l)).collect::<Result<Vec<_>>>()?;
            let reaped = daemon.reaped(&[server.id])?;
            ensure!(reaped["signal"] == "KILL", "{}", reaped.line);
            for one in late {
                // Its exit was witnessed; the kernel may still be busy with it.
                one.id.wait_gone().context("it outlived the reaping")?;
            }
        }
        Ok(())
    })
}

/// A browser below a server leads a session of its own and its renderers were double-forked: all go with the
/// server. The same tree below an agent's own shell is nobody's server and stays.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn the_browser_goes_with_its_server() -> Result<()> {
    scene(|s| {
        let daemon = s.daemon()?;
        let agent = s.start(&Part::agent("agent"))?;
        let server = agent.start(&Part::server("server"))?;
        let tool = agent.start(&Part::new("tool", "tool").wire("pipe"))?;
        let mut trees = Vec::new();
        for (n, above) in [("a", &server), ("b", &tool)] {
            // In a session of its own, and joined with its server by its streams.
            let browser = above.start(&Part::new("browser", format!("{n}-browser")).wire("pipe").setsid())?;
            let mut tree = vec![browser.id];
            for i in 0..3 {
                let part = Part::new("renderer", format!("{n}-renderer{i}")).how("double_fork").setsid();
                tree.push(browser.start(&part)?.id);
            }
            trees.push(tree);
        }
        agent.kill()?;
        let whole = [&[server.id], trees[0].as_slice()].concat();
        daemon.reaped(&whole)?;
        s.barrier(&daemon)?;
        daemon.silent(&[&[tool.id], trees[1].as_slice()].concat())
    })
}

/// A server that ends by itself in its grace is cleared; it never was an orphan.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn who_ends_in_its_grace_is_cleared() -> Result<()> {
    scene(|s| {
        let daemon = s.daemon_with(&Launch { grace: "2s", ..Launch::default() })?;
        let agent = s.start(&Part::agent("agent"))?;
        let quick = agent.start(&Part::server("quick"))?;
        quick.send_order(&json!({ "do": "heed_eof", "after": 0.1 }))?;
        let slow = agent.start(&Part::server("slow"))?;
        agent.kill()?;
        let cleared = daemon.wait_for("orphan_cleared", quick.id)?;
        ensure!(cleared["reason"] == "exited", "{}", cleared.line);
        let after = cleared["after_ms"].as_u64();
        ensure!(after >= Some(100) && after < Some(2000), "{}", cleared.line);
        daemon.reaped(&[slow.id])?;
        s.barrier(&daemon)?;
        let wrong = daemon.events().into_iter().find(|e| e.is("orphan_detected", quick.id));
        ensure!(wrong.is_none(), "{wrong:?}");
        Ok(())
    })
}

/// An agent's pool worker inherited the write end. One that has a connection of its own may still use the server; with the agent
/// alive the same server is in use.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn a_worker_that_holds_the_wire_is_a_doubt_until_it_ends() -> Result<()> {
    scene(|s| {
        let daemon = s.daemon()?;
        let mut agents = Vec::new();
        for n in ["a", "b"] {
            let agent = s.start(&Part::new("home-made-host.py", format!("{n}-agent")))?;
            let server = agent.start(&Part::server(format!("{n}-server")))?;
            let worker = agent.fork(&format!("{n}-worker"))?;
            agents.push((agent, server, worker));
        }
        agents[0].0.kill()?;
        // The worker has a connection, to the stage: it is alive, and may use what it holds.
        let told = daemon.wait_for("orphan_unproven", agents[0].1.id)?;
        ensure!(told.list("doubts").contains(&"wire_held"), "{}", told.line);
        s.barrier(&daemon)?;
        ensure!(agents[0].1.id.alive() && agents[0].2.id.alive(), "ended without proof");
        // When it has gone, the last doubt has.
        agents[0].2.kill()?;
        daemon.reaped(&[agents[0].1.id])?;
        s.barrier(&daemon)?;
        daemon.silent(&[agents[1].0.id, agents[1].1.id, agents[1].2.id])
    })
}

/// `--observe` judges and never signals.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn observing_is_only_looking() -> Result<()> {
    scene(|s| {
        let daemon = s.daemon_with(&Launch { args: vec!["--observe"], ..Launch::default() })?;
        let agent = s.start(&Part::agent("agent"))?;
        let server = agent.start(&Part::server("server"))?;
        agent.kill()?;
        let detected = daemon.wait_for("orphan_detected", server.id)?;
        ensure!(detected.list("guards").contains(&"observe"), "{}", detected.line);
        s.barrier(&daemon)?;
        ensure!(server.id.alive(), "it was ended by a daemon that only looks");
        ensure!(!daemon.events().iter().any(|e| e.kind() == "orphan_reaped"), "reaped while observing");
        server.kill()?;
        daemon.wait_for("orphan_exited", server.id)?;
        Ok(())
    })
}

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
