//! What a unit itself proves of those it left behind: a daemon that was not there comes to the same verdicts.

use anyhow::{Context, Result, ensure};
use tests::{Child, Daemon, Launch, Layout, Manager, SERVER, Scene, Service, Told, USER, scene};

fn begin(s: &Scene, manager: &Manager, service: &Service) -> Result<Vec<Told>> {
    service.install(s, manager)?;
    let agent = service.restart(s, manager)?;
    Ok(s.truth().servers(&agent.invocation))
}

/// Each was judged on this evidence alone of a unit, and reaped.
fn reaped_by(daemon: &Daemon, evidence: &str, service: &Service, servers: &[Told]) -> Result<()> {
    for one in servers {
        let event = daemon.wait_for("orphan_detected", one.id)?;
        ensure!(event.list("evidence").contains(&evidence), "no {evidence}: {}", event.line);
        ensure!(event.list("guards").is_empty(), "guarded: {}", event.line);
        let run = |key: &str| event.pointer(&format!("/server/run/{key}")).and_then(|v| v.as_str());
        ensure!(run("unit") == Some(&service.unit), "another unit: {}", event.line);
        ensure!(run("invocation_id") == Some(&one.invocation), "another start: {}", event.line);
        daemon.wait_for("orphan_reaped", one.id)?;
        one.id.wait_gone()?;
    }
    Ok(())
}

fn ids(servers: &[Told]) -> Vec<tests::Identity> {
    servers.iter().map(|t| t.id).collect()
}

/// A unit was started anew, another was stopped, a third goes on: what the first two left is found by a daemon that comes later,
/// under the system's manager and a user's, in both layouts; the third's is not touched, nor what is present of the first.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn what_units_left_before_the_daemon_came() -> Result<()> {
    for layout in [Layout::V2, Layout::Hybrid] {
        scene(|s| {
            let system = s.boot("one", layout)?;
            let mut orphans = Vec::new();
            let mut living = Vec::new();
            for manager in [system.manager(), system.user_manager(USER)?] {
                // An agent that no rule knows leaves no other trace.
                let play = |name: &str| {
                    let name = format!("{name}-{}", manager.user().unwrap_or(0));
                    Service::untether(&name).run_by("gateway")
                };
                let (anew, stopped, going) = (play("anew"), play("stopped"), play("going"));
                let of_anew = begin(s, &manager, &anew)?;
                let of_stopped = begin(s, &manager, &stopped)?;
                living.extend(begin(s, &manager, &going)?);
                living.extend(s.truth().servers(&anew.restart(s, &manager)?.invocation));
                manager.systemctl(&["stop", &stopped.unit])?;
                orphans.push(("stale_invocation", anew, of_anew));
                orphans.push(("unit_stopped", stopped, of_stopped));
            }
            let daemon = s.daemon()?;
            for (evidence, service, servers) in &orphans {
                reaped_by(&daemon, evidence, service, servers)?;
            }
            s.barrier(&daemon)?;
            daemon.silent(&ids(&living))
        })
        .with_context(|| format!("{layout:?}"))?;
    }
    Ok(())
}

/// A server that its unit left behind and whose wire a sibling still holds: only the unit proves it. The twin's unit goes on, and
/// so does its agent.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn a_stale_invocation_is_proof_though_the_agent_lives() -> Result<()> {
    scene(|s| {
        let manager = s.boot("one", Layout::Hybrid)?.manager();
        let below =
            |name: &str| Service::new(name, "process", vec![Child::new(SERVER, format!("{name}-server"))]);
        let (left, kept) = (below("left"), below("kept"));
        let anew = Service::new("anew", "process", vec![left.nested(s)?]).run_by("gateway");
        let going = Service::new("going", "process", vec![kept.nested(s)?]).run_by("gateway");
        begin(s, &manager, &anew)?;
        begin(s, &manager, &going)?;
        anew.restart(s, &manager)?;
        let config = "[[agent]]\nname = \"home\"\nunit = \"*.service\"\n".into();
        let daemon = s.daemon_with(&Launch { config, ..Launch::default() })?;
        let agents = s.truth().agents("left");
        let [old, new] = agents.as_slice() else { anyhow::bail!("{agents:?}") };
        // It is told of, and stays, because no rule says that it may go; with it its servers.
        let told = daemon.wait_for("orphan_detected", old.id)?;
        ensure!(told["class"] == "agent", "{}", told.line);
        ensure!(told.list("evidence").contains(&"stale_invocation"), "{}", told.line);
        let spared = daemon.wait_for("orphan_spared", old.id)?;
        ensure!(spared.list("guards").contains(&"live_agent_below"), "{}", spared.line);
        s.barrier(&daemon)?;
        let servers = ["left-server", "kept-server"];
        let mut living = ids(&s.truth().all());
        living.retain(|one| one.alive() && *one != old.id);
        daemon.silent(&living)?;
        ensure!(old.id.alive() && new.id.alive(), "an agent was ended");
        ensure!(
            servers.iter().all(|name| s.truth().wait(name, 1).is_ok_and(|t| t.id.alive())),
            "a server was ended"
        );
        Ok(())
    })
}

/// The same with a rule that says it may go: it is ended, and then its servers are. The present one is not touched.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn an_agent_left_behind_goes_where_a_rule_says_so() -> Result<()> {
    scene(|s| {
        let manager = s.boot("one", Layout::V2)?.manager();
        let config = "[[agent]]\nname = \"home\"\nunit = \"anew.service\"\n\
            [[agent]]\nname = \"claude\"\nprogram = \"claude\"\nreap = true\n";
        let daemon = s.daemon_with(&Launch { config: config.into(), ..Launch::default() })?;
        let below = Service::new("below", "process", vec![Child::new(SERVER, "server")]);
        let anew = Service::new("anew", "process", vec![below.nested(s)?]).run_by("gateway");
        let first = begin(s, &manager, &anew)?;
        let old = s.truth().wait("below", 1)?;
        anew.restart(s, &manager)?;
        let reaped = daemon.wait_for("orphan_reaped", old.id)?;
        ensure!(reaped["class"] == "agent", "{}", reaped.line);
        old.id.wait_gone()?;
        daemon.reaped(&ids(&first))?;
        s.barrier(&daemon)?;
        let present = [s.truth().wait("below", 2)?.id, s.truth().wait("server", 2)?.id];
        daemon.silent(&present)
    })
}
