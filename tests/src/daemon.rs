//! The daemon under test.

use std::{
    collections::BTreeMap,
    fs,
    io::{BufRead, BufReader, PipeReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError},
    thread,
};

use anyhow::{Context, Result, bail, ensure};
use rustix::process::Signal;
use serde_json::Value;

use crate::{
    binary::orphand,
    event::Event,
    host::{Identity, PATIENCE, output, told},
};

/// Options of a daemon.
#[derive(Clone, Debug)]
pub struct Launch {
    /// `--grace`.
    pub grace: &'static str,
    /// `--term-timeout`.
    pub term_timeout: &'static str,
    /// `--found`: what was there before the first start. `end` unless a test is about that; empty for orphand's own default.
    pub found: &'static str,
    /// The text of the configuration file.
    pub config: String,
    /// The state directory, relative to the daemon's own folder. With the directory of another daemon,
    /// `../daemon0/state`, it becomes that one's successor.
    pub state: &'static str,
    /// `--listen`. With port 0 the kernel chooses a port: [`Daemon::address`].
    pub listen: &'static str,
    /// Further arguments.
    pub args: Vec<&'static str>,
    /// Its limits of file descriptors, `SOFT:HARD`; empty for those of the test.
    pub descriptors: &'static str,
    /// Whether it has a mount namespace of its own.
    pub own_mounts: bool,
    /// Whether its standard error is a pipe that is never read.
    pub stderr_unread: bool,
    /// `--below`: the beginning of the names of the control groups that it keeps to. A scene gives it its own.
    pub below: Option<String>,
    /// Another path for the recording, which is then not replayed.
    pub record: Option<&'static str>,
    /// `ORPHAND_LOG`; empty for what the test has.
    pub log: &'static str,
}

/// The name of the control socket in the daemon's folder.
const SOCKET: &str = "control.sock";

impl Default for Launch {
    fn default() -> Self {
        Self {
            grace: "300ms",
            term_timeout: "1s",
            found: "end",
            config: String::new(),
            state: "state",
            listen: "none",
            args: Vec::new(),
            descriptors: "",
            own_mounts: false,
            stderr_unread: false,
            below: None,
            record: None,
            log: "",
        }
    }
}

/// A running `orphand run`.
#[derive(Debug)]
pub struct Daemon {
    /// Its process.
    pub id: Identity,
    child: Mutex<Child>,
    stream: Arc<Stream>,
    folder: PathBuf,
    state: String,
    killed: OnceLock<()>,
    finished: OnceLock<()>,
    replays: bool,
    _unread: Option<PipeReader>,
}

#[derive(Debug, Default)]
struct Stream {
    state: Mutex<Lines>,
    grew: Condvar,
}

#[derive(Debug, Default)]
struct Lines {
    events: Vec<Event>,
    malformed: Option<String>,
    ended: bool,
}

impl Daemon {
    /// Starts one with its files in `folder`, and waits until it is ready.
    pub fn start(folder: &Path, launch: &Launch) -> Result<Self> {
        fs::create_dir_all(folder)?;
        fs::write(folder.join("config.toml"), &launch.config)?;
        let log = fs::File::create(folder.join("stderr"))?;
        let (unread, errors) = if launch.stderr_unread {
            let (unread, errors) = std::io::pipe().context("make a pipe")?;
            (Some(unread), Stdio::from(errors))
        } else {
            (None, Stdio::from(log))
        };
        // If the test is killed, the daemon must not go on and end what later tests start. Its priority is that of the
        // packaged unit. At the terminal of who runs the tests SIGHUP would end it. Each of these programs execs the next.
        let mut command = Command::new("/usr/bin/setpriv");
        command.args(["--pdeathsig", "KILL", "/usr/bin/setsid", "/usr/bin/nice", "-n", "-10"]);
        if !launch.log.is_empty() {
            command.env("ORPHAND_LOG", launch.log);
        }
        if launch.own_mounts {
            command.args(["/usr/bin/unshare", "--mount", "--propagation", "private"]);
        }
        if !launch.descriptors.is_empty() {
            command.arg("/usr/bin/prlimit").arg(format!("--nofile={}", launch.descriptors));
        }
        let mut child = command
            .arg(orphand()?)
            .args(["run", "--format", "json", "--grace", launch.grace, "--term-timeout", launch.term_timeout])
            .args(["--lock", "lock", "--config", "config.toml", "--record", launch.record.unwrap_or("trace")])
            .args([launch.found].iter().filter(|word| !word.is_empty()).flat_map(|word| ["--found", word]))
            .args(["--socket", SOCKET, "--listen", launch.listen, "--state-dir", launch.state])
            .args(launch.below.iter().flat_map(|below| ["--below", below]))
            .args(&launch.args)
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(errors)
            .spawn()
            .context("start orphand")?;
        let id = Identity::of(child.id()).context("orphand has no identity")?;
        let out = child.stdout.take().context("orphand has no stdout")?;
        let stream = Arc::new(Stream::default());
        let copy = Arc::clone(&stream);
        thread::spawn(move || copy.fill(BufReader::new(out)));
        let daemon = Self {
            id,
            child: Mutex::new(child),
            stream,
            folder: folder.to_owned(),
            state: launch.state.into(),
            killed: OnceLock::new(),
            finished: OnceLock::new(),
            replays: launch.record.is_none(),
            _unread: unread,
        };
        daemon.wait("ready", |e| e.kind() == "ready")?;
        Ok(daemon)
    }

    /// Waits for an event for which `wanted` holds; earlier events count.
    pub fn wait(&self, what: &str, wanted: impl Fn(&Event) -> bool) -> Result<Event> {
        let mut seen = 0;
        let pending = |lines: &mut Lines| {
            let news = lines.events.get(seen..).unwrap_or_default();
            let found = news.iter().any(&wanted);
            seen = lines.events.len() - usize::from(found && !lines.events.is_empty());
            !found && !lines.ended
        };
        let (lines, _) = self
            .stream
            .grew
            .wait_timeout_while(self.stream.lock(), PATIENCE, pending)
            .unwrap_or_else(PoisonError::into_inner);
        let found = lines.events.iter().find(|e| wanted(e)).cloned();
        drop(lines);
        found.with_context(|| format!("no {what} within {PATIENCE:?}\n{}", self.account()))
    }

    /// Waits for the event `kind` about the server that `process` belongs to.
    pub fn wait_for(&self, kind: &str, process: Identity) -> Result<Event> {
        self.wait(&format!("{kind} for {process}"), |e| e.is(kind, process))
    }

    /// All events so far.
    pub fn events(&self) -> Vec<Event> {
        self.stream.lock().events.clone()
    }

    /// Whether there was an event `kind` about the server that `process` belongs to.
    pub fn has_said(&self, kind: &str, process: Identity) -> bool {
        self.stream.lock().events.iter().rev().any(|event| event.is(kind, process))
    }

    /// A command that uses this daemon's socket.
    pub fn verb(&self, args: &[&str]) -> Result<Command> {
        let mut command = Command::new(orphand()?);
        command.args(args).args(["--socket", SOCKET, "--config", "config.toml"]).current_dir(&self.folder);
        Ok(command)
    }

    /// The exit code of a verb that uses its socket, and what was printed, errors behind the rest.
    pub fn says(&self, verb: &[&str]) -> Result<(i32, String)> {
        let (code, text, error) = told(&mut self.verb(verb)?)?;
        Ok((code, text + &error))
    }

    /// Its control socket.
    pub fn socket(&self) -> PathBuf {
        self.folder.join(SOCKET)
    }

    /// The address of its metrics, according to its log.
    pub fn address(&self) -> Result<String> {
        let log = self.log();
        let address = log.split_once("http://").and_then(|(_, rest)| rest.split_once("/metrics"));
        Ok(address.with_context(|| format!("no address in the log: {log}"))?.0.to_owned())
    }

    /// Its log so far.
    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.join("stderr")).unwrap_or_default()
    }

    /// Checks that the server with exactly `processes` was judged an orphan because its owner exited, and was
    /// ended.
    pub fn reaped(&self, processes: &[Identity]) -> Result<Event> {
        let first = *processes.first().context("a server without processes")?;
        let reaped = self.wait_for("orphan_reaped", first)?;
        for one in processes {
            ensure!(reaped.has(*one), "{one} is not among the reaped: {}", reaped.line);
            one.wait_gone()?;
        }
        let events = self.events();
        let about = |kind: &str| events.iter().find(|e| e.kind() == kind && e.server() == reaped.server());
        let detected = about("orphan_detected").context("reaped, but not detected")?;
        ensure!(detected.list("evidence").contains(&"owner_exited"), "no evidence: {}", detected.line);
        ensure!(detected.list("guards").is_empty(), "reaped in spite of guards: {}", detected.line);
        Ok(reaped)
    }

    /// Checks that no event accuses any of `processes`, and that they live. It proves something only after
    /// [`Scene::barrier`].
    ///
    /// [`Scene::barrier`]: crate::Scene::barrier
    pub fn silent(&self, processes: &[Identity]) -> Result<()> {
        for one in processes {
            if let Some(event) = self.events().iter().find(|e| e.accuses() && e.has(*one)) {
                bail!("{one} was accused: {}\n{}", event.line, self.account());
            }
            ensure!(one.alive(), "{one} is dead\n{}", self.account());
        }
        Ok(())
    }

    /// Sends a signal to it.
    pub fn signal(&self, signal: Signal) -> Result<()> {
        self.id.signal(signal)
    }

    /// Its answer to a verb such as `status`, as JSON.
    pub fn ask(&self, verb: &[&str]) -> Result<Value> {
        self.run_verb(verb, &["--socket", SOCKET])
    }

    /// The answer of `history` from its store, as JSON. It need not run.
    pub fn history(&self) -> Result<Value> {
        self.run_verb(&["history"], &["--state-dir", &self.state])
    }

    fn run_verb(&self, verb: &[&str], place: &[&str]) -> Result<Value> {
        let mut command = Command::new(orphand()?);
        let output = output(command.args(verb).arg("--json").args(place).current_dir(&self.folder))?;
        let told = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{verb:?} ended with {}: {told}\n{}", output.status, self.account());
        serde_json::from_slice(&output.stdout).with_context(|| format!("{verb:?} printed no JSON"))
    }

    /// Sends SIGKILL. A successor with the same state directory can continue: [`Launch::state`].
    pub fn kill(&self) -> Result<()> {
        self.killed.set(()).ok().context("killed twice")?;
        if self.id.alive() {
            self.signal(Signal::KILL)?;
        }
        self.id.wait_gone()?;
        let _ = self.child.lock().unwrap_or_else(PoisonError::into_inner).wait()?;
        // What it had written before is read to the end.
        drop(self.stream.grew.wait_timeout_while(self.stream.lock(), PATIENCE, |l| !l.ended));
        Ok(())
    }

    /// Stops it, if it still runs, and checks its exit, its stream and its trace.
    pub fn finish(&self) -> Result<()> {
        if self.killed.get().is_some() || self.finished.get().is_some() {
            return Ok(());
        }
        let _ = self.finished.set(());
        if self.id.alive() {
            self.signal(Signal::TERM)?;
        }
        self.id.wait_gone()?;
        let status = self.child.lock().unwrap_or_else(PoisonError::into_inner).wait()?;
        ensure!(status.success(), "orphand ended with {status}\n{}", self.account());
        let end = self.stream.grew.wait_timeout_while(self.stream.lock(), PATIENCE, |l| !l.ended);
        drop(end);
        ensure!(!self.log().contains("panicked"), "orphand panicked\n{}", self.account());
        self.check_stream().with_context(|| self.account())?;
        if !self.replays {
            return Ok(());
        }
        self.check_replay().with_context(|| self.account())
    }

    fn check_stream(&self) -> Result<()> {
        let lines = self.stream.lock();
        ensure!(lines.malformed.is_none(), "{:?}", lines.malformed);
        let mut judged = BTreeMap::<(String, String), u32>::new();
        for (expected, event) in (1u64..).zip(&lines.events) {
            ensure!(event["seq"] == expected, "seq: expected {expected}: {}", event.line);
            ensure!(event["time"].is_string() && event["boot_ns"].is_u64(), "no time: {}", event.line);
            if event.kind() == "orphan_unproven" {
                // The verdict is taken back, so there may be another one.
                judged.remove(&("orphan_detected".into(), event.server().into()));
            }
            if matches!(event.kind(), "orphan_detected" | "orphan_reaped" | "orphan_exited") {
                let times = judged.entry((event.kind().into(), event.server().into())).or_default();
                *times += 1;
                ensure!(*times == 1, "more than once: {}", event.line);
            }
        }
        let last = lines.events.last().map(Event::kind);
        ensure!(last == Some("stopping"), "the last event is {last:?}");
        Ok(())
    }

    fn check_replay(&self) -> Result<()> {
        let replay = ["replay", "--format", "json", "trace"];
        let output = output(Command::new(orphand()?).args(replay).current_dir(&self.folder))?;
        let told = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "replay ended with {}: {told}", output.status);
        let replayed = String::from_utf8(output.stdout)?;
        let live = self.events();
        for (line, event) in replayed.lines().zip(&live) {
            ensure!(line == event.line, "the replay differs:\n live   {}\n replay {line}", event.line);
        }
        let count = replayed.lines().count();
        ensure!(count == live.len(), "the replay has {count} events, the live run had {}", live.len());
        Ok(())
    }

    /// Its events and log, for the report of a failure.
    pub(crate) fn account(&self) -> String {
        let events = self.events();
        let lines = events.iter().rev().take(60).rev().map(|e| e.line.as_str()).collect::<Vec<_>>();
        format!("--- events of {}\n{}\n--- log\n{}", self.id, lines.join("\n"), self.log())
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let child = self.child.get_mut().unwrap_or_else(PoisonError::into_inner);
        // The standard library does not signal a child that was waited for, and keeps its number until then.
        let _ = child.kill();
        let _ = child.wait();
    }
}

impl Stream {
    fn lock(&self) -> MutexGuard<'_, Lines> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn fill(&self, out: impl BufRead) {
        for line in out.lines() {
            let event = line.map_err(anyhow::Error::from).and_then(Event::parse);
            let mut lines = self.lock();
            match event {
                Ok(event) => lines.events.push(event),
                Err(error) => lines.malformed = Some(format!("{error:#}")),
            }
            self.grew.notify_all();
        }
        self.lock().ended = true;
        self.grew.notify_all();
    }
}
