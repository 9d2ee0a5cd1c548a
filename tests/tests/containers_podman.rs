//! Servers in containers of the real podman whose interface is served: which of them are stopped, and which stay. The
//! client talks to no daemon; it is attached to the conmon of its container.

use std::rc::Rc;

use anyhow::{Context, Result, ensure};
use rustix::process::Signal;
use tests::{
    Actor, Daemon, Event, Identity, Launch, Part, Scene,
    engine::{DEAF, Engine, IMAGE, Kind},
    scene,
};

fn words(line: &[String]) -> Vec<&str> {
    line.iter().map(String::as_str).collect()
}

/// Starts a client of `run` below the agent, and waits for the container: the client and the container's process.
fn run(engine: &Engine, agent: &Actor, options: &[&'static str], name: &str) -> Result<(Identity, Identity)> {
    let client = engine.client_of(agent, &words(&engine.run(options, name, &DEAF)))?;
    Ok((client, engine.running(name)?))
}

/// A podman that serves its interface, and a daemon that asks it.
fn served(s: &Scene) -> Result<(Engine, Rc<Daemon>)> {
    let engine = Engine::start(s, Kind::Podman)?;
    engine.serve(s)?;
    let config = format!("[containers]\npodman = \"{}\"\n", engine.socket().display());
    let daemon = s.daemon_with(&Launch { config, ..Launch::default() })?;
    Ok((engine, daemon))
}

fn text<'e>(event: &'e Event, at: &str) -> &'e str {
    event.pointer(at).and_then(|value| value.as_str()).unwrap_or_default()
}

/// The client was told as an orphan that its container keeps.
fn spared(daemon: &Daemon, client: Identity, command: &str) -> Result<()> {
    let told = daemon.wait_for("orphan_spared", client)?;
    ensure!(told.list("guards").contains(&"container"), "{}", told.line);
    ensure!(text(&told, "/server/container/command") == command, "{}", told.line);
    Ok(())
}

fn all_live(s: &Scene, daemon: &Daemon, all: &[Identity]) -> Result<()> {
    s.barrier(daemon)?;
    for one in all {
        ensure!(one.alive(), "{one} was ended");
        let told = daemon.events().into_iter().find(|e| e.kind() == "orphan_reaped" && e.has(*one));
        ensure!(told.is_none(), "called ended: {}", told.context("none")?.line);
    }
    Ok(())
}

/// Containers that only the killed agent used are stopped, and their clients end by themselves. All others stay.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn podman_stops_what_nobody_can_use() -> Result<()> {
    scene(|s| {
        let (engine, daemon) = served(s)?;
        let (agent, other) = (s.start(&Part::agent("agent"))?, s.start(&Part::agent("other"))?);
        // Three of one image without a name, started together: one of them by the agent that lives.
        let bare = engine.run(&["-i", "--rm"], "", &DEAF);
        let alike = [&agent, &agent, &other].map(|agent| engine.client_of(agent, &words(&bare)));
        let [first, second, alike] = alike;
        let (first, second, alike) = (first?, second?, alike?);
        let (kept, kept_inside) = run(&engine, &other, &["-i", "--rm"], "kept")?;
        let (named, named_inside) = run(&engine, &agent, &["-i", "--rm"], "named")?;
        let (again, again_inside) = run(&engine, &agent, &["-i", "--restart", "always"], "again")?;
        // Somebody else is attached to one, and runs a program in another.
        let (shared, shared_inside) = run(&engine, &agent, &["-i", "--rm"], "shared")?;
        let (entered, entered_inside) = run(&engine, &agent, &["-i", "--rm"], "entered")?;
        let (terminal, terminal_inside) = run(&engine, &agent, &["-i", "-t", "--rm"], "terminal")?;
        let (starter, detached) = run(&engine, &agent, &["-i", "-d", "--rm"], "detached")?;
        starter.wait_gone()?;
        let attached = engine.client_of(&other, &["attach", "--sig-proxy=false", "shared"])?;
        let visitor = engine.client_of(&other, &[&["exec", "-i", "entered"], &DEAF[..]].concat())?;
        let guest = engine.client_of(&agent, &[&["exec", "-i", "kept"], &DEAF[..]].concat())?;
        daemon.wait_for("server_started", visitor)?;
        daemon.wait_for("server_started", guest)?;
        for name in ["entered", "kept"] {
            tests::within("a program in the container", || {
                let told = engine.call(&["inspect", "--format", "{{len .ExecIDs}}", name]).ok()?;
                (told == "1").then_some(())
            })?;
        }
        tests::within("ten containers", || {
            (engine.call(&["ps", "--quiet"]).ok()?.lines().count() == 10).then_some(())
        })?;
        // The client hands it on to the container, and the server ignores it.
        named.signal(Signal::TERM)?;
        agent.kill()?;
        for client in [first, second, named, again] {
            let reaped = daemon.wait_for("orphan_reaped", client)?;
            client.wait_gone()?;
            ensure!(text(&reaped, "/server/container/id").len() == 64, "{}", reaped.line);
            ensure!(text(&reaped, "/server/container/engine") == "podman", "{}", reaped.line);
        }
        for inside in [named_inside, again_inside] {
            ensure!(!inside.alive(), "the container of {inside} lives");
        }
        for client in [shared, entered] {
            let told = daemon.wait_for("orphan_unproven", client)?;
            ensure!(told.list("doubts").contains(&"clients"), "{}", told.line);
        }
        spared(&daemon, terminal, "podman stop terminal")?;
        spared(&daemon, guest, "podman top kept")?;
        let left = engine.call(&["ps", "--quiet"])?.lines().count();
        ensure!(left == 6, "{left} containers are left");
        let used = [kept, kept_inside, alike, shared, shared_inside, entered, entered_inside, attached];
        let others = [visitor, guest, terminal, terminal_inside, detached];
        all_live(s, &daemon, &[&used[..], &others[..]].concat())
    })
}

/// The podman that is configured is not the one that the client works with, as that of a user is not root's. It has a
/// container of the same name and image, started by the agent that lives.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn podman_stops_nothing_of_another_podman() -> Result<()> {
    scene(|s| {
        let (engine, daemon) = served(s)?;
        let elsewhere = Engine::start_apart(s, Kind::Podman, "elsewhere")?;
        let (agent, other) = (s.start(&Part::agent("agent"))?, s.start(&Part::agent("other"))?);
        let (client, inside) = run(&elsewhere, &agent, &["-i", "--rm"], "name")?;
        let (kept, kept_inside) = run(&engine, &other, &["-i", "--rm"], "name")?;
        // The twin.
        let (own, own_inside) = run(&engine, &agent, &["-i", "--rm"], "own")?;
        agent.kill()?;
        daemon.wait_for("orphan_reaped", own)?;
        ensure!(!own_inside.alive(), "the container lives");
        spared(&daemon, client, "podman stop name")?;
        ensure!(engine.call(&["image", "exists", IMAGE]).is_ok(), "no image");
        all_live(s, &daemon, &[client, inside, kept, kept_inside])
    })
}
