//! The alert hook of orphand as it is shipped: in the unit's sandbox, of a daemon that has given up its rights.

use std::{fs, os::unix::fs::PermissionsExt as _};

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tests::{Install, Part, Scene, UNIT, scene, within};

/// orphand installed, with this program for a hook.
fn install(s: &Scene, hook: &str, lines: &str) -> Result<Install> {
    const HOOK: &str = "/usr/local/lib/orphand/hook";
    let install = Install::new(s)?;
    let config = "grace = \"300ms\"\nlisten = \"none\"";
    install
        .write("/etc/orphand/config.toml", &format!("{config}\n[[hook]]\npath = \"{HOOK}\"\n{lines}\n"))?;
    install.write(HOOK, hook)?;
    fs::set_permissions(install.path(HOOK), fs::Permissions::from_mode(0o755))?;
    Ok(install)
}

/// The example for the journal does its work there.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn the_journal_has_an_entry_of_the_example() -> Result<()> {
    scene(|s| {
        let install =
            install(s, include_str!("../../examples/hooks/journal"), "events = [\"orphan_reaped\"]")?;
        install.start()?;
        let agent = s.start(&Part::agent("agent"))?;
        let server = agent.start(&Part::server("server"))?;
        agent.kill()?;
        let reaped = install.wait_for("orphan_reaped", server.id)?;
        let entry = within("an entry of the hook", || {
            install.journal(&["SYSLOG_IDENTIFIER=orphand-hook"]).ok()?.into_iter().next()
        })
        .with_context(|| install.account())?;
        let field = |name: &str| entry.get(name).and_then(Value::as_str).unwrap_or_default();
        let name = reaped["server"]["name"].as_str().context("no name")?;
        ensure!(field("ORPHAND_EVENT") == "orphan_reaped" && field("ORPHAND_SERVER") == name, "{entry}");
        let told: Value = serde_json::from_str(field("ORPHAND_JSON"))?;
        ensure!(told["server"] == reaped["server"], "{entry}");
        Ok(())
    })
}

/// What hangs is ended there, too, by a daemon without the rights to; and a stop of the unit is a good end.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn a_hook_that_hangs_in_the_service() -> Result<()> {
    scene(|s| {
        let script = "#!/bin/sh\nsetsid sleep 1000 &\nexec sleep 1001\n";
        let install = install(s, script, "events = [\"ready\", \"stopping\"]")?;
        let run = format!("/usr/bin/orphand run --below {} --hook-timeout 2s", s.below());
        install.drop_in("hook", &format!("ExecStart=\nExecStart={run}"))?;
        let daemon = install.start()?;
        within("the word of the daemon", || {
            let entries = install.journal(&[&format!("_PID={}", daemon.pid)]).ok()?;
            let killed = |entry: &Value| {
                entry["MESSAGE"]
                    .as_str()
                    .is_some_and(|m| m.contains("on ready: it took too long, killed (2 processes)"))
            };
            entries.iter().any(killed).then_some(())
        })
        .with_context(|| install.account())?;
        let left = daemon.children_beside_helpers();
        ensure!(left.is_empty(), "left: {left:?}");
        install.systemctl(&["stop", UNIT])?;
        ensure!(install.property("Result")? == "success", "{}", install.account());
        Ok(())
    })
}
