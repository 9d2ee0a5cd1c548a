//! `guest FOLDER OUT`: plays the restarts of a service on a host of its own whose pid 1 is the real service
//! manager, and writes the results to the file OUT (a serial line) as one JSON object per line; the program
//! that booted the host judges them. FOLDER is the scene; its `bin` has the programs. First a daemon only
//! observes, then its successor reaps, and at last orphand runs as the packaged service, which hangs once.
//!
//! It waits for what it expects, with timeouts. If something does not come, it reports `trouble` and ends.

mod service;

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
use tests::{Daemon, Event, Launch, Told, Truth, output};

use crate::service::Service;

const UNIT: &str = "untether.service";
/// Starts of the unit while the first daemon observes, and further ones before the second one.
const OBSERVED: usize = 5;
const REAPED: usize = 3;
/// And by the service, before it hangs and after that.
const SERVED: usize = 2;

struct Guest {
    folder: PathBuf,
    out: File,
    truth: Arc<Truth>,
    starts: Vec<Vec<Told>>,
}

fn main() -> Result<()> {
    let mut args = env::args_os().skip(1).map(PathBuf::from);
    let (folder, out) = args.next().zip(args.next()).context("usage: guest FOLDER OUT")?;
    // It must not become the controlling terminal, whose end would end this process.
    let out = rustix::fs::open(&out, OFlags::WRONLY | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty())
        .with_context(|| format!("open {}", out.display()))?;
    let truth = Truth::listen(&folder)?;
    let mut guest = Guest { folder, out: File::from(out), truth, starts: Vec::new() };
    if let Err(error) = guest.play() {
        guest.write(&json!({ "about": "trouble", "text": format!("{error:#}") }))?;
    }
    guest.write(&json!({ "about": "end" }))?;
    // The host is switched off as soon as this process ends.
    if rustix::termios::isatty(&guest.out) {
        rustix::termios::tcdrain(&guest.out).context("drain the line")?;
    }
    Ok(())
}

impl Guest {
    fn play(&mut self) -> Result<()> {
        self.write_host()?;
        let observer = Launch { state: "../state", args: vec!["--observe"], ..Launch::default() };
        let observer = self.act("observe", &observer, OBSERVED, "orphan_spared")?;
        self.write(&json!({ "about": "status", "daemon": "observe", "status": observer.ask(&["status"])? }))?;
        self.end("observe", &observer)?;
        let reaper = Launch { state: "../state", ..Launch::default() };
        let reaper = self.act("reap", &reaper, REAPED, "orphan_reaped")?;
        self.end("reap", &reaper)?;
        self.serve()
    }

    /// The service continues where the last daemon stopped, and so does its successor after the hang.
    fn serve(&mut self) -> Result<()> {
        Service::install(&self.folder.join("state"))?;
        let first = Service::start()?;
        self.watch("service", &first, SERVED, "orphan_reaped")?;
        self.write(&first.status()?)?;
        Service::prefer_tracepoint()?;
        let second = first.hang()?;
        self.end_of("service", &first.events()?)?;
        self.watch("again", &second, SERVED, "orphan_reaped")?;
        Service::stop()?;
        self.end_of("again", &second.events()?)
    }

    /// Starts a daemon and restarts the unit `count` times. Returns when it has reported `last` for every
    /// server that was left behind.
    fn act(&mut self, name: &str, launch: &Launch, count: usize, last: &str) -> Result<Daemon> {
        let daemon = Daemon::start(&self.folder.join(name), launch).with_context(|| name.to_owned())?;
        self.watch(name, &daemon, count, last)?;
        Ok(daemon)
    }

    /// The same for a daemon that already runs.
    fn watch(&mut self, name: &str, daemon: &dyn Watch, count: usize, last: &str) -> Result<()> {
        // Servers that an earlier daemon ended are not reported again.
        let mut left: BTreeSet<_> =
            self.starts.iter().flatten().map(|t| t.id).filter(|one| one.alive()).collect();
        let new = self.starts.len();
        for _ in 0..count {
            self.restart(name, daemon)?;
        }
        let (_, earlier) = self.starts.split_last().context("nobody was started")?;
        left.extend(earlier.iter().skip(new).flatten().map(|t| t.id));
        for server in left {
            if let Err(error) = daemon.expect(last, &|e| e.is(last, server)) {
                self.write_events(name, &daemon.told()?)?;
                return Err(error.context(format!("{name}: {last} of {server} is missing")));
            }
        }
        Ok(())
    }

    /// Restarts the unit and waits until the daemon has reported its agent, because the unit of a process that
    /// ended earlier cannot be found out.
    fn restart(&mut self, name: &str, daemon: &dyn Watch) -> Result<()> {
        systemctl(&["restart", UNIT])?;
        let invocation = systemctl(&["show", "--property=InvocationID", "--value", UNIT])?;
        let agents = self.truth.agents("untether");
        let agent = agents.into_iter().rfind(|t| t.invocation == invocation).context("no agent told")?;
        daemon.expect("its agent", &|e| e.is_agent("agent_started", agent.id))?;
        let servers = self.truth.servers(&invocation);
        for server in &servers {
            daemon.expect("its server", &|e| e.is("server_started", server.id))?;
        }
        let ids: Vec<String> = servers.iter().map(|t| t.id.to_string()).collect();
        self.starts.push(servers);
        self.write(
            &json!({ "about": "start", "daemon": name, "agent": agent.id.to_string(), "servers": ids }),
        )
    }

    /// Stop a daemon, and tell what it said, and who of all servers lives.
    fn end(&mut self, name: &str, daemon: &Daemon) -> Result<()> {
        let ended = daemon.finish();
        let events = daemon.events();
        if let Err(error) = ended {
            self.write_events(name, &events)?;
            return Err(error.context(name.to_owned()));
        }
        self.end_of(name, &events)
    }

    /// Reports a daemon that has ended.
    fn end_of(&mut self, name: &str, events: &[Event]) -> Result<()> {
        self.write_events(name, events)?;
        let servers = self.starts.iter().flatten().map(|t| t.id);
        let alive: Vec<String> = servers.filter(|one| one.alive()).map(|one| one.to_string()).collect();
        self.write(&json!({ "about": "alive", "daemon": name, "servers": alive }))
    }

    fn write_host(&mut self) -> Result<()> {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default().trim().to_owned();
        let mounts = read("/proc/self/mounts");
        let cgroups = mounts.lines().filter(|m| m.split(' ').nth(2).is_some_and(|t| t.starts_with("cgroup")));
        let cgroups: Vec<&str> = cgroups.collect();
        self.write(&json!({
            "about": "host",
            "kernel": read("/proc/sys/kernel/osrelease"),
            "init": fs::read_link("/proc/1/exe").unwrap_or_default(),
            "cgroups": cgroups,
            "controllers": read("/sys/fs/cgroup/cgroup.controllers"),
        }))
    }

    fn write_events(&mut self, name: &str, events: &[Event]) -> Result<()> {
        for event in events {
            let event: &Value = event;
            self.write(&json!({ "about": "event", "daemon": name, "event": event }))?;
        }
        Ok(())
    }

    fn write(&mut self, what: &Value) -> Result<()> {
        // One write per line.
        self.out.write_all(format!("{what}\n").as_bytes()).context("tell the host outside")
    }
}

/// A daemon whose events can be read.
trait Watch {
    /// Waits for an event for which `wanted` holds; earlier events count.
    fn expect(&self, what: &str, wanted: &dyn Fn(&Event) -> bool) -> Result<Event>;

    /// All events so far.
    fn told(&self) -> Result<Vec<Event>>;
}

impl Watch for Daemon {
    fn expect(&self, what: &str, wanted: &dyn Fn(&Event) -> bool) -> Result<Event> {
        self.wait(what, wanted)
    }

    fn told(&self) -> Result<Vec<Event>> {
        Ok(self.events())
    }
}

impl Watch for Service {
    fn expect(&self, what: &str, wanted: &dyn Fn(&Event) -> bool) -> Result<Event> {
        let look = || self.events().ok()?.into_iter().find(|event| wanted(event));
        tests::within(what, look).with_context(Self::account)
    }

    fn told(&self) -> Result<Vec<Event>> {
        self.events()
    }
}

/// Runs systemctl and returns its output.
fn systemctl(args: &[&str]) -> Result<String> {
    let output = output(Command::new("systemctl").args(args))?;
    let error = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "systemctl {args:?}: {}", error.trim());
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
