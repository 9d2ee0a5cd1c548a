//! What is never ended, however orphaned it looks.

use anyhow::{Result, ensure};
use serde_json::json;
use tests::{Actor, Daemon, Identity, Launch, Part, Scene, scene};

/// Any user without rights; Debian's nobody.
const NOBODY: u32 = 65534;

/// The server of a killed agent was detected and spared because of `guard`, and everybody in `alive` lives.
fn spared(s: &Scene, daemon: &Daemon, server: Identity, guard: &str, alive: &[Identity]) -> Result<()> {
    let spared = daemon.wait_for("orphan_spared", server)?;
    ensure!(spared.list("guards").contains(&guard), "{}", spared.line);
    daemon.wait_for("orphan_detected", server)?;
    s.barrier(daemon)?;
    for one in alive.iter().chain([&server]) {
        ensure!(one.alive(), "{one} was ended in spite of {guard}");
    }
    Ok(())
}

/// The owner of the server is gone, it is unproven because of `doubt`, and everybody in `alive` lives.
fn unproven(s: &Scene, daemon: &Daemon, server: Identity, doubt: &str, alive: &[Identity]) -> Result<()> {
    let told = daemon.wait_for("orphan_unproven", server)?;
    ensure!(told.list("doubts").contains(&doubt), "{}", told.line);
    s.barrier(daemon)?;
    for one in alive.iter().chain([&server]) {
        ensure!(one.alive(), "{one} was ended in spite of {doubt}");
    }
    Ok(())
}

fn agent_and_server(s: &Scene) -> Result<(Actor, Actor)> {
    let agent = s.start(&Part::agent("agent"))?;
    let server = agent.start(&Part::server("server"))?;
    Ok((agent, server))
}

fn in_tmux(s: &Scene, part: Part) -> Part {
    let socket = s.folder().join("tmux").to_string_lossy().into_owned();
    part.through(move |command| {
        ["/usr/bin/tmux", "-S", &socket, "-f", "/dev/null", "new-session", "-d", command]
            .map(Into::into)
            .into()
    })
}

/// An agent opened a tmux session with another agent in it: that one works on when the first is killed.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn a_tmux_session_survives_the_agent_that_opened_it() -> Result<()> {
    scene(|s| {
        let daemon = s.daemon()?;
        let agent = s.start(&Part::agent("agent"))?;
        let inner = agent.start(&in_tmux(s, Part::agent("inner")))?;
        // In a session of its own: tmux hangs up on all others when the last window closes.
        let server = inner.start(&Part::server("server").setsid())?;
        agent.kill()?;
        s.barrier(&daemon)?;
        daemon.silent(&[inner.id, server.id])?;
        // The twin: it is a server like any other once its own agent is gone.
        inner.kill()?;
        daemon.reaped(&[server.id]).map(drop)
    })
}

/// A server opened a tmux session: people may be in it.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn a_server_with_a_multiplexer_below_is_spared() -> Result<()> {
    scene(|s| {
        let daemon = s.daemon()?;
        let (agent, server) = agent_and_server(s)?;
        let job = server.start(&in_tmux(s, Part::new("job", "job").wire("null")))?;
        agent.kill()?;
        spared(s, &daemon, server.id, "multiplexer", &[job.id])
    })
}

/// What podman's conmon keeps is a container, whoever called podman.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn what_lives_below_conmon_stays() -> Result<()> {
    scene(|s| {
        let daemon = s.daemon()?;
        let (agent, server) = agent_and_server(s)?;
        let conmon = server.start(&Part::new("conmon", "conmon").how("double_fork").setsid().wire("null"))?;
        let contained = conmon.start(&Part::server("contained"))?;
        agent.kill()?;
        daemon.wait_for("orphan_detected", server.id)?;
        s.barrier(&daemon)?;
        ensure!(conmon.id.alive() && contained.id.alive(), "a container was ended");
        Ok(())
    })
}

/// An agent lives below the server: the server stays until that one has ended.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn a_live_agent_below_saves_the_server() -> Result<()> {
    scene(|s| {
        let daemon = s.daemon()?;
        let (agent, server) = agent_and_server(s)?;
        let below = server.start(&Part::new("codex", "below").wire("null"))?;
        agent.kill()?;
        spared(s, &daemon, server.id, "live_agent_below", &[below.id])?;
        below.exit()?;
        daemon.wait_for("orphan_reaped", server.id)?;
        server.id.wait_gone()
    })
}

/// A server that listens and has a client from outside is somebody's service.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn a_server_with_clients_is_unproven() -> Result<()> {
    scene(|s| {
        let daemon = s.daemon()?;
        let (agent, server) = agent_and_server(s)?;
        let twin = agent.start(&Part::server("twin"))?;
        twin.act("listen")?;
        let port = server.act("listen")?["port"].clone();
        let client = s.start(&Part::new("client", "client"))?;
        client.send_order(&json!({ "do": "connect", "port": port }))?;
        agent.kill()?;
        daemon.reaped(&[twin.id])?;
        unproven(s, &daemon, server.id, "clients", &[client.id])
    })
}

/// A server of another user than its owner's is not ended, unless the owner is of that user too.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn another_users_server_is_spared() -> Result<()> {
    scene(|s| {
        let daemon = s.daemon()?;
        let agent = s.start(&Part::agent("agent"))?;
        let server = agent.start(&Part::server("server").uid(NOBODY))?;
        let sudo = s.start(&Part::new("starter", "starter"))?;
        let twin_agent = sudo.start(&Part::agent("twin-agent").uid(NOBODY))?;
        let twin = twin_agent.start(&Part::server("twin"))?;
        agent.kill()?;
        twin_agent.kill()?;
        daemon.reaped(&[twin.id])?;
        spared(s, &daemon, server.id, "other_uid", &[])
    })
}

/// Whoever asks by environment to be left alone is.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn who_opted_out_is_spared() -> Result<()> {
    scene(|s| {
        let daemon = s.daemon()?;
        let agent = s.start(&Part::agent("agent"))?;
        let server = agent.start(&Part::server("server").env("ORPHAND_OPT_OUT", "1"))?;
        let twin = agent.start(&Part::server("twin").env("ORPHAND_OPT_OUT", "0"))?;
        agent.kill()?;
        daemon.reaped(&[twin.id])?;
        spared(s, &daemon, server.id, "opted_out", &[])
    })
}

/// A rule of the configuration exempts a server by name; another one of the same agent goes.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn an_exempt_server_is_spared() -> Result<()> {
    scene(|s| {
        let config = "[[exempt]]\nname = \"house\"\nprogram = \"precious-mcp-server\"\n".into();
        let daemon = s.daemon_with(&Launch { config, ..Launch::default() })?;
        let agent = s.start(&Part::agent("agent"))?;
        let precious = agent.start(&Part::new("precious-mcp-server", "precious").wire("pipe"))?;
        let twin = agent.start(&Part::server("twin"))?;
        agent.kill()?;
        daemon.reaped(&[twin.id])?;
        s.barrier(&daemon)?;
        ensure!(precious.id.alive(), "an exempt server was ended");
        Ok(())
    })
}
