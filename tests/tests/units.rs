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
