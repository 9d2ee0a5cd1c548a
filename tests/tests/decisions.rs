//! A person pauses orphand, and chooses its mode: with real processes.

use std::{fs, rc::Rc};

use anyhow::{Result, ensure};
use tests::{Daemon, Launch, Part, Scene, scene};

/// A verb that must succeed, and say this.
fn says(daemon: &Daemon, verb: &[&str], wanted: &str) -> Result<()> {
    let (code, said) = daemon.says(verb)?;
    ensure!(code == 0 && said.contains(wanted), "{verb:?}: {code:?}: {said}");
    Ok(())
}

fn successor(s: &Scene, args: Vec<&'static str>) -> Result<Rc<Daemon>> {
    s.daemon_with(&Launch { state: "../daemon0/state", args, ..Launch::default() })
}

/// A pause holds what is left behind, over a restart, too; when it is over, everything is inspected anew.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn a_pause_is_remembered_until_it_is_over() -> Result<()> {
    scene(|s| {
        let first = s.daemon()?;
        let agent = s.start(&Part::agent("agent"))?;
        let (server, used) = (agent.start(&Part::server("server"))?, agent.start(&Part::server("used"))?);
        says(&first, &["pause"], "orphand is paused by root, until: sudo orphand resume")?;
        first.wait("the pause", |e| {
            e.kind() == "reconfigured" && e["mode"] == "observe" && e["by"] == "root"
        })?;
        let status = first.ask(&["status"])?;
        ensure!(status["mode"] == "observe" && status["pause"]["by"] == "root", "{status}");
        says(&first, &["status"], "is paused by root.")?;
        says(&first, &["ps"], "orphand is paused by root.")?;
        agent.kill()?;
        for one in [&server, &used] {
            let spared = first.wait_for("orphan_spared", one.id)?;
            ensure!(spared.list("guards") == ["observe"], "{}", spared.line);
        }
        first.kill()?;

        let second = successor(s, Vec::new())?;
        let ready = second.wait("ready", |e| e.kind() == "ready")?;
        ensure!(ready["mode"] == "observe", "{}", ready.line);
        second.wait_for("orphan_spared", server.id)?;
        second.wait_for("orphan_spared", used.id)?;
        // Somebody came to use it meanwhile: the verdict of the pause is not what counts.
        let port = used.act("listen")?["port"].clone();
        let client = s.start(&Part::new("client", "client"))?;
        client.send_order(&serde_json::json!({ "do": "connect", "port": port }))?;
        says(&second, &["resume"], "orphand ends orphans.")?;
        second.wait("the resumption", |e| {
            e.kind() == "reconfigured" && e["mode"] == "enforce" && e["by"] == "root"
        })?;
        second.wait_for("orphan_reaped", server.id)?;
        second.wait_for("orphan_unproven", used.id)?;
        s.barrier(&second)?;
        ensure!(used.id.alive(), "ended on an old verdict");
        second.kill()?;
        let third = successor(s, Vec::new())?;
        let ready = third.wait("ready", |e| e.kind() == "ready")?;
        ensure!(ready["mode"] == "enforce", "{}", ready.line);
        Ok(())
    })
}

/// A pause with a time ends by itself.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn a_pause_ends_by_itself() -> Result<()> {
    scene(|s| {
        let daemon = s.daemon()?;
        let agent = s.start(&Part::agent("agent"))?;
        let server = agent.start(&Part::server("server"))?;
        says(&daemon, &["pause", "3s"], "orphand is paused until ")?;
        agent.kill()?;
        daemon.wait_for("orphan_spared", server.id)?;
        let over =
            daemon.wait("the end of the pause", |e| e.kind() == "reconfigured" && e["mode"] == "enforce")?;
        ensure!(over["by"].is_null(), "{}", over.line);
        daemon.wait_for("orphan_reaped", server.id)?;
        ensure!(daemon.ask(&["status"])?["pause"].is_null(), "status tells of it still");
        Ok(())
    })
}

/// A mode that a person chose beats the file, until it is taken back; `--observe` beats both.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn a_chosen_mode_beats_the_file() -> Result<()> {
    scene(|s| {
        let daemon = s.daemon_with(&Launch { config: "observe = true\n".to_owned(), ..Launch::default() })?;
        says(&daemon, &["mode"], "orphand observes only.")?;
        let agent = s.start(&Part::agent("agent"))?;
        let server = agent.start(&Part::server("server"))?;
        agent.kill()?;
        daemon.wait_for("orphan_spared", server.id)?;
        says(&daemon, &["mode", "enforce"], "orphand ends orphans, decided by root.")?;
        daemon.wait_for("orphan_reaped", server.id)?;
        says(&daemon, &["reload"], "Reloaded.")?;
        ensure!(daemon.ask(&["mode"])?["mode"] == "enforce", "the file beat it");
        says(&daemon, &["pause", "1h"], "orphand is paused until ")?;
        says(&daemon, &["resume"], "orphand ends orphans, decided by root.")?;
        says(&daemon, &["mode", "configured"], "orphand observes only.")?;
        says(&daemon, &["mode", "enforce"], "orphand ends orphans, decided by root.")?;
        daemon.kill()?;

        let observer = successor(s, vec!["--observe"])?;
        let ready = observer.wait("ready", |e| e.kind() == "ready")?;
        ensure!(ready["mode"] == "observe", "{}", ready.line);
        let (code, said) = observer.says(&["mode", "enforce"])?;
        ensure!(code == 1 && said.contains("was started with --observe"), "{code:?}: {said}");
        says(
            &observer,
            &["pause"],
            "orphand is paused by root (mode enforce, decided by root), until: sudo orphand resume",
        )?;
        ensure!(observer.events().iter().all(|e| e.kind() != "reconfigured"), "it observed before, too");
        observer.kill()?;

        // What was decided cannot be read: nothing is ended.
        fs::write(s.folder().join("daemon0/state/decisions.json"), "{")?;
        let unsure = successor(s, Vec::new())?;
        says(&unsure, &["mode"], "decisions.json cannot be read")?;
        ensure!(unsure.log().contains("WARN paused by orphand, because "), "{}", unsure.log());
        ensure!(unsure.ask(&["mode"])?["mode"] == "observe", "it ends what it may not");
        says(&unsure, &["resume"], "orphand ends orphans.")
    })
}

/// A state directory that cannot be written: the decision holds, and whoever made it learns that it is not remembered.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn what_is_not_remembered_is_told() -> Result<()> {
    scene(|s| {
        let daemon = s.daemon_with(&Launch { state: "/proc/orphand", ..Launch::default() })?;
        let (code, said) = daemon.says(&["pause"])?;
        ensure!(code == 1 && said.contains("the next daemon will not know of it"), "{code:?}: {said}");
        ensure!(daemon.ask(&["status"])?["mode"] == "observe", "it is not in effect");
        Ok(())
    })
}
