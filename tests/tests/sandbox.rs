//! The sandbox of the unit: what is in it, what must not be, and what it leaves open.

use anyhow::{Result, ensure};
use tests::{Install, Part, UNIT, scene};

/// The kernel lists the sockets of the asker's own network namespace. In one of its own the daemon cannot tell who has a socket pair,
/// nor which side of a connection called: both keep a server, and nobody says that a pipe was held. Each actor is connected with
/// its scene.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn in_a_network_of_its_own_socket_pairs_stay() -> Result<()> {
    scene(|s| {
        let install = Install::quick(s)?;
        install.drop_in("network", "PrivateNetwork=yes")?;
        install.start()?;
        let agent = s.start(&Part::agent("agent"))?;
        let pipe = agent.start(&Part::server("pipe"))?;
        let socket = agent.start(&Part::server("socket").wire("socket"))?;
        agent.kill()?;
        let told = install.wait_for("orphan_unproven", pipe.id)?;
        ensure!(told.list("doubts") == ["clients"] && pipe.id.alive(), "{}", told.line);
        let told = install.wait_for("orphan_unproven", socket.id)?;
        ensure!(told.list("doubts").contains(&"wire_unknown") && socket.id.alive(), "{}", told.line);
        pipe.kill()?;
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
            let install = Install::quick(s)?;
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
        let install = Install::quick(s)?;
        let unit = "/etc/systemd/user/orphand.service";
        let said = tests::output(install.command("systemd-analyze").args(["verify", "--man=no", unit]))?;
        let said = (said.status.success(), String::from_utf8(said.stderr)?);
        ensure!(said == (true, String::new()), "{said:?}");
        let said = install.run("systemd-analyze", &["security", "--offline=true", "--threshold=26", unit])?;
        ensure!(said.contains("Overall exposure level for orphand.service: 2."), "{said}");
        Ok(())
    })
}

/// Where setsid(2) cannot be hooked, as without tracefs on a kernel that allows no function hook, it goes on without, and says so.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn without_a_hook_on_setsid_it_watches_all_the_same() -> Result<()> {
    scene(|s| {
        let install = Install::quick(s)?;
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
        let install = Install::quick(s)?;
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
