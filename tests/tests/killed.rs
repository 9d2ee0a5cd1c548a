//! Who ended a server that orphand did not end, on the real kernel.

use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tests::{Daemon, Identity, Launch, Part, orphand, output, scene};

/// `nobody`, in the /etc/passwd of every host.
const NOBODY: u32 = 65_534;

/// What the end of this server is told with.
fn killed_by(daemon: &Daemon, event: &str, server: Identity, signal: u8) -> Result<Value> {
    let told = daemon.wait_for(event, server)?;
    let field = |name| told.get(name).cloned().unwrap_or_default();
    ensure!(field("signal") == signal && field("exit_code").is_null(), "{}", told.line);
    Ok(field("killed_by"))
}

/// What is printed for people of a process that has ended.
fn page(command: &mut Command) -> Result<String> {
    let told = output(command)?;
    ensure!(told.status.success(), "{told:?}");
    Ok(String::from_utf8(told.stdout)?.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// A server that another user's `kill` ended, one that ended itself, one that exited; and what is told of them later.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn who_killed_a_server_is_told() -> Result<()> {
    scene(|s| {
        let daemon = s.daemon()?;
        let ready = daemon.wait("ready", |event| event["event"] == "ready")?;
        ensure!(ready.line.contains("raw_tracepoint:signal_generate"), "{}", ready.line);
        let agent = s.start(&Part::agent("agent"))?;
        let [killed, exits] =
            [agent.start(&Part::server("killed").uid(NOBODY))?, agent.start(&Part::server("exits"))?];
        daemon.wait_for("server_started", killed.id)?;
        daemon.wait_for("server_started", exits.id)?;
        let mut kill = s.command("/usr/bin/setpriv")?;
        let user = format!("--reuid={NOBODY}");
        kill.args([&user, "--clear-groups"]).args(["/usr/bin/kill", "-TERM", &killed.id.pid.to_string()]);
        let kill = s.spawn(kill.stdin(Stdio::null()))?;
        let by = killed_by(&daemon, "server_exited", killed.id, 15)?;
        ensure!(by["by"] == "process" && by["pid"] == kill.pid && by["start"] == kill.start, "{by}");
        ensure!(by["program"] == "kill" && by["user"] == "nobody" && by["uid"] == NOBODY, "{by}");

        exits.exit()?;
        let told = daemon.wait_for("server_exited", exits.id)?;
        ensure!(told["exit_code"] == 0 && told["killed_by"].is_null(), "{}", told.line);

        let sentence = format!("was killed by SIGTERM from pid {} (kill, nobody), not by orphand", kill.pid);
        let pid = killed.id.pid.to_string();
        let shown = page(&mut daemon.verb(&["explain", &pid])?)?;
        ensure!(shown.contains(&sentence) && shown.contains("never judged"), "{shown}");
        daemon.finish()?;
        let state = daemon.socket().with_file_name("state");
        let shown = page(Command::new(orphand()?).args(["explain", &pid, "--state-dir"]).arg(&state))?;
        ensure!(shown.contains(&sentence), "{shown}");
        agent.kill()
    })
}

/// An orphan that orphand only observes, and a person ends; one that orphand ends is reaped, and nobody else is named.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn who_killed_an_orphan_is_kept() -> Result<()> {
    scene(|s| {
        let daemon = s.daemon_with(&Launch { args: vec!["--observe"], ..Launch::default() })?;
        let agent = s.start(&Part::agent("agent"))?;
        let server = agent.start(&Part::server("server"))?;
        agent.kill()?;
        let told = daemon.wait("agent_exited", |event| event.is_agent("agent_exited", agent.id))?;
        ensure!(told["killed_by"]["pid"] == std::process::id(), "{}", told.line);
        daemon.wait_for("orphan_detected", server.id)?;
        server.kill()?;
        let by = killed_by(&daemon, "orphan_exited", server.id, 9)?;
        ensure!(by["by"] == "process" && by["pid"] == std::process::id() && by["user"] == "root", "{by}");
        let past = daemon.ask(&["history"])?;
        let all = past["orphans"].as_array().context("no orphans")?;
        let id = server.id.to_string();
        let one = all.iter().find(|one| one["id"] == id.as_str()).context("not in the store")?;
        // The store may be from an earlier boot, whose ticks are no times of this one.
        let mut by = by;
        by.as_object_mut().context("no object")?.remove("started");
        ensure!(one["outcome"] == "exited" && one["signal"] == 9 && one["killed_by"] == by, "{one}");
        Ok(())
    })
}
