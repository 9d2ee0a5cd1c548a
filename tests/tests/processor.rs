//! CPU time of what was left behind: in events, as a counter, and as a threshold.

use anyhow::{Result, ensure};
use tests::{
    Daemon, Launch, Part, scene,
    scrape::{page, sum},
};

fn alerted(daemon: &Daemon) -> bool {
    daemon.events().iter().any(|event| event.kind() == "alert" && event["on"] == "cpu")
}

/// An orphan that rests raises nothing; when it runs away, it is told, and counted.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn an_orphan_that_runs_away_is_told() -> Result<()> {
    scene(|s| {
        let config = "alert = [\"cpu > 20\"]\n".to_owned();
        let args = vec!["--observe"];
        let daemon = s.daemon_with(&Launch { listen: "127.0.0.1:0", config, args, ..Launch::default() })?;
        let agent = s.start(&Part::agent("agent"))?;
        let server = agent.start(&Part::server("server"))?;
        daemon.wait_for("server_started", server.id)?;
        agent.kill()?;
        let exited = daemon.wait("agent_exited", |event| event.is_agent("agent_exited", agent.id))?;
        ensure!(exited["cpu_ms"].is_u64(), "{}", exited.line);
        let detected = daemon.wait_for("orphan_detected", server.id)?;
        let before = detected["cpu_ms"].as_u64();
        ensure!(before.is_some() && detected["server"]["cpu_ms"].as_u64() == before, "{}", detected.line);
        s.barrier(&daemon)?;
        ensure!(!alerted(&daemon), "it rests");
        let total = |page: &str| sum(page, "orphand_orphan_cpu_seconds_total");
        let rested = total(&page(&daemon, "/metrics")?);
        // Each is half a second of CPU time.
        for _ in 0..200 {
            if alerted(&daemon) {
                break;
            }
            server.act("work")?;
        }
        let alert = daemon.wait("alert", |event| event.kind() == "alert" && event["on"] == "cpu")?;
        ensure!(alert["value"].as_u64() > Some(20) && alert["limit"] == 20, "{}", alert.line);
        let used = total(&page(&daemon, "/metrics")?) - rested;
        ensure!(used > 0.4, "{used} s");
        server.kill()?;
        daemon.wait_for("orphan_exited", server.id).map(drop)
    })
}
