//! A manager keeps its sessions in Redis and starts a server for each. A session expires, the manager lives on, and leaks
//! the server.

use std::{fs, process::Command};

use anyhow::{Context as _, Result, ensure};
use rustix::process::Signal;
use serde_json::Value;
use tests::{
    Actor, Daemon, Event, Launch, Part, Redis, Scene, neighbours::hostile, orphand, output, scene, scrape,
    within,
};

/// The daemon asks so often that a test need not be long.
fn launch(redis: &Redis, grace: &str) -> Launch {
    launch_as(redis, "", grace)
}

/// The same as this user of Redis, with `USER:PASSWORD@`.
fn launch_as(redis: &Redis, user: &str, grace: &str) -> Launch {
    let config = format!(
        "abandoned_grace = \"{grace}\"\n[sessions]\nredis = \"redis://{user}127.0.0.1:{}/0\"\nidle = \"2s\"\n",
        redis.port
    );
    Launch { config, listen: "127.0.0.1:0", ..Launch::default() }
}

/// A manager with a server for each of these sessions, all of which have a key.
struct Stage {
    redis: Redis,
    daemon: std::rc::Rc<Daemon>,
    servers: Vec<Actor>,
    manager: Actor,
}

fn key(session: &str) -> String {
    format!("mcp:session:{session}")
}

impl Stage {
    fn set(s: &Scene, sessions: &[&str], grace: &str) -> Result<Self> {
        let redis = Redis::start(s)?;
        let launch = launch(&redis, grace);
        Self::set_with(s, redis, &launch, sessions)
    }

    fn set_with(s: &Scene, redis: Redis, launch: &Launch, sessions: &[&str]) -> Result<Self> {
        let daemon = s.daemon_with(launch)?;
        let manager = s.start(&Part::agent("manager"))?;
        let mut servers = Vec::new();
        for session in sessions {
            redis.order(&["SET", &key(session), "{}"])?;
            let alias = session.split('-').next().unwrap_or_default();
            servers.push(manager.start(&Part::server(alias).env("MCP_SESSION_ID", session))?);
        }
        let stage = Self { redis, daemon, servers, manager };
        stage.wait(|stage| Ok(stage.count("active")? == sessions.len() as u64))?;
        Ok(stage)
    }

    /// How many sessions are in this state.
    fn count(&self, state: &str) -> Result<u64> {
        let status = self.daemon.ask(&["status"])?;
        status
            .pointer(&format!("/sessions/states/{state}"))
            .and_then(serde_json::Value::as_u64)
            .context("no sessions")
    }

    fn wait(&self, holds: impl Fn(&Self) -> Result<bool>) -> Result<()> {
        within("a state of the sessions", || holds(self).ok().filter(|holds| *holds).map(drop))
    }

    /// How many rounds of questions have failed, by the metrics.
    fn failures(&self, kind: &str) -> Result<f64> {
        let page = scrape::page(&self.daemon, "/metrics")?;
        Ok(scrape::sum(&page, &format!("orphand_session_registry_errors_total{{kind=\"{kind}\"}}")))
    }

    /// How many warnings about the registry the log has.
    fn warnings(&self) -> usize {
        self.daemon.log().matches("cannot be asked").count()
    }

    /// A further session expires, and its server is ended. That takes as long as any other session needs to expire.
    fn expire(&self, redis: &Redis, session: &str) -> Result<()> {
        let server = self.manager.start(&Part::server(session).env("MCP_SESSION_ID", session))?;
        redis.order(&["SET", &key(session), "{}"])?;
        self.wait(|stage| Ok(stage.count("active")? == 1))?;
        redis.order(&["DEL", &key(session)])?;
        self.daemon.wait_for("orphan_reaped", server.id)?;
        server.id.wait_gone()
    }

    /// Nothing was said about any server, and all live.
    fn all_live(&self) -> Result<()> {
        let ids: Vec<_> = self.servers.iter().map(|server| server.id).collect();
        self.daemon.silent(&ids)?;
        ensure!(self.manager.id.alive(), "the manager is dead");
        Ok(())
    }
}

/// The key of one session is deleted: its server is ended, with that evidence; the server of the other session lives.
/// A key that comes back within the grace clears the case.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn the_server_of_an_expired_session_is_ended() -> Result<()> {
    scene(|s| {
        let stage = Stage::set(s, &["alice", "bob", "0b8c8f2e-7f5e-4c0d-9d2b"], "3s")?;
        let [alice, bob, long] = &stage.servers[..] else { anyhow::bail!("not three servers") };
        stage.redis.order(&["DEL", &key("alice")])?;
        let detected = stage.daemon.wait_for("orphan_detected", alice.id)?;
        let after = |event: &Event| event["after_ms"].as_u64().unwrap_or_default();
        ensure!(detected.list("evidence") == ["session_expired"], "{}", detected.line);
        ensure!(detected.pointer("/server/session").is_some_and(|id| id == "alice"), "{}", detected.line);
        ensure!(after(&detected) >= 3000, "within its grace: {}", detected.line);
        stage.daemon.wait_for("orphan_reaped", alice.id)?;
        alice.id.wait_gone()?;
        // It comes back when the case is open.
        stage.redis.order(&["DEL", &key("bob")])?;
        stage.daemon.wait_for("orphan_suspected", bob.id)?;
        stage.redis.order(&["HSET", &key("bob"), "another", "type"])?;
        let cleared = stage.daemon.wait_for("orphan_cleared", bob.id)?;
        ensure!(cleared["reason"] == "session_lives", "{}", cleared.line);
        stage.wait(|stage| Ok(stage.count("active")? == 2))?;
        s.barrier(&stage.daemon)?;
        stage.daemon.silent(&[long.id])?;
        ensure!(bob.id.alive() && stage.manager.id.alive(), "somebody else was ended");
        let events = stage.daemon.events();
        ensure!(
            events.iter().filter(|e| e.kind() == "orphan_reaped" && !e.line.contains("decoy")).count() == 1
        );
        // The id of a long session is shown in part, and counted by state.
        let status = stage.daemon.ask(&["status"])?.to_string();
        ensure!(status.contains("\"0b8c8f2e..\"") && !status.contains("7f5e-4c0d"), "{status}");
        let page = scrape::page(&stage.daemon, "/metrics")?;
        ensure!(page.contains("orphand_sessions{state=\"active\"} 2"), "{page}");
        ensure!(stage.warnings() == 0, "{}", stage.daemon.log());
        Ok(())
    })
}

/// Whatever Redis does but say that a key is missing is never read as expired: nobody is ended, the log has one warning
/// for each, and the failures are counted.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn a_registry_in_trouble_ends_nobody() -> Result<()> {
    scene(|s| {
        let stage = Stage::set(s, &["alice", "bob"], "1s")?;
        // Keys of any type are keys.
        stage.redis.order(&["DEL", &key("bob")])?;
        stage.redis.order(&["RPUSH", &key("bob"), "x"])?;
        // Paused for longer than a session may be missing: it does not answer in time.
        stage.redis.signal(Signal::STOP)?;
        stage.wait(|stage| Ok(stage.failures("timeout")? >= 2.0 && stage.count("unknown")? == 2))?;
        stage.redis.signal(Signal::CONT)?;
        stage.wait(|stage| Ok(stage.count("active")? == 2))?;
        ensure!(stage.warnings() == 1, "{}", stage.daemon.log());
        // It wants a password that nobody gave us.
        let locked: [&[&str]; 2] =
            [&["CONFIG", "SET", "requirepass", "hunter2"], &["CLIENT", "KILL", "TYPE", "normal"]];
        stage.redis.tell_all(&locked)?;
        stage.wait(|stage| Ok(stage.failures("auth")? >= 2.0 && stage.count("unknown")? == 2))?;
        let open: [&[&str]; 2] = [&["AUTH", "hunter2"], &["CONFIG", "SET", "requirepass", ""]];
        stage.redis.tell_all(&open)?;
        stage.wait(|stage| Ok(stage.count("active")? == 2))?;
        ensure!(stage.warnings() == 2, "{}", stage.daemon.log());
        // It is killed, and starts again without any key.
        stage.redis.signal(Signal::KILL)?;
        stage.redis.id.wait_gone()?;
        stage.wait(|stage| Ok(stage.failures("connect")? >= 2.0 && stage.count("unknown")? == 2))?;
        let again = Redis::start_at(s, stage.redis.port)?;
        stage.expire(&again, "carol")?;
        ensure!(stage.count("unknown")? == 2, "a registry that lost its data proves something");
        // It is emptied.
        for session in ["alice", "bob"] {
            again.order(&["SET", &key(session), "{}"])?;
        }
        stage.wait(|stage| Ok(stage.count("active")? == 2))?;
        again.order(&["FLUSHALL"])?;
        stage.expire(&again, "dave")?;
        ensure!(stage.count("unknown")? == 2, "a registry that was emptied proves something");
        ensure!(stage.warnings() == 3 && !stage.daemon.log().contains("hunter2"), "{}", stage.daemon.log());
        stage.all_live()
    })
}

/// Keys disappear while nobody could renew them: the registry refuses to write, or the manager is stopped. Nobody is ended.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn what_nobody_could_renew_says_nothing() -> Result<()> {
    scene(|s| {
        let stage = Stage::set(s, &["alice", "bob"], "1s")?;
        stage.redis.order(&["CONFIG", "SET", "maxmemory", "1"])?;
        stage.wait(|stage| Ok(stage.failures("full")? >= 2.0 && stage.count("unknown")? == 2))?;
        let refused = stage.redis.tell(&["SET", &key("alice"), "{}"])?;
        ensure!(refused.starts_with("-OOM"), "{refused}");
        stage.redis.order(&["DEL", &key("alice")])?;
        stage.redis.order(&["CONFIG", "SET", "maxmemory", "0"])?;
        stage.wait(|stage| Ok(stage.count("active")? == 1 && stage.count("unknown")? == 1))?;
        stage.manager.id.signal(Signal::STOP)?;
        stage.redis.order(&["DEL", &key("bob")])?;
        stage.wait(|stage| Ok(stage.count("unknown")? == 2))?;
        stage.manager.id.signal(Signal::CONT)?;
        stage.expire(&stage.redis, "carol")?;
        ensure!(stage.count("unknown")? == 2, "a key that nobody could renew proves something");
        ensure!(stage.warnings() == 1, "{}", stage.daemon.log());
        stage.all_live()
    })
}

/// What doctor says of the registry at this address: whether that is well, and the text.
fn doctor(s: &Scene, address: &str) -> Result<(bool, String)> {
    let file = s.folder().join("doctor.toml");
    fs::write(&file, format!("[sessions]\nredis = \"{address}\"\n"))?;
    let output = output(Command::new(orphand()?).args(["doctor", "--json", "--config"]).arg(&file))?;
    let found: Value = serde_json::from_slice(&output.stdout)
        .with_context(|| String::from_utf8_lossy(&output.stderr).into_owned())?;
    let checks = found.get("checks").and_then(Value::as_array).context("no checks")?;
    let check = checks.iter().find(|check| check["name"] == "session registry").context("no such check")?;
    Ok((check["is"] == "ok", check["found"].to_string()))
}

/// The rights that the documentation names are enough, and doctor names one that is missing.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn two_rights_are_enough_and_one_that_is_missing_is_named() -> Result<()> {
    scene(|s| {
        let redis = Redis::start(s)?;
        let user =
            |name: &'static str| ["ACL", "SETUSER", name, "on", ">hunter2", "~mcp:session:*", "+exists"];
        redis.order(&[&user("orphand")[..], &["+info"]].concat())?;
        redis.order(&user("blind"))?;
        let place = format!("127.0.0.1:{}", redis.port);
        for (address, is_well, word) in [
            (format!("redis://orphand:hunter2@{place}/0"), true, "answers"),
            (format!("redis://blind:hunter2@{place}/0"), false, "add `+info`"),
            (format!("redis://orphand:hunter2@{place}/2"), false, "lacks the right `+select`"),
            (format!("redis://orphand:wrong@{place}/0"), false, "refuses the user or the password"),
            ("redis://127.0.0.1:1/0".to_owned(), false, "no connection"),
        ] {
            let said = doctor(s, &address)?;
            ensure!(said.0 == is_well && said.1.contains(word) && !said.1.contains("hunter2"), "{said:?}");
        }
        let launch = launch_as(&redis, "orphand:hunter2@", "1s");
        let stage = Stage::set_with(s, redis, &launch, &["alice"])?;
        stage.redis.order(&["DEL", &key("alice")])?;
        let [alice] = &stage.servers[..] else { anyhow::bail!("not one server") };
        stage.daemon.wait_for("orphan_reaped", alice.id)?;
        ensure!(stage.warnings() == 0, "{}", stage.daemon.log());
        Ok(())
    })
}

/// Plays a Redis that was started by a person, and writes down what arrives.
const STRANGER: &str = r#"
import socket, sys
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
print("up", flush=True)
told = open(sys.argv[2], "ab", buffering=0)
while True:
    taken, _ = listener.accept()
    told.write(b"(")
    told.write(taken.recv(4096))
    told.write(b")")
    taken.close()
"#;

/// While Redis is down, another user listens at its port: he is not told the password. When Redis is back, sessions are
/// known.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn a_stranger_at_its_port_is_not_told_the_password() -> Result<()> {
    scene(|s| {
        let redis = Redis::start(s)?;
        redis.order(&[
            "ACL",
            "SETUSER",
            "orphand",
            "on",
            ">hunter2",
            "~mcp:session:*",
            "+info",
            "+exists",
        ])?;
        let launch = launch_as(&redis, "orphand:hunter2@", "1s");
        let stage = Stage::set_with(s, redis, &launch, &["alice"])?;
        stage.redis.signal(Signal::KILL)?;
        stage.redis.id.wait_gone()?;
        let folder = s.folder().join("stranger");
        fs::create_dir(&folder)?;
        fs::set_permissions(&folder, std::os::unix::fs::PermissionsExt::from_mode(0o777))?;
        let told = folder.join("told");
        let stranger = hostile(s, STRANGER, &[&stage.redis.port.to_string(), &told.to_string_lossy()])?;
        let taken = || fs::read_to_string(&told).ok().filter(|told| told.matches(')').count() >= 2);
        let taken = within("two connections to the stranger", taken)?;
        ensure!(!taken.contains("hunter2") && taken.starts_with("()()"), "{taken}");
        within("the word of it", || stage.daemon.log().contains("a process of user 64001").then_some(()))?;
        stage.wait(|stage| Ok(stage.failures("stranger")? >= 2.0))?;
        stranger.signal(Signal::KILL)?;
        stranger.wait_gone()?;
        stage.all_live()
    })
}
