//! The daemon under measurement, and the workloads it watches.

use std::{
    fs,
    io::{BufRead as _, BufReader},
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::mpsc::{self, Receiver},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail};
use rustix::{
    process::{Pid, Signal, kill_process},
    time::{ClockId, clock_gettime},
};
use serde_json::Value;

use crate::{command, workspace};

/// The `storm` binary under the names by which orphand's rules know agents and servers, in a folder of its own.
#[derive(Debug)]
pub struct Actors {
    /// The folder they are in, with what else a daemon under measurement needs.
    pub dir: PathBuf,
    /// A name that no rule knows.
    pub stranger: PathBuf,
    /// An agent's name.
    pub agent: PathBuf,
    /// An MCP server's name.
    pub server: PathBuf,
    /// A program that does nothing, statically linked: what `posix_spawn` costs and little else.
    pub nothing: PathBuf,
}

impl Actors {
    /// Lays them out below the build folder.
    pub fn new(storm: &Path) -> Result<Self> {
        let dir = workspace::target_dir()?.join("bench");
        fs::create_dir_all(&dir).with_context(|| format!("cannot create {}", dir.display()))?;
        let name = |name: &str| -> Result<PathBuf> {
            let path = dir.join(name);
            let _ = fs::remove_file(&path);
            symlink(storm, &path).with_context(|| format!("cannot create {}", path.display()))?;
            Ok(path)
        };
        let (stranger, agent, server) = (name("storm")?, name("claude")?, name("mcp-server-idle")?);
        fs::write(dir.join("config.toml"), "").context("cannot write an empty configuration")?;
        let nothing = dir.join("nothing");
        fs::write(dir.join("nothing.rs"), "fn main() {}\n").context("cannot write nothing.rs")?;
        command::run(
            Command::new("rustc")
                .args(["-O", "-Cpanic=abort", "-Cstrip=symbols", "-Ctarget-feature=+crt-static", "-o"])
                .arg(&nothing)
                .arg(dir.join("nothing.rs")),
        )?;
        Ok(Self { dir, stranger, agent, server, nothing })
    }
}

/// An event and when its line was read.
#[derive(Debug)]
pub struct Line {
    /// `CLOCK_BOOTTIME` in nanoseconds, taken when the line was there.
    pub read_ns: u64,
    /// The event.
    pub event: Value,
}

impl Line {
    /// The kind of the event.
    pub fn kind(&self) -> &str {
        self.event.get("event").and_then(Value::as_str).unwrap_or_default()
    }

    /// When its cause happened.
    pub fn boot_ns(&self) -> u64 {
        self.event.get("boot_ns").and_then(Value::as_u64).unwrap_or_default()
    }
}

/// A running daemon that only observes.
#[derive(Debug)]
pub struct Daemon {
    child: Child,
    lines: Receiver<Line>,
    /// Records it reported lost so far.
    lost: u64,
    /// From its start to its word that it is ready.
    pub startup: Duration,
}

/// How long the daemon may take to answer anything before the bench gives up.
const PATIENCE: Duration = Duration::from_secs(20);

impl Daemon {
    /// Starts it and waits until it is ready.
    ///
    /// Neither the host's configuration nor another daemon on it has a say: it has a lock, a socket and a state of
    /// its own.
    pub fn start(orphand: &Path, actors: &Actors) -> Result<Self> {
        let begun = Instant::now();
        let mut child = Command::new(orphand)
            .args(["run", "--observe", "--format", "json", "--lock"])
            .arg(actors.dir.join("lock"))
            .arg("--config")
            .arg(actors.dir.join("config.toml"))
            .args(["--listen", "none", "--socket"])
            .arg(actors.dir.join("control.sock"))
            .arg("--state-dir")
            .arg(actors.dir.join("state"))
            .env("ORPHAND_LOG", "error")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {}", orphand.display()))?;
        let stdout = child.stdout.take().context("the daemon has no stdout")?;
        let (sender, lines) = mpsc::channel();
        thread::spawn(move || {
            for text in BufReader::new(stdout).lines() {
                let read_ns = boot_ns();
                let event = text.ok().and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
                if sender.send(Line { read_ns, event }).is_err() {
                    break;
                }
            }
        });
        let mut daemon = Self { child, lines, lost: 0, startup: Duration::ZERO };
        daemon.wait_for(PATIENCE, |line| line.kind() == "ready").context("the daemon does not get ready")?;
        daemon.startup = begun.elapsed();
        Ok(daemon)
    }

    /// Its process number.
    pub fn pid(&self) -> u32 {
        self.child.id()
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
        let pid =
            i32::try_from(self.pid()).ok().and_then(Pid::from_raw).context("the daemon has no number")?;
        // It is our child and not yet waited for: the number is its own.
        kill_process(pid, Signal::TERM).context("cannot stop the daemon")?;
        while let Ok(line) = self.lines.recv_timeout(PATIENCE) {
            self.count(&line);
        }
        let status = self.child.wait().context("cannot wait for the daemon")?;
        if !status.success() {
            bail!("the daemon ended with {status}");
        }
        Ok(self.lost)
    }

    fn count(&mut self, line: &Line) {
        if line.kind() == "lost" {
            let records = line.event.get("records").and_then(Value::as_object);
            self.lost += records.map_or(1, |kinds| kinds.values().filter_map(Value::as_u64).sum());
        }
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // After `stop` both do nothing: std remembers that it was waited for.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Now, on the clock of the kernel's stamps.
pub fn boot_ns() -> u64 {
    let now = clock_gettime(ClockId::Boottime);
    u64::try_from(now.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(now.tv_nsec).unwrap_or(0)
}
