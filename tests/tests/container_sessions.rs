//! Sessions of servers in containers: a manager hands the id of the session on to the container, and its client's own
//! environment has none.

use std::fs;

use anyhow::{Context as _, Result, ensure};
use rustix::process::Signal;
use serde_json::Value;
use tests::{
    Actor, Daemon, Event, Identity, Launch, Part, Redis,
    engine::{DEAF, Engine, Kind},
    scene, within,
};

/// Starts a client with these options below the agent, and waits for its container: the client, and the container's
/// first process.
fn run(engine: &Engine, agent: &Actor, options: &[&str], name: &str) -> Result<(Identity, Identity)> {
    let group = engine.usual_group();
    let mut line = engine.run(&["-i", "--rm"], name, &DEAF);
    let added = ["--cgroup-parent", &group].into_iter().chain(options.iter().copied());
    line.splice(1..1, added.map(str::to_owned));
    let words: Vec<&str> = line.iter().map(String::as_str).collect();
    Ok((engine.client_of(agent, &words)?, engine.running(name)?))
}

/// The session of the server with this process, its state, and the name of its container, as `status` tells them.
fn told(status: &Value, process: Identity) -> Option<(String, String, String)> {
    let report = status.get("report")?;
    let owned = report.get("agents")?.as_array()?.iter().filter_map(|agent| agent.get("servers")?.as_array());
    let mut all = owned.chain(report.get("unowned")?.as_array()).flatten();
    let is_it = |one: &&Value| one.pointer("/server/processes/0/pid").is_some_and(|pid| *pid == process.pid);
    let server = all.find(is_it)?;
    let text = |at: &str| server.pointer(at).and_then(Value::as_str).map(str::to_owned);
    Some((text("/server/session")?, text("/session")?, text("/server/container/name")?))
}

fn shows(daemon: &Daemon, process: Identity, session: &str, state: &str, name: &str) -> Result<()> {
    let expected = (session.to_owned(), state.to_owned(), name.to_owned());
    let found = || (told(&daemon.ask(&["status"]).ok()?, process)? == expected).then_some(());
    within(&format!("session {session}: {state} in {name}"), found).with_context(|| {
        daemon.ask(&["status"]).map_or_else(|error| error.to_string(), |status| status.to_string())
    })
}

/// The session is on the command line of one client, and only in the container of another one; a third client had been
/// killed before the daemon came. All three are told. A key that is gone proves nothing while somebody can talk to the
/// container, and nothing about a container whose owner nobody knows.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn the_session_of_a_container_is_told() -> Result<()> {
    scene(|s| {
        let (redis, engine) = (Redis::start(s)?, Engine::start(s, Kind::Docker)?);
        for session in ["alice", "bob", "carol"] {
            redis.order(&["SET", &format!("mcp:session:{session}"), "{}"])?;
        }
        let before = s.start(&Part::agent("before"))?;
        let (client, late) = run(&engine, &before, &["-e", "MCP_SESSION_ID=carol"], "late")?;
        client.signal(Signal::KILL)?;
        client.wait_gone()?;
        before.kill()?;
        let config = format!(
            "abandoned_grace = \"1s\"\n[containers]\ndocker = \"{}\"\n[sessions]\nredis = \"redis://127.0.0.1:{}/0\"\nidle = \"2s\"\n",
            engine.socket().display(),
            redis.port
        );
        let daemon = s.daemon_with(&Launch { config, ..Launch::default() })?;
        let manager = s.start(&Part::agent("manager"))?;
        let file = s.folder().join("variables");
        fs::write(&file, "MCP_SESSION_ID=bob\n")?;
        let (seen, seen_inside) = run(&engine, &manager, &["-e", "MCP_SESSION_ID=alice"], "seen")?;
        let (hidden, hidden_inside) =
            run(&engine, &manager, &["--env-file", &file.to_string_lossy()], "hidden")?;
        shows(&daemon, seen, "alice", "active", "seen")?;
        shows(&daemon, hidden, "bob", "active", "hidden")?;
        shows(&daemon, late, "carol", "active", "late")?;
        for session in ["alice", "carol"] {
            redis.order(&["DEL", &format!("mcp:session:{session}")])?;
        }
        let unproven = daemon.wait_for("orphan_unproven", seen)?;
        ensure!(unproven.list("evidence") == ["session_expired"], "{}", unproven.line);
        ensure!(unproven.list("doubts").contains(&"wire_held"), "{}", unproven.line);
        ensure!(unproven.pointer("/server/session").is_some_and(|id| id == "alice"), "{}", unproven.line);
        shows(&daemon, late, "carol", "expired", "late")?;
        shows(&daemon, hidden, "bob", "active", "hidden")?;
        s.barrier(&daemon)?;
        let all = [seen, seen_inside, hidden, hidden_inside, late];
        ensure!(all.iter().all(|one| one.alive()), "somebody was ended");
        let about = |e: &Event| e.kind() == "orphan_unproven" && e.has(late);
        let told = daemon.events().into_iter().rfind(about).context("what is late is not told")?;
        ensure!(told.pointer("/server/container/name").is_some_and(|name| name == "late"), "{}", told.line);
        Ok(())
    })
}
