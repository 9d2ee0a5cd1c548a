//! Containers of the real Docker whose client has ended, before the daemon came or under its eyes.

use anyhow::{Context, Result, ensure};
use rustix::process::Signal;
use tests::{
    Actor, Identity, Launch, Part,
    engine::{DEAF, Engine, IMAGE, Kind},
    scene,
};

/// Starts a client below the agent, and waits for its container: the client, and the container's first process.
fn run(engine: &Engine, agent: &Actor, options: &[&'static str], name: &str) -> Result<(Identity, Identity)> {
    let group = engine.usual_group();
    let mut line = engine.run(options, name, &DEAF);
    line.splice(1..1, ["--cgroup-parent".to_owned(), group]);
    let words: Vec<&str> = line.iter().map(String::as_str).collect();
    Ok((engine.client_of(agent, &words)?, engine.running(name)?))
}

/// The clients were killed before the daemon came, one of them with `--rm`. What is in the containers is told with the
/// container, what its engine tells of it, and the command that stops it, and gets no signal. The command ends it.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn what_a_killed_client_left_in_docker_is_told() -> Result<()> {
    scene(|s| {
        let engine = Engine::start(s, Kind::Docker)?;
        let (agent, other) = (s.start(&Part::agent("agent"))?, s.start(&Part::agent("other"))?);
        let (used, used_inside) = run(&engine, &other, &["-i", "--rm"], "used")?;
        let labelled = ["-i", "--rm", "--label", "docker-mcp=true", "--label", "docker-mcp-name=fetch"];
        let (client, removed) = run(&engine, &agent, &labelled, "removed")?;
        let (second, kept) = run(&engine, &agent, &["-i"], "kept")?;
        for client in [client, second] {
            client.signal(Signal::KILL)?;
            client.wait_gone()?;
        }
        agent.kill()?;
        let config = format!("[containers]\ndocker = \"{}\"\n", engine.socket().display());
        let daemon = s.daemon_with(&Launch { config, ..Launch::default() })?;
        for (inside, name, server) in [(removed, "removed", "fetch"), (kept, "kept", "")] {
            let told = daemon.wait_for("orphan_unproven", inside)?;
            let id = engine.call(&["inspect", "--format", "{{.Id}}", name])?;
            let text = |at: &str| told.pointer(at).and_then(|value| value.as_str()).unwrap_or_default();
            ensure!(text("/server/container/id") == id, "{}", told.line);
            ensure!(text("/server/container/engine") == "docker", "{}", told.line);
            let command = id.get(..12).map(|short| format!("docker stop {short}")).context("no id")?;
            ensure!(text("/server/container/command") == command, "{}", told.line);
            ensure!(text("/server/container/name") == name, "{}", told.line);
            ensure!(text("/server/container/image") == IMAGE, "{}", told.line);
            ensure!(text("/server/container/server") == server, "{}", told.line);
            let memory = told.pointer("/server/container/memory_bytes").and_then(serde_json::Value::as_u64);
            ensure!(memory.is_some_and(|bytes| bytes > 0), "{}", told.line);
            ensure!(told.list("doubts").contains(&"owner_unknown"), "{}", told.line);
        }
        s.barrier(&daemon)?;
        for one in [used, used_inside, removed, kept] {
            ensure!(one.alive(), "{one} was ended");
        }
        // Not on a person's word, either.
        let asked = ["reap", "--yes", "--include-unproven", &removed.pid.to_string()];
        let answer = tests::output(&mut daemon.verb(&asked)?)?;
        let answer = String::from_utf8_lossy(&answer.stdout).into_owned();
        ensure!(answer.contains("docker stop "), "{answer}");
        s.barrier(&daemon)?;
        ensure!(removed.alive(), "a signal went into a container");
        let all = [used, used_inside, removed, kept];
        let is_one = |e: &tests::Event| all.iter().any(|one| e.has(*one));
        let ended = daemon.events().into_iter().find(|e| e.kind() == "orphan_reaped" && is_one(e));
        ensure!(ended.is_none(), "called ended: {}", ended.context("none")?.line);
        let told = daemon.events().into_iter().find(|e| e.kind().starts_with("orphan") && e.has(used));
        ensure!(told.is_none(), "in use: {}", told.context("none")?.line);
        engine.call(&["stop", "-t", "0", "removed"])?;
        removed.wait_gone()
    })
}
