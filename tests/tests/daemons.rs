//! Agents that are daemons by design: nobody leaves them behind.

use anyhow::{Result, ensure};
use tests::{Child, Launch, Layout, SERVER, Service, scene};

/// A gateway's unit is restarted without what the gateway had started: `opencode serve`, a daemon by design, and the
/// same program without the word. The latter was left behind. The server of the daemon lives as long as the daemon.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn a_daemon_outlives_the_unit_it_was_started_in() -> Result<()> {
    scene(|s| {
        let manager = s.boot("one", Layout::V2)?.manager();
        let config = "[[agent]]\nname = \"home\"\nunit = \"gateway.service\"\n";
        let daemon = s.daemon_with(&Launch { config: config.into(), ..Launch::default() })?;
        let below = |name: &str| {
            let children = vec![Child::new(SERVER, format!("{name}-server"))];
            Service::new(name, "process", children).run_by("opencode").nested(s)
        };
        let children = vec![below("serves")?.verb("serve").wire("null"), below("works")?.wire("null")];
        let gateway = Service::new("gateway", "process", children).run_by("gateway");
        gateway.install(s, &manager)?;
        gateway.restart(s, &manager)?;
        let [bot, works] = [s.truth().wait("serves", 1)?.id, s.truth().wait("works", 1)?.id];
        let [server, twin] = [s.truth().wait("serves-server", 1)?.id, s.truth().wait("works-server", 1)?.id];
        let unit_of = |server| -> Result<bool> {
            let started = daemon.wait_for("server_started", server)?;
            Ok(started.pointer("/server/run/unit").is_some_and(|unit| unit == "gateway.service"))
        };
        ensure!(!unit_of(server)? && unit_of(twin)?, "a daemon has runs of its own, its twin has not");

        gateway.restart(s, &manager)?;
        let told = daemon.wait_for("orphan_detected", works)?;
        ensure!(told["class"] == "agent", "{}", told.line);
        s.barrier(&daemon)?;
        daemon.silent(&[bot, server])?;
        ensure!(works.alive() && twin.alive(), "an agent was ended");

        bot.signal(rustix::process::Signal::KILL)?;
        daemon.reaped(&[server])?;
        ensure!(works.alive() && twin.alive(), "another agent's server was ended");
        Ok(())
    })
}
