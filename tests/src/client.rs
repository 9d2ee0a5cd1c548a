//! MCP hosts that are built on the published SDKs and start published servers.

use std::{
    io::{BufRead, BufReader, Write},
    path::Path,
    process::ChildStdin,
    sync::{
        Mutex, PoisonError,
        mpsc::{Receiver, channel},
    },
    thread,
};

use anyhow::{Context, Result, ensure};
use rustix::process::Signal;
use serde_json::Value;

use crate::{
    fixtures::Fixtures,
    host::{Identity, PATIENCE},
    scene::Scene,
};

const PYTHON: &str = include_str!("../actors/client.py");
const NODE: &str = include_str!("../actors/client.mjs");

/// The SDK of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sdk {
    /// Python, version 1: pipes, the server in a session of its own.
    Python1,
    /// Python, version 2: like version 1, but its server moves the wire away from descriptor 0.
    Python2,
    /// Node: socket pairs, the server in the host's session.
    Node,
}

/// A running host whose server has answered.
#[derive(Debug)]
pub struct Client {
    /// Its process.
    pub id: Identity,
    /// Its report after its plan was done.
    pub ready: Value,
    stdin: Mutex<ChildStdin>,
    lines: Receiver<Value>,
}

impl Client {
    /// Starts a host in the folder `cwd` that starts `command` and carries out `plan` (see
    /// `actors/client.*`).
    pub fn start(s: &Scene, sdk: Sdk, plan: &Value, command: &[&str], cwd: &Path) -> Result<Self> {
        let fixtures = Fixtures::open()?;
        let (name, text, interpreter) = match sdk {
            Sdk::Python1 => ("client.py", PYTHON, Fixtures::venv_bin(&fixtures.python1, "python")),
            Sdk::Python2 => ("client.py", PYTHON, Fixtures::venv_bin(&fixtures.python2, "python")),
            Sdk::Node => ("client.mjs", NODE, "node".into()),
        };
        let script = s.folder().join(name);
        std::fs::write(&script, text).with_context(|| format!("write {}", script.display()))?;
        let mut host = s.command(&interpreter)?;
        host.arg(script);
        if sdk == Sdk::Node {
            host.arg(fixtures.npm.join("node_modules/@modelcontextprotocol/sdk"));
        }
        let log = std::fs::File::options().append(true).create(true).open(s.folder().join("clients.log"))?;
        host.arg(plan.to_string()).args(command).current_dir(cwd);
        host.stderr(log);
        let (id, stdin, stdout) = s.spawn_piped(&mut host)?;
        let (line, lines) = channel();
        thread::spawn(move || {
            let lines = BufReader::new(stdout).lines().map_while(Result::ok);
            lines.filter_map(|l| serde_json::from_str(&l).ok()).try_for_each(|value: Value| line.send(value))
        });
        let ready = lines.recv_timeout(PATIENCE).with_context(|| format!("{sdk:?} with {command:?}"))?;
        ensure!(ready.get("ready").is_some(), "{sdk:?}: {ready}");
        Ok(Self { id, ready, stdin: Mutex::new(stdin), lines })
    }

    /// Checks that the server still answers (only with `beat` in the plan).
    pub fn beat(&self) -> Result<()> {
        let mut stdin = self.stdin.lock().unwrap_or_else(PoisonError::into_inner);
        stdin.write_all(b"\n").context("ask the host")?;
        let beat = self.lines.recv_timeout(PATIENCE).context("no beat")?;
        ensure!(beat.get("beat").is_some(), "{beat}");
        Ok(())
    }

    /// The workers of its pool.
    pub fn workers(&self) -> Vec<Identity> {
        let pids = self.ready.get("workers").and_then(Value::as_array).into_iter().flatten();
        pids.filter_map(|p| Identity::of(p.as_u64()?.try_into().ok()?)).collect()
    }

    /// Sends SIGKILL and waits for its end.
    pub fn kill(&self) -> Result<()> {
        self.id.signal(Signal::KILL)?;
        self.id.wait_gone()
    }
}
