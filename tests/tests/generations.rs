//! Each run of an agent in a unit is numbered right, however it came about.

use anyhow::{Context, Result, ensure};
use tests::{Daemon, Launch, Layout, Manager, Number, Scene, Service, Told, USER, scene};

/// The run that is on has this number; gives its agent and its servers.
fn run(s: &Scene, m: &Manager, d: &Daemon, service: &Service, generation: u64) -> Result<(Told, Vec<Told>)> {
    let agent = service.present(s, m)?;
    let servers = s.truth().servers(&agent.invocation);
    let number = Number::of(service, m, generation);
    number.agent(d, &agent)?;
    number.servers(d, "server_started", &servers)?;
    Ok((agent, servers))
}

/// Those of an earlier run were judged under its number, and are gone.
fn gone(m: &Manager, d: &Daemon, service: &Service, generation: u64, servers: &[Told]) -> Result<()> {
    let number = Number::of(service, m, generation);
    number.servers(d, "orphan_detected", servers)?;
    number.servers(d, "orphan_reaped", servers)?;
    servers.iter().try_for_each(|one| one.id.wait_gone())
}

fn ids(servers: &[Told]) -> Vec<tests::Identity> {
    servers.iter().map(|t| t.id).collect()
}

/// A crash with `Restart=always`, and a stop with servers left over before the next start.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn a_crash_and_a_stop_end_a_run() -> Result<()> {
    scene(|s| {
        let manager = s.boot("one", Layout::Hybrid)?.manager();
        let daemon = s.daemon()?;
        let service = Service::untether("untether").line("Restart=always").line("RestartSec=0");
        service.install(s, &manager)?;
        service.restart(s, &manager)?;
        let (_, first) = run(s, &manager, &daemon, &service, 1)?;
        service.crash(s, &manager)?;
        let (_, second) = run(s, &manager, &daemon, &service, 2)?;
        gone(&manager, &daemon, &service, 1, &first)?;
        manager.systemctl(&["stop", &service.unit])?;
        gone(&manager, &daemon, &service, 2, &second)?;
        service.restart(s, &manager)?;
        let (_, third) = run(s, &manager, &daemon, &service, 3)?;
        s.barrier(&daemon)?;
        daemon.silent(&ids(&third))
    })
}

/// A unit of the same name under the system's manager, under two users', and in another system: each counts for itself.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn managers_count_apart() -> Result<()> {
    scene(|s| {
        let (here, there) = (s.boot("here", Layout::V2)?, s.boot("there", Layout::Hybrid)?);
        let managers = [
            here.manager(),
            here.user_manager(0)?,
            here.user_manager(USER)?,
            there.manager(),
            there.user_manager(USER)?,
        ];
        let daemon = s.daemon()?;
        let service = Service::untether("untether");
        let (mut living, mut left) = (Vec::new(), Vec::new());
        for (manager, restarts) in managers.iter().zip([1, 3, 2, 2, 1]) {
            service.install(s, manager)?;
            for generation in 1..=restarts {
                service.restart(s, manager)?;
                let (_, servers) = run(s, manager, &daemon, &service, generation)
                    .with_context(|| format!("{}, restart {generation}", manager.root()))?;
                if generation == restarts {
                    living.extend(ids(&servers));
                } else {
                    left.push((manager, generation, servers));
                }
            }
        }
        for (manager, generation, servers) in &left {
            gone(manager, &daemon, &service, *generation, servers)?;
        }
        s.barrier(&daemon)?;
        daemon.silent(&living)
    })
}

/// A rule names the unit: its main process is the agent, whatever it runs. Without the rule it is an implied one.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn an_agent_by_its_unit() -> Result<()> {
    scene(|s| {
        let manager = s.boot("one", Layout::V2)?.manager();
        let config = "[[agent]]\nname = \"home\"\nunit = \"untether.service\"\n".into();
        let daemon = s.daemon_with(&Launch { config, ..Launch::default() })?;
        let named = Service::untether("untether").run_by("gateway");
        let twin = Service::untether("other").run_by("gateway");
        for (service, name, implied) in [(&named, "home", false), (&twin, "gateway", true)] {
            service.install(s, &manager)?;
            service.restart(s, &manager)?;
            let (agent, servers) = run(s, &manager, &daemon, service, 1)?;
            let started = Number::of(service, &manager, 1).agent(&daemon, &agent)?;
            ensure!(
                started["agent"]["name"] == name && started["agent"]["implied"] == implied,
                "{}",
                started.line
            );
            service.restart(s, &manager)?;
            run(s, &manager, &daemon, service, 2)?;
            gone(&manager, &daemon, service, 1, &servers)?;
        }
        Ok(())
    })
}

/// The number goes on when the daemon was stopped in between, and a run that goes on keeps its own.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn numbers_survive_the_daemon() -> Result<()> {
    scene(|s| {
        let manager = s.boot("one", Layout::V2)?.manager();
        let daemon = s.daemon()?;
        let service = Service::untether("untether");
        service.install(s, &manager)?;
        service.restart(s, &manager)?;
        let (_, first) = run(s, &manager, &daemon, &service, 1)?;
        service.restart(s, &manager)?;
        let (_, second) = run(s, &manager, &daemon, &service, 2)?;
        gone(&manager, &daemon, &service, 1, &first)?;
        daemon.finish()?;
        let successor = Launch { state: "../daemon0/state", ..Launch::default() };
        let daemon = s.daemon_with(&successor)?;
        run(s, &manager, &daemon, &service, 2)?;
        daemon.finish()?;
        // Nobody watches this one.
        service.restart(s, &manager)?;
        let daemon = s.daemon_with(&successor)?;
        let (_, third) = run(s, &manager, &daemon, &service, 3)?;
        gone(&manager, &daemon, &service, 2, &second)?;
        s.barrier(&daemon)?;
        daemon.silent(&ids(&third))
    })
}
