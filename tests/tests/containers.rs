//! Servers in containers of the real Docker and podman. Each test has the engine's client as the server that an agent
//! started; the container is no child of it.

use std::{
    os::unix::net::UnixListener,
    path::Path,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tests::{
    Actor, Daemon, Event, Identity, Launch, Part, Scene,
    engine::{DEAF, Engine, IMAGE, Kind},
    scene,
};

/// Starts a client of `run` below the agent, and waits for the container: the client and the container's process.
fn run(engine: &Engine, agent: &Actor, options: &[&'static str], name: &str) -> Result<(Identity, Identity)> {
    let client = engine.client_of(agent, &words(&engine.run(options, name, &DEAF)))?;
    Ok((client, engine.running(name)?))
}

fn words(line: &[String]) -> Vec<&str> {
    line.iter().map(String::as_str).collect()
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

/// The client and the process in its container are shown as one server of its agent.
fn one_server(daemon: &Daemon, client: Identity, inside: Identity) -> Result<()> {
    let status = daemon.ask(&["status"])?;
    let list = |at: &Value, key: &str| at.get(key).and_then(Value::as_array).cloned().unwrap_or_default();
    let report = status.get("report").context("no report")?;
    let has = |server: &Value, one: Identity| {
        let processes = server.pointer("/server/processes").and_then(Value::as_array);
        processes.is_some_and(|all| all.iter().any(|process| one == *process))
    };
    let owned: Vec<Value> = list(report, "agents").iter().flat_map(|agent| list(agent, "servers")).collect();
    let of_client = owned.iter().find(|server| has(server, client)).context("the client is not shown")?;
    ensure!(has(of_client, inside), "apart from its client: {of_client}");
    let again = owned.iter().chain(&list(report, "unowned")).filter(|server| has(server, inside)).count();
    ensure!(again == 1, "shown {again} times: {report}");
    Ok(())
}

/// The configuration by which the daemon asks the engine at this socket.
fn asks(kind: Kind, socket: &Path) -> String {
    format!("[containers]\n{} = \"{}\"\n", kind.name(), socket.display())
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
        // An engine that accepts and never answers is as good as none.
        let hung = s.folder().join("hung.sock");
        let _never_answers = UnixListener::bind(&hung)?;
        let config = if kind == Kind::Docker { asks(kind, &hung) } else { String::new() };
        let daemon = s.daemon_with(&Launch { config, ..Launch::default() })?;
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
        let asked = tests::output(&mut daemon.verb(&["reap", "--yes", &client.pid.to_string()])?)?;
        let answer = String::from_utf8_lossy(&asked.stdout).into_owned();
        ensure!(answer.contains(&format!("{name} stop box")), "{answer}");
        all_live(s, &daemon, &all)?;
        let report = daemon.ask(&["status"])?.to_string();
        ensure!(report.contains(&format!("\"image\":\"{IMAGE}\"")), "{report}");
        engine.call(&["stop", "-t", "0", "box"])?;
        // A look may fall on the moment in which `podman stop` has the client's memory: then it is no orphan at its end.
        let is_end =
            |event: &Event| ["orphan_exited", "orphan_cleared"].iter().any(|kind| event.is(kind, client));
        daemon.wait("end of the client", is_end)?;
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

/// Docker is asked: containers that only the killed agent used are stopped, and their clients end by themselves. All
/// others stay.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn docker_stops_what_nobody_can_use() -> Result<()> {
    scene(|s| {
        let engine = Engine::start(s, Kind::Docker)?;
        let config = asks(Kind::Docker, &engine.socket());
        let daemon = s.daemon_with(&Launch { config, ..Launch::default() })?;
        let (agent, other) = (s.start(&Part::agent("agent"))?, s.start(&Part::agent("other"))?);
        let (kept, kept_inside) = run(&engine, &other, &["-i", "--rm"], "kept")?;
        let (named, named_inside) = run(&engine, &agent, &["-i", "--rm"], "named")?;
        let (stays, stays_inside) = run(&engine, &agent, &["-i", "--init"], "stays")?;
        // Somebody else is attached to one, and runs a program in another.
        let (shared, shared_inside) = run(&engine, &agent, &["-i", "--rm"], "shared")?;
        let (entered, entered_inside) = run(&engine, &agent, &["-i", "--rm"], "entered")?;
        // The name of one means another container by now, which the agent that lives has started.
        let (renamed, renamed_inside) = run(&engine, &agent, &["-i", "--rm"], "reused")?;
        engine.call(&["rename", "reused", "before"])?;
        let (anew, anew_inside) = run(&engine, &other, &["-i", "--rm"], "reused")?;
        // Two without a name: the image tells of one, and of the other that all others are somebody else's.
        let bare = engine.run(&["-i", "--rm"], "", &DEAF);
        engine.call(&["tag", IMAGE, "mcp/lone"])?;
        let lone: Vec<&str> = bare.iter().map(|word| if word == IMAGE { "mcp/lone" } else { word }).collect();
        let lone = engine.client_of(&agent, &lone)?;
        let unnamed = engine.client_of(&agent, &words(&bare))?;
        tests::within("nine containers", || {
            (engine.call(&["ps", "--quiet"]).ok()?.lines().count() == 9).then_some(())
        })?;
        let attached = engine.client_of(&other, &["attach", "--sig-proxy=false", "shared"])?;
        let visitor = engine.client_of(&other, &[&["exec", "-i", "entered"], &DEAF[..]].concat())?;
        daemon.wait_for("server_started", visitor)?;
        tests::within("a program in the container", || {
            let told = engine.call(&["inspect", "--format", "{{len .ExecIDs}}", "entered"]).ok()?;
            (told == "1").then_some(())
        })?;
        // A program in somebody else's container.
        let guest = engine.client_of(&agent, &[&["exec", "-i", "kept"], &DEAF[..]].concat())?;
        daemon.wait_for("server_started", guest)?;
        agent.kill()?;
        for (client, inside, name) in [(named, named_inside, "named"), (stays, stays_inside, "stays")] {
            let reaped = daemon.wait_for("orphan_reaped", client)?;
            ensure!(!inside.alive(), "the container {name} lives: {}", reaped.line);
            client.wait_gone()?;
            let told = reaped.pointer("/server/container/name");
            ensure!(told.is_some_and(|told| told == name), "{}", reaped.line);
            let id = reaped.pointer("/server/container/id").and_then(|id| id.as_str()).unwrap_or_default();
            ensure!(id.len() == 64, "{}", reaped.line);
            let memory = reaped.pointer("/server/container/memory_bytes").and_then(serde_json::Value::as_u64);
            ensure!(memory.is_some_and(|bytes| bytes > 0), "{}", reaped.line);
        }
        for client in [lone, unnamed] {
            daemon.wait_for("orphan_reaped", client)?;
        }
        for client in [shared, entered, renamed] {
            let told = daemon.wait_for("orphan_unproven", client)?;
            ensure!(told.list("doubts").contains(&"clients"), "{}", told.line);
        }
        spared(&daemon, guest, "docker top kept")?;
        // The container of a living server is known, too.
        let id = engine.call(&["inspect", "--format", "{{.Id}}", "kept"])?;
        tests::within("the container of a living server in the status", || {
            let report = daemon.ask(&["status"]).ok()?.to_string();
            report.contains(&format!("\"id\":\"{id}\"")).then_some(())
        })?;
        one_server(&daemon, kept, kept_inside)?;
        let all = [
            kept,
            kept_inside,
            shared,
            shared_inside,
            entered,
            entered_inside,
            attached,
            visitor,
            guest,
            renamed,
            renamed_inside,
            anew,
            anew_inside,
        ];
        all_live(s, &daemon, &all)
    })
}

/// Somebody enters a container after it was inspected, just before it is stopped: it is not stopped until he has left.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn docker_stops_nothing_that_somebody_entered_a_moment_ago() -> Result<()> {
    scene(|s| {
        let engine = Engine::start(s, Kind::Docker)?;
        let front = s.folder().join("front.sock");
        let (reached, at_the_stop) = mpsc::sync_channel::<()>(0);
        let (go_on, waits) = mpsc::channel::<()>();
        let (looks, waits) = (Arc::new(AtomicUsize::new(0)), Arc::new(Mutex::new(waits)));
        // Only orphand asks for no version of the interface. The second look is that before the stop.
        let looked = Arc::clone(&looks);
        engine.front(&front, move |line| {
            let is_look = line.starts_with("GET /containers/") && !line.contains("json?");
            if is_look && looked.fetch_add(1, Ordering::SeqCst) == 1 {
                let _ = reached.send(());
                let _ = waits.lock().map(|waits| waits.recv());
            }
        })?;
        let config = asks(Kind::Docker, &front);
        let daemon = s.daemon_with(&Launch { config, ..Launch::default() })?;
        let (agent, other) = (s.start(&Part::agent("agent"))?, s.start(&Part::agent("other"))?);
        let client = engine.client_at(&front, &agent, &words(&engine.run(&["-i", "--rm"], "box", &DEAF)))?;
        let inside = engine.running("box")?;
        agent.kill()?;
        at_the_stop.recv_timeout(Duration::from_secs(60)).context("no second look")?;
        let visitor = engine.client_of(&other, &["exec", "-i", "box", "cat"])?;
        let programs = |expected: &str| {
            tests::within("programs in the container", || {
                let told = engine.call(&["inspect", "--format", "{{len .ExecIDs}}", "box"]).ok()?;
                (told == expected).then_some(())
            })
        };
        programs("1")?;
        go_on.send(())?;
        let told = daemon.wait_for("orphan_unproven", client)?;
        ensure!(told.list("doubts").contains(&"clients"), "{}", told.line);
        all_live(s, &daemon, &[client, inside, visitor])?;
        // The visitor leaves at the end of his input.
        other.kill()?;
        programs("0")?;
        daemon.wait_for("orphan_reaped", client)?;
        ensure!(!inside.alive(), "the container lives");
        ensure!(looks.load(Ordering::SeqCst) >= 4, "stopped without a second look");
        Ok(())
    })
}
