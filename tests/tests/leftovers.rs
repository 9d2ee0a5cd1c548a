//! What an ended agent left that is no server is told, counted, and ended only by a person.

use std::{fs, path::PathBuf};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tests::{
    Actor, Daemon, Identity, Launch, Part, Scene, scene,
    scrape::{page, sum},
    within,
};

/// Listens on a port of its own choice, which it writes down, and holds a file locked.
const DEVELOPMENT_SERVER: &str = "
import fcntl, os, socket, sys, time
lock = open(sys.argv[1] + '/dev.lock', 'w')
fcntl.flock(lock, fcntl.LOCK_EX)
server = socket.create_server(('127.0.0.1', 0))
with open(sys.argv[1] + '/port.new', 'w') as f: f.write(str(server.getsockname()[1]))
os.rename(sys.argv[1] + '/port.new', sys.argv[1] + '/port')
time.sleep(1e6)
";

/// Has an agent start any program.
fn start(agent: &Actor, argv: &Value, setsid: bool) -> Result<Identity> {
    let order = json!({ "do": "start", "argv": argv, "wire": "null", "setsid": setsid });
    let pid = agent.send_order(&order)?.get("pid").and_then(Value::as_u64).context("no pid")?;
    Identity::of(u32::try_from(pid)?).context("it has ended")
}

/// An agent that was recognised, in its place.
fn agent(s: &Scene, daemon: &Daemon, program: &str) -> Result<Actor> {
    let agent = s.start(&Part::new(program, program).wire("null"))?;
    daemon.wait("agent_started", |event| event.is_agent("agent_started", agent.id))?;
    Ok(agent)
}

/// What one agent left: a shell with a job, a server that listens, a program in a session of its own.
struct Left {
    agent: Actor,
    shell: Identity,
    job: Identity,
    listener: Identity,
    address: String,
    tail: Identity,
}

impl Left {
    fn by(s: &Scene, daemon: &Daemon) -> Result<Self> {
        let agent = agent(s, daemon, "claude")?;
        let shell = start(&agent, &json!(["/bin/sh", "-c", "sleep 1000000 & wait"]), false)?;
        let folder = s.folder().to_string_lossy().into_owned();
        let python = fs::canonicalize("/usr/bin/python3")?;
        let listener = start(&agent, &json!([python, "-c", DEVELOPMENT_SERVER, folder]), false)?;
        let tail = start(&agent, &json!(["/usr/bin/tail", "-f", "/dev/null"]), true)?;
        let port = within("a port", || fs::read_to_string(s.folder().join("port")).ok())?;
        let job = within("a job", || shell.children().first().copied())?;
        Ok(Self { agent, shell, job, listener, address: format!("127.0.0.1:{port}"), tail })
    }

    fn heads(&self) -> [Identity; 3] {
        [self.shell, self.listener, self.tail]
    }

    fn all(&self) -> [Identity; 4] {
        [self.shell, self.job, self.listener, self.tail]
    }
}

fn list(of: &Value) -> Vec<Value> {
    of.as_array().cloned().unwrap_or_default()
}

/// The heads in the events so far.
fn told(daemon: &Daemon) -> Vec<Value> {
    let events = daemon.events();
    let found = events.iter().filter(|event| event.kind() == "leftovers_found");
    found.flat_map(|event| list(&event["processes"])).collect()
}

/// Three branches are left: told once, shown everywhere, never signalled, until a person ends them. The twins: an agent
/// that leaves nothing, a program that was moved into another scope, and one in a multiplexer.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn a_person_ends_what_an_agent_left() -> Result<()> {
    scene(|s| {
        let daemon = s.daemon_with(&Launch { listen: "127.0.0.1:0", ..Launch::default() })?;
        let left = Left::by(s, &daemon)?;
        let tidy = agent(s, &daemon, "codex")?;
        let other = agent(s, &daemon, "gemini")?;
        let [enter, procs] =
            s.enter_room("left.scope")?.map(|path: PathBuf| path.to_string_lossy().into_owned());
        let moved = start(&other, &json!([enter, procs, "/usr/bin/sleep", "1000000"]), false)?;
        within("a move", || moved.argv().first().is_some_and(|name| name.ends_with("sleep")).then_some(()))?;
        let detached = start(&other, &json!([s.multiplexer()?, "1000000"]), true)?;
        for agent in [&left.agent, &tidy, &other] {
            agent.kill()?;
        }
        let event =
            daemon.wait("leftovers_found", |event| event.is_agent("leftovers_found", left.agent.id))?;
        ensure!(event["count"] == 3 && event["agent"]["alive"] == false, "{}", event.line);
        ensure!(event["rss_bytes"].as_u64() > Some(0) && event["cpu_ms"].is_u64(), "{}", event.line);
        let heads = list(&event["processes"]);
        let class = |of: Identity| heads.iter().find(|head| of == **head).map(|head| head["class"].clone());
        ensure!(class(left.shell) == Some(json!("shell")), "{}", event.line);
        ensure!(class(left.listener) == Some(json!("listener")), "{}", event.line);
        ensure!(class(left.tail) == Some(json!("other")), "{}", event.line);
        let listener = heads.iter().find(|head| left.listener == **head).context("no listener")?;
        ensure!(listener["listens"] == json!([left.address]), "{listener}");
        ensure!(listener["argv"][1] == "-c" && listener["age_ms"].is_u64(), "{listener}");
        let shell = heads.iter().find(|head| left.shell == **head).context("no shell")?;
        ensure!(shell["processes_total"] == 2, "{shell}");

        // Everything that was due before has been judged.
        s.barrier(&daemon)?;
        let all = told(&daemon);
        ensure!(all.len() == 3, "{all:?}");
        for one in left.all().into_iter().chain([moved, detached]) {
            ensure!(one.alive(), "{one} was ended");
        }

        let listed = daemon.ask(&["ps", "--state", "leftover"])?;
        let groups = list(&listed["leftovers"]);
        let heads: Vec<Value> = groups.iter().flat_map(|group| list(&group["heads"])).collect();
        ensure!(heads.len() == 3 && listed["totals"]["leftovers"] == 3, "{listed}");
        for head in left.heads() {
            let id = head.to_string();
            let is_it = |one: &Value| one["server"]["id"] == id.as_str() && one["state"] == "leftover";
            ensure!(heads.iter().any(is_it), "{head} is not in {listed}");
        }
        let (code, text) = daemon.says(&["ps", "--state", "leftover"])?;
        ensure!(code == 0 && text.contains(&left.address), "{text}");
        let (_, text) = daemon.says(&["status"])?;
        ensure!(text.contains("3 leftovers ("), "{text}");
        // The store is written a moment after the event.
        within("the run of claude with its leftovers in the history", || {
            let past = daemon.ask(&["history"]).ok()?;
            let run = list(&past["runs"]).into_iter().find(|run| run["run"]["agent"] == "claude")?;
            (run["leftovers"] == 3 && run["leftover_bytes"].as_u64() > Some(0)).then_some(())
        })?;
        let metrics = page(&daemon, "/metrics")?;
        ensure!((sum(&metrics, "orphand_leftovers") - 3.0).abs() < 0.5, "{metrics}");
        ensure!(sum(&metrics, "orphand_leftover_resident_memory_bytes") > 0.0, "{metrics}");

        // What it blocks.
        let shown = daemon.ask(&["explain", &left.listener.pid.to_string()])?;
        let shown = list(&shown["explained"]).first().cloned().context("not explained")?;
        let lock = s.folder().join("dev.lock").to_string_lossy().into_owned();
        ensure!(shown["listens"] == json!([left.address]), "{shown}");
        ensure!(shown["locks"] == json!([lock]) && shown["state"] == "leftover", "{shown}");

        let reap = ["reap", "--leftovers", "--agent", "claude"];
        let (code, text) = daemon.says(&[&reap[..], &["--dry-run"]].concat())?;
        ensure!(code == 0 && text.contains("3 leftovers to end"), "{text}");
        ensure!(text.contains(&format!("listens on {}", left.address)) && text.contains(&lock), "{text}");
        let (code, text) = daemon.says(&reap)?;
        ensure!(code == 1 && text.contains("refused to end without a question: 3 leftovers"), "{text}");
        let (code, text) = daemon.says(&["reap", "--include-active", "--yes", &left.tail.pid.to_string()])?;
        ensure!(code == 4 && left.tail.alive(), "a leftover is no server: {text}");
        let (code, text) = daemon.says(&[&reap[..], &["--yes"]].concat())?;
        ensure!(code == 0 && text.contains("3 leftovers ended"), "{text}");
        for one in left.all() {
            one.wait_gone()?;
        }
        for one in [moved, detached] {
            ensure!(one.alive(), "{one} was ended, too");
        }
        s.barrier(&daemon)?;
        let metrics = page(&daemon, "/metrics")?;
        ensure!(sum(&metrics, "orphand_leftovers") < 0.5, "{metrics}");
        ensure!(told(&daemon).len() == 3, "it was told again");
        let (code, _) = daemon.says(&["ps", "--state", "leftover"])?;
        ensure!(code == 4, "nothing is left");
        Ok(())
    })
}

/// A single leftover is ended by its number, but for what is in another scope below it, and without a daemon nobody knows of any.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn one_is_ended_by_its_number() -> Result<()> {
    scene(|s| {
        let daemon = s.daemon()?;
        let left = Left::by(s, &daemon)?;
        let [enter, procs] =
            s.enter_room("left.scope")?.map(|path: PathBuf| path.to_string_lossy().into_owned());
        let line = r#""$0" "$1" /usr/bin/sleep 1000000; true"#;
        let shell = start(&left.agent, &json!(["/bin/sh", "-c", line, enter, procs]), false)?;
        let apart = within("a scope below a shell", || {
            let child = shell.children().first().copied()?;
            child.argv().first()?.ends_with("sleep").then_some(child)
        })?;
        left.agent.kill()?;
        let event =
            daemon.wait("leftovers_found", |event| event.is_agent("leftovers_found", left.agent.id))?;
        let told = list(&event["processes"]).into_iter().find(|head| shell == *head);
        ensure!(told.is_some_and(|head| head["processes_total"] == 1), "{}", event.line);
        // By the job, which is not the head.
        let (code, text) = daemon.says(&["reap", "--leftovers", "--yes", &left.job.pid.to_string()])?;
        ensure!(code == 0 && text.contains("1 leftover ended"), "{text}");
        left.shell.wait_gone()?;
        left.job.wait_gone()?;
        ensure!(left.listener.alive() && left.tail.alive(), "more was ended than was asked for");
        let (code, text) = daemon.says(&["reap", "--leftovers", "--yes", &shell.pid.to_string()])?;
        ensure!(code == 0 && text.contains("1 leftover ended"), "{text}");
        shell.wait_gone()?;
        ensure!(apart.alive(), "what is in another scope was ended, too");
        let (code, text) = daemon.says(&["reap", "--leftovers", "--yes", "1"])?;
        ensure!(code == 4 && text.contains("pid 1 is no leftover"), "{text}");
        daemon.finish()?;
        let (code, text) = daemon.says(&["reap", "--leftovers", "--yes"])?;
        ensure!(code == 1 && text.contains("cannot find leftovers: no daemon answers"), "{text}");
        ensure!(left.listener.alive() && left.tail.alive(), "ended without a daemon");
        Ok(())
    })
}
