//! Servers in containers of a user's own podman, which runs without root. orphand asks root's podman alone, so all of
//! them are told, with a command for that user, and stay.

use std::{
    os::unix::net::UnixListener,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use anyhow::{Context, Result, ensure};
use rustix::process::Signal;
use tests::{
    Actor, Daemon, Event, Identity, Launch, Part, USER,
    engine::{DEAF, Engine},
    scene,
};

/// Starts a client of `run` below the agent, and waits for the container: the client and the container's process.
fn run(engine: &Engine, agent: &Actor, options: &[&'static str], name: &str) -> Result<(Identity, Identity)> {
    let line = engine.run(options, name, &DEAF);
    let client = engine.client_of(agent, &line.iter().map(String::as_str).collect::<Vec<_>>())?;
    Ok((client, engine.running(name)?))
}

/// The server was told as an orphan that its container keeps, with this command.
fn told(daemon: &Daemon, client: Identity, command: &str) -> Result<()> {
    let told = daemon.wait_for("orphan_detected", client)?;
    ensure!(told.list("guards").contains(&"container"), "{}", told.line);
    ensure!(text(&told, "/server/container/command") == command, "{}", told.line);
    Ok(())
}

fn text<'e>(event: &'e Event, at: &str) -> &'e str {
    event.pointer(at).and_then(|value| value.as_str()).unwrap_or_default()
}

/// A user's agent was killed, and the client of another container before it. All containers stay, whoever is attached;
/// of what another agent has, which lives, nothing is told. The commands that are told are those of the user: they end
/// containers with their clients. Root's podman is not asked once.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn what_a_podman_without_root_runs_is_told_and_stays() -> Result<()> {
    scene(|s| {
        let engine = Engine::start_of_user(s, USER)?;
        // Root's podman: it counts who comes.
        let socket = s.folder().join("root.sock");
        let (listener, calls) = (UnixListener::bind(&socket)?, Arc::new(AtomicUsize::new(0)));
        let counted = Arc::clone(&calls);
        thread::spawn(move || listener.incoming().for_each(|_| _ = counted.fetch_add(1, Ordering::SeqCst)));
        let config = format!("[containers]\npodman = \"{}\"\n", socket.display());
        let daemon = s.daemon_with(&Launch { config, ..Launch::default() })?;
        let starter = s.start(&Part::new("starter", "starter"))?;
        let start = |name: &str| starter.start(&Part::agent(name).uid(USER));
        let (agent, other) = (start("agent")?, start("other")?);
        let (kept, kept_inside) = run(&engine, &other, &["-i", "--rm"], "kept")?;
        let (lone, lone_inside) = run(&engine, &agent, &["-i", "--rm"], "lone")?;
        let (shared, shared_inside) = run(&engine, &agent, &["-i", "--rm"], "shared")?;
        let (left, left_inside) = run(&engine, &agent, &["-i", "--rm"], "left")?;
        let attached = engine.client_of(&other, &["attach", "--sig-proxy=false", "shared"])?;
        let guest = engine.client_of(&agent, &[&["exec", "-i", "kept"], &DEAF[..]].concat())?;
        daemon.wait_for("server_started", guest)?;
        left.signal(Signal::KILL)?;
        left.wait_gone()?;
        let unproven = daemon.wait_for("orphan_unproven", left_inside)?;
        ensure!(text(&unproven, "/server/container/engine") == "podman", "{}", unproven.line);
        let id = engine.call(&["inspect", "--format", "{{.Id}}", "left"])?;
        ensure!(text(&unproven, "/server/container/id") == id, "{}", unproven.line);
        let of_user = |command: String| format!("sudo -iu '#{USER}' podman {command}");
        let short = id.get(..12).context("no id")?;
        ensure!(
            text(&unproven, "/server/container/command") == of_user(format!("stop {short}")),
            "{}",
            unproven.line
        );
        agent.kill()?;
        told(&daemon, lone, &of_user("stop lone".to_owned()))?;
        told(&daemon, shared, &of_user("stop shared".to_owned()))?;
        told(&daemon, guest, &of_user("top kept".to_owned()))?;
        s.barrier(&daemon)?;
        let all = [kept, kept_inside, lone, lone_inside, shared, shared_inside, left_inside, attached, guest];
        for one in all {
            ensure!(one.alive(), "{one} was ended");
        }
        let accused = daemon.events().into_iter().find(|e| e.accuses() && e.has_any(&[kept, kept_inside]));
        ensure!(accused.is_none(), "in use: {}", accused.context("none")?.line);
        engine.call(&["stop", "-t", "0", "lone"])?;
        daemon.wait_for("orphan_exited", lone)?;
        engine.call(&["stop", "-t", "0", short])?;
        left_inside.wait_gone()?;
        ensure!(!lone_inside.alive(), "the container lives");
        ensure!(calls.load(Ordering::SeqCst) == 0, "root's podman was asked");
        Ok(())
    })
}
