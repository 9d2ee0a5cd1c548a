//! `guest FOLDER OUT`: plays the day of untether on a host of its own, whose service manager is the real pid 1, and tells what
//! was the case to the file OUT (a serial line), one JSON object a line; whoever booted the host judges. FOLDER is the scene: its
//! `bin` has the programs. First a daemon only observes, then its successor reaps; at last orphand is the service it is
//! shipped as, which hangs once.
//!
//! It waits for what it expects, with deadlines; what does not come is told as `trouble` and ends the play.

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
/// And by the service before it hangs, and after that.
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
        self.end("reap", &reaper)?;
        self.serve()
    }

    /// The service goes on where the last daemon stopped, and so does its successor after it has hung.
    fn serve(&mut self) -> Result<()> {
        Service::install(&self.folder.join("state"))?;
        let first = Service::start()?;
        self.watch("service", &first, SERVED, "orphan_reaped")?;
        self.say(&first.standing()?)?;
        Service::prefer_tracepoint()?;
        let second = first.hang()?;
        self.end_of("service", &first.events()?)?;
        self.watch("again", &second, SERVED, "orphan_reaped")?;
        Service::stop()?;
        self.end_of("again", &second.events()?)
    }

    /// A daemon, and `count` starts of the unit that it sees; when this returns it has told `last` of everybody left behind.
    fn act(&mut self, name: &str, launch: &Launch, count: usize, last: &str) -> Result<Daemon> {
        let daemon = Daemon::start(&self.folder.join(name), launch).with_context(|| name.to_owned())?;
        self.watch(name, &daemon, count, last)?;
        Ok(daemon)
    }

    /// The same for one that runs.
    fn watch(&mut self, name: &str, daemon: &dyn Watch, count: usize, last: &str) -> Result<()> {
        // Whom an earlier daemon has ended this one does not tell of.
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
                self.say_events(name, &daemon.told()?)?;
                return Err(error.context(format!("{name}: {last} of {server} is missing")));
            }
        }
        Ok(())
    }

    /// Start the unit anew, and wait until the daemon has told of its agent: what has ended before anybody looked has no unit.
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
        self.say(&json!({ "about": "start", "daemon": name, "agent": agent.id.to_string(), "servers": ids }))
    }

    /// Stop a daemon, and tell what it said, and who of all servers lives.
    fn end(&mut self, name: &str, daemon: &Daemon) -> Result<()> {
        let ended = daemon.finish();
        let events = daemon.events();
        if let Err(error) = ended {
            self.say_events(name, &events)?;
            return Err(error.context(name.to_owned()));
        }
        self.end_of(name, &events)
    }

    /// One that has ended.
    fn end_of(&mut self, name: &str, events: &[Event]) -> Result<()> {
        self.say_events(name, events)?;
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

    fn say_events(&mut self, name: &str, events: &[Event]) -> Result<()> {
        for event in events {
            let event: &Value = event;
            self.say(&json!({ "about": "event", "daemon": name, "event": event }))?;
        }
        Ok(())
    }

    fn say(&mut self, what: &Value) -> Result<()> {
        // One write a line.
        self.out.write_all(format!("{what}\n").as_bytes()).context("tell the host outside")
    }
}

/// A daemon that can be listened to.
trait Watch {
    /// The first event, past or to come, that `wanted` holds for.
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

/// Tell the service manager something; gives its answer.
fn systemctl(args: &[&str]) -> Result<String> {
    let output = output(Command::new("systemctl").args(args))?;
    let error = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "systemctl {args:?}: {}", error.trim());
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
