//! Further servers of one identity under a living owner are told, and ended only by a person.

use std::fs;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tests::{
    Actor, Daemon, Identity, Launch, Part, Scene, orphand, output, scene,
    scrape::{page, sum},
};

/// A living host with these servers: each its program, its argument and its directory.
struct Fleet {
    host: Actor,
    program: String,
    here: String,
    there: String,
}

impl Fleet {
    fn new(s: &Scene) -> Result<Self> {
        let [here, there] = ["here", "there"].map(|name| s.folder().join(name));
        fs::create_dir(&here).and_then(|()| fs::create_dir(&there)).context("make two directories")?;
        Ok(Self {
            host: s.start(&Part::new("home-made-host.py", "host"))?,
            program: s.program("mcp-server-notes", false)?,
            here: here.to_string_lossy().into_owned(),
            there: there.to_string_lossy().into_owned(),
        })
    }

    fn start(&self, argument: &str, directory: &str) -> Result<Identity> {
        let argv = json!([self.program, "--as", argument]);
        let order = json!({ "do": "start", "argv": argv, "wire": "pipe", "directory": directory });
        let pid = self.host.send_order(&order)?.get("pid").and_then(Value::as_u64).context("no pid")?;
        Identity::of(u32::try_from(pid)?).context("the server has ended")
    }
}

/// The server's report in `status` or `scan`.
fn report(report: &Value, server: Identity) -> Result<Value> {
    let list = |of: &'_ Value, key: &str| of.get(key).and_then(Value::as_array).cloned().unwrap_or_default();
    let mut servers = list(report, "agents").into_iter().flat_map(|agent| list(&agent, "servers"));
    let is_ours = |one: &Value| one.pointer("/server/processes/0").is_some_and(|process| server == *process);
    let found = servers.find(is_ours);
    found.with_context(|| format!("{server} is not in {report}"))
}

fn id_of(server: Identity) -> String {
    format!("{}@{}", server.pid, server.start)
}

fn told(daemon: &Daemon) -> Vec<(String, u64)> {
    let events = daemon.events();
    let told = events.iter().filter(|event| event.kind() == "server_duplicated");
    told.map(|event| (event.server().to_owned(), event["count"].as_u64().unwrap_or_default())).collect()
}

/// Two of three servers are the same: told once, shown everywhere, never ended, until a person ends the older one.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn a_person_ends_the_older_one_of_two() -> Result<()> {
    scene(|s| {
        let daemon = s.daemon_with(&Launch { listen: "127.0.0.1:0", ..Launch::default() })?;
        let fleet = Fleet::new(s)?;
        let before = sum(&page(&daemon, "/metrics")?, "orphand_duplicate_servers");
        let start = |argument, folder| {
            let server = fleet.start(argument, folder)?;
            // On a busy machine the next one might be the first to run its program.
            daemon.wait_for("server_started", server)?;
            Ok::<_, anyhow::Error>(server)
        };
        let older = start("one", &fleet.here)?;
        let away = start("one", &fleet.there)?;
        let newer = start("one", &fleet.here)?;
        let other = start("two", &fleet.here)?;
        let event = daemon.wait_for("server_duplicated", newer)?;
        ensure!(event["count"] == 2 && event["owner"]["alive"] == true, "{}", event.line);
        s.barrier(&daemon)?;
        ensure!(told(&daemon) == [(id_of(newer), 2)], "{:?}", told(&daemon));
        daemon.silent(&[older, away, newer, other])?;

        let status = daemon.ask(&["status"])?;
        ensure!(report(&status["report"], older)?["duplicate_of"] == id_of(newer), "{status}");
        for single in [away, newer, other] {
            ensure!(report(&status["report"], single)?.get("duplicate_of").is_none(), "{status}");
        }
        let after = sum(&page(&daemon, "/metrics")?, "orphand_duplicate_servers");
        ensure!((after - before - 1.0).abs() < 0.5, "{before} and {after}");
        let text = String::from_utf8(output(&mut daemon.verb(&["status"])?)?.stdout)?;
        ensure!(text.contains("1 duplicate ("), "{text}");

        // Without a yes nothing is ended.
        let reap = ["reap", "--duplicates", &older.pid.to_string()];
        let shown = output(&mut daemon.verb(&[&reap[..], &["--dry-run"]].concat())?)?;
        let text = String::from_utf8(shown.stdout)?;
        ensure!(
            text.contains(&format!("duplicate of pid {}, which is newer and stays", newer.pid)),
            "{text}"
        );
        let refused = output(&mut daemon.verb(&reap)?)?;
        ensure!(refused.status.code() == Some(1), "{refused:?}");
        let refused = String::from_utf8(refused.stderr)?;
        ensure!(refused.contains("whose threads may be using them"), "{refused}");
        let nothing = output(&mut daemon.verb(&["reap", &older.pid.to_string(), "--yes"])?)?;
        ensure!(nothing.status.code() == Some(4) && older.alive(), "a duplicate is no orphan: {nothing:?}");

        // Only ours: this host may have other agents.
        let host = event["owner"]["name"].as_str().context("the owner has no name")?;
        let all = ["reap", "--duplicates", "--agent", host, "--yes", "--json"];
        let done = output(&mut daemon.verb(&all)?)?;
        ensure!(done.status.success(), "{done:?}");
        let done: Value = serde_json::from_slice(&done.stdout)?;
        ensure!(done["ended"].as_array().is_some_and(|all| *all == [json!(id_of(older))]), "{done}");
        older.wait_gone()?;
        let event = daemon.wait_for("orphan_reaped", older)?;
        ensure!(event["asked"] == true, "{}", event.line);
        s.barrier(&daemon)?;
        daemon.silent(&[away, newer, other])?;
        ensure!(told(&daemon).len() == 1, "{:?}", told(&daemon));
        let after = sum(&page(&daemon, "/metrics")?, "orphand_duplicate_servers");
        ensure!((after - before).abs() < 0.5, "{before} and {after}");
        Ok(())
    })
}

/// Without a daemon the same is found in /proc, and ended.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn without_a_daemon_proc_is_enough() -> Result<()> {
    scene(|s| {
        let fleet = Fleet::new(s)?;
        let older = fleet.start("one", &fleet.here)?;
        let newer = fleet.start("one", &fleet.here)?;
        let away = fleet.start("one", &fleet.there)?;
        s.truth().wait("one", 3)?;
        let verb = |args: &[&str]| -> Result<(i32, String)> {
            let nobody = s.folder().join("no.sock");
            let mut command = std::process::Command::new(orphand()?);
            command.args(args).args(["--below", s.below(), "--socket", &nobody.to_string_lossy()]);
            let told = output(&mut command)?;
            let text = String::from_utf8([told.stdout, told.stderr].concat())?;
            Ok((told.status.code().context("killed")?, text))
        };
        let (code, text) = verb(&["reap", "--duplicates", &older.pid.to_string(), "--yes"])?;
        ensure!(code == 0 && text.contains("1 server ended"), "ended with {code}: {text}");
        older.wait_gone()?;
        ensure!(newer.alive() && away.alive(), "more was ended than was asked for");
        Ok(())
    })
}
