//! Gateways that run each job in a thread: a thread ends without closing its server, and the gateway lives on.

use anyhow::{Result, ensure};
use serde_json::json;
use tests::{Actor, Daemon, Launch, Part, Scene, scene};

/// Two gateways; only for the first one a rule says that its servers end with its jobs.
const RULES: &str = "abandoned_grace = \"3s\"
[[agent]]
name = \"job-gateway\"
program = \"job-gateway\"
thread_scoped = true
[[agent]]
name = \"pool-gateway\"
program = \"pool-gateway\"
";

fn watched(s: &Scene) -> Result<std::rc::Rc<Daemon>> {
    s.daemon_with(&Launch { config: RULES.into(), ..Launch::default() })
}

/// A server that a job of this gateway starts, in a session of its own.
fn job(daemon: &Daemon, gateway: &Actor, alias: &str) -> Result<Actor> {
    let server = gateway.start(&Part::server(alias).how("job").setsid())?;
    daemon.wait_for("server_started", server.id)?;
    Ok(server)
}

fn end_job(gateway: &Actor, alias: &str) -> Result<()> {
    gateway.send_order(&json!({ "do": "end_job", "of": alias })).map(drop)
}

/// The server of a job that has ended is ended, and nothing else: neither that of a job which goes on, nor that of a gateway
/// without such a rule.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn a_server_ends_with_its_job() -> Result<()> {
    scene(|s| {
        let daemon = watched(s)?;
        let gateway = s.start(&Part::new("job-gateway", "gateway"))?;
        let pool = s.start(&Part::new("pool-gateway", "pool"))?;
        let (one, two) = (job(&daemon, &gateway, "one")?, job(&daemon, &gateway, "two")?);
        let other = job(&daemon, &pool, "other")?;
        // The leading thread's own.
        let own = gateway.start(&Part::server("own"))?;
        // Whatever opens a case for it would have done so before the next job ends.
        end_job(&pool, "other")?;
        end_job(&gateway, "one")?;
        daemon.wait_for("orphan_suspected", one.id)?;
        let reaped = daemon.wait_for("orphan_reaped", one.id)?;
        one.id.wait_gone()?;
        let detected = daemon.wait_for("orphan_detected", one.id)?;
        ensure!(detected.list("evidence") == ["spawner_thread_exited"], "{}", detected.line);
        ensure!(detected["owner"]["alive"] == true && reaped["signal"] == "TERM", "{}", reaped.line);
        s.barrier(&daemon)?;
        daemon.silent(&[two.id, other.id, own.id])?;
        ensure!(gateway.id.alive() && pool.id.alive());
        // The next job is judged alike.
        end_job(&gateway, "two")?;
        daemon.wait_for("orphan_reaped", two.id)?;
        daemon.silent(&[other.id, own.id])
    })
}

/// A thread has ended, and another one of the gateway goes on using its server: that is told, and the server lives as long as
/// the gateway.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn a_server_that_another_thread_uses_stays() -> Result<()> {
    scene(|s| {
        let daemon = watched(s)?;
        let gateway = s.start(&Part::new("job-gateway", "gateway"))?;
        let (shared, left) = (job(&daemon, &gateway, "shared")?, job(&daemon, &gateway, "left")?);
        shared.act("answer")?;
        let ask = || gateway.send_order(&json!({ "do": "ask", "of": "shared" }));
        ask()?;
        end_job(&gateway, "shared")?;
        daemon.wait_for("orphan_suspected", shared.id)?;
        ensure!(ask()?["answer"] == "an answer to a request\n");
        let unproven = daemon.wait_for("orphan_unproven", shared.id)?;
        ensure!(unproven.list("doubts") == ["wire_held", "stdout_read"], "{}", unproven.line);
        ensure!(unproven.list("evidence") == ["spawner_thread_exited"], "{}", unproven.line);
        // The twin, which nobody uses, shows that its time has passed.
        end_job(&gateway, "left")?;
        daemon.wait_for("orphan_reaped", left.id)?;
        ensure!(ask()?["answer"] == "an answer to a request\n");
        gateway.kill()?;
        daemon.reaped(&[shared.id]).map(drop)
    })
}

/// The gateway runs itself again in place, by another thread, and keeps the wires: all its threads end, and no job has.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn a_gateway_that_runs_itself_again_keeps_its_servers() -> Result<()> {
    scene(|s| {
        let daemon = watched(s)?;
        let gateway = s.start(&Part::new("job-gateway", "gateway"))?;
        let server = job(&daemon, &gateway, "server")?;
        gateway.act("keep_wires")?;
        let again = gateway.become_part(&Part::new("job-gateway", "again").how("thread"))?;
        // Another gateway's job ends later, and has been judged by then.
        let other = s.start(&Part::new("job-gateway", "other"))?;
        let twin = job(&daemon, &other, "twin")?;
        end_job(&other, "twin")?;
        daemon.wait_for("orphan_reaped", twin.id)?;
        s.barrier(&daemon)?;
        ensure!(server.id.alive() && again.id.alive());
        let judged = |kind: &str| daemon.events().iter().any(|e| e.is(kind, server.id));
        ensure!(!judged("orphan_detected") && !judged("orphan_unproven"));
        Ok(())
    })
}
