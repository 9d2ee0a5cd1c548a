//! orphand as a service: the unit that is shipped, with its sandbox, as an ordinary user, under a real service manager: its rights,
//! its watchdog, its lock.

use std::{fs, os::unix::fs::PermissionsExt as _};

use anyhow::{Context, Result, ensure};
use rustix::process::Signal;
use serde_json::Value;
use tests::{Identity, Install, Part, UNIT, scene, within};

/// capabilities(7): those that stay after the start.
const KEPT: u64 = 1 << 2 | 1 << 5 | 1 << 19;
/// Those that are out of effect but for moments: to start helpers as other users.
const HELD_BACK: u64 = 1 << 6 | 1 << 7;
/// With those that only the start takes, BPF and PERFMON.
const GIVEN: u64 = KEPT | HELD_BACK | 1 << 38 | 1 << 39;

/// A line of `/proc/PID/task/TID/status`.
fn status(process: Identity, thread: &str, name: &str) -> Result<String> {
    let path = format!("/proc/{}/task/{thread}/status", process.pid);
    let text = fs::read_to_string(&path).with_context(|| format!("read {path}"))?;
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    value.map(|value| value.trim().to_owned()).with_context(|| format!("no {name} in {path}"))
}

/// The capabilities of every thread.
fn capabilities(process: Identity, set: &str) -> Result<Vec<u64>> {
    let threads = fs::read_dir(format!("/proc/{}/task", process.pid))?.flatten();
    let names = threads.map(|thread| thread.file_name().to_string_lossy().into_owned());
    names.map(|name| Ok(u64::from_str_radix(&status(process, &name, set)?, 16)?)).collect()
}

fn all_are(process: Identity, set: &str, wanted: u64) -> Result<()> {
    let found = capabilities(process, set)?;
    ensure!(found.len() > 2, "only {} threads", found.len());
    ensure!(found.iter().all(|one| *one == wanted), "{set}: {found:x?}, not {wanted:x}");
    Ok(())
}

/// Every thread can look and signal, and load no program any more; nothing that it runs gets more. With these rights the orphans of
/// root and of an ordinary user are found and ended, by pipe and by socket pair, by SIGTERM and by SIGKILL.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn an_ordinary_user_with_three_capabilities_reaps_what_others_left() -> Result<()> {
    scene(|s| {
        let install = Install::quick(s)?;
        let daemon = install.start()?;
        ensure!(install.property("ActiveState")? == "active", "{}", install.account());
        let short = install.property("StatusText")?;
        ensure!(short.starts_with("watching: "), "{short}");
        for (set, wanted) in
            [("CapEff", KEPT), ("CapPrm", KEPT | HELD_BACK), ("CapInh", 0), ("CapAmb", 0), ("CapBnd", GIVEN)]
        {
            all_are(daemon, set, wanted)?;
        }
        let main = daemon.pid.to_string();
        ensure!(status(daemon, &main, "NoNewPrivs")? == "1" && status(daemon, &main, "Seccomp")? == "2");
        let told: Value = serde_json::from_str(&install.run("orphand", &["status", "--json"])?)?;
        ensure!(told["pid"] == daemon.pid, "root asked another: {told}");
        let told = tests::output(install.command("orphand").args(["doctor", "--json"]))?;
        let told: Value = serde_json::from_slice(&told.stdout)?;
        let check = |name: &str| {
            let all = told["checks"].as_array().into_iter().flatten();
            all.into_iter().find(|check| check["name"] == name && check["is"] == "ok").is_some()
        };
        ensure!(check("state directory") && check("daemon") && check("kernel programs"), "{told}");
        ensure!(!status(daemon, &main, "Uid")?.split_whitespace().any(|uid| uid == "0"), "it is root");

        let mut servers = Vec::new();
        for (name, uid) in [("root", 0), ("user", tests::USER)] {
            let agent = s.start(&Part::new("home-made-starter", format!("{name}-starter")))?;
            let agent = agent.start(&Part::agent(format!("{name}-agent")).uid(uid))?;
            let pipe = agent.start(&Part::server(format!("{name}-pipe")))?;
            let socket = agent.start(&Part::server(format!("{name}-socket")).wire("socket"))?;
            let deaf = agent.start(&Part::server(format!("{name}-deaf")).wire("socket"))?;
            deaf.act("ignore_term")?;
            let used = s.start(&Part::agent(format!("{name}-other")))?;
            let used = (used.start(&Part::server(format!("{name}-used")).wire("socket"))?, used);
            agent.kill()?;
            servers.push((pipe, socket, deaf, used));
        }
        for (pipe, socket, deaf, used) in servers {
            for (server, signal) in [(&pipe, "TERM"), (&socket, "TERM"), (&deaf, "KILL")] {
                let detected = install.wait_for("orphan_detected", server.id)?;
                let evidence = detected.list("evidence");
                ensure!(evidence == ["owner_exited", "stdin_hangup"], "{}", detected.line);
                ensure!(detected["rss_bytes"].as_u64() > Some(1 << 20), "no memory: {}", detected.line);
                ensure!(detected["pss_bytes"].as_u64() > Some(1 << 20), "no memory: {}", detected.line);
                let reaped = install.wait_for("orphan_reaped", server.id)?;
                ensure!(reaped["signal"] == signal, "{}", reaped.line);
                server.id.wait_gone()?;
            }
            ensure!(used.0.id.alive() && used.1.id.alive(), "a server in use was ended");
            let accused = install.events()?.into_iter().find(|e| e.accuses() && e.has(used.0.id));
            ensure!(accused.is_none(), "{accused:?}");
        }
        install.systemctl(&["stop", UNIT])?;
        ensure!(install.property("Result")? == "success", "{}", install.account());
        ensure!(install.events()?.last().is_some_and(|e| e.kind() == "stopping"), "{}", install.account());
        Ok(())
    })
}

/// Without `CAP_KILL` it only observes, and the same orphan stays even where a person asks: it is the capability that ends it, nothing
/// that the test gave by accident.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn without_cap_kill_others_servers_stay() -> Result<()> {
    scene(|s| {
        let install = Install::quick(s)?;
        let four = "CAP_BPF CAP_PERFMON CAP_SYS_PTRACE CAP_DAC_READ_SEARCH";
        install.drop_in(
            "four",
            &format!(
                "AmbientCapabilities=\nAmbientCapabilities={four}\nCapabilityBoundingSet=\nCapabilityBoundingSet={four}\n\
                 ExecStart=\nExecStart=/usr/bin/orphand run --observe --below {}",
                s.below()
            ),
        )?;
        let daemon = install.start()?;
        all_are(daemon, "CapEff", KEPT & !(1 << 5))?;
        let agent = s.start(&Part::agent("agent"))?;
        let server = agent.start(&Part::server("server"))?;
        agent.kill()?;
        install.wait_for("orphan_spared", server.id)?;
        let _ = install.run("orphand", &["reap", "--yes", &server.id.pid.to_string()]);
        let failed = install.wait_for("reap_failed", server.id)?;
        ensure!(failed["errno"] == 1 && server.id.alive(), "{}", failed.line);
        server.kill()
    })
}

/// A loop that stands still is found by the watchdog; the next daemon counts on where the last one stopped.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn a_daemon_that_hangs_is_started_anew_and_goes_on() -> Result<()> {
    scene(|s| {
        let install = Install::quick(s)?;
        install.drop_in("quick", "WatchdogSec=2\nTimeoutAbortSec=1\nRestartSec=100ms")?;
        let first = install.start()?;
        let agent = s.start(&Part::agent("agent"))?;
        let server = agent.start(&Part::server("server").wire("socket"))?;
        let started = install.wait_for("server_started", server.id)?;
        first.signal(Signal::STOP)?;
        first.wait_gone()?;
        let again = || install.main().ok().filter(|now| *now != first);
        let second = within("another daemon", again).with_context(|| install.account())?;
        let ready = |e: &&tests::Event| e.kind() == "ready";
        within("it is ready", || (install.events().ok()?.iter().filter(ready).count() == 2).then_some(()))
            .with_context(|| install.account())?;
        // What ended in between had a witness, and nobody is judged twice.
        agent.kill()?;
        let reaped = install.wait_for("orphan_reaped", server.id)?;
        ensure!(
            reaped.generation().is_some() && reaped.generation() == started.generation(),
            "{}",
            reaped.line
        );
        // Longer than it may be silent: only a sign of life gets it there.
        let lived = || {
            let at = |name| install.property(name).ok()?.parse::<u64>().ok();
            let (started, seen) = (at("ExecMainStartTimestampMonotonic")?, at("WatchdogTimestampMonotonic")?);
            (seen.saturating_sub(started) > 4_500_000).then_some(())
        };
        within("it has outlived its watchdog twice", lived).with_context(|| install.account())?;
        ensure!(install.main()? == second, "started anew once more: {}", install.account());
        ensure!(install.property("NRestarts")? == "1", "{}", install.account());
        Ok(())
    })
}

/// A daemon of root's gives up the rest, too, and can still reap; what it runs gets nothing.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn root_keeps_no_more_than_it_needs() -> Result<()> {
    scene(|s| {
        let daemon = s.daemon()?;
        all_are(daemon.id, "CapEff", KEPT)?;
        // Held back, too, for the sockets of containers, which are in network namespaces of their own.
        all_are(daemon.id, "CapPrm", KEPT | HELD_BACK | 1 << 21)?;
        for set in ["CapInh", "CapBnd", "CapAmb"] {
            all_are(daemon.id, set, 0)?;
        }
        let agent = s.start(&Part::new("home-made-starter", "starter"))?;
        let agent = agent.start(&Part::agent("agent").uid(tests::USER))?;
        let pipe = agent.start(&Part::server("pipe"))?;
        let deaf = agent.start(&Part::server("deaf").wire("socket"))?;
        deaf.act("ignore_term")?;
        agent.kill()?;
        daemon.reaped(&[pipe.id])?;
        let reaped = daemon.reaped(&[deaf.id])?;
        ensure!(reaped["signal"] == "KILL", "{}", reaped.line);
        Ok(())
    })
}

/// A daemon that was started by hand holds the lock, and the service does not take it away, neither by its start nor by its end.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn the_service_gives_way_to_a_daemon_that_is_there() -> Result<()> {
    scene(|s| {
        let install = Install::quick(s)?;
        install.drop_in("once", "Restart=no")?;
        let log = fs::File::create(s.folder().join("by-hand.log"))?;
        let mut command = s.command("/usr/bin/nsenter")?;
        command.args([
            "-t",
            &install.manager.pid.to_string(),
            "-m",
            "--",
            "/usr/bin/orphand",
            "run",
            "--format",
            "json",
            "--below",
            s.below(),
        ]);
        command.stdout(log.try_clone()?).stderr(log).stdin(std::process::Stdio::null());
        let by_hand = s.spawn(&mut command)?;
        let said = || fs::read_to_string(s.folder().join("by-hand.log")).unwrap_or_default();
        within("it is ready", || said().contains("\"ready\"").then_some(())).with_context(said)?;
        ensure!(install.systemctl(&["start", UNIT]).is_err(), "two daemons watch");
        let why = format!("another orphand is running on this host (pid {})", by_hand.pid);
        let entries = install.journal(&["PRIORITY=3"])?;
        let told = entries.iter().any(|e| e["MESSAGE"].as_str().is_some_and(|m| m.contains(&why)));
        ensure!(told, "{why}: {}", install.account());
        // It was removed with the directory if the unit took that with it: then the next one would find no lock.
        ensure!(install.systemctl(&["start", UNIT]).is_err(), "the lock is gone, and two daemons watch");
        by_hand.signal(Signal::TERM)?;
        by_hand.wait_gone()?;
        install.start().map(drop)
    })
}

/// `systemctl reload` puts another configuration into effect. The hook is told; it runs in the sandbox as a user of its own and without
/// any right; one with a mistake fails the reload, not the service. A stop ends what the hook left.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn the_unit_reloads_and_its_hook_has_no_rights() -> Result<()> {
    scene(|s| {
        let install = Install::quick(s)?;
        let config = fs::read_to_string(install.path("/etc/orphand/config.toml"))?;
        install.write(
            "/etc/orphand/hook",
            "#!/bin/sh\nid -un > /tmp/told.new; id -Gn >> /tmp/told.new\ngrep -E '^(Uid|Groups|Cap.*|NoNewPrivs|Seccomp):' /proc/self/status >> /tmp/told.new\n\
             mv /tmp/told.new /tmp/told\nsetsid sleep 1000 &\necho $! > /tmp/sleeps\n",
        )?;
        fs::set_permissions(install.path("/etc/orphand/hook"), fs::Permissions::from_mode(0o755))?;
        let hook = "[[hook]]\npath = \"/etc/orphand/hook\"\nevents = [\"reconfigured\"]\n";
        let run = format!("/usr/bin/orphand run --below {} --hook-timeout 10m", s.below());
        install.drop_in("hook", &format!("ExecStart=\nExecStart={run}"))?;
        install.write("/etc/orphand/config.toml", &format!("{config}{hook}"))?;
        let daemon = install.start()?;
        install.write("/etc/orphand/config.toml", &format!("observe = true\n{config}{hook}"))?;
        install.systemctl(&["reload", UNIT]).with_context(|| install.account())?;
        install.wait("the reload", |e| e.kind() == "reconfigured" && e["mode"] == "observe")?;
        ensure!(
            install.property("StatusText")?.starts_with("observing: "),
            "{}",
            install.property("StatusText")?
        );
        // The service has a /tmp of its own.
        let file = |name: &str| fs::read_to_string(format!("/proc/{}/root/tmp/{name}", daemon.pid)).ok();
        let told = within("the hook has run", || file("told")).with_context(|| install.account())?;
        ensure!(told.starts_with("orphand-hook\norphand-hook\n"), "another user or group: {told}");
        let uid = status(daemon, &daemon.pid.to_string(), "Uid")?;
        ensure!(!told.contains(&format!("Uid:\t{uid}\n")), "the daemon's user {uid}: {told}");
        ensure!(!told.contains("Uid:\t0\t"), "root: {told}");
        for set in ["CapInh", "CapPrm", "CapEff", "CapAmb"] {
            ensure!(told.contains(&format!("{set}:\t0000000000000000\n")), "{told}");
        }
        ensure!(told.contains("NoNewPrivs:\t1\n") && told.contains("Seccomp:\t2\n"), "{told}");

        install.write("/etc/orphand/config.toml", "graec = \"1s\"\n")?;
        let refused = install.systemctl(&["reload", UNIT]);
        ensure!(refused.is_err(), "a mistake is no failure: {refused:?}");
        ensure!(
            install.property("ActiveState")? == "active" && install.main()? == daemon,
            "{}",
            install.account()
        );
        ensure!(install.account().contains("did you mean \"grace\"?"), "{}", install.account());

        let sleeps = within("the hook's child", || file("sleeps")?.trim().parse().ok())?;
        let sleeps = Identity::of(sleeps).context("the hook's child has ended")?;
        install.systemctl(&["stop", UNIT])?;
        sleeps.wait_gone()
    })
}
