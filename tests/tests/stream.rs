//! What the events say of a life that goes well, and of one that does not.

use anyhow::{Result, ensure};
use tests::{Part, scene};

/// Agents are numbered by their runs, and their ends are told with cause and what stays.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn generations_and_ends_of_agents() -> Result<()> {
    scene(|s| {
        let daemon = s.daemon()?;
        let first = s.start(&Part::agent("first"))?;
        let server = first.start(&Part::server("server"))?;
        let second = s.start(&Part::agent("second"))?;
        let other = s.start(&Part::new("codex", "other"))?;
        server.act("work")?;
        first.kill()?;
        second.exit()?;
        for (agent, name, generation) in [(&first, "claude", 1), (&second, "claude", 2), (&other, "codex", 1)]
        {
            let told = daemon.wait("agent_started", |e| e.is_agent("agent_started", agent.id))?;
            ensure!(told["agent"]["name"] == name, "{}", told.line);
            ensure!(told["agent"]["generation"] == generation, "{}", told.line);
            ensure!(told["agent"]["alive"] == true, "{}", told.line);
        }
        let killed = daemon.wait("agent_exited", |e| e.is_agent("agent_exited", first.id))?;
        ensure!(killed["signal"] == 9 && killed["exit_code"].is_null(), "{}", killed.line);
        ensure!(
            killed["servers_left"] == 1 && killed["rss_bytes"].as_u64() > Some(1 << 20),
            "{}",
            killed.line
        );
        let ended = daemon.wait("agent_exited", |e| e.is_agent("agent_exited", second.id))?;
        ensure!(ended["exit_code"] == 0 && ended["signal"].is_null(), "{}", ended.line);
        ensure!(ended["servers_left"] == 0, "{}", ended.line);
        let reaped = daemon.reaped(&[server.id])?;
        ensure!(reaped["owner"]["generation"] == 1 && reaped["owner"]["alive"] == false, "{}", reaped.line);
        let [freed, shared] = ["freed_bytes", "freed_pss_bytes"].map(|key| reaped[key].as_u64());
        ensure!(freed > Some(1 << 20) && shared.is_some() && shared <= freed, "{}", reaped.line);
        ensure!(reaped["cpu_ms"].as_u64() >= Some(500), "{}", reaped.line);
        Ok(())
    })
}

/// A server's start, its new session, its end: told once each, with its chain from the head down.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn the_life_of_a_server() -> Result<()> {
    scene(|s| {
        let daemon = s.daemon()?;
        let agent = s.start(&Part::agent("agent"))?;
        let server = agent.start(&Part::server("server").below_shell())?;
        let shell = agent.id.children();
        server.act("setsid")?;
        let detached = daemon.wait_for("server_detached", server.id)?;
        ensure!(detached["pid"] == server.id.pid && detached["sid"] == server.id.pid, "{}", detached.line);
        let started = daemon.wait_for("server_started", server.id)?;
        ensure!(agent.id == started["owner"] && started["owner"]["name"] == "claude", "{}", started.line);
        ensure!(started["server"]["name"] == "fake-mcp-server", "{}", started.line);
        let chain = started["server"]["processes"].as_array().map_or(&[][..], Vec::as_slice);
        ensure!(shell.len() == 1 && shell[0] == chain[0] && server.id == chain[1], "{}", started.line);
        server.exit()?;
        let ended = daemon.wait_for("server_exited", server.id)?;
        ensure!(ended["server"]["session_leader"] == true, "{}", ended.line);
        agent.exit()?;
        s.mark(&daemon)?;
        let about = daemon.events().into_iter().filter(|e| e.has(server.id));
        let kinds: Vec<_> = about.map(|e| e.kind().to_owned()).collect();
        ensure!(kinds == ["server_started", "server_detached", "server_exited"], "{kinds:?}");
        Ok(())
    })
}
