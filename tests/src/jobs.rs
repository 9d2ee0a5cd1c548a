//! A gateway on a published SDK that runs twenty jobs at once, each with a published server of its own, and the count
//! of what a daemon did to servers whose jobs still ran.
//!
//! Which job ends how and when follows from the number of its round: a failure can be repeated. Each server has the
//! name of its job among its arguments, by which the events about it are found.

use std::{
    collections::BTreeSet,
    fmt, fs,
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{ChildStdin, Command},
    sync::mpsc::{Receiver, channel},
    thread,
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{client::Sdk, event::Event, fixtures::Fixtures, host::Identity, scene::Scene};

const PYTHON: &str = include_str!("../actors/jobs.py");
const NODE: &str = include_str!("../actors/jobs.mjs");

/// The jobs of a round.
pub const JOBS: u64 = 20;
/// Twenty servers start at once, on a machine under load. A call of an actor takes at most half as long.
const PATIENCE: Duration = Duration::from_secs(120);

/// How a job ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum End {
    /// It is cancelled.
    Cancel,
    /// It ends its session properly.
    Close,
    /// It goes on until the round is over.
    Stay,
}

/// What a job does, see `actors/jobs.py`.
#[derive(Clone, Debug, Serialize)]
pub struct Plan {
    name: String,
    command: Vec<String>,
    first: Option<Value>,
    call: Value,
    end: End,
    after: u64,
    again: Option<u64>,
}

/// What a job tells when it is over.
#[derive(Clone, Debug, Deserialize)]
pub struct Report {
    pub name: String,
    /// How it was to end.
    pub end: End,
    /// Calls that were answered.
    pub calls: u64,
    /// When it was told to end, or ended its session, in nanoseconds since boot.
    pub left: Option<u64>,
    /// What failed while it ran.
    pub error: Option<String>,
    /// Whether it was told to end and does not.
    pub hangs: bool,
}

/// The count over all rounds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Rounds that are over.
    pub rounds: u64,
    /// Jobs that are over.
    pub jobs: usize,
    /// Jobs that were cancelled.
    pub cancelled: usize,
    /// Answered calls.
    pub calls: u64,
    /// Jobs that do not end although they were told to.
    pub hanging: usize,
    /// Everything that was done to a job, or said of its server, while it ran.
    pub wrong: Vec<String>,
}

impl Count {
    /// Adds the jobs of a round, and what a daemon said of their servers.
    pub fn add(&mut self, reports: &[Report], events: &[Event]) {
        self.rounds += 1;
        self.jobs += reports.len();
        self.cancelled += reports.iter().filter(|r| r.end == End::Cancel).count();
        self.calls += reports.iter().map(|r| r.calls).sum::<u64>();
        self.hanging += reports.iter().filter(|r| r.hangs).count();
        self.wrong.extend(reports.iter().flat_map(|report| report.wrong(events)));
    }
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rounds, jobs, cancelled, calls, hanging, wrong } = self;
        let wrong = wrong.len();
        write!(f, "{rounds} rounds, {jobs} jobs, {cancelled} cancelled, {hanging} hang, ")?;
        write!(f, "{calls} calls answered, {wrong} wrong")
    }
}

impl Report {
    /// What failed, and every event that accuses its server of the time before it was told to end.
    fn wrong(&self, events: &[Event]) -> Vec<String> {
        let told = self.error.iter().map(|error| format!("{}: {error}", self.name));
        let ran = |event: &&Event| self.left.is_none_or(|left| event["boot_ns"].as_u64() < Some(left));
        let accused = events.iter().filter(|e| e.accuses() && works_for(e, &self.name)).filter(ran);
        let silent =
            (self.end == End::Stay && self.calls < 2).then(|| format!("{} had no answers", self.name));
        told.chain(accused.map(|event| event.line.clone())).chain(silent).collect()
    }
}

/// Whether the server of this event works for that job.
pub fn works_for(event: &Event, job: &str) -> bool {
    let all = event.pointer("/server/processes").and_then(Value::as_array).into_iter().flatten();
    all.flat_map(|p| p["argv"].as_array().into_iter().flatten())
        .filter_map(Value::as_str)
        .any(|argument| self::job(argument).as_deref() == Some(job))
}

/// The name of the job that an argument, a path or a script, contains.
pub fn job(argument: &str) -> Option<String> {
    argument.split(['/', ' ', ';']).find(|word| word.starts_with("job-")).map(str::to_owned)
}

/// A running gateway.
#[derive(Debug)]
pub struct Gateway {
    pub sdk: Sdk,
    id: Identity,
    stdin: ChildStdin,
    lines: Receiver<Value>,
}

impl Gateway {
    pub fn start(s: &Scene, sdk: Sdk) -> Result<Self> {
        let fixtures = Fixtures::open()?;
        let (name, text, interpreter) = match sdk {
            Sdk::Python1 => ("jobs.py", PYTHON, Fixtures::venv_bin(&fixtures.python1, "python")),
            Sdk::Python2 => ("jobs.py", PYTHON, Fixtures::venv_bin(&fixtures.python2, "python")),
            Sdk::Node => ("jobs.mjs", NODE, "node".into()),
        };
        let script = s.folder().join(name);
        fs::write(&script, text).with_context(|| format!("write {}", script.display()))?;
        let mut command = s.command(&interpreter)?;
        command.arg(script);
        if sdk == Sdk::Node {
            command.arg(fixtures.npm.join("node_modules/@modelcontextprotocol/sdk"));
        }
        // `npx` finds the installed servers there.
        command.current_dir(&fixtures.npm);
        command.stderr(fs::File::options().append(true).create(true).open(s.folder().join("jobs.log"))?);
        let (id, stdin, stdout) = s.spawn_piped(&mut command)?;
        let (line, lines) = channel();
        thread::spawn(move || {
            let lines = BufReader::new(stdout).lines().map_while(Result::ok);
            lines.filter_map(|l| serde_json::from_str(&l).ok()).try_for_each(|value: Value| line.send(value))
        });
        Ok(Self { sdk, id, stdin, lines })
    }

    /// Begins a round.
    pub fn begin(&mut self, plans: &[Plan]) -> Result<()> {
        writeln!(self.stdin, "{}", serde_json::to_string(plans)?).context("begin a round")
    }

    /// Waits until only the jobs are left that stay, and each of them was answered since.
    pub fn settle(&mut self) -> Result<()> {
        let told = self.line()?;
        ensure!(told.get("settled").is_some(), "{:?}: {told}", self.sdk);
        Ok(())
    }

    /// Ends the jobs that stay, after another call each; gives the reports of all.
    pub fn end(&mut self) -> Result<Vec<Report>> {
        writeln!(self.stdin, "end").context("end a round")?;
        let told = self.line()?;
        let over = told.get("over").cloned().with_context(|| format!("{:?}: {told}", self.sdk))?;
        serde_json::from_value(over).with_context(|| format!("{:?}: {told}", self.sdk))
    }

    /// Whether it holds an end of a pipe of this process: it has not let go of that server.
    pub fn holds(&self, server: Identity) -> bool {
        let own = pipes(self.id);
        pipes(server).iter().any(|pipe| own.contains(pipe))
    }

    /// Whether this process is a child of it.
    pub fn started(&self, server: Identity) -> bool {
        server.parent() == Some(self.id.pid)
    }

    fn line(&self) -> Result<Value> {
        self.lines.recv_timeout(PATIENCE).with_context(|| format!("{:?} does not go on", self.sdk))
    }
}

/// The pipes that a process has open, as in its /proc/PID/fd.
fn pipes(process: Identity) -> BTreeSet<PathBuf> {
    let fds = fs::read_dir(format!("/proc/{}/fd", process.pid)).into_iter().flatten().flatten();
    let links = fds.filter_map(|fd| fs::read_link(fd.path()).ok());
    links.filter(|link| link.to_string_lossy().starts_with("pipe:")).collect()
}

/// The plans of a round for a gateway on this SDK, with what its servers need in `folder`.
pub fn round(folder: &Path, sdk: Sdk, round: u64) -> Result<Vec<Plan>> {
    let mut chance = Chance(round << 2 | sdk as u64);
    let servers = Servers::prepare(folder)?;
    (0..JOBS).map(|n| servers.plan(n, format!("job-{sdk:?}-{round}-{n}"), &mut chance)).collect()
}

/// The plans of so many jobs that all stay.
pub fn quiet_round(folder: &Path, jobs: u64) -> Result<Vec<Plan>> {
    let servers = Servers::prepare(folder)?;
    let stay = |plan: Plan| Plan { end: End::Stay, ..plan };
    (0..jobs).map(|n| servers.plan(n, format!("job-{n}"), &mut Chance(n)).map(stay)).collect()
}

/// Published servers, and the folder in which each job has one.
struct Servers {
    everything: String,
    filesystem: String,
    git: String,
    folder: String,
}

impl Servers {
    fn prepare(folder: &Path) -> Result<Self> {
        let fixtures = Fixtures::open()?;
        let folder = folder.join("files");
        if !folder.exists() {
            let made =
                Command::new("git").args(["init", "--quiet"]).arg(folder.join("repository")).status()?;
            ensure!(made.success(), "git init ended with {made}");
        }
        Ok(Self {
            everything: fixtures.everything(),
            filesystem: fixtures.npm_bin("mcp-server-filesystem"),
            git: Fixtures::venv_bin(&fixtures.python2, "mcp-server-git"),
            folder: folder.canonicalize()?.to_string_lossy().into_owned(),
        })
    }

    fn plan(&self, n: u64, name: String, chance: &mut Chance) -> Result<Plan> {
        let own = format!("{}/{name}", self.folder);
        std::os::unix::fs::symlink("repository", &own).with_context(|| format!("make {own}"))?;
        let echo = json!(["echo", { "message": name }]);
        let package = "@modelcontextprotocol/server-everything";
        // Of an argument that is no path only a mask is shown.
        let mark = format!("./{name}");
        let script = format!("node {} stdio {mark}; true", self.everything);
        let (command, call) = match n {
            0..8 => (vec!["node", &self.everything, "stdio", &mark], echo),
            8..12 => (vec!["npx", "-y", package, "stdio", &mark], echo),
            12..14 => (vec!["sh", "-c", &script], echo),
            14..19 => (vec![&*self.filesystem, &own], json!(["list_directory", { "path": own }])),
            _ => (vec![&*self.git, "--repository", &own], json!(["git_status", { "repo_path": own }])),
        };
        // An interval timer keeps server-everything alive after the end of its input.
        let ticks = n < 14 && chance.below(2) == 0;
        let end = match (n, chance.below(10)) {
            (0, _) | (1.., 7..) => End::Stay,
            (_, 6) => End::Close,
            _ => End::Cancel,
        };
        Ok(Plan {
            command: command.into_iter().map(str::to_owned).collect(),
            first: ticks.then(|| json!(["toggle-subscriber-updates", {}])),
            call,
            end,
            after: chance.below(5000),
            again: (chance.below(4) == 0).then(|| chance.below(500)),
            name,
        })
    }
}

/// Numbers that look random and follow from the first, after Steele's `SplitMix`.
struct Chance(u64);

impl Chance {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(kind: &str, at: u64, argument: &str) -> Event {
        let server = json!({ "processes": [{ "pid": 7, "start": 8, "argv": ["npx", argument] }] });
        Event::in_part(json!({ "event": kind, "boot_ns": at, "server": server }).to_string()).unwrap()
    }

    fn report(end: End) -> Report {
        Report { name: "job-1-2".into(), end, calls: 9, left: Some(100), error: None, hangs: false }
    }

    fn wrong(report: Report, events: &[Event]) -> usize {
        let mut count = Count::default();
        count.add(&[report], events);
        count.wrong.len()
    }

    #[test]
    fn what_is_said_of_a_server_while_its_job_runs_is_wrong() {
        for kind in ["orphan_suspected", "orphan_unproven", "orphan_detected", "orphan_reaped", "reap_failed"]
        {
            for argument in ["job-1-2", "/x/files/job-1-2", "node index.js stdio job-1-2; true"] {
                assert_eq!(wrong(report(End::Cancel), &[event(kind, 99, argument)]), 1);
            }
        }
    }

    #[test]
    fn what_is_said_later_or_of_another_is_not() {
        let events = [
            event("orphan_detected", 100, "job-1-2"),
            event("orphan_detected", 99, "job-1-20"),
            event("server_started", 99, "job-1-2"),
        ];
        assert_eq!(wrong(report(End::Stay), &events), 0);
        assert_eq!(wrong(Report { left: None, ..report(End::Stay) }, &events), 1);
    }

    #[test]
    fn a_failure_or_silence_is_wrong() {
        assert_eq!(wrong(Report { error: Some("closed".into()), ..report(End::Stay) }, &[]), 1);
        assert_eq!(wrong(Report { calls: 0, ..report(End::Stay) }, &[]), 1);
        assert_eq!(wrong(Report { calls: 0, ..report(End::Cancel) }, &[]), 0);
    }
}
