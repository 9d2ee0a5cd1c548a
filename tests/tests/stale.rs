//! Processes whose executable was replaced on disk are marked.

use std::{fs, process::Command};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tests::{Identity, Part, orphand, output, scene};

/// The process as a report shows it, anywhere in it.
fn find(found: &Value, process: Identity) -> Option<&Value> {
    match found {
        Value::Array(all) => all.iter().find_map(|one| find(one, process)),
        Value::Object(_) if process == *found && found.get("argv").is_some() => Some(found),
        Value::Object(all) => all.values().find_map(|one| find(one, process)),
        _ => None,
    }
}

/// Of two servers of a host one is upgraded on disk: it alone is marked, by the daemon, by a scan, and in events.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn an_upgrade_on_disk_is_marked() -> Result<()> {
    scene(|s| {
        let daemon = s.daemon()?;
        let host = s.start(&Part::new("home-made-host.py", "host"))?;
        let start = |name: &str| -> Result<(String, Identity)> {
            let program = s.program(name, false)?;
            let order = json!({ "do": "start", "argv": [program, "--as", name], "wire": "pipe" });
            let answer = host.send_order(&order)?;
            let pid = answer.get("pid").and_then(Value::as_u64).context("no pid")?;
            let server = Identity::of(u32::try_from(pid)?).context("the server has ended")?;
            s.truth().wait(name, 1)?;
            daemon.wait_for("server_started", server)?;
            Ok((program, server))
        };
        let (program, upgraded) = start("mcp-server-notes")?;
        let (_, same) = start("mcp-server-files")?;
        let marks = |report: &Value| -> Result<[bool; 2]> {
            let marked = |server: Identity| {
                let shown = find(report, server).with_context(|| format!("{server} is not in {report}"))?;
                Ok::<_, anyhow::Error>(shown.get("stale_binary").is_some_and(|mark| *mark == true))
            };
            Ok([marked(upgraded)?, marked(same)?])
        };
        let scan = |args: &[&str]| -> Result<String> {
            Ok(String::from_utf8(
                output(
                    Command::new(orphand()?).args(["ps", "--no-daemon", "--below", s.below()]).args(args),
                )?
                .stdout,
            )?)
        };
        ensure!(marks(&daemon.ask(&["status"])?)? == [false, false], "marked before the upgrade");

        let next = s.folder().join("next");
        fs::copy(&program, &next).and_then(|_| fs::rename(&next, &program)).context("upgrade it")?;
        ensure!(marks(&daemon.ask(&["status"])?)? == [true, false], "{}", daemon.ask(&["status"])?);
        ensure!(marks(&daemon.ask(&["ps"])?)? == [true, false], "{}", daemon.ask(&["ps"])?);
        ensure!(
            marks(&serde_json::from_str(&scan(&["--json"])?)?)? == [true, false],
            "{}",
            scan(&["--json"])?
        );
        let text = scan(&[])?;
        ensure!(text.contains("stale binary"), "{text}");
        let text = String::from_utf8(output(&mut daemon.verb(&["status"])?)?.stdout)?;
        ensure!(text.contains("with a stale binary"), "{text}");

        host.kill()?;
        for (server, expected) in [(upgraded, true), (same, false)] {
            let told = daemon.wait_for("orphan_detected", server)?;
            let mark = told.pointer("/server/processes/0/stale_binary").is_some_and(|mark| *mark == true);
            ensure!(mark == expected, "{}", told.line);
        }
        daemon.reaped(&[upgraded])?;
        daemon.reaped(&[same]).map(drop)
    })
}
