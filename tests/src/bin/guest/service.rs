//! orphand as a service of the guest's pid 1: installed, started, hung, stopped. Its events are read from the
//! journal.

use std::{fs, path::Path, process::Command};

use anyhow::{Context as _, Result, ensure};
use rustix::process::Signal;
use serde_json::{Value, json};
use tests::{Event, Identity, output, within};

use crate::systemctl;

const UNIT: &str = "orphand.service";
const CONFIG: &str = "/etc/orphand/config.toml";
/// Short times, because the play is short.
const SHORT: &str = "grace = \"300ms\"\n";
/// Setsid by the tracepoint, whose number is in a tracefs that only root may enter.
const TRACEPOINT: &str = "[Service]\nExecStart=\nExecStart=/usr/bin/orphand run --setsid tracepoint\n";
/// Debian's default reserves the tracepoint for `CAP_SYS_ADMIN`; 2 is the kernel's default.
const PARANOID: &str = "/proc/sys/kernel/perf_event_paranoid";
/// Makes the watchdog find a hang at once.
const QUICK: &str = "[Service]\nWatchdogSec=5\nTimeoutAbortSec=1\nRestartSec=100ms\n";

/// A daemon that the service manager started.
pub(crate) struct Service {
    main: Identity,
}

impl Service {
    /// Installs what the package leaves to the administrator. The store is that of an earlier daemon.
    pub(crate) fn install(state: &Path) -> Result<()> {
        for (path, text) in [(CONFIG, SHORT), ("/run/systemd/system/orphand.service.d/quick.conf", QUICK)] {
            let folder = Path::new(path).parent().context("no folder")?;
            fs::create_dir_all(folder).with_context(|| format!("make {}", folder.display()))?;
            fs::write(path, text).with_context(|| format!("write {path}"))?;
        }
        let to = Path::new("/var/lib/orphand");
        fs::create_dir_all(to).context("make the state directory")?;
        for file in fs::read_dir(state).with_context(|| format!("read {}", state.display()))?.flatten() {
            fs::copy(file.path(), to.join(file.file_name())).context("copy the store")?;
        }
        systemctl(&["daemon-reload"]).map(drop)
    }

    /// Starts it; when this returns it has said that it is ready.
    pub(crate) fn start() -> Result<Self> {
        if let Err(error) = systemctl(&["start", UNIT]) {
            return Err(error.context(journal(&["-n", "30", "-o", "cat"]).unwrap_or_default()));
        }
        Self::present()
    }

    fn present() -> Result<Self> {
        let pid = systemctl(&["show", "--property=MainPID", "--value", UNIT])?.parse()?;
        Ok(Self { main: Identity::of(pid).with_context(|| format!("no process {pid}"))? })
    }

    pub(crate) fn events(&self) -> Result<Vec<Event>> {
        let own = format!("_PID={}", self.main.pid);
        let entries = journal(&["-o", "json", "--all", "SYSLOG_IDENTIFIER=orphand", &own])?;
        let mut events = Vec::new();
        for entry in entries.lines() {
            let entry: Value = serde_json::from_str(entry).with_context(|| entry.to_owned())?;
            if let Some(line) = entry.get("ORPHAND_JSON").and_then(Value::as_str) {
                events.push(Event::parse(line.to_owned())?);
            }
        }
        Ok(events)
    }

    /// Its process and its rights.
    pub(crate) fn status(&self) -> Result<Value> {
        let path = format!("/proc/{}/status", self.main.pid);
        let text = fs::read_to_string(&path).with_context(|| format!("read {path}"))?;
        let of = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            line.map(|value| value.split_whitespace().next().unwrap_or_default().to_owned())
        };
        let names = ["Uid", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp"];
        let status: serde_json::Map<_, _> = names.iter().map(|n| ((*n).to_owned(), json!(of(n)))).collect();
        let sysctl = |name: &str| fs::read_to_string(format!("/proc/sys/kernel/{name}")).ok();
        Ok(json!({
            "about": "service",
            "status": status,
            "unprivileged_bpf_disabled": sysctl("unprivileged_bpf_disabled"),
            "perf_event_paranoid": sysctl("perf_event_paranoid"),
            "memory": systemctl(&["show", "--property=MemoryCurrent", "--value", UNIT])?,
        }))
    }

    /// Makes the next daemon use the tracepoint for setsid.
    pub(crate) fn prefer_tracepoint() -> Result<()> {
        let path = "/run/systemd/system/orphand.service.d/setsid.conf";
        fs::write(path, TRACEPOINT).with_context(|| format!("write {path}"))?;
        systemctl(&["daemon-reload"])?;
        fs::write(PARANOID, "2").with_context(|| format!("write {PARANOID}"))
    }

    /// Stops it until the watchdog has ended it; returns its successor when that is ready.
    pub(crate) fn hang(&self) -> Result<Self> {
        self.main.signal(Signal::STOP)?;
        self.main.wait_gone()?;
        let another = || Self::present().ok().filter(|now| now.main != self.main);
        let next = within("another daemon", another).with_context(Self::account)?;
        let ready = || next.events().ok()?.iter().any(|e| e.kind() == "ready").then_some(());
        within("it is ready", ready).with_context(Self::account)?;
        Ok(next)
    }

    pub(crate) fn stop() -> Result<()> {
        systemctl(&["stop", UNIT])?;
        let result = systemctl(&["show", "--property=Result", "--value", UNIT])?;
        ensure!(result == "success", "it was stopped with {result}: {}", Self::account());
        Ok(())
    }

    /// Status and log, for the report of a failure.
    pub(crate) fn account() -> String {
        journal(&["-n", "60", "-o", "short-monotonic"]).unwrap_or_default()
    }
}

fn journal(args: &[&str]) -> Result<String> {
    let output = output(Command::new("journalctl").args(["--no-pager", "--quiet"]).args(args))?;
    ensure!(output.status.success(), "journalctl: {}", String::from_utf8_lossy(&output.stderr).trim());
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
