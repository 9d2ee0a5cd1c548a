//! The web page, as a person has it open: in chromium, in three widths and both colour schemes.

use std::{
    env, fs,
    io::{BufRead as _, BufReader, Write as _},
    net::TcpListener,
    path::PathBuf,
    process::{Child, ChildStdin, ChildStdout, Stdio},
    thread,
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use rustix::process::Signal;
use tests::{
    Daemon, Launch, Part, Scene,
    fixtures::{CHROMIUM, Fixtures},
    scene,
    scrape::page,
};

const PERSON: &str = include_str!("../actors/page.mjs");

/// Chromium with the page open. It ends with the scene.
struct Person {
    child: Child,
    steps: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Person {
    fn sit_down(s: &Scene, address: &str, server: &str) -> Result<Self> {
        let fixtures = Fixtures::open()?;
        let script = s.folder().join("page.mjs");
        fs::write(&script, PERSON)?;
        // To look at them, say where they shall stay.
        let pictures = env::var_os("ORPHAND_PICTURES").map_or(s.folder().to_owned(), PathBuf::from);
        let mut node = s.command("/usr/bin/node")?;
        node.arg(script)
            .arg(&fixtures.npm)
            .args([CHROMIUM, &format!("http://{address}/"), server])
            .arg(pictures);
        let mut child = node.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().context("start node")?;
        let steps = child.stdin.take().context("no standard input")?;
        let answers = BufReader::new(child.stdout.take().context("no standard output")?);
        Ok(Self { child, steps, answers })
    }

    fn step(&mut self, name: &str) -> Result<()> {
        writeln!(self.steps, "{name}")?;
        let mut answer = String::new();
        self.answers.read_line(&mut answer)?;
        ensure!(answer == "ok\n", "the page: {answer}");
        Ok(())
    }

    fn leave(mut self) -> Result<()> {
        self.step("close")?;
        drop(self.steps);
        ensure!(self.child.wait()?.success(), "node failed");
        Ok(())
    }
}

/// A port that is free now: a daemon's successor has the same.
fn address() -> Result<&'static str> {
    let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
    Ok(address.to_string().leak())
}

/// What the page reads has no number of a process, no path and no argument of any.
fn private(daemon: &Daemon, pids: &[u32]) -> Result<()> {
    for path in ["/api/now", "/api/history?range=1h", "/api/history?range=30d"] {
        let text = page(daemon, path)?;
        ensure!(
            !text.contains('@') && !text.contains(".py") && !text.contains("python\"") && !text.contains('/'),
            "{path}: {text}"
        );
        let numbers: Vec<&str> = text.split(|c: char| !c.is_ascii_alphanumeric()).collect();
        for pid in pids {
            ensure!(!numbers.contains(&&*pid.to_string()), "{path} has {pid}: {text}");
        }
    }
    Ok(())
}

#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn a_person_sees_a_leak_as_it_happens() -> Result<()> {
    scene(|s| {
        let listen = address()?;
        let launch = Launch { args: vec!["--observe"], listen, ..Launch::default() };
        let daemon = s.daemon_with(&launch)?;
        // Two agents go on with their servers, and one will leave what it started.
        let other = s.start(&Part::new("codex", "other").wire("null"))?;
        for name in ["github-mcp-server", "postgres-mcp-server"] {
            let used = other.start(&Part::new(name, name).wire("pipe"))?;
            daemon.wait_for("server_started", used.id)?;
        }
        let agent = s.start(&Part::agent("agent"))?;
        let server = agent.start(&Part::server("server"))?;
        let started = daemon.wait_for("server_started", server.id)?;
        let next = s.start(&Part::agent("next"))?;
        let used = next.start(&Part::new("figma-mcp-server", "used").wire("pipe"))?;
        daemon.wait_for("server_started", used.id)?;
        let name = started["server"]["name"].as_str().context("no name")?;
        let shown: serde_json::Value = serde_json::from_str(&page(&daemon, "/api/now")?)?;
        let agents = shown["agents"].as_array().into_iter().flatten();
        let generations = agents.flat_map(|agent| agent["generations"].as_array().into_iter().flatten());
        let mut servers = generations.flat_map(|one| one["servers"].as_array().into_iter().flatten());
        ensure!(servers.any(|one| one["name"] == name), "{name} is not shown: {shown}");

        let mut person = Person::sit_down(s, listen, name)?;
        person.step("open")?;
        agent.kill()?;
        daemon.wait_for("orphan_detected", server.id)?;
        person.step("orphan")?;
        private(&daemon, &[agent.id.pid, server.id.pid, daemon.id.pid])?;
        person.step("keyboard")?;
        // Further generations leak, too: one bar each. For a picture that takes its time.
        let pause = Duration::from_secs(if env::var_os("ORPHAND_PICTURES").is_some() { 20 } else { 0 });
        for (generation, names) in
            [("third", &["github-mcp-server", "jira-mcp-server"][..]), ("fourth", &["slack-mcp-server"])]
        {
            let agent = s.start(&Part::agent(generation))?;
            let left = names
                .iter()
                .map(|name| agent.start(&Part::new(name, format!("{generation}-{name}")).wire("pipe")));
            let left = left.collect::<Result<Vec<_>>>()?;
            for one in &left {
                daemon.wait_for("server_started", one.id)?;
            }
            thread::sleep(pause);
            agent.kill()?;
            for one in &left {
                daemon.wait_for("orphan_detected", one.id)?;
            }
        }
        thread::sleep(pause);
        person.step("generations")?;
        // The daemon stands still: its connections are open, and nothing comes.
        person.step("lose")?;
        daemon.signal(Signal::STOP)?;
        person.step("gone")?;
        daemon.signal(Signal::CONT)?;
        person.step("back")?;
        // The daemon goes, and another one comes at the same address.
        person.step("lose")?;
        daemon.kill()?;
        person.step("gone")?;
        let successor = s.daemon_with(&Launch { state: "../daemon0/state", ..launch })?;
        person.step("back")?;
        ensure!(
            page(&successor, "/api/history?range=1h")?.contains("\"orphans\":1"),
            "the past is forgotten"
        );
        person.leave()
    })
}
