//! The configuration changes while the daemon runs, and thresholds, with real processes.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    rc::Rc,
};

use anyhow::{Result, ensure};
use rustix::process::Signal;
use serde_json::Value;
use tests::{Daemon, Launch, Part, Scene, scene, within};

fn with(s: &Scene, config: &str) -> Result<Rc<Daemon>> {
    s.daemon_with(&Launch { config: config.to_owned(), ..Launch::default() })
}

/// Writes another configuration where the daemon looks for it.
fn write(daemon: &Daemon, config: &str) -> Result<()> {
    let file = daemon.socket().with_file_name("config.toml");
    Ok(fs::write(file, config)?)
}

/// Has a new configuration in effect.
fn apply(daemon: &Daemon, config: &str) -> Result<()> {
    write(daemon, config)?;
    let (code, said) = daemon.says(&["reload"])?;
    ensure!((code, said.as_str()) == (0, "Reloaded.\n"), "{code:?}: {said}");
    Ok(())
}

/// A file with a mistake changes nothing, and says so where it was asked for, in the log and in `status`.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn a_bad_file_keeps_the_old_one() -> Result<()> {
    scene(|s| {
        let daemon = with(s, "")?;
        write(&daemon, "observe = true\n[[exemt]]\nname = \"x\"\n")?;
        let (code, said) = daemon.says(&["reload"])?;
        ensure!(code == 1 && said.lines().count() == 1, "{code:?}: {said}");
        for part in ["config.toml:2:", "did you mean \"exempt\"?", "the old configuration stays in effect"] {
            ensure!(said.contains(part), "no {part}: {said}");
            ensure!(daemon.log().contains(part), "no {part} in the log: {}", daemon.log());
        }
        let error =
            |daemon: &Daemon| Ok::<_, anyhow::Error>(daemon.ask(&["status"])?["config_error"].clone());
        ensure!(
            error(&daemon)?.as_str().is_some_and(|e| e.contains("config.toml:2:")),
            "{}",
            error(&daemon)?
        );
        // It keeps nobody from the daemon.
        for verb in
            [&["status"][..], &["ps"], &["explain", "1"], &["reap", "--dry-run"], &["pause"], &["resume"]]
        {
            let (code, said) = daemon.says(verb)?;
            ensure!(code == 0, "{verb:?}: {code}: {said}");
        }
        let (_, said) = daemon.says(&["status"])?;
        ensure!(said.contains("The configuration was not reloaded: "), "{said}");
        // It still acts.
        let agent = s.start(&Part::agent("agent"))?;
        let server = agent.start(&Part::server("server"))?;
        agent.kill()?;
        daemon.reaped(&[server.id])?;
        apply(&daemon, "")?;
        ensure!(error(&daemon)? == Value::Null, "{}", error(&daemon)?);
        Ok(())
    })
}

/// SIGHUP does the same; who was only looked at is ended once the daemon may.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn observation_ends_by_sighup() -> Result<()> {
    scene(|s| {
        let daemon = with(s, "observe = true")?;
        let agent = s.start(&Part::agent("agent"))?;
        let server = agent.start(&Part::server("server"))?;
        agent.kill()?;
        daemon.wait_for("orphan_spared", server.id)?;
        write(&daemon, "observe = false")?;
        daemon.signal(Signal::HUP)?;
        daemon.wait("reconfigured", |e| e.kind() == "reconfigured" && e["mode"] == "enforce")?;
        daemon.wait_for("orphan_reaped", server.id)?;
        ensure!(daemon.ask(&["status"])?["mode"] == "enforce", "status does not know");
        Ok(())
    })
}

/// Rules hold for what runs already, and the kernel side reports what only the new ones know.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn rules_hold_for_what_runs_already() -> Result<()> {
    scene(|s| {
        let daemon = s.daemon()?;
        let agent = s.start(&Part::agent("agent"))?;
        let server = agent.start(&Part::new("inventory", "server").wire("pipe"))?;
        let bot = s.start(&Part::new("mybot", "bot").wire("null"))?;
        s.mark(&daemon)?;
        let known = |id| daemon.events().iter().any(|e| e.has(id) || e.is_agent("agent_started", id));
        ensure!(!known(server.id) && !known(bot.id), "known before there is a rule");
        apply(
            &daemon,
            "[[program]]\nkind = \"server\"\nname = \"inventory\"\nprogram = \"inventory\"\n[[agent]]\nname = \"mybot\"\nprogram = \"mybot\"\n",
        )?;
        daemon.wait_for("server_started", server.id)?;
        daemon.wait("the bot", |e| e.is_agent("agent_started", bot.id))?;
        let second = s.start(&Part::new("mybot", "second").wire("null"))?;
        daemon.wait("the second bot", |e| e.is_agent("agent_started", second.id))?;
        agent.kill()?;
        daemon.reaped(&[server.id])?;
        // Without the rule nobody reports a third one.
        apply(&daemon, "")?;
        let third = s.start(&Part::new("mybot", "third").wire("null"))?;
        s.mark(&daemon)?;
        ensure!(!known(third.id), "known although its rule is gone");
        Ok(())
    })
}

/// What is open since the start waits for the next one, and that is told.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn what_takes_effect_later_is_told() -> Result<()> {
    scene(|s| {
        let daemon = s.daemon()?;
        write(&daemon, "grace = \"1m\"\n[containers]\ndocker = \"/run/none.sock\"\n")?;
        let (code, said) = daemon.says(&["reload"])?;
        ensure!(
            code == 0 && said.contains("containers changed: this takes effect at the next start"),
            "{said}"
        );
        let (_, said) = daemon.says(&["reload", "--json"])?;
        ensure!(
            serde_json::from_str::<Value>(&said)?["later"] == serde_json::json!([]),
            "told twice: {said}"
        );
        Ok(())
    })
}

/// The log follows the configuration, and so does the hook: what happens from then on goes to the new one.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn the_hook_follows() -> Result<()> {
    scene(|s| {
        let hook = |name: &str| -> Result<PathBuf> {
            let path = s.folder().join(name);
            fs::write(&path, "#!/bin/sh\necho \"$1\" >> \"$0.told\"\n")?;
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
            Ok(path)
        };
        let config = |path: &Path| {
            format!("[[hook]]\npath = {path:?}\nevents = [\"agent_exited\", \"reconfigured\"]\n")
        };
        let told = |path: &Path| fs::read_to_string(path.with_extension("told")).unwrap_or_default();
        let (one, two) = (hook("one")?, hook("two")?);
        let daemon = with(s, &config(&one))?;
        s.mark(&daemon)?;
        within("the first is told", || (told(&one) == "agent_exited\n").then_some(()))?;
        apply(&daemon, &config(&two))?;
        within("the second is told", || (told(&two) == "reconfigured\n").then_some(()))?;
        s.mark(&daemon)?;
        within("the second is told", || (told(&two) == "reconfigured\nagent_exited\n").then_some(()))?;
        ensure!(told(&one) == "agent_exited\n", "{}", told(&one));
        // A hook that is refused changes nothing.
        fs::set_permissions(&one, fs::Permissions::from_mode(0o777))?;
        write(&daemon, &config(&one))?;
        let (code, said) = daemon.says(&["reload"])?;
        ensure!(code == 1 && said.contains("others may write"), "{code:?}: {said}");
        apply(&daemon, "")?;
        s.mark(&daemon)?;
        ensure!(
            told(&two) == "reconfigured\nagent_exited\n",
            "told without being configured: {}",
            told(&two)
        );
        let lines = daemon.log().matches("the configuration was reloaded").count();
        ensure!(lines == 2, "{lines} lines: {}", daemon.log());
        Ok(())
    })
}

/// A threshold is told when it is crossed and when it is not any more; a rule that nothing crosses is silent.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn a_threshold_is_told_and_so_is_its_end() -> Result<()> {
    scene(|s| {
        let config = "observe = true\n\
            alert = [\"orphans of claude > 1\", \"rss of claude > 1M\", \"rate of claude > 1 in 1h\", \
            \"orphans of codex > 0\", \"blind\"]\n";
        let [leak, big, fast] = ["orphans of claude > 1", "rss of claude > 1M", "rate of claude > 1 in 1h"];
        let daemon = with(s, config)?;
        let agent = s.start(&Part::agent("agent"))?;
        let servers = ["a", "b"]
            .into_iter()
            .map(|name| agent.start(&Part::server(name)))
            .collect::<Result<Vec<_>>>()?;
        agent.kill()?;
        for (rule, value, limit) in [(leak, Some(2), 1), (big, None, 1 << 20), (fast, Some(2), 1)] {
            let alert = daemon.wait(rule, |e| e.kind() == "alert" && e["rule"] == rule)?;
            ensure!(alert["limit"] == limit && alert["value"].as_u64() > Some(limit), "{}", alert.line);
            ensure!(value.is_none_or(|value| alert["value"] == value), "{}", alert.line);
        }
        for server in &servers {
            server.kill()?;
        }
        let resolved = daemon.wait("the end", |e| e.kind() == "alert_resolved" && e["rule"] == leak)?;
        ensure!(resolved["value"] == 1 && resolved["after_ms"].is_u64(), "{}", resolved.line);
        daemon.wait("the end", |e| e.kind() == "alert_resolved" && e["rule"] == big)?;
        s.mark(&daemon)?;
        // A slow disk makes it blind for a moment, which the log says.
        let slow = daemon.log().contains("has not answered for");
        let events = daemon.events().into_iter().filter(|e| e.kind().starts_with("alert"));
        let told: Vec<_> = events.filter(|e| !(slow && e["rule"] == "blind")).collect();
        ensure!(told.len() == 5, "{:?}", told.iter().map(|e| &e.line).collect::<Vec<_>>());
        Ok(())
    })
}
