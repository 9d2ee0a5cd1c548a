//! Each run of an agent in a unit is numbered right, however it came about.

use anyhow::{Context, Result, ensure};
use rustix::process::Signal;
use tests::{Child, Daemon, Launch, Layout, Manager, Number, SERVER, Scene, Service, Told, USER, scene};

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

/// `systemctl restart`, in both layouts.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn a_restart_is_the_next_run() -> Result<()> {
    for layout in [Layout::V2, Layout::Hybrid] {
        scene(|s| {
            let manager = s.boot("one", layout)?.manager();
            let daemon = s.daemon()?;
            let service = Service::untether("untether");
            service.install(s, &manager)?;
            service.restart(s, &manager)?;
            let (_, first) = run(s, &manager, &daemon, &service, 1)?;
            service.restart(s, &manager)?;
            let (_, second) = run(s, &manager, &daemon, &service, 2)?;
            gone(&manager, &daemon, &service, 1, &first)?;
            service.restart(s, &manager)?;
            let (_, third) = run(s, &manager, &daemon, &service, 3)?;
            gone(&manager, &daemon, &service, 2, &second)?;
            s.barrier(&daemon)?;
            daemon.silent(&ids(&third))
        })
        .with_context(|| format!("{layout:?}"))?;
    }
    Ok(())
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

/// An agent that executes itself goes on with its run, and with its servers.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn an_agent_that_executes_itself_goes_on() -> Result<()> {
    scene(|s| {
        let manager = s.boot("one", Layout::V2)?.manager();
        let daemon = s.daemon()?;
        let service = Service::untether("untether");
        service.install(s, &manager)?;
        let before = service.restart(s, &manager)?;
        run(s, &manager, &daemon, &service, 1)?;
        before.id.signal(Signal::USR1)?;
        let after = s.truth().wait(&service.play, 2)?;
        ensure!(after.id == before.id, "an exec made another process of it");
        // Those that are forked twice come when they come.
        for n in 0..14 {
            s.truth().wait(&format!("server{n}"), 2)?;
        }
        let servers = s.truth().servers(&after.invocation);
        ensure!(servers.len() == 28, "{} servers", servers.len());
        Number::of(&service, &manager, 1).servers(&daemon, "server_started", &servers)?;
        s.barrier(&daemon)?;
        daemon.silent(&ids(&servers))?;
        service.restart(s, &manager)?;
        run(s, &manager, &daemon, &service, 2)?;
        gone(&manager, &daemon, &service, 1, &servers)
    })
}

/// Two instances of a template: each has its own numbers.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn instances_side_by_side_count_apart() -> Result<()> {
    scene(|s| {
        let manager = s.boot("one", Layout::Hybrid)?.manager();
        let daemon = s.daemon()?;
        Service::untether("untether@").install(s, &manager)?;
        let [one, two] = ["untether@1.service", "untether@2.service"]
            .map(|unit| Service { unit: unit.into(), ..Service::untether("untether@") });
        one.restart(s, &manager)?;
        two.restart(s, &manager)?;
        let (_, of_one) = run(s, &manager, &daemon, &one, 1)?;
        let (_, of_two) = run(s, &manager, &daemon, &two, 1)?;
        two.restart(s, &manager)?;
        run(s, &manager, &daemon, &two, 2)?;
        gone(&manager, &daemon, &two, 1, &of_two)?;
        s.barrier(&daemon)?;
        daemon.silent(&ids(&of_one))
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
        let mut living = Vec::new();
        for (manager, restarts) in managers.iter().zip([1, 3, 2, 2, 1]) {
            service.install(s, manager)?;
            for generation in 1..=restarts {
                service.restart(s, manager)?;
                let (_, servers) = run(s, manager, &daemon, &service, generation)
                    .with_context(|| format!("{}, restart {generation}", manager.root()))?;
                if generation == restarts {
                    living.extend(ids(&servers));
                }
            }
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

/// A gateway, an agent below it, a server below that: the server's owner is the nearest, its run that of the top-most.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn a_nested_agents_servers_count_for_the_top_most() -> Result<()> {
    scene(|s| {
        let manager = s.boot("one", Layout::Hybrid)?.manager();
        let config = "[[agent]]\nname = \"home\"\nunit = \"untether.service\"\n".into();
        let daemon = s.daemon_with(&Launch { config, ..Launch::default() })?;
        let below = Service::new("below", "process", vec![Child::new(SERVER, "nested")]);
        let children = vec![Child::new(SERVER, "plain"), below.nested(s)?];
        let service = Service::new("untether", "process", children).run_by("gateway");
        service.install(s, &manager)?;
        for generation in 1..=2 {
            let gateway = service.restart(s, &manager)?;
            let (_, servers) = run(s, &manager, &daemon, &service, generation)?;
            let inner = s.truth().agents("below").into_iter().rfind(|t| t.invocation == gateway.invocation);
            let inner = inner.context("no nested agent")?;
            Number::of(&service, &manager, generation).agent(&daemon, &inner)?;
            for one in &servers {
                let owner = if one.alias == "nested" { &inner } else { &gateway };
                let started = daemon.wait_for("server_started", one.id)?;
                ensure!(owner.id == started["owner"], "owned by another: {}", started.line);
                ensure!(started["server"]["run"]["agent"] == "home", "{}", started.line);
            }
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
