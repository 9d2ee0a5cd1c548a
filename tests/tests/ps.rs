//! `orphand ps`: the one list, with a daemon and by one look through /proc.

use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tests::{Daemon, Identity, Launch, Part, Scene, orphand, scene, told};

/// One look through /proc, with the store of a daemon.
fn look(s: &Scene, daemon: Option<&Daemon>, args: &[&str]) -> Result<(i32, String, String)> {
    let mut command = Command::new(orphand()?);
    command.args(["ps", "--no-daemon", "--below", s.below()]).args(args);
    let state = daemon.map_or_else(|| s.folder().join("none"), |one| one.socket().with_file_name("state"));
    told(command.arg("--state-dir").arg(state))
}

fn parsed(text: &str) -> Result<Value> {
    serde_json::from_str(text).with_context(|| text.to_owned())
}

/// The agent and the server that has this process.
fn find(list: &Value, server: Identity) -> Result<(Option<Value>, Value)> {
    let all = |one: &Value, path| one.pointer(path).and_then(Value::as_array).cloned().unwrap_or_default();
    let is = |one: &Value| all(one, "/server/processes").iter().any(|process| server == *process);
    for agent in all(list, "/agents") {
        if let Some(one) = all(&agent, "/servers").into_iter().find(is) {
            return Ok((agent.get("agent").cloned(), one));
        }
    }
    let one = all(list, "/unowned").into_iter().find(is);
    Ok((None, one.with_context(|| format!("{server} is not in {list}"))?))
}

/// The line of the text that names this process.
fn line(text: &str, process: Identity) -> Result<&str> {
    let pid = process.pid.to_string();
    let mut lines = text.lines();
    lines
        .find(|line| line.split_whitespace().any(|word| word == pid))
        .with_context(|| format!("{pid}: {text}"))
}

/// A server without an owner is found with weak evidence, one with an owner is below it; nobody is touched, and what
/// /proc cannot know is said.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn a_look_tells_orphans_from_the_owned() -> Result<()> {
    scene(|s| {
        let dead = s.start(&Part::agent("dead"))?;
        let orphan = dead.start(&Part::server("orphan").below_shell())?;
        let agent = s.start(&Part::agent("agent"))?;
        let owned = agent.start(&Part::server("owned"))?;
        dead.kill()?;
        let (code, text, _) = look(s, None, &["--json", "--exit-code"])?;
        ensure!(code == 3, "ended with {code}: {text}");
        let found = parsed(&text)?;
        let (agent_above, one) = find(&found, orphan.id)?;
        ensure!(agent_above.is_none() && one["state"] == "orphan" && found["source"] == "proc", "{text}");
        let (agent_above, one) = find(&found, owned.id)?;
        ensure!(agent_above.is_some_and(|one| agent.id == one) && one["state"] == "live", "{text}");
        let totals = &found["totals"];
        ensure!(totals["orphans"].as_u64() >= Some(1) && totals["servers"].as_u64() >= Some(2), "{text}");
        // The worst first, and a tree with agents and all processes.
        let (code, text, _) = look(s, None, &[])?;
        ensure!(code == 0 && text.contains("One look through /proc"), "ended with {code}: {text}");
        ensure!(
            text.find("\norphan") < text.find(line(&text, owned.id)?) && text.contains("\norphan"),
            "{text}"
        );
        let (_, tree, _) = look(s, None, &["-t"])?;
        ensure!(tree.contains(&format!("pid {}", agent.id.pid)), "{tree}");
        ensure!(line(&tree, owned.id)?.starts_with("live") && line(&tree, orphan.id).is_ok(), "{tree}");
        // Filters, and what matches nothing.
        let (code, text, _) = look(s, None, &["--state", "live"])?;
        ensure!(code == 0 && !text.contains("\norphan") && line(&text, owned.id).is_ok(), "{text}");
        for filter in [["--agent", "nobody-has-this-name"], ["--state", "ending"]] {
            let (code, _, error) = look(s, None, &filter)?;
            ensure!(code == 4 && error.contains("nothing matched"), "{filter:?}: {code} {error}");
        }
        ensure!(orphan.id.alive() && owned.id.alive(), "a look ended something");
        Ok(())
    })
}

/// However many there are, each is judged; those of the living are not.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn a_look_judges_all_of_many() -> Result<()> {
    const MANY: usize = 40;
    scene(|s| {
        let [dead, agent] = [s.start(&Part::agent("dead"))?, s.start(&Part::agent("agent"))?];
        let start = |of: &tests::Actor, name: &str| {
            let one = |n| Ok(of.start(&Part::server(format!("{name}{n}")))?.id);
            (0..MANY).map(one).collect::<Result<Vec<Identity>>>()
        };
        let (orphans, owned) = (start(&dead, "orphan")?, start(&agent, "owned")?);
        dead.kill()?;
        let found = parsed(&look(s, None, &["--json"])?.1)?;
        for id in orphans {
            ensure!(find(&found, id)?.1["state"] == "orphan", "{id:?} was not judged: {found}");
        }
        for id in owned {
            ensure!(find(&found, id)?.1["state"] == "live", "{id:?}: {found}");
        }
        Ok(())
    })
}

/// The daemon and a look through /proc use one word for a state and one number for a run; the one that works most is
/// first by CPU; a suspect has its time.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn a_daemon_and_a_look_agree() -> Result<()> {
    scene(|s| {
        let daemon = s.daemon_with(&Launch { grace: "5m", ..Launch::default() })?;
        let mut agent = s.start(&Part::agent("agent"))?;
        let first = agent.start(&Part::server("first"))?;
        daemon.wait_for("server_started", first.id)?;
        agent.kill()?;
        daemon.wait_for("orphan_suspected", first.id)?;
        let explained = daemon.ask(&["explain", &first.id.pid.to_string()])?;
        let one = &explained["explained"][0];
        ensure!(one["state"] == "suspect" && one["next"]["step"] == "judged", "{one}");
        let left = one["next"]["in_ms"].as_u64().context("no time")?;
        ensure!((200_000..=300_000).contains(&left) && one["next"]["at"].is_string(), "{one}");
        ensure!(one["cause"] == "owner_exited" && one["since"].is_string(), "{one}");
        agent = s.start(&Part::agent("agent"))?;
        let second = agent.start(&Part::server("second"))?;
        let idle = agent.start(&Part::server("idle"))?;
        for server in [&second, &idle] {
            daemon.wait_for("server_started", server.id)?;
        }
        second.act("work")?;
        let told_by_daemon = daemon.ask(&["ps"])?;
        ensure!(told_by_daemon["source"] == "daemon", "{told_by_daemon}");
        let (_, suspect) = find(&told_by_daemon, first.id)?;
        ensure!(suspect["state"] == "suspect" && suspect["deadline"].is_string(), "{suspect}");
        let run = |list: &Value| -> Result<u64> {
            let (owner, one) = find(list, second.id)?;
            ensure!(one["state"] == "live" && one["server"]["cpu_ms"].is_u64(), "{one}");
            owner.and_then(|owner| owner["generation"].as_u64()).with_context(|| format!("no number: {list}"))
        };
        let number = run(&told_by_daemon)?;
        ensure!(number > 1, "the second run has the number {number}");
        let alone = parsed(&look(s, Some(&daemon), &["--json"])?.1)?;
        ensure!(run(&alone)? == number, "{number} and {alone}");
        let (_, text, _) = told(&mut daemon.verb(&["ps", "--sort", "cpu", "--state", "live"])?)?;
        ensure!(text.find(line(&text, second.id)?) < text.find(line(&text, idle.id)?), "{text}");
        // Health has totals and what comes next, and the word of the one list.
        let (code, text, _) = told(&mut daemon.verb(&["status"])?)?;
        ensure!(code == 0 && text.contains("suspect") && text.contains("judged within"), "{text}");
        // Without its daemon, nobody says what lives.
        daemon.finish()?;
        let mut alone = Command::new(orphand()?);
        alone.args(["history", "--state-dir"]).arg(daemon.socket().with_file_name("state"));
        let (code, text, error) = told(&mut alone)?;
        ensure!(
            code == 0 && text.contains("then unseen") && !text.contains("alive"),
            "{code}: {text}{error}"
        );
        first.kill()
    })
}

/// What is unproven needs its own word, whatever it is selected by; a wrong target is told.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn a_target_is_a_filter_and_never_force() -> Result<()> {
    scene(|s| {
        let daemon = s.daemon()?;
        let host = s.start(&Part::new("home-made-host.py", "host"))?;
        let held = host.start(&Part::server("held"))?;
        let holder = host.fork("holder")?;
        host.kill()?;
        daemon.wait_for("orphan_unproven", held.id)?;
        let (pid, id) = (held.id.pid.to_string(), held.id.to_string());
        for target in [&pid, &id] {
            let (code, _, error) = told(&mut daemon.verb(&["reap", target, "--yes"])?)?;
            ensure!(code == 4 && error.contains("--include-unproven") && held.id.alive(), "{code}: {error}");
        }
        let (code, text, error) =
            told(&mut daemon.verb(&["reap", "4194304", &pid, "--include-unproven", "--yes"])?)?;
        ensure!(
            code == 4 && error.contains("4194304") && text.contains("1 server ended"),
            "{code}: {text}{error}"
        );
        held.id.wait_gone()?;
        ensure!(holder.id.alive(), "more was ended than was named");
        Ok(())
    })
}
