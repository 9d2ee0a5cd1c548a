//! Real systemd on the stage, without a daemon: what the tests of generations take for granted.

use std::fs;

use anyhow::{Context, Result, ensure};
use tests::{Child, Identity, Layout, SERVER, Service, USER, scene};

/// The line of /proc/PID/cgroup that systemd keeps its units by.
fn unit_path(one: Identity, layout: Layout) -> Result<String> {
    let text = fs::read_to_string(format!("/proc/{}/cgroup", one.pid))?;
    let prefix = if layout == Layout::V2 { "0::" } else { ":name=systemd:" };
    let line = text.lines().find_map(|l| l.split_once(prefix));
    Ok(line.with_context(|| text.clone())?.1.to_owned())
}

/// Both layouts boot, and a unit's processes are below the group that the scene gave the system: under the system's own
/// manager, a user's, and root's.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn units_are_where_they_belong() -> Result<()> {
    scene(|s| {
        for (name, layout) in [("one", Layout::V2), ("two", Layout::Hybrid)] {
            let system = s.boot(name, layout)?;
            let slices = [("system.slice", None), ("app.slice", Some(0)), ("app.slice", Some(USER))];
            for (slice, user) in slices {
                let manager = user.map_or(Ok(system.manager()), |uid| system.user_manager(uid))?;
                let service = Service::untether(&format!("untether-{name}-{}", user.unwrap_or(1)));
                service.install(s, &manager)?;
                let agent = service.restart(s, &manager)?;
                let wanted = format!("{}/{slice}/{}", manager.root(), service.unit);
                let servers = s.truth().servers(&agent.invocation);
                ensure!(servers.len() == 14, "{} servers", servers.len());
                for one in servers.iter().chain([&agent]) {
                    let path = unit_path(one.id, layout)?;
                    ensure!(path == wanted, "{path} instead of {wanted}");
                    let uid = fs::metadata(format!("/proc/{}", one.id.pid))
                        .map(|m| std::os::unix::fs::MetadataExt::uid(&m))?;
                    ensure!(uid == user.unwrap_or(0), "it runs as {uid}");
                }
            }
        }
        Ok(())
    })
}

/// Whatever the processes do, the end of the scene is theirs.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn a_system_ends_with_its_scene() -> Result<()> {
    let mut all = Vec::new();
    let mut root = String::new();
    scene(|s| {
        let system = s.boot("one", Layout::Hybrid)?;
        let manager = system.user_manager(USER)?;
        let keeper = Child::new("conmon", "conmon").wire("null").double_fork().setsid().scope(&manager);
        let service = Service::new("untether", "process", vec![Child::new(SERVER, "server"), keeper]);
        service.install(s, &manager)?;
        service.restart(s, &manager)?;
        s.truth().wait("conmon", 1)?;
        all = s.members();
        root = system.root.clone();
        ensure!(all.len() > 5, "{all:?}");
        Ok(())
    })?;
    ensure!(!all.iter().any(|one| one.alive()), "something was left behind");
    let mounts = fs::read_to_string("/proc/self/mounts")?;
    let groups = mounts.lines().filter(|l| l.contains(" cgroup")).filter_map(|l| l.split(' ').nth(1));
    for group in groups {
        ensure!(fs::metadata(format!("{group}{root}")).is_err(), "{group}{root} is still there");
    }
    Ok(())
}
