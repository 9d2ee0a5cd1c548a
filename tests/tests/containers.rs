//! Servers in containers of the real Docker and podman. Each test has the engine's client as the server that an agent
//! started; the container is no child of it.

use anyhow::{Context, Result, ensure};
use tests::{
    Actor, Daemon, Identity, Part, Scene,
    engine::{DEAF, Engine, IMAGE, Kind},
    scene,
};

/// Starts a client of `run` below the agent, and waits for the container: the client and the container's process.
fn run(engine: &Engine, agent: &Actor, options: &[&'static str], name: &str) -> Result<(Identity, Identity)> {
    let words = engine.run(options, name, &DEAF);
    let client = engine.client_of(agent, &words.iter().map(String::as_str).collect::<Vec<_>>())?;
    Ok((client, engine.running(name)?))
}

/// The client was told as an orphan that its container keeps, with this command.
fn spared(daemon: &Daemon, client: Identity, command: &str) -> Result<()> {
    let detected = daemon.wait_for("orphan_detected", client)?;
    ensure!(detected.list("guards").contains(&"container"), "{}", detected.line);
    let told = detected.pointer("/server/container/command");
    ensure!(told.is_some_and(|told| told == command), "{}", detected.line);
    let told = daemon.wait_for("orphan_spared", client)?;
    ensure!(told.list("guards").contains(&"container"), "{}", told.line);
    Ok(())
}

fn all_live(s: &Scene, daemon: &Daemon, all: &[Identity]) -> Result<()> {
    s.barrier(daemon)?;
    for one in all {
        ensure!(one.alive(), "{one} was ended");
        let signalled = daemon.events().into_iter().find(|e| e.kind() == "orphan_reaped" && e.has(*one));
        ensure!(signalled.is_none(), "called ended: {}", signalled.context("none")?.line);
    }
    Ok(())
}

/// The agent is killed. The client and the container stay, whoever asks; the command that the event names ends both.
fn the_container_is_never_left_alone(kind: Kind) -> Result<()> {
    scene(|s| {
        let engine = Engine::start(s, kind)?;
        let daemon = s.daemon()?;
        let agent = s.start(&Part::agent("agent"))?;
        let (client, inside) = run(&engine, &agent, &["-i", "--rm"], "box")?;
        // Below other agents: one container that was there before, one that nobody is attached to.
        let other = s.start(&Part::agent("other"))?;
        let (starter, detached) = run(&engine, &other, &["-d", "--rm"], "apart")?;
        starter.wait_gone()?;
        let guest = engine.client_of(&other, &[&["exec", "-i", "apart"], &DEAF[..]].concat())?;
        daemon.wait_for("server_started", guest)?;
        // The twin: a server of the same agent that is in no container.
        let twin = agent.start(&Part::server("twin"))?;
        agent.kill()?;
        other.kill()?;
        daemon.reaped(&[twin.id])?;
        let name = kind.name();
        spared(&daemon, client, &format!("{name} stop box"))?;
        spared(&daemon, guest, &format!("{name} top apart"))?;
        let all = [client, inside, guest, detached];
        all_live(s, &daemon, &all)?;
        let asked = tests::output(&mut daemon.verb(&["reap", "--yes", "--pid", &client.pid.to_string()])?)?;
        let answer = String::from_utf8_lossy(&asked.stdout).into_owned();
        ensure!(answer.contains(&format!("{name} stop box")), "{answer}");
        all_live(s, &daemon, &all)?;
        let report = daemon.ask(&["status"])?.to_string();
        ensure!(report.contains(&format!("\"image\":\"{IMAGE}\"")), "{report}");
        engine.call(&["stop", "-t", "0", "box"])?;
        daemon.wait_for("orphan_exited", client)?;
        ensure!(!inside.alive(), "the container lives");
        ensure!(guest.alive() && detached.alive(), "somebody else's container was ended");
        Ok(())
    })
}

#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn a_docker_container_is_never_left_alone() -> Result<()> {
    the_container_is_never_left_alone(Kind::Docker)
}

#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn a_podman_container_is_never_left_alone() -> Result<()> {
    the_container_is_never_left_alone(Kind::Podman)
}
