//! Events in a real journal.

use anyhow::{Context, Result, ensure};
use rustix::process::Signal;
use serde_json::Value;
use tests::{Identity, Install, Part, Scene, UNIT, scene};

/// Each event is one entry with its fields, and there once; the log has priorities; the catalog explains.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn the_journal_has_each_event_once_with_its_fields() -> Result<()> {
    scene(|s| {
        let install = Install::quick(s)?;
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
        let install = Install::quick(s)?;
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
