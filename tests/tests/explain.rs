//! `orphand explain`: what a person is told of a process, on the real kernel.

use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tests::{Daemon, Identity, Part, orphand, output, scene};

/// The only thing that the daemon says of this process, as fields.
fn explained(daemon: &Daemon, process: Identity) -> Result<Value> {
    let told = daemon.ask(&["explain", &process.pid.to_string()])?;
    ensure!(told.get("source").is_some_and(|source| source == "daemon"), "{told}");
    let all = told.get("explained").and_then(Value::as_array).context("no list")?;
    let [one] = all.as_slice() else { anyhow::bail!("not one: {told}") };
    ensure!(one.pointer("/process/pid").is_some_and(|pid| *pid == process.pid), "{one}");
    Ok(one.clone())
}

/// What is printed for people, and the exit code.
fn text(command: &mut Command) -> Result<(i32, String, String)> {
    let told = output(command)?;
    let (shown, error) = (String::from_utf8(told.stdout)?, String::from_utf8(told.stderr)?);
    for line in shown.lines().filter(|line| line.trim().contains(' ')) {
        ensure!(line.chars().count() <= 80, "too wide: {line}");
    }
    Ok((told.status.code().context("killed")?, shown, error))
}

fn names(one: &Value, list: &str) -> Vec<String> {
    let all = one.get(list).and_then(Value::as_array).into_iter().flatten();
    all.filter_map(|one| one["name"].as_str().map(Into::into)).collect()
}

/// A live server, an unproven one with the process that keeps it, a shell that is nothing, a process that does not
/// exist, and one that orphand ended, with a daemon and without.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn each_question_has_an_answer() -> Result<()> {
    scene(|s| {
        let daemon = s.daemon()?;
        let agent = s.start(&Part::agent("agent"))?;
        let live = agent.start(&Part::server("live"))?;
        let host = s.start(&Part::new("home-made-host.py", "host"))?;
        let held = host.start(&Part::server("held"))?;
        let holder = host.fork("holder")?;
        let dead = s.start(&Part::agent("dead"))?;
        let orphan = dead.start(&Part::server("orphan"))?;
        host.kill()?;
        dead.kill()?;
        daemon.reaped(&[orphan.id])?;
        daemon.wait_for("orphan_unproven", held.id)?;
        let mut shell = s.command("/bin/sh")?;
        let shell = s.spawn(shell.args(["-c", "sleep 600; exit"]).stdin(Stdio::null()))?;

        let one = explained(&daemon, live.id)?;
        ensure!(one["state"] == "live" && one["taken_for"] == "server", "{one}");
        ensure!(one["owner"]["pid"] == agent.id.pid && one["rule"].is_string(), "{one}");
        ensure!(one["creators"][0]["pid"] == agent.id.pid && one["creators"][0]["alive"] == true, "{one}");
        ensure!(one["creators"][0]["witnessed"] == true && one["next"]["step"] == "owner_ends", "{one}");
        let agents = explained(&daemon, agent.id)?;
        ensure!(agents["taken_for"] == "agent" && agents["servers"] == 1, "{agents}");

        let one = explained(&daemon, held.id)?;
        ensure!(one["state"] == "unproven", "{one}");
        let path = one["reached_by"].as_array().context("no path")?;
        ensure!(path.last().is_some_and(|last| last["pid"] == holder.id.pid), "{one}");
        ensure!(names(&one, "doubts").contains(&"wire_held".to_owned()), "{one}");
        ensure!(names(&one, "evidence").contains(&"owner_exited".to_owned()), "{one}");
        ensure!(one["creators"][0]["pid"] == host.id.pid && one["creators"][0]["alive"] == false, "{one}");
        ensure!(one["creators"][0]["exited"].is_string() && one["owner_exited"].is_string(), "{one}");
        ensure!(one["next"]["step"] == "inspected_again" || one["next"]["step"] == "inspected", "{one}");
        let (code, shown, _) = text(&mut daemon.verb(&["explain", &held.id.pid.to_string()])?)?;
        ensure!(code == 0 && shown.contains(&format!("pid {} (", holder.id.pid)), "{shown}");
        ensure!(shown.contains(&format!("sudo orphand reap {} --include-unproven", held.id.pid)), "{shown}");

        let report = output(&mut daemon.verb(&["explain", &held.id.pid.to_string(), "--report"])?)?;
        let report = String::from_utf8(report.stdout)?;
        ensure!(report.starts_with("### `fake-mcp-server`") && report.contains("did not end"), "{report}");
        for private in [&holder.id.pid.to_string(), &*s.folder().to_string_lossy()] {
            ensure!(!report.contains(private), "{private}: {report}");
        }
        let one = explained(&daemon, shell)?;
        ensure!(one["nothing"]["reason"] == "shell" && one["state"] == "nothing", "{one}");
        // The daemon knows no more than the number of what started an agent: the rest is in /proc.
        let one = explained(&daemon, Identity::of(std::process::id()).context("no identity")?)?;
        ensure!(one["nothing"]["reason"] != "unread", "{one}");
        ensure!(agents["creators"][0]["program"].is_string(), "{agents}");

        // No process has so high a number.
        let (code, shown, error) = text(&mut daemon.verb(&["explain", "4194999"])?)?;
        ensure!(code == 4 && shown.is_empty() && error.lines().count() == 1, "{code} {shown} {error}");

        let ended = |told: &Value| {
            let one = &told["ended"][0];
            ensure!(one["ended_by"] == "orphand" && one["server"]["outcome"] == "reaped", "{told}");
            ensure!(one["server"]["evidence"][0] == "owner_exited" && one["server"]["ended"].is_string());
            ensure!(one["server"]["signal"].is_string(), "{told}");
            Ok(())
        };
        let gone = orphan.id.pid.to_string();
        ended(&daemon.ask(&["explain", &gone])?)?;
        daemon.finish()?;
        let state = daemon.socket().with_file_name("state");
        let mut alone = Command::new(orphand()?);
        let told = output(alone.args(["explain", &gone, "--json", "--state-dir"]).arg(&state))?;
        ended(&serde_json::from_slice(&told.stdout)?)?;
        let mut alone = Command::new(orphand()?);
        alone.args(["explain", &live.id.pid.to_string(), "--below", s.below(), "--state-dir"]).arg(&state);
        let (code, shown, _) = text(&mut alone)?;
        ensure!(code == 0 && shown.contains("No daemon has answered"), "{shown}");
        ensure!(shown.contains("It is taken for a stdio server"), "{shown}");
        Ok(())
    })
}
