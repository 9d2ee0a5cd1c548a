//! Published MCP servers below hosts made with the published SDKs, none of them modified.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tests::{
    Client, Identity, Launch, Sdk, Terminal,
    fixtures::{CHROMIUM, Fixtures},
    orphand, scene,
};

/// More than any idle server needs to end by itself, on a machine that is very busy, too. A barrier waits until it is over.
const PATIENT: &str = "15s";

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
