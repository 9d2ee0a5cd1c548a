//! The first hour on a host: what was there before the first start is left to a person, what is witnessed is ended.

use std::{fs, rc::Rc};

use anyhow::{Result, ensure};
use serde_json::json;
use tests::{Actor, Daemon, Launch, Part, Scene, scene};

/// As orphand is started by a user.
fn own_default() -> Launch {
    Launch { found: "", ..Launch::default() }
}

/// The next daemon, with the state of the one before.
fn successor(s: &Scene, state: &'static str) -> Result<Rc<Daemon>> {
    s.daemon_with(&Launch { state, ..own_default() })
}

/// A server whose agent is gone already.
fn left(s: &Scene, name: &str) -> Result<Actor> {
    let agent = s.start(&Part::agent(format!("{name}-agent")))?;
    let server = agent.start(&Part::server(name))?;
    agent.kill()?;
    Ok(server)
}

/// It was judged, and waits for a person.
fn waits(daemon: &Daemon, server: &Actor) -> Result<()> {
    let spared = daemon.wait_for("orphan_spared", server.id)?;
    ensure!(spared.list("guards") == ["found"], "{}", spared.line);
    daemon.wait_for("orphan_detected", server.id)?;
    ensure!(server.id.alive(), "it was ended");
    Ok(())
}

/// The text of a verb.
fn said(daemon: &Daemon, verb: &[&str]) -> Result<String> {
    let (code, text) = daemon.says(verb)?;
    ensure!(code == 0, "{verb:?} ended with {code}: {text}");
    Ok(text)
}

/// The first start asks about what was left before it, and ends what is left under its eyes: a server that began later, and one
/// that was there with its agent.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn the_first_start_asks() -> Result<()> {
    scene(|s| {
        let before = left(s, "before")?;
        let agent = s.start(&Part::agent("agent"))?;
        let there = agent.start(&Part::server("there"))?;
        let daemon = s.daemon_with(&own_default())?;
        let ready = daemon.wait("ready", |e| e.kind() == "ready")?;
        ensure!(ready["found"] == 1, "{}", ready.line);
        waits(&daemon, &before)?;
        let later = agent.start(&Part::server("later"))?;
        agent.kill()?;
        daemon.reaped(&[there.id])?;
        daemon.reaped(&[later.id])?;
        s.barrier(&daemon)?;
        let told = daemon.events().iter().filter(|e| e.is("orphan_spared", before.id)).count();
        ensure!(told == 1 && before.id.alive(), "told {told} times");

        for verb in ["status", "ps"] {
            let text = said(&daemon, &[verb])?;
            ensure!(
                text.contains("1 server from before, ") && text.contains(": sudo orphand reap"),
                "{verb}: {text}"
            );
        }
        let status = daemon.ask(&["status"])?;
        ensure!(status["totals"]["found"] == 1 && status["totals"]["kept"] == 1, "{}", status["totals"]);
        let listed = daemon.ask(&["ps"])?.to_string();
        ensure!(listed.contains(r#""found":true"#) && listed.contains(r#""guards":["found"]"#), "{listed}");

        said(&daemon, &["reap", "--yes"])?;
        daemon.wait_for("orphan_reaped", before.id)?;
        before.id.wait_gone()?;
        ensure!(!said(&daemon, &["status"])?.contains("from before"), "told of what is gone");
        Ok(())
    })
}

/// After a restart what was found is asked about still, and what the earlier daemon followed is ended. If the state is lost
/// or cannot be kept, everything that was there counts as found; if it is damaged, nothing is concluded.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn a_restart_changes_nothing() -> Result<()> {
    scene(|s| {
        let before = left(s, "before")?;
        let first = s.daemon_with(&own_default())?;
        waits(&first, &before)?;
        let agent = s.start(&Part::agent("agent"))?;
        let followed = agent.start(&Part::server("followed"))?;
        first.wait_for("server_started", followed.id)?;
        first.kill()?;
        agent.kill()?;
        let second = successor(s, "../daemon0/state")?;
        second.reaped(&[followed.id])?;
        waits(&second, &before)?;
        s.barrier(&second)?;
        second.kill()?;

        let meanwhile = left(s, "meanwhile")?;
        let store = s.folder().join("daemon0/state/orphand.db");
        fs::write(&store, vec![0x5a; 8192])?;
        // So soon after its start the log still has every page.
        fs::remove_file(store.with_file_name("orphand.db-wal"))?;
        let damaged = successor(s, "../daemon0/state")?;
        ensure!(damaged.log().contains("was damaged"), "{}", damaged.log());
        // Whoever wrote it may have known their owners: that is not even a verdict.
        damaged.wait_for("orphan_unproven", before.id)?;
        damaged.wait_for("orphan_unproven", meanwhile.id)?;
        damaged.kill()?;
        for state in ["state", "/proc/orphand"] {
            let daemon = successor(s, state)?;
            waits(&daemon, &before)?;
            waits(&daemon, &meanwhile)?;
            s.barrier(&daemon)?;
            daemon.kill()?;
        }
        ensure!(before.id.alive() && meanwhile.id.alive(), "ended without a person");
        Ok(())
    })
}

/// What an earlier daemon may have known is left to a person, also where its agent ends under the eyes of this one: the daemon before
/// could not write, and the store seems whole. The twin begins later.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn what_may_be_lost_is_asked_about() -> Result<()> {
    scene(|s| {
        let first = s.daemon_with(&own_default())?;
        let agent = s.start(&Part::agent("agent"))?;
        let before = agent.start(&Part::server("before"))?;
        first.wait_for("server_started", before.id)?;
        first.finish()?;
        let unwritten = successor(s, "/proc/orphand")?;
        let meanwhile = agent.start(&Part::server("meanwhile"))?;
        unwritten.wait_for("server_started", meanwhile.id)?;
        unwritten.finish()?;

        // On a host there is one lock file.
        fs::create_dir(s.folder().join("daemon2"))?;
        fs::copy(s.folder().join("daemon1/lock"), s.folder().join("daemon2/lock"))?;
        let daemon = successor(s, "../daemon0/state")?;
        let later = agent.start(&Part::server("later"))?;
        daemon.wait_for("server_started", later.id)?;
        agent.kill()?;
        daemon.reaped(&[later.id])?;
        waits(&daemon, &before)?;
        waits(&daemon, &meanwhile)?;
        s.barrier(&daemon)?;
        ensure!(before.id.alive() && meanwhile.id.alive(), "ended without a person");
        said(&daemon, &["reap", "--yes"])?;
        before.id.wait_gone()?;
        meanwhile.id.wait_gone()
    })
}

/// Who has called a server, and may call it again, is known after a restart.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn a_restart_knows_who_called() -> Result<()> {
    scene(|s| {
        let first = s.daemon()?;
        let agent = s.start(&Part::agent("agent"))?;
        let leader = agent.start(&Part::server("leader"))?;
        let follower = s.start(&Part::agent("other"))?.start(&Part::server("follower"))?;
        for one in [&leader, &follower] {
            first.wait_for("server_started", one.id)?;
        }
        let port = leader.act("listen")?["port"].clone();
        follower.send_order(&json!({ "do": "call", "port": port }))?;
        first.finish()?;
        let second = successor(s, "../daemon0/state")?;
        agent.kill()?;
        let unproven = second.wait_for("orphan_unproven", leader.id)?;
        ensure!(unproven.list("doubts") == ["clients"], "{}", unproven.line);
        let mut by = unproven["reached_by"].as_array().into_iter().flatten();
        ensure!(by.any(|one| follower.id == *one), "{}", unproven.line);
        Ok(())
    })
}
