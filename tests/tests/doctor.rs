//! `orphand doctor` on a system that runs: a unit that hosts an agent and leaves its servers behind is named, with what mends it.

use std::{fs, os::unix::fs::PermissionsExt, process::Command};

use anyhow::{Context, Result, ensure};
use rustix::process::Signal;
use serde_json::Value;
use tests::{Child, Launch, Layout, Manager, SERVER, Scene, Service, USER, orphand, output, scene};

/// Its exit code and what it says. It runs on the host, as root.
fn doctor() -> Result<(Option<i32>, String)> {
    let output = output(Command::new(orphand()?).arg("doctor"))?;
    Ok((output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned()))
}

/// The same as JSON.
fn checkup(args: &[&str]) -> Result<Value> {
    let output = output(Command::new(orphand()?).args(["doctor", "--json"]).args(args))?;
    let error = String::from_utf8_lossy(&output.stderr);
    serde_json::from_slice(&output.stdout).with_context(|| format!("no JSON: {error}"))
}

/// What it says of a unit.
fn unit(found: &Value, name: &str) -> Result<Value> {
    let units = found.get("units").and_then(Value::as_array).context("no units")?;
    let one = units.iter().find(|one| one.pointer("/unit/name").is_some_and(|n| n == name));
    one.cloned().with_context(|| format!("{name} is not among {units:#?}"))
}

/// What it says of one of the things that the daemon needs.
fn check<'f>(found: &'f Value, name: &str) -> Result<&'f Value> {
    let checks = found.get("checks").and_then(Value::as_array).context("no checks")?;
    checks
        .iter()
        .find(|one| one.get("name").is_some_and(|n| n == name))
        .with_context(|| format!("no {name} in {checks:#?}"))
}

fn begin(s: &Scene, manager: &Manager, service: &Service) -> Result<()> {
    service.install(s, manager)?;
    service.restart(s, manager).map(drop)
}

#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn units_that_leak_are_named_with_what_mends_them() -> Result<()> {
    scene(|s| {
        let system = s.boot("one", Layout::V2)?;
        let managers: [Manager; 2] = [system.manager(), system.user_manager(USER)?];
        let (before, _) = doctor()?;
        for manager in &managers {
            let name = format!("well-{}", manager.user().unwrap_or(0));
            let mut well = Service::untether(&name);
            well.lines = vec!["KillMode=control-group".into()];
            begin(s, manager, &well)?;
        }
        let (code, said) = doctor()?;
        ensure!(code == before, "a unit that leaves nothing is called wrong: {code:?}\n{said}");
        ensure!(!said.contains("[Service]"), "it would mend what is well\n{said}");
        ensure!(said.contains("well-0.service"), "a unit with an agent is not named\n{said}");
        for manager in &managers {
            let leaky = Service::untether(&format!("leaky-{}", manager.user().unwrap_or(0)));
            begin(s, manager, &leaky)?;
            let (code, said) = doctor()?;
            ensure!(code == Some(1), "ended with {code:?}\n{said}");
            for word in
                [leaky.unit.as_str(), "KillMode=process", "[Service]", "KillMode=control-group", "systemctl"]
            {
                ensure!(said.contains(word), "it does not say {word}\n{said}");
            }
        }
        Ok(())
    })
}

/// The drop-in it prints is what it takes; told of the system's units and of those of users, root among them; where the
/// manager is, is said, and leads there.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn the_drop_in_mends_it() -> Result<()> {
    scene(|s| {
        let system = s.boot("one", Layout::Hybrid)?;
        for manager in [system.manager(), system.user_manager(0)?, system.user_manager(USER)?] {
            let leaky = Service::untether(&format!("leaky-{:?}", manager.user()).replace(['(', ')'], ""));
            begin(s, &manager, &leaky)?;
            let found = unit(&checkup(&[])?, &leaky.unit)?;
            let init = system.init.pid;
            let place = &found["place"];
            ensure!(place["user"].as_u64() == manager.user().map(u64::from), "{place}");
            ensure!(place["container"] == init, "{place}");
            let user = if manager.user().is_some() { "--user " } else { "" };
            let advice = &found["advice"];
            ensure!(advice["command"] == format!("systemctl {user}edit {}", leaky.unit), "{advice}");
            let way = format!("nsenter --all --target {init}");
            ensure!(advice["place"].as_str().is_some_and(|p| p.ends_with(&way)), "{advice}");
            let mut words = way.split(' ');
            let mut enter = Command::new(words.next().context("no words")?);
            let there = output(enter.args(words).args(["cat", "/proc/sys/kernel/hostname"]))?;
            ensure!(there.stdout == b"one\n", "it leads to {there:?}");

            let drop_in = advice["drop_in"].as_str().context("no drop-in")?;
            manager.add(&format!("{}.d/mended.conf", leaky.unit), drop_in)?;
            let found = unit(&checkup(&[])?, &leaky.unit)?;
            ensure!(found["advice"].is_null(), "not mended: {found}");
            let shown = &found["properties"];
            ensure!(shown["kill_mode"] == "control-group", "{shown}");
            ensure!(shown["timeout_stop_ms"] == 30_000, "{shown}");
            let main = manager.property(&leaky.unit, "MainPID")?;
            ensure!(shown["main_pid"] == main.parse::<u32>()?, "{main} is main, not {shown}");
            let fragment = manager.property(&leaky.unit, "FragmentPath")?;
            ensure!(shown["fragment"] == fragment, "{fragment} is its file, not {shown}");
        }
        Ok(())
    })
}

/// An agent that no rule knows is one while it owns servers; without any, its unit is nobody's business. A unit that is
/// stopped is named for what it left.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn agents_without_a_rule_and_orphans_count() -> Result<()> {
    scene(|s| {
        let manager = s.boot("one", Layout::V2)?.manager();
        let home = Service::untether("home").run_by("gateway");
        let empty = Service::new("empty", "process", Vec::new()).run_by("gateway");
        begin(s, &manager, &home)?;
        begin(s, &manager, &empty)?;
        let found = checkup(&[])?;
        let agents = &unit(&found, &home.unit)?["agents"];
        ensure!(agents.as_array().is_some_and(|a| a.len() == 1), "{agents}");
        ensure!(!unit(&found, &home.unit)?["advice"].is_null(), "{found:#}");
        ensure!(unit(&found, &empty.unit).is_err(), "a unit without an agent is named: {found:#}");

        let config = s.folder().join("rule.toml");
        std::fs::write(&config, "[[agent]]\nname = \"mine\"\nunit = \"empty.service\"\n")?;
        let found = checkup(&["--config", &config.to_string_lossy()])?;
        let agents = &unit(&found, &empty.unit)?["agents"];
        ensure!(agents.pointer("/0/0").is_some_and(|name| name == "mine"), "{agents}");

        // A container's monitor in the unit would be ended with it: another drop-in.
        let children = ["conmon", SERVER].map(|program| Child::new(program, format!("pod-{program}"))).into();
        let pod = Service::new("pod", "process", children);
        begin(s, &manager, &pod)?;
        let drop_in = unit(&checkup(&[])?, &pod.unit)?["advice"]["drop_in"].to_string();
        ensure!(drop_in.contains("KillMode=mixed") && drop_in.contains("--cgroups=split"), "{drop_in}");

        manager.systemctl(&["stop", &home.unit])?;
        let found = unit(&checkup(&[])?, &home.unit)?;
        ensure!(found["orphans"] == 14 && !found["advice"].is_null(), "{found:#}");
        ensure!(found["agents"].as_array().is_some_and(Vec::is_empty), "{found:#}");
        Ok(())
    })
}

/// On the system itself there is no container; root is told of all units, a user of their own.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn where_it_runs_beside_the_managers() -> Result<()> {
    scene(|s| {
        let system = s.boot("one", Layout::V2)?;
        let managers = [system.manager(), system.user_manager(USER)?];
        for manager in &managers {
            let name = format!("leaky-{}", manager.user().unwrap_or(0));
            begin(s, manager, &Service::new(&name, "process", vec![Child::new(SERVER, name.clone())]))?;
        }
        // A system of its own sees the scene's folder, and perhaps not where the binary was built.
        let program = s.folder().join("bin/orphand");
        fs::copy(orphand()?, &program).with_context(|| format!("copy orphand to {}", program.display()))?;
        let mut as_root = system.command("env");
        let mut as_user = system.command("setpriv");
        as_user.args([format!("--reuid={USER}"), format!("--regid={USER}"), "--clear-groups".into()]);
        for (command, all) in [(&mut as_root, true), (&mut as_user, false)] {
            let said = output(command.arg(&program).args(["doctor", "--json"]))?;
            let error = String::from_utf8_lossy(&said.stderr);
            let found: Value = serde_json::from_slice(&said.stdout).with_context(|| error.into_owned())?;
            let namespace = check(&found, "PID namespace")?;
            ensure!(namespace["is"] == "wrong" && said.status.code() == Some(1), "{namespace}");
            for manager in &managers {
                let found = unit(&found, &format!("leaky-{}.service", manager.user().unwrap_or(0)))?;
                ensure!(found["place"]["container"].is_null(), "{found:#}");
                if !all && manager.user().is_none() {
                    let blind = &found["blind"];
                    ensure!(blind.as_str().is_some_and(|why| why.contains("as root")), "{found:#}");
                    continue;
                }
                ensure!(found["place"]["user"].as_u64() == manager.user().map(u64::from), "{found:#}");
                ensure!(!found["advice"].is_null(), "{command:?}: {found:#}");
            }
        }
        Ok(())
    })
}

/// A manager that hangs makes nothing else hang; its units are neither well nor wrong.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn what_could_not_be_asked_is_not_called_wrong() -> Result<()> {
    scene(|s| {
        let system = s.boot("one", Layout::V2)?;
        let (mute, other) = (system.user_manager(USER)?, system.manager());
        let (before, _) = doctor()?;
        let children = || vec![Child::new(SERVER, "server")];
        let (leaky, well) =
            (Service::new("mute", "process", children()), Service::new("well", "mixed", children()));
        begin(s, &mute, &leaky)?;
        begin(s, &other, &well)?;
        let pid = other.property(&format!("user@{USER}.service"), "MainPID")?;
        let hung = s
            .members()
            .into_iter()
            .find(|one| one.argv().iter().any(|arg| arg == "--user"))
            .with_context(|| format!("no user's manager; inside it is {pid}"))?;
        hung.signal(Signal::STOP)?;
        let (code, said) = doctor()?;
        let found = checkup(&[])?;
        hung.signal(Signal::CONT)?;
        ensure!(code == before, "ended with {code:?}\n{said}");
        ensure!(said.lines().any(|l| l.starts_with("?  ") && l.contains(&leaky.unit)), "{said}");
        let blind = &unit(&found, &leaky.unit)?["blind"];
        ensure!(blind.as_str().is_some_and(|why| why.contains("has not answered")), "{blind}");
        ensure!(unit(&found, &well.unit)?["blind"].is_null(), "{found:#}");
        let found = unit(&checkup(&[])?, &leaky.unit)?;
        ensure!(!found["advice"].is_null(), "it answers again: {found:#}");
        Ok(())
    })
}

/// Where a manager has no socket of its own, the bus of its system or user is asked; where there is neither, it is said.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn the_bus_is_asked_where_there_is_no_socket() -> Result<()> {
    scene(|s| {
        let system = s.boot("one", Layout::V2)?;
        for (manager, runtime, bus) in [
            (system.manager(), "/run".to_owned(), "/run/dbus/system_bus_socket".to_owned()),
            (system.user_manager(USER)?, format!("/run/user/{USER}"), format!("/run/user/{USER}/bus")),
        ] {
            let name = format!("leaky-{}", manager.user().unwrap_or(0));
            let leaky = Service::new(&name, "process", vec![Child::new(SERVER, name.clone())]);
            begin(s, &manager, &leaky)?;
            let own = system.path(&format!("{runtime}/systemd/private"));
            let bus = system.path(&bus);
            std::fs::rename(&bus, bus.with_extension("away"))?;
            let found = unit(&checkup(&[])?, &leaky.unit)?;
            ensure!(!found["advice"].is_null(), "at its own socket: {found:#}");
            std::fs::rename(bus.with_extension("away"), &bus)?;
            std::fs::remove_file(own)?;
            let found = unit(&checkup(&[])?, &leaky.unit)?;
            ensure!(!found["advice"].is_null(), "at the bus: {found:#}");
            std::fs::rename(&bus, bus.with_extension("away"))?;
            let found = unit(&checkup(&[])?, &leaky.unit)?;
            ensure!(found["advice"].is_null() && found["properties"].is_null(), "{found:#}");
            let blind = &found["blind"];
            ensure!(blind.as_str().is_some_and(|why| why.contains("neither a socket")), "{blind}");
            std::fs::rename(bus.with_extension("away"), &bus)?;
        }
        Ok(())
    })
}

/// Beside a daemon the kernel programs are not loaded once more: the daemon tells what is in use.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn a_daemon_that_runs_is_asked() -> Result<()> {
    scene(|s| {
        let none = checkup(&["--lock", &s.folder().join("lock").to_string_lossy()])?;
        ensure!(check(&none, "daemon")?["is"] == "note", "{none:#}");
        let loads = check(&none, "kernel programs")?;
        ensure!(loads["found"].as_str().is_some_and(|f| f.starts_with("they load")), "{loads}");

        let daemon = s.daemon_with(&Launch::default())?;
        let folder = s.folder().join("daemon0");
        let at = |name: &str| folder.join(name).to_string_lossy().into_owned();
        let (lock, socket, state) = (at("lock"), at("control.sock"), at("state"));
        let found = checkup(&["--lock", &lock, "--socket", &socket, "--state-dir", &state])?;
        let told = check(&found, "daemon")?;
        ensure!(told["is"] == "ok", "{told}");
        ensure!(
            told["found"].as_str().is_some_and(|f| f.contains(&format!("pid {}", daemon.id.pid))),
            "{told}"
        );
        let loaded = check(&found, "kernel programs")?;
        ensure!(loaded["found"].as_str().is_some_and(|f| f.contains("by the daemon")), "{loaded}");
        ensure!(check(&found, "state directory")?["is"] == "ok", "{found:#}");

        // What only its user can look at, as it should be, is not wrong.
        fs::set_permissions(&state, PermissionsExt::from_mode(0o700))?;
        let program = s.folder().join("orphand");
        fs::copy(orphand()?, &program)?;
        let mut as_user = Command::new("setpriv");
        as_user.args([format!("--reuid={USER}"), format!("--regid={USER}"), "--clear-groups".into()]);
        as_user.arg(&program).args(["doctor", "--json", "--lock", &lock, "--socket", &socket]);
        let said = output(as_user.args(["--state-dir", &state]))?;
        let found: Value = serde_json::from_slice(&said.stdout)?;
        ensure!(check(&found, "state directory")?["is"] == "note", "{found:#}");

        // One with another lock is found at its socket, and a mistake in the configuration is one of the checks.
        let (other, mistaken) = (s.folder().join("other.lock"), s.folder().join("mistaken.toml"));
        std::fs::write(&mistaken, "graec = \"1s\"\n")?;
        let [other, mistaken] = [&other, &mistaken].map(|path| path.to_string_lossy());
        let args = ["--lock", &other, "--socket", &socket, "--state-dir", &state, "--config", &mistaken];
        let found = checkup(&args)?;
        ensure!(check(&found, "daemon")?["is"] == "ok", "{found:#}");
        let told = check(&found, "configuration")?;
        ensure!(
            told["is"] == "wrong" && told["found"].as_str().is_some_and(|f| f.contains("graec")),
            "{told}"
        );

        let open = s.folder().join("open");
        std::fs::create_dir(&open)?;
        fs::set_permissions(&open, PermissionsExt::from_mode(0o777))?;
        let args = ["doctor", "--lock", &lock, "--socket", &socket, "--state-dir"];
        let said = output(Command::new(orphand()?).args(args).arg(&open))?;
        ensure!(said.status.code() == Some(1), "a directory open to all is called well");
        Ok(())
    })
}
