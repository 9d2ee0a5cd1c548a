//! orphand as a service: the unit that is shipped, with its sandbox, as an ordinary user, under a real service manager and
//! with a real journal.

use std::fs;

use anyhow::{Context, Result, ensure};
use rustix::process::Signal;
use serde_json::Value;
use tests::{Identity, Install, Part, Scene, UNIT, scene, within};

/// capabilities(7): those that stay after the start.
const KEPT: u64 = 1 << 2 | 1 << 5 | 1 << 19;
/// With those that only the start takes, BPF and PERFMON.
const GIVEN: u64 = KEPT | 1 << 38 | 1 << 39;

/// What all of these tests want to be quick.
const CONFIG: &str = "grace = \"300ms\"\nterm_timeout = \"1s\"\nlisten = \"none\"\n";

fn install(s: &Scene, config: &str) -> Result<Install> {
    let install = Install::new(s)?;
    install.write("/etc/orphand/config.toml", config)?;
    Ok(install)
}

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
        let install = install(s, CONFIG)?;
        let daemon = install.start()?;
        ensure!(install.property("ActiveState")? == "active", "{}", install.account());
        let short = install.property("StatusText")?;
        ensure!(short.starts_with("watching: "), "{short}");
        for (set, wanted) in
            [("CapEff", KEPT), ("CapPrm", KEPT), ("CapInh", 0), ("CapAmb", 0), ("CapBnd", GIVEN)]
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

/// Without `CAP_KILL` the same orphan stays: it is the capability that ends it, nothing that the test gave by accident.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn without_cap_kill_others_servers_stay() -> Result<()> {
    scene(|s| {
        let install = install(s, CONFIG)?;
        let four = "CAP_BPF CAP_PERFMON CAP_SYS_PTRACE CAP_DAC_READ_SEARCH";
        install.drop_in(
            "four",
            &format!(
                "AmbientCapabilities=\nAmbientCapabilities={four}\nCapabilityBoundingSet=\nCapabilityBoundingSet={four}"
            ),
        )?;
        let daemon = install.start()?;
        all_are(daemon, "CapEff", KEPT & !(1 << 5))?;
        let agent = s.start(&Part::agent("agent"))?;
        let server = agent.start(&Part::server("server"))?;
        agent.kill()?;
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
        let install = install(s, CONFIG)?;
        install.drop_in("quick", "WatchdogSec=1\nTimeoutAbortSec=1\nRestartSec=100ms")?;
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
            (seen.saturating_sub(started) > 2_500_000).then_some(())
        };
        within("it has outlived its watchdog twice", lived).with_context(|| install.account())?;
        ensure!(install.main()? == second, "started anew once more: {}", install.account());
        ensure!(install.property("NRestarts")? == "1", "{}", install.account());
        Ok(())
    })
}

/// Each event is one entry with its fields, and there once; the log has priorities; the catalog explains.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn the_journal_has_each_event_once_with_its_fields() -> Result<()> {
    scene(|s| {
        let install = install(s, CONFIG)?;
        install.start()?;
        let agent = s.start(&Part::agent("agent"))?;
        let server = agent.start(&Part::server("server"))?;
        agent.kill()?;
        install.wait_for("orphan_reaped", server.id)?;
        install.systemctl(&["stop", UNIT])?;
        let history = install.run("orphand", &["history", "--json"])?;
        ensure!(history.contains(&server.id.to_string()), "root cannot read the store: {history}");
        let events = install.events()?;
        for (expected, event) in (1u64..).zip(&events) {
            ensure!(event["seq"] == expected, "seq: expected {expected}: {}", event.line);
        }
        // In no other entry is there a line of the stream.
        let all = install.journal(&[])?;
        let text = |entry: &Value, name: &str| {
            entry.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        let lines = all.iter().filter(|entry| text(entry, "MESSAGE").starts_with('{')).count();
        ensure!(lines == 0, "{lines} lines of the stream beside the entries");
        let reaped = install.journal(&["MESSAGE_ID=e19ba7cedd314746b2e95d6f1d09f21d"])?;
        let ours = reaped.iter().find(|entry| text(entry, "OBJECT_PID") == server.id.pid.to_string());
        let ours = ours.with_context(|| format!("no entry about {}: {reaped:?}", server.id))?;
        for (name, value) in [
            ("PRIORITY", "5"),
            ("SYSLOG_IDENTIFIER", "orphand"),
            ("ORPHAND_EVENT", "orphan_reaped"),
            ("ORPHAND_SERVER", "fake-mcp-server"),
            ("ORPHAND_AGENT", "claude"),
        ] {
            ensure!(text(ours, name) == value, "{name}: {ours}");
        }
        ensure!(text(ours, "MESSAGE").starts_with("reaped: fake-mcp-server of claude #"), "{ours}");
        ensure!(text(ours, "ORPHAND_RSS_BYTES").parse::<u64>()? > 1 << 20, "{ours}");
        let log = install.journal(&["SYSLOG_IDENTIFIER=orphand", "PRIORITY=6"])?;
        let kept = log.iter().find(|entry| text(entry, "MESSAGE").contains("capabilities that stay"));
        ensure!(kept.is_some_and(|entry| entry.get("MESSAGE_ID").is_none()), "{log:?}");
        let id = "--catalog".to_owned();
        let explained = install.run(
            "journalctl",
            &["--directory=/run/log/journal", &id, "-n", "40", "ORPHAND_EVENT=orphan_reaped"],
        )?;
        ensure!(explained.contains("An orphan was ended"), "{explained}");
        Ok(())
    })
}

/// A journald that stands still delays no verdict.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn a_journal_that_stalls_delays_nobody() -> Result<()> {
    scene(|s| {
        let install = install(s, CONFIG)?;
        install.start()?;
        let journald = journald(s)?;
        journald.signal(Signal::STOP)?;
        let agent = s.start(&Part::agent("agent"))?;
        // Far more events than the socket of the journal has room for.
        let servers =
            (0..8).map(|n| agent.start(&Part::server(format!("server{n}")))).collect::<Result<Vec<_>>>()?;
        agent.kill()?;
        for server in &servers {
            server.id.wait_gone()?;
        }
        journald.signal(Signal::CONT)?;
        for server in &servers {
            install.wait_for("orphan_reaped", server.id)?;
        }
        Ok(())
    })
}

fn journald(s: &Scene) -> Result<Identity> {
    let is = |one: &Identity| one.argv().first().is_some_and(|program| program.ends_with("systemd-journald"));
    s.members().into_iter().find(is).context("no journald")
}

/// A daemon of root's gives up the rest, too, and can still reap; what it runs gets nothing.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn root_keeps_no_more_than_it_needs() -> Result<()> {
    scene(|s| {
        let daemon = s.daemon()?;
        all_are(daemon.id, "CapEff", KEPT)?;
        // Held back for the sockets of containers, which are in network namespaces of their own.
        all_are(daemon.id, "CapPrm", KEPT | 1 << 21)?;
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
        let install = install(s, CONFIG)?;
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

/// The kernel lists the unix sockets of the asker's own network namespace. With one of its own the daemon cannot look at wires that are
/// socket pairs: their orphans are told and stay. So it is with those of containers; a pipe is the same everywhere.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn in_a_network_of_its_own_socket_pairs_stay() -> Result<()> {
    scene(|s| {
        let install = install(s, CONFIG)?;
        install.drop_in("network", "PrivateNetwork=yes")?;
        install.start()?;
        let agent = s.start(&Part::agent("agent"))?;
        let pipe = agent.start(&Part::server("pipe"))?;
        let socket = agent.start(&Part::server("socket").wire("socket"))?;
        agent.kill()?;
        install.wait_for("orphan_reaped", pipe.id)?;
        let spared = install.wait_for("orphan_spared", socket.id)?;
        ensure!(spared.list("guards") == ["weak_evidence"] && socket.id.alive(), "{}", spared.line);
        socket.kill()
    })
}

/// What else the unit must not have: the daemon says so, and does not start.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn what_would_blind_it_keeps_it_from_starting() -> Result<()> {
    for (line, why) in [
        ("PrivateUsers=yes", "the kernel refuses BPF"),
        ("ProcSubset=pid", "/proc/sys/kernel/random/boot_id"),
    ] {
        scene(|s| {
            let install = install(s, CONFIG)?;
            install.drop_in("blind", &format!("Restart=no\n{line}"))?;
            ensure!(install.systemctl(&["start", UNIT]).is_err(), "it starts with {line}");
            let told = install.journal(&["PRIORITY=3"])?;
            let told = told.iter().any(|e| e["MESSAGE"].as_str().is_some_and(|m| m.contains(why)));
            ensure!(told, "{line}: {}", install.account());
            Ok(())
        })?;
    }
    Ok(())
}

/// The unit has no mistake in it, and gives no more away than the manual says.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn systemd_finds_nothing_wrong_with_the_unit() -> Result<()> {
    scene(|s| {
        let install = install(s, CONFIG)?;
        let unit = "/etc/systemd/user/orphand.service";
        let said = tests::output(install.command("systemd-analyze").args(["verify", "--man=no", unit]))?;
        let said = (said.status.success(), String::from_utf8(said.stderr)?);
        ensure!(said == (true, String::new()), "{said:?}");
        let said = install.run("systemd-analyze", &["security", "--offline=true", "--threshold=24", unit])?;
        ensure!(said.contains("Overall exposure level for orphand.service: 2."), "{said}");
        Ok(())
    })
}

/// Where setsid(2) cannot be hooked, as without tracefs on a kernel that allows no function hook, it goes on without, and says so.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn without_a_hook_on_setsid_it_watches_all_the_same() -> Result<()> {
    scene(|s| {
        let install = install(s, CONFIG)?;
        install.drop_in("tracefs", "InaccessiblePaths=-/sys/kernel/tracing -/sys/kernel/debug")?;
        install.start()?;
        let ready = install.wait("ready", |e| e.kind() == "ready")?;
        ensure!(!ready.list("hooks").iter().any(|hook| hook.starts_with("tracepoint:")), "{}", ready.line);
        if !ready.list("hooks").iter().any(|hook| hook.contains("setsid")) {
            let told = install.journal(&["SYSLOG_IDENTIFIER=orphand", "PRIORITY=4"])?;
            let told =
                told.iter().any(|e| e["MESSAGE"].as_str().is_some_and(|m| m.contains("going on without")));
            ensure!(told, "{}", install.account());
        }
        let agent = s.start(&Part::agent("agent"))?;
        let server = agent.start(&Part::server("server").setsid())?;
        agent.kill()?;
        let reaped = install.wait_for("orphan_reaped", server.id)?;
        ensure!(reaped["server"]["session_leader"] == true, "{}", reaped.line);
        Ok(())
    })
}

/// What runs beside the daemon in its sandbox, as hooks do, can reach the network.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn the_network_can_be_reached_from_the_sandbox() -> Result<()> {
    scene(|s| {
        let install = install(s, CONFIG)?;
        let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
        let port = listener.local_addr()?.port();
        let call = format!("exec 3<>/dev/tcp/127.0.0.1/{port}; echo called >&3");
        install.drop_in("call", &format!("ExecStartPost=/bin/bash -c '{call}'"))?;
        install.start()?;
        let mut called = String::new();
        std::io::Read::read_to_string(&mut listener.accept()?.0, &mut called)?;
        ensure!(called == "called\n", "{called:?}");
        Ok(())
    })
}
