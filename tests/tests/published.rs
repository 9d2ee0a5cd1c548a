//! Published MCP servers below hosts made with the published SDKs, none of them modified.

use std::{
    net::{TcpListener, TcpStream},
    path::Path,
    process::Stdio,
};

use anyhow::{Context, Result, ensure};
use rustix::{
    fs::{CWD, Mode, mkfifoat},
    process::Signal,
};
use serde_json::{Value, json};
use tests::{
    Client, Identity, Launch, Scene, Sdk, Terminal,
    fixtures::{CHROMIUM, Fixtures},
    orphand, scene, within,
};

/// More than any idle server needs to end by itself, here on a machine under load.
const PATIENT: &str = "5s";

fn none() -> Value {
    json!({})
}

/// What the host has started, when it is that.
fn below(host: &Client) -> Vec<Identity> {
    host.id.descendants()
}

/// Nobody of `all` was called an orphan.
fn never_orphans(daemon: &tests::Daemon, all: &[Identity]) -> Result<()> {
    for event in daemon.events() {
        let judged =
            matches!(event.kind(), "orphan_detected" | "orphan_reaped" | "orphan_spared" | "reap_failed");
        ensure!(!judged || !event.has_any(all), "called an orphan: {}", event.line);
    }
    Ok(())
}

/// An interval timer keeps server-everything alive for ever after the end of its input. Hosts on all SDKs are
/// killed; that of the twin lives and its server goes on answering.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn a_ticker_keeps_the_server_alive() -> Result<()> {
    let fixtures = Fixtures::open()?;
    scene(|s| {
        let daemon = s.daemon()?;
        let everything = ["node", &fixtures.everything()];
        let plan = json!({ "call": ["toggle-subscriber-updates", {}], "beat": true });
        let living = Client::start(s, Sdk::Python2, &plan, &everything, s.folder())?;
        for sdk in [Sdk::Python2, Sdk::Python1, Sdk::Node] {
            let host = Client::start(s, sdk, &plan, &everything, s.folder())?;
            let server = below(&host);
            ensure!(server.len() == 1, "{sdk:?} started {server:?}");
            host.kill()?;
            daemon.reaped(&server).with_context(|| format!("{sdk:?}"))?;
        }
        s.barrier(&daemon)?;
        daemon.silent(&below(&living))?;
        living.beat()
    })
}

/// server-filesystem hangs in a read, as on a network mount that went away.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn a_pending_read_keeps_the_server_alive() -> Result<()> {
    let fixtures = Fixtures::open()?;
    scene(|s| {
        let daemon = s.daemon()?;
        let root = s.folder().join("files");
        std::fs::create_dir(&root)?;
        mkfifoat(CWD, root.join("fifo"), Mode::RUSR | Mode::WUSR)?;
        let root = root.canonicalize()?.to_string_lossy().into_owned();
        let plan = json!({ "call": ["read_text_file", { "path": format!("{root}/fifo") }], "busy": true });
        let server = [&*fixtures.npm_bin("mcp-server-filesystem"), &root];
        let living = Client::start(s, Sdk::Node, &plan, &server, s.folder())?;
        for sdk in [Sdk::Node, Sdk::Python2] {
            let host = Client::start(s, sdk, &plan, &server, s.folder())?;
            let server = below(&host);
            host.kill()?;
            daemon.reaped(&server).with_context(|| format!("{sdk:?}"))?;
        }
        s.barrier(&daemon)?;
        daemon.silent(&below(&living))
    })
}

/// Both of them when the daemon comes only after the hosts were killed: nobody can ever talk to these servers again, and they are
/// nobody's children. Those of the living are in use, as ever.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn a_daemon_that_comes_late_finds_the_same() -> Result<()> {
    let fixtures = Fixtures::open()?;
    scene(|s| {
        let everything = fixtures.everything();
        let root = s.folder().join("files");
        std::fs::create_dir(&root)?;
        mkfifoat(CWD, root.join("fifo"), Mode::RUSR | Mode::WUSR)?;
        let root = root.canonicalize()?.to_string_lossy().into_owned();
        let ticker = json!({ "call": ["toggle-subscriber-updates", {}], "beat": true });
        let hung = json!({ "call": ["read_text_file", { "path": format!("{root}/fifo") }], "busy": true });
        let filesystem = fixtures.npm_bin("mcp-server-filesystem");
        let (ticks, reads) = (["node", &*everything], [&*filesystem, &*root]);
        let living = Client::start(s, Sdk::Python2, &ticker, &ticks, s.folder())?;
        let mut orphans = Vec::new();
        for (sdk, plan, command) in [
            (Sdk::Python2, &ticker, &ticks[..]),
            (Sdk::Python1, &ticker, &ticks),
            (Sdk::Node, &ticker, &ticks),
            (Sdk::Node, &hung, &reads),
            (Sdk::Python2, &hung, &reads),
        ] {
            let host = Client::start(s, sdk, plan, command, s.folder())?;
            let server = below(&host);
            ensure!(server.len() == 1, "{sdk:?} started {server:?}");
            host.kill()?;
            orphans.extend(server);
        }
        let daemon = s.daemon()?;
        for one in &orphans {
            let detected = daemon.wait_for("orphan_detected", *one)?;
            ensure!(detected.list("evidence").contains(&"stdin_hangup"), "{}", detected.line);
            daemon.wait_for("orphan_reaped", *one)?;
            one.wait_gone()?;
        }
        s.barrier(&daemon)?;
        daemon.silent(&below(&living))?;
        living.beat()
    })
}

/// The host's forked pool workers inherited the write end: no hang-up, and yet an orphan. They go with it.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn pool_workers_hold_the_wire() -> Result<()> {
    let fixtures = Fixtures::open()?;
    scene(|s| {
        let daemon = s.daemon()?;
        let plan = json!({ "pool": 2, "beat": true });
        let command = ["node", &fixtures.everything()];
        for sdk in [Sdk::Python2, Sdk::Python1] {
            let living = Client::start(s, sdk, &plan, &command, s.folder())?;
            let host = Client::start(s, sdk, &plan, &command, s.folder())?;
            let workers = host.workers();
            let server: Vec<_> = below(&host).into_iter().filter(|p| !workers.contains(p)).collect();
            ensure!(workers.len() == 2 && server.len() == 1, "{workers:?} {server:?}");
            host.kill()?;
            // Its standard input is a pipe that this test holds, and its workers have it, too: they may be given work. (Without such
            // a pipe they are idle copies, and the server is ended: the judgement table plays that.)
            let told = daemon.wait_for("orphan_unproven", *server.first().context("no server")?)?;
            ensure!(told.list("doubts").contains(&"wire_held"), "{}", told.line);
            s.barrier(&daemon)?;
            ensure!(server.iter().chain(&workers).all(|one| one.alive()), "ended without proof");
            daemon.silent(&below(&living))?;
            living.beat()?;
        }
        Ok(())
    })
}

/// Seven idle servers in the usual wrappings end by themselves when their hosts are killed: never orphans.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn idle_servers_end_by_themselves() -> Result<()> {
    let fixtures = Fixtures::open()?;
    scene(|s| {
        let daemon = s.daemon_with(&Launch { grace: PATIENT, ..Launch::default() })?;
        let everything = fixtures.everything();
        let memory = fixtures.npm_bin("mcp-server-memory");
        let [uvx, time, python] =
            ["uvx", "mcp-server-time", "python"].map(|name| Fixtures::venv_bin(&fixtures.python2, name));
        let [cache, constraint] = fixtures.uv_env();
        let uv = json!({ "env": { cache.0: cache.1, constraint.0: constraint.1, "UV_OFFLINE": "1" } });
        let shell = format!("cd /tmp && node {everything}");
        let seven: [(Sdk, Value, Vec<&str>); 7] = [
            (Sdk::Python2, none(), vec!["node", &everything]),
            (Sdk::Node, none(), vec![&memory]),
            (Sdk::Python1, none(), vec!["npx", "-y", "@modelcontextprotocol/server-everything"]),
            (Sdk::Node, none(), vec!["sh", "-c", &shell]),
            (Sdk::Node, uv, vec![&uvx, "mcp-server-time"]),
            (Sdk::Python2, none(), vec![&time]),
            (Sdk::Python2, none(), vec![&python, "-m", "mcp_server_time"]),
        ];
        let mut all = Vec::new();
        let mut hosts = Vec::new();
        for (sdk, plan, command) in &seven {
            let host = Client::start(s, *sdk, plan, command, &fixtures.npm)?;
            let server = below(&host);
            let leaf = *server.last().context("no server")?;
            let started = daemon.wait(&format!("server {command:?}"), |e| {
                e.kind() == "server_started" && e.has_any(&server)
            })?;
            ensure!(host.id == started["owner"], "{command:?}: another owner: {}", started.line);
            all.push((leaf, server));
            hosts.push(host);
        }
        for host in hosts {
            host.kill()?;
        }
        for (leaf, server) in &all {
            for one in server {
                one.wait_gone()?;
            }
            let cleared = daemon.wait_for("orphan_cleared", *leaf)?;
            ensure!(cleared["reason"] == "exited", "{}", cleared.line);
            never_orphans(&daemon, server)?;
        }
        Ok(())
    })
}

/// playwright's server ends its chromium and itself, ten processes, when the host is killed.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn playwright_closes_its_chromium() -> Result<()> {
    let fixtures = Fixtures::open()?;
    scene(|s| {
        let daemon = s.daemon_with(&Launch { grace: PATIENT, ..Launch::default() })?;
        let plan = json!({ "call": ["browser_navigate", { "url": "data:text/html,hi" }] });
        let server = fixtures.npm_bin("playwright-mcp");
        let options = ["--headless", "--isolated", "--no-sandbox", "--executable-path", CHROMIUM];
        let command: Vec<&str> = [&*server].into_iter().chain(options).collect();
        let host = Client::start(s, Sdk::Python2, &plan, &command, s.folder())?;
        let tree = below(&host);
        ensure!(tree.len() > 3, "no browser: {tree:?}");
        host.kill()?;
        for one in &tree {
            one.wait_gone()?;
        }
        let suspected =
            daemon.wait("orphan_suspected", |e| e.kind() == "orphan_suspected" && e.has_any(&tree))?;
        daemon
            .wait("orphan_cleared", |e| e.kind() == "orphan_cleared" && e.server() == suspected.server())?;
        s.barrier(&daemon)?;
        never_orphans(&daemon, &tree)
    })
}

/// Only the wrapper was killed: the server is pid 1's child now, and its host goes on using it.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn a_killed_wrapper_is_not_a_killed_host() -> Result<()> {
    let fixtures = Fixtures::open()?;
    scene(|s| {
        let daemon = s.daemon()?;
        let command = ["npx", "-y", "@modelcontextprotocol/server-everything"];
        let host = Client::start(s, Sdk::Python2, &json!({ "beat": true }), &command, &fixtures.npm)?;
        let chain = below(&host);
        ensure!(chain.len() >= 3, "no chain: {chain:?}");
        let (wrapper, rest) = chain.split_first().context("no server")?;
        wrapper.signal(Signal::KILL)?;
        wrapper.wait_gone()?;
        host.beat()?;
        s.barrier(&daemon)?;
        daemon.silent(&[&[host.id], rest].concat())?;
        host.beat()?;
        // Nor for a daemon that saw nothing of it. Two daemons would race for the decoy of the next barrier.
        daemon.finish()?;
        let late = s.daemon()?;
        s.barrier(&late)?;
        late.silent(&[&[host.id], rest].concat())?;
        host.beat()
    })
}

/// MCP servers that run as detached HTTP services, and a bridge with a stdio server below it: nobody's
/// orphans, whether the daemon or they came first.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn http_services_are_nobodys_orphans() -> Result<()> {
    let fixtures = Fixtures::open()?;
    scene(|s| {
        let first = s.daemon()?;
        let everything = fixtures.everything();
        let bridge = [&*fixtures.npm_bin("supergateway"), "--stdio", &format!("node {everything}"), "--port"];
        let script = s.folder().join("service.py");
        std::fs::write(&script, include_str!("../actors/service.py"))?;
        let script = script.to_string_lossy().into_owned();
        let python =
            [&*Fixtures::venv_bin(&fixtures.python2, "mcp"), "run", &script, "-t", "streamable-http"];
        service(s, &["node", &everything, "streamableHttp"], false)?;
        service(s, &bridge, true)?;
        service(s, &python, false)?;
        within("the bridge's server", || (s.members().len() >= 4).then_some(()))?;
        let all = s.members();
        s.barrier(&first)?;
        first.silent(&all)?;
        // Two daemons would race for the decoy of the next barrier.
        first.finish()?;
        let second = s.daemon()?;
        s.barrier(&second)?;
        second.silent(&all)
    })
}

/// Start a service as init scripts do: detached, deaf on stdin, and up when its port answers.
fn service(s: &Scene, command: &[&str], port_as_argument: bool) -> Result<()> {
    let port = TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port();
    let mut detached = s.command("setsid")?;
    detached.arg("--fork").args(command).env("PORT", port.to_string());
    if port_as_argument {
        detached.arg(port.to_string());
    }
    detached.current_dir(Path::new("/")).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    s.spawn(&mut detached)?;
    within(&format!("{command:?} on port {port}"), || TcpStream::connect(("127.0.0.1", port)).ok()).map(drop)
}

/// The example of the documentation, as a person runs it: an agent that leaks, told by `orphand events` in a terminal.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn the_example_leaks_and_is_told() -> Result<()> {
    let fixtures = Fixtures::open()?;
    scene(|s| {
        let daemon = s.daemon_with(&Launch { grace: "3s", ..Launch::default() })?;
        let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/leak/claude");
        // npx takes what is installed here, and asks no registry.
        s.spawn(s.command(example)?.current_dir(&fixtures.npm))?;
        let is_it = |kind: &'static str| {
            move |e: &tests::Event| e.kind() == kind && e["server"]["name"] == "server-everything"
        };
        for kind in ["server_started", "orphan_suspected", "orphan_detected", "orphan_reaped"] {
            daemon.wait(kind, is_it(kind))?;
        }
        let terminal = Terminal::open(s)?;
        terminal.resize("136", "14")?;
        let (orphand, socket) = (orphand()?, daemon.socket());
        let typed = format!("clear; {} events --socket {}", orphand.display(), socket.display());
        terminal.press(&[&typed, "Enter"])?;
        let text = terminal.wait("the end of the server", |text| text.contains(" freed"))?;
        for words in ["claude #1 started", "claude #1 was killed by SIGKILL", "grace period 3 s", "orphan"] {
            ensure!(text.contains(words), "{words}: {text}");
        }
        terminal.picture("leak")
    })
}
