//! The daemon under measurement, and the workloads it watches.

use std::{
    io::{BufRead as _, BufReader},
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::{Child, ChildStdout, Command, Stdio},
    sync::mpsc::{self, Receiver},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use rustix::{
    process::{Pid, Signal, kill_process},
    time::{ClockId, clock_gettime},
};
use serde_json::Value;

use crate::{command, files, workspace};

/// How long the daemon may take to answer anything before the bench gives up.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// The `storm` binary under a name that no rule knows, under an agent's, and under an MCP server's.
pub const STRANGER: &str = "storm";
pub const AGENT: &str = "claude";
pub const SERVER: &str = "mcp-server-idle";
/// A program that does nothing, statically linked: what `posix_spawn` costs and little else.
pub const NOTHING: &str = "nothing";

/// Builds the actors and lays them out in a folder.
pub fn actors() -> Result<PathBuf> {
    // Unoptimised, like this program: it does little but call the kernel, and what it depends on is built already.
    command::run(workspace::cargo().args(["build", "--quiet", "-p", "tests", "--bin", "storm"]))?;
    let target = workspace::target_dir()?;
    let dir = target.join("bench");
    files::empty(&dir)?;
    for name in [STRANGER, AGENT, SERVER] {
        symlink(target.join("debug/storm"), dir.join(name)).with_context(|| format!("cannot link {name}"))?;
    }
    files::write(&dir.join("config.toml"), "")?;
    files::write(&dir.join("nothing.rs"), "fn main() {}\n")?;
    let mut rustc = Command::new("rustc");
    rustc.args(["-O", "-Cpanic=abort", "-Cstrip=symbols", "-Ctarget-feature=+crt-static", "nothing.rs"]);
    command::run(rustc.current_dir(&dir))?;
    Ok(dir)
}

/// An actor that runs. When this is dropped, one with an input ends, because that is closed; any other is killed.
#[derive(Debug)]
pub struct Actor {
    pub child: Child,
    /// The first line that it said.
    pub said: String,
}

impl Actor {
    /// Starts one and waits for its first line.
    pub fn start(command: &mut Command) -> Result<Self> {
        let (mut actor, stdout) = Self::spawn(command)?;
        BufReader::new(stdout).read_line(&mut actor.said)?;
        ensure!(!actor.said.is_empty(), "{} said nothing", command.get_program().display());
        Ok(actor)
    }

    pub fn spawn(command: &mut Command) -> Result<(Self, ChildStdout)> {
        let child = command.stdout(Stdio::piped()).spawn();
        let mut child = child.with_context(|| format!("cannot start {}", command.get_program().display()))?;
        let stdout = child.stdout.take().context("no stdout")?;
        Ok((Self { child, said: String::new() }, stdout))
    }
}

impl Drop for Actor {
    fn drop(&mut self) {
        if self.child.stdin.take().is_none() {
            let _ = self.child.kill();
        }
        let _ = self.child.wait();
    }
}

/// An event and when its line was read.
#[derive(Debug)]
pub struct Line {
    /// `CLOCK_BOOTTIME`, taken when the line was there.
    read: Duration,
    pub event: Value,
}

impl Line {
    pub fn is(&self, kind: &str) -> bool {
        self.event.get("event").and_then(Value::as_str) == Some(kind)
    }

    /// From its cause, by the kernel's stamp, until it was read.
    pub fn age_ms(&self) -> f64 {
        let cause = self.event.get("boot_ns").and_then(Value::as_u64).unwrap_or_default();
        self.read.saturating_sub(Duration::from_nanos(cause)).as_secs_f64() * 1e3
    }

    /// Whether it is about the server with this process.
    pub fn is_about(&self, server: u64) -> bool {
        let mut processes =
            self.event.pointer("/server/processes").and_then(Value::as_array).into_iter().flatten();
        processes.any(|one| one.get("pid").and_then(Value::as_u64) == Some(server))
    }
}

/// A running daemon that only observes.
#[derive(Debug)]
pub struct Daemon {
    actor: Actor,
    lines: Receiver<Line>,
    /// Records it reported lost so far.
    lost: u64,
    /// From its start to its word that it is ready.
    pub startup: Duration,
}

impl Daemon {
    /// Starts it and waits until it is ready.
    ///
    /// Neither the host's configuration nor another daemon on it has a say: it has a lock, a socket and a state of
    /// its own, in `dir`.
    pub fn start(orphand: &Path, dir: &Path) -> Result<Self> {
        let begun = Instant::now();
        let mut daemon = Command::new(orphand);
        daemon.args("run --observe --format json --listen none --lock lock --config config.toml".split(' '));
        daemon.args(["--socket", "control.sock", "--state-dir", "state"]).current_dir(dir);
        let (actor, stdout) = Actor::spawn(daemon.env("ORPHAND_LOG", "error").stdin(Stdio::null()))?;
        let (sender, lines) = mpsc::channel();
        thread::spawn(move || {
            for text in BufReader::new(stdout).lines().map_while(Result::ok) {
                let read = clock_gettime(ClockId::Boottime).try_into().unwrap_or_default();
                let line = Line { read, event: serde_json::from_str(&text).unwrap_or_default() };
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        let mut daemon = Self { actor, lines, lost: 0, startup: Duration::ZERO };
        daemon.wait_for(PATIENCE, |line| line.is("ready")).context("the daemon does not get ready")?;
        daemon.startup = begun.elapsed();
        Ok(daemon)
    }

    pub fn pid(&self) -> u32 {
        self.actor.child.id()
    }

    /// The next line that `wanted` holds for; what comes before it is dropped.
    pub fn wait_for(&mut self, patience: Duration, wanted: impl Fn(&Line) -> bool) -> Result<Line> {
        let deadline = Instant::now() + patience;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let line = self.lines.recv_timeout(left).context("no such line in time")?;
            self.count(&line);
            if wanted(&line) {
                return Ok(line);
            }
        }
    }

    /// Stops it and gives the number of records it lost.
    pub fn stop(mut self) -> Result<u64> {
        // It is our child and not yet waited for: the number is its own.
        kill_process(Pid::from_child(&self.actor.child), Signal::TERM).context("cannot stop the daemon")?;
        while let Ok(line) = self.lines.recv_timeout(PATIENCE) {
            self.count(&line);
        }
        let status = self.actor.child.wait().context("cannot wait for the daemon")?;
        ensure!(status.success(), "the daemon ended with {status}");
        Ok(self.lost)
    }

    fn count(&mut self, line: &Line) {
        if line.is("lost") {
            let records = line.event.get("records").and_then(Value::as_object);
            self.lost += records.map_or(1, |kinds| kinds.values().filter_map(Value::as_u64).sum());
        }
    }
}
