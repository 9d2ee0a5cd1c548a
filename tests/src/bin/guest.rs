//! `guest FOLDER OUT`: plays the day of untether on a host of its own, whose service manager is the real pid 1, and tells what
//! was the case to the file OUT (a serial line), one JSON object a line; whoever booted the host judges. FOLDER is the scene: its
//! `bin` has the programs. First a daemon only observes, then its successor reaps.
//!
//! It waits for what it expects, with deadlines; what does not come is told as `trouble` and ends the play.

use std::{
    collections::BTreeSet,
    env,
    fs::{self, File},
    io::Write as _,
    path::PathBuf,
    process::Command,
    sync::Arc,
};

use anyhow::{Context as _, Result, ensure};
use rustix::fs::{Mode, OFlags};
use serde_json::{Value, json};
use tests::{Daemon, Launch, Told, Truth, output};

const UNIT: &str = "untether.service";
/// Starts of the unit while the first daemon observes, and further ones before the second one.
const OBSERVED: usize = 5;
const REAPED: usize = 3;

struct Guest {
    folder: PathBuf,
    out: File,
    truth: Arc<Truth>,
    starts: Vec<Vec<Told>>,
}

fn main() -> Result<()> {
    let mut args = env::args_os().skip(1).map(PathBuf::from);
    let (folder, out) = args.next().zip(args.next()).context("usage: guest FOLDER OUT")?;
    // It is not to become our controlling terminal, whose end would be ours.
    let out = rustix::fs::open(&out, OFlags::WRONLY | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty())
        .with_context(|| format!("open {}", out.display()))?;
    let truth = Truth::listen(&folder)?;
    let mut guest = Guest { folder, out: File::from(out), truth, starts: Vec::new() };
    if let Err(error) = guest.play() {
        guest.say(&json!({ "about": "trouble", "text": format!("{error:#}") }))?;
    }
    guest.say(&json!({ "about": "end" }))?;
    // The host is switched off as soon as we are gone.
    if rustix::termios::isatty(&guest.out) {
        rustix::termios::tcdrain(&guest.out).context("drain the line")?;
    }
    Ok(())
}

impl Guest {
    fn play(&mut self) -> Result<()> {
        self.say_host()?;
        let observer = Launch { state: "../state", args: vec!["--observe"], ..Launch::default() };
        let observer = self.act("observe", &observer, OBSERVED, "orphan_spared")?;
        self.say(&json!({ "about": "status", "daemon": "observe", "status": observer.ask(&["status"])? }))?;
        self.end("observe", &observer)?;
        let reaper = Launch { state: "../state", ..Launch::default() };
        let reaper = self.act("reap", &reaper, REAPED, "orphan_reaped")?;
        self.end("reap", &reaper)
    }

    /// A daemon, and `count` starts of the unit that it sees; when this returns it has told `last` of everybody left behind.
    fn act(&mut self, name: &str, launch: &Launch, count: usize, last: &str) -> Result<Daemon> {
        let daemon = Daemon::start(&self.folder.join(name), launch).with_context(|| name.to_owned())?;
        for _ in 0..count {
            self.restart(name, &daemon)?;
        }
        let (_, earlier) = self.starts.split_last().context("nobody was started")?;
        let told: BTreeSet<_> = earlier.iter().flatten().map(|t| t.id).collect();
        for server in told {
            if let Err(error) = daemon.wait_for(last, server) {
                self.say_events(name, &daemon)?;
                return Err(error.context(format!("{name}: {last} of {server} is missing")));
            }
        }
        Ok(daemon)
    }

    /// Start the unit anew, and wait until the daemon has told of its agent: what has ended before anybody looked has no unit.
    fn restart(&mut self, name: &str, daemon: &Daemon) -> Result<()> {
        systemctl(&["restart", UNIT])?;
        let invocation = systemctl(&["show", "--property=InvocationID", "--value", UNIT])?;
        let agents = self.truth.agents("untether");
        let agent = agents.into_iter().rfind(|t| t.invocation == invocation).context("no agent told")?;
        daemon.wait("its agent", |e| e.is_agent("agent_started", agent.id))?;
        let servers = self.truth.servers(&invocation);
        for server in &servers {
            daemon.wait_for("server_started", server.id)?;
        }
        let ids: Vec<String> = servers.iter().map(|t| t.id.to_string()).collect();
        self.starts.push(servers);
        self.say(&json!({ "about": "start", "daemon": name, "agent": agent.id.to_string(), "servers": ids }))
    }

    /// Stop a daemon, and tell what it said, and who of all servers lives.
    fn end(&mut self, name: &str, daemon: &Daemon) -> Result<()> {
        let ended = daemon.finish();
        self.say_events(name, daemon)?;
        ended.with_context(|| name.to_owned())?;
        let servers = self.starts.iter().flatten().map(|t| t.id);
        let alive: Vec<String> = servers.filter(|one| one.alive()).map(|one| one.to_string()).collect();
        self.say(&json!({ "about": "alive", "daemon": name, "servers": alive }))
    }

    fn say_host(&mut self) -> Result<()> {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default().trim().to_owned();
        let mounts = read("/proc/self/mounts");
        let cgroups = mounts.lines().filter(|m| m.split(' ').nth(2).is_some_and(|t| t.starts_with("cgroup")));
        let cgroups: Vec<&str> = cgroups.collect();
        self.say(&json!({
            "about": "host",
            "kernel": read("/proc/sys/kernel/osrelease"),
            "init": fs::read_link("/proc/1/exe").unwrap_or_default(),
            "cgroups": cgroups,
            "controllers": read("/sys/fs/cgroup/cgroup.controllers"),
        }))
    }

    fn say_events(&mut self, name: &str, daemon: &Daemon) -> Result<()> {
        for event in daemon.events() {
            let event: &Value = &event;
            self.say(&json!({ "about": "event", "daemon": name, "event": event }))?;
        }
        Ok(())
    }

    fn say(&mut self, what: &Value) -> Result<()> {
        // One write a line.
        self.out.write_all(format!("{what}\n").as_bytes()).context("tell the host outside")
    }
}

/// Tell the service manager something; gives its answer.
fn systemctl(args: &[&str]) -> Result<String> {
    let output = output(Command::new("systemctl").args(args))?;
    let error = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "systemctl {args:?}: {}", error.trim());
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
