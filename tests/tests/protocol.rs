//! Servers that no rule knows by their name are known by what their host says to them first.

use std::{
    fs::{self, File},
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tests::{Client, Daemon, Event, Identity, Scene, Sdk, scene, within};

const SERVER: &str = include_str!("../actors/notes.py");
/// 6 KB of TOML: inline tables in each other, each with a key of many parts.
const HOSTILE: &str = include_str!("../fuzz/corpus/settings/deep");
const HOST: &str = include_str!("../actors/host.py");
const INITIALIZE: &str = concat!(
    r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","#,
    r#""capabilities":{},"clientInfo":{"name":"home","version":"1"}}}"#,
    "\n"
);
/// The server's script; servers read when [`open`] was called.
fn server(s: &Scene) -> Result<(PathBuf, String)> {
    let path = s.folder().join("notes.py");
    fs::write(&path, SERVER)?;
    Ok((s.folder().join("notes"), path.to_string_lossy().into_owned()))
}

fn recognised(daemon: &Daemon, server: Identity, client: Option<&str>) -> Result<Event> {
    let event = daemon.wait_for("server_started", server)?;
    ensure!(event.pointer("/server/rule").is_some_and(|rule| rule == "protocol"), "{}", event.line);
    let told = event.pointer("/server/client").and_then(Value::as_str);
    ensure!(told == client, "{}", event.line);
    Ok(event)
}

/// Hosts on all SDKs start a home-made server. It is known before it has read a byte, misses none afterwards, and
/// is ended when its host was killed; that of the living host is left alone.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn a_home_made_server_is_known_by_its_first_message() -> Result<()> {
    scene(|s| {
        let daemon = s.daemon()?;
        let (folder, script) = server(s)?;
        fs::create_dir(&folder)?;
        let command = ["python3", &*script, &*folder.to_string_lossy()];
        let plan = json!({ "mute": true });
        let mut hosts = Vec::new();
        for (sdk, client) in
            [(Sdk::Node, "host"), (Sdk::Python1, "mcp"), (Sdk::Python2, "mcp"), (Sdk::Node, "host")]
        {
            let host = Client::start(s, sdk, &plan, &command, s.folder())?;
            let server = within("its server", || host.id.children().first().copied())?;
            recognised(&daemon, server, Some(client)).with_context(|| format!("{sdk:?}"))?;
            hosts.push((host, server));
        }
        File::create(folder.join("open"))?;
        for (_, server) in &hosts {
            let initialised = folder.join(server.pid.to_string());
            within("the client's second message", || initialised.exists().then_some(()))?;
        }
        let (living, used) = hosts.pop().context("no host")?;
        for (host, server) in hosts {
            host.kill()?;
            let reaped = daemon.reaped(&[server])?;
            ensure!(reaped["signal"] == "TERM", "{}", reaped.line);
        }
        s.barrier(&daemon)?;
        ensure!(living.id.alive() && used.alive(), "a server in use was ended");
        daemon.silent(&[used])
    })
}

/// A host without an SDK, with programs that read nothing: each is told one of `says` first. All have the same name.
fn start(s: &Scene, says: &[&str]) -> Result<(Identity, Vec<Identity>)> {
    let waits = s.folder().join("waits.py");
    fs::write(&waits, "import signal\nsignal.pause()\n")?;
    let programs: Vec<Value> =
        says.iter().map(|says| json!({ "command": ["python3", waits], "says": says })).collect();
    play(s, "host.py", s.folder(), &json!(programs))
}

/// A host under the name `name` in the directory `at`, and the programs that it has started.
fn play(s: &Scene, name: &str, at: &Path, programs: &Value) -> Result<(Identity, Vec<Identity>)> {
    let host = s.folder().join(name);
    fs::write(&host, HOST)?;
    let (reader, writer) = std::io::pipe()?;
    let mut command = s.command("python3")?;
    command.arg(host).arg(programs.to_string()).current_dir(at).stdin(Stdio::null()).stdout(writer);
    let id = s.spawn(&mut command)?;
    drop(command);
    let mut line = String::new();
    BufReader::new(reader).read_line(&mut line)?;
    let pids: Vec<u32> = serde_json::from_str(&line).with_context(|| format!("the host said {line:?}"))?;
    let started = pids.into_iter().map(|pid| Identity::of(pid).context("a program has ended"));
    Ok((id, started.collect::<Result<_>>()?))
}

/// A server to which nothing is said, or which has read it at once, is known by the settings of its agent. One with
/// other arguments is not declared.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn settings_declare_a_silent_server() -> Result<()> {
    settings_declare(false)
}

/// The same of one that has read its first message before the daemon came.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn settings_declare_a_server_that_was_there_before() -> Result<()> {
    settings_declare(true)
}

fn settings_declare(before: bool) -> Result<()> {
    scene(|s| {
        let daemon = if before { None } else { Some(s.daemon()?) };
        let project = s.folder().join("project");
        fs::create_dir(&project)?;
        let settings = json!({ "mcpServers": { "naps": { "command": "sleep", "args": ["600"] } } });
        fs::write(project.join(".mcp.json"), settings.to_string())?;
        let programs = json!([
            { "command": ["sleep", "600"], "says": "" },
            { "command": ["sleep", "601"], "says": "" },
        ]);
        let (agent, started) = play(s, "claude", &project, &programs)?;
        let [declared, other] = *started else { anyhow::bail!("{started:?}") };
        let daemon = daemon.map_or_else(|| s.daemon(), Ok)?;
        let event = recognised(&daemon, declared, None)?;
        ensure!(event.pointer("/server/name").is_some_and(|name| name == "naps"), "{}", event.line);
        agent.signal(rustix::process::Signal::KILL)?;
        daemon.reaped(&[declared])?;
        s.barrier(&daemon)?;
        ensure!(other.alive(), "a program that is no server was ended");
        ensure!(!daemon.events().iter().any(|event| event.has(other)), "it was taken for a server");
        Ok(())
    })
}

/// A settings file that no small stack can parse, in the folder of a silent program: that one is not declared, and
/// nothing else happens. The daemon goes on and recognises what other settings declare; `scan`, too.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn a_hostile_settings_file_stops_nothing() -> Result<()> {
    scene(|s| {
        let daemon = s.daemon()?;
        let (hostile, project) = (s.folder().join("hostile"), s.folder().join("project"));
        fs::create_dir_all(hostile.join(".codex"))?;
        fs::create_dir(&project)?;
        fs::write(hostile.join(".codex/config.toml"), HOSTILE)?;
        let settings = json!({ "mcpServers": { "naps": { "command": "sleep", "args": ["600"] } } });
        fs::write(project.join(".mcp.json"), settings.to_string())?;
        let programs = json!([{ "command": ["sleep", "600"], "says": "" }]);
        let (_, silent) = play(s, "host.py", &hostile, &programs)?;
        let (agent, started) = play(s, "claude", &project, &programs)?;
        let ([silent], [declared]) = (&*silent, &*started) else { anyhow::bail!("{silent:?} {started:?}") };
        let event = recognised(&daemon, *declared, None)?;
        ensure!(event.pointer("/server/name").is_some_and(|name| name == "naps"), "{}", event.line);
        let scan = tests::output(Command::new(tests::orphand()?).args(["ps", "--no-daemon", "--json"]))?;
        ensure!(scan.status.code().is_some_and(|code| code != 1), "{scan:?}");
        agent.signal(rustix::process::Signal::KILL)?;
        daemon.reaped(&[*declared])?;
        s.barrier(&daemon)?;
        ensure!(silent.alive() && !daemon.events().iter().any(|event| event.has(*silent)), "{silent:?}");
        Ok(())
    })
}

/// What else an agent talks to on two pipes: tools that it feeds, a shell, a pipeline, interpreters, a pool of workers.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn other_helpers_of_an_agent_are_no_servers() -> Result<()> {
    scene(|s| {
        let daemon = s.daemon()?;
        let pool = "import multiprocessing as m, signal
workers = [m.Process(target=signal.pause) for _ in range(3)]
[worker.start() for worker in workers]
signal.pause()";
        let programs = json!([
            { "command": ["git", "hash-object", "--stdin-paths"], "says": "/etc/passwd\n" },
            { "command": ["cat"], "says": "{\"jsonrpc\":\"2.0\",\"method\":\"initialized\"}\n" },
            { "command": ["sort"], "says": "b\na\n" },
            { "command": ["sed", "-u", "p"], "says": "a\n" },
            { "command": ["perl", "-ne", "print"], "says": "[1]\n" },
            { "command": ["sh"], "says": "cat\n" },
            { "command": ["sh", "-c", "cat | sed -u p | sort"], "says": "{\"id\":1}\n" },
            { "command": ["python3", "-i"], "says": "1\n" },
            { "command": ["python3", "-c", pool], "says": "" },
            { "command": ["node", "-i"], "says": "1\n" },
        ]);
        let (agent, started) = play(s, "claude", s.folder(), &programs)?;
        let is_agent =
            |event: &Event| event["event"] == "agent_started" && event["agent"]["pid"] == agent.pid;
        within("the agent", || daemon.events().iter().any(is_agent).then_some(()))?;
        // Longer than the settings are asked for.
        let (_, last) = start(s, &[INITIALIZE])?;
        recognised(&daemon, *last.first().context("no server")?, Some("home"))?;
        s.barrier(&daemon)?;
        agent.signal(rustix::process::Signal::KILL)?;
        s.barrier(&daemon)?;
        for event in daemon.events() {
            ensure!(!event.has_any(&started), "{}", event.line);
        }
        let by_protocol = |event: &&Event| {
            event["event"] == "server_started" && event.line.contains("\"rule\":\"protocol\"")
        };
        let known = daemon.events().iter().filter(by_protocol).count();
        ensure!(known == 1, "{known} servers were recognised by the protocol");
        Ok(())
    })
}
