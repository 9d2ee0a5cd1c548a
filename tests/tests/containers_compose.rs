//! Servers that the real docker-compose runs: `docker-compose run -T SERVICE` makes a container, and starts Docker's
//! client (`docker start --attach --interactive ID`) below itself.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, ensure};
use rustix::process::Signal;
use tests::{
    Daemon, Event, Identity, Launch, Part, Scene,
    engine::{DEAF, Engine, IMAGE, Kind},
    scene, within,
};

const RUN: [&str; 4] = ["run", "--rm", "-T", "server"];

/// The folder of a project with a server, and a service that stays.
fn project(s: &Scene, name: &str) -> Result<PathBuf> {
    let folder = s.folder().join(name);
    fs::create_dir(&folder)?;
    let service = |name: &str| {
        format!(
            "  {name}:\n    image: {IMAGE}\n    network_mode: none\n    stdin_open: true\n    command: {DEAF:?}\n"
        )
    };
    let text = format!("services:\n{}{}", service("server"), service("stays"));
    fs::write(folder.join("docker-compose.yml"), text)?;
    Ok(folder)
}

/// The id of the container of this service, and its first process, once it runs.
fn container(engine: &Engine, project: &str, service: &str) -> Result<(String, Identity)> {
    let labels = [("project", project), ("service", service)]
        .map(|(label, value)| format!("label=com.docker.compose.{label}={value}"));
    let [of_project, of_service] = &labels;
    let filters = ["ps", "--quiet", "--no-trunc", "--filter", of_project, "--filter", of_service];
    let id = within(&format!("a container of {project}/{service}"), || {
        engine.call(&filters).ok().filter(|found| found.len() == 64)
    })?;
    let first = engine.running(&id)?;
    Ok((id, first))
}

/// Three projects of one agent, and one of another agent that lives. Docker is asked: the container that nobody can use
/// is stopped, docker-compose removes it, and both clients end by themselves. All others stay: one that somebody is
/// attached to, a service that runs apart, a program in that service, and what an agent that lives has, although its
/// docker-compose was killed. A client of an engine that is not asked is told with the command that stops its container.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn what_docker_compose_runs_is_stopped_if_nobody_can_use_it() -> Result<()> {
    scene(|s| {
        let engine = Engine::start(s, Kind::Docker)?;
        let config = format!("[containers]\ndocker = \"{}\"\n", engine.socket().display());
        let daemon = s.daemon_with(&Launch { config, ..Launch::default() })?;
        let (agent, other) = (s.start(&Part::agent("agent"))?, s.start(&Part::agent("other"))?);
        let [lone, shared, living, apart] = ["lone", "shared", "living", "apart"];
        let starts = |project: &str, agent, socket: &Path| {
            let compose = engine.compose_at(socket, agent, &self::project(s, project)?, &RUN)?;
            daemon.wait_for("server_started", compose)?;
            Ok::<_, anyhow::Error>(compose)
        };
        let lone_compose = starts(lone, &agent, &engine.socket())?;
        let shared_compose = starts(shared, &agent, &engine.socket())?;
        let living_compose = starts(living, &other, &engine.socket())?;
        let apart_compose = starts(apart, &agent, &engine.folder().join("other.sock"))?;
        let (lone_id, lone_inside) = container(&engine, lone, "server")?;
        let (shared_id, shared_inside) = container(&engine, shared, "server")?;
        let (_, living_inside) = container(&engine, living, "server")?;
        let (apart_id, apart_inside) = container(&engine, apart, "server")?;
        let attached = engine.client_of(&other, &["attach", "--sig-proxy=false", &shared_id])?;
        // A service that runs apart, and a program of the agent in it.
        let up = tests::output(
            Command::new("/usr/bin/docker-compose")
                .args(["up", "-d", "stays"])
                .current_dir(s.folder().join(lone))
                .env("DOCKER_HOST", format!("unix://{}", engine.socket().display())),
        )?;
        ensure!(up.status.success(), "{}", String::from_utf8_lossy(&up.stderr));
        let (stays_id, stays) = container(&engine, lone, "stays")?;
        let inner = engine.compose_at(
            &engine.socket(),
            &agent,
            &s.folder().join(lone),
            &[&["exec", "-T", "stays"], &DEAF[..]].concat(),
        )?;
        daemon.wait_for("server_started", inner)?;
        let client_of = |compose: Identity| within("Docker's client", || compose.children().first().copied());
        let [lone_client, shared_client, living_client, apart_client, inner_client] =
            [lone_compose, shared_compose, living_compose, apart_compose, inner].map(client_of);
        let (lone_client, living_client) = (lone_client?, living_client?);
        // The other agent lives and holds the streams, whatever becomes of docker-compose.
        living_compose.signal(Signal::KILL)?;
        living_compose.wait_gone()?;
        agent.kill()?;
        let reaped = daemon.wait_for("orphan_reaped", lone_compose)?;
        ensure!(reaped.pointer("/server/container/id").is_some_and(|id| *id == lone_id), "{}", reaped.line);
        ensure!(!lone_inside.alive() && !lone_client.alive(), "something of it lives: {}", reaped.line);
        let left = engine.call(&["ps", "--all", "--quiet", "--no-trunc"])?;
        ensure!(!left.contains(&lone_id), "docker-compose did not remove it: {left}");
        let unproven = daemon.wait_for("orphan_unproven", shared_compose)?;
        ensure!(unproven.list("doubts").contains(&"clients"), "{}", unproven.line);
        told(&daemon, apart_compose, &format!("docker stop {}", short(&apart_id)))?;
        told(&daemon, inner, &format!("docker top {}", short(&stays_id)))?;
        let all = [
            shared_compose,
            shared_client?,
            shared_inside,
            attached,
            living_client,
            living_inside,
            apart_compose,
            apart_client?,
            apart_inside,
            stays,
            inner,
            inner_client?,
        ];
        s.barrier(&daemon)?;
        for one in all {
            ensure!(one.alive(), "{one} was ended");
        }
        let accused = |e: &Event| e.kind().starts_with("orphan") && e.has_any(&[living_client]);
        let accused = daemon.events().into_iter().find(accused);
        ensure!(accused.is_none(), "in use: {}", accused.context("none")?.line);
        // The command that was told ends both halves.
        engine.call(&["stop", "-t", "0", &apart_id])?;
        daemon.wait_for("orphan_exited", apart_compose)?;
        ensure!(!apart_inside.alive(), "the container lives");
        Ok(())
    })
}

fn short(id: &str) -> &str {
    id.get(..12).unwrap_or(id)
}

/// The server was told as an orphan that its container keeps, with this command.
fn told(daemon: &Daemon, compose: Identity, command: &str) -> Result<()> {
    let told = daemon.wait_for("orphan_detected", compose)?;
    ensure!(told.list("guards").contains(&"container"), "{}", told.line);
    ensure!(told.pointer("/server/container/command").is_some_and(|told| told == command), "{}", told.line);
    Ok(())
}
