//! The openclaw host: a gateway whose helpers are MCP servers by no name, under each way to stop a unit.

use anyhow::{Context, Result, ensure};
use tests::{Child, Daemon, Event, Launch, Layout, Manager, Scene, Service, Told, day::rss, scene};

/// A tenth of what was reported, in KiB.
const HELPERS: [(&str, &str, u32); 4] = [
    ("health check", "openclaw-health", 19_700),
    ("plugins", "openclaw-plugin", 18_200),
    ("plugins", "openclaw-plugin", 10_600),
    ("doctor", "openclaw-doctor", 13_400),
];

fn launch() -> Launch {
    let config = "[[program]]\nkind = \"server\"\nname = \"health check\"\nprogram = \"openclaw-health\"\n\
        [[program]]\nkind = \"server\"\nname = \"plugins\"\nprogram = \"openclaw-plugin\"\n\
        [[program]]\nkind = \"server\"\nname = \"doctor\"\nprogram = \"openclaw-doctor\"\n\
        [[exempt]]\nname = \"containers\"\nprogram = \"podmon\"\n";
    Launch { config: config.into(), ..Launch::default() }
}

/// The gateway in a unit that stops as `mode` says, with a monitor of a container in which an MCP server runs. Where the unit
/// ends all that is in it, the monitor is in a scope of its own, as podman can have it.
fn gateway(s: &Scene, manager: &Manager, mode: &str) -> Result<Service> {
    let mut children: Vec<Child> = (0..)
        .zip(HELPERS)
        .map(|(i, (_, program, kib))| {
            let child = Child::new(program, format!("{mode}-helper{i}")).kib(kib);
            if i % 2 == 0 { child.setsid() } else { child.wire("socket") }
        })
        .collect();
    let container = vec![Child::new(tests::SERVER, format!("{mode}-contained"))];
    let monitor = Service::new(&format!("{mode}-monitor"), mode, container).run_by("podmon").nested(s)?;
    let monitor = monitor.wire("null").setsid().double_fork();
    children.push(if mode == "process" { monitor } else { monitor.scope(manager) });
    let service = Service::new(&format!("openclaw-{mode}"), mode, children).run_by("openclaw-gateway");
    service.install(s, manager)?;
    Ok(service)
}

/// The helpers of a run, in the order of [`HELPERS`].
fn helpers(s: &Scene, agent: &Told, mode: &str) -> Result<Vec<Told>> {
    let prefix = format!("{mode}-helper");
    let mut all = s.truth().servers(&agent.invocation);
    all.retain(|t| t.alias.starts_with(&prefix));
    all.sort_by(|a, b| a.alias.cmp(&b.alias));
    ensure!(all.len() == HELPERS.len(), "{all:?}");
    Ok(all)
}

fn detected(daemon: &Daemon, one: &Told, name: &str) -> Result<Event> {
    let event = daemon.wait_for("orphan_detected", one.id)?;
    ensure!(event.pointer("/server/name").is_some_and(|n| n == name), "not called {name}: {}", event.line);
    Ok(event)
}

fn near(said: Option<u64>, truth: u64) -> bool {
    said.is_some_and(|said| said.abs_diff(truth) * 100 <= truth)
}

/// With `process` each helper is named with its memory and reaped; with the others nothing is left to judge. The monitors and
/// what is in their containers live.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn helpers_are_named_and_containers_live() -> Result<()> {
    scene(|s| {
        let manager = s.boot("one", Layout::Hybrid)?.manager();
        let daemon = s.daemon_with(&launch())?;
        let mut contained = Vec::new();
        for mode in ["process", "mixed", "control-group"] {
            let service = gateway(s, &manager, mode)?;
            let first = service.restart(s, &manager)?;
            let before = helpers(s, &first, mode)?;
            let memory = before.iter().map(|one| rss(one.id)).collect::<Result<Vec<_>>>()?;
            contained.push(s.truth().wait(&format!("{mode}-contained"), 1)?);
            contained.push(s.truth().wait(&format!("{mode}-monitor"), 1)?);
            for one in &before {
                daemon.wait_for("server_started", one.id)?;
            }
            let second = service.restart(s, &manager)?;
            if mode == "process" {
                for ((one, (name, ..)), truth) in before.iter().zip(HELPERS).zip(memory) {
                    let event = detected(&daemon, one, name)?;
                    ensure!(near(event["rss_bytes"].as_u64(), truth), "not {truth}: {}", event.line);
                    let reaped = daemon.wait_for("orphan_reaped", one.id)?;
                    ensure!(near(reaped["freed_bytes"].as_u64(), truth), "not {truth}: {}", reaped.line);
                }
            }
            for one in &before {
                one.id.wait_gone()?;
            }
            s.barrier(&daemon)?;
            let present: Vec<_> = helpers(s, &second, mode)?.iter().map(|t| t.id).collect();
            daemon.silent(&present).with_context(|| mode)?;
            if mode != "process" {
                let ids: Vec<_> = before.iter().map(|t| t.id).collect();
                let judged =
                    daemon.events().into_iter().find(|e| e.kind() == "orphan_detected" && e.has_any(&ids));
                ensure!(judged.is_none(), "{mode} left {}", judged.map(|e| e.line).unwrap_or_default());
            }
        }
        for one in contained {
            ensure!(one.id.alive(), "{} was ended", one.alias);
        }
        Ok(())
    })
}
