//! The report of the guest: its system, the processes that were started, the output of the daemons, and the
//! processes that were alive after the daemons had exited.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;
use serde_json::Value;

/// A process as it is written in events: `PID@START`.
pub type Id = String;

/// The whole report, in the order in which the guest wrote it.
#[derive(Debug, Default)]
pub struct Account {
    /// The guest itself.
    pub host: Option<Host>,
    /// The starts of the unit; the first is number 1.
    pub starts: Vec<Start>,
    /// The events of each daemon, by the name of its part: `observe`, `reap`.
    pub events: BTreeMap<String, Vec<Value>>,
    /// Which servers lived when that daemon had ended.
    pub alive: BTreeMap<String, BTreeSet<Id>>,
    /// What the observing daemon answered to `status`.
    pub status: Value,
    /// The service: lines of its /proc/PID/status, by name.
    pub service: BTreeMap<String, String>,
}

/// A machine as its first process sees it.
#[derive(Debug, Clone, Deserialize)]
pub struct Host {
    /// uname(1)'s release.
    pub kernel: String,
    /// The program of pid 1.
    pub init: String,
    /// The lines of `/proc/self/mounts` about cgroups.
    pub cgroups: Vec<String>,
    /// The controllers of the cgroup root, in one line.
    pub controllers: String,
}

/// A start of the unit.
#[derive(Debug, Clone, Deserialize)]
pub struct Start {
    /// The part of the daemon that saw it.
    pub daemon: String,
    /// Its agent.
    pub agent: Id,
    /// What that started.
    pub servers: BTreeSet<Id>,
}

/// A line.
#[derive(Deserialize)]
#[serde(tag = "about", rename_all = "snake_case")]
enum Line {
    Host(Host),
    Start(Start),
    Event { daemon: String, event: Value },
    Status { status: Value },
    Service { status: BTreeMap<String, String> },
    Alive { daemon: String, servers: BTreeSet<Id> },
    Trouble { text: String },
    End,
}

impl Account {
    /// Reads it; one that has no end, or tells of trouble, is an error.
    pub fn read(told: &str) -> Result<Self> {
        let mut account = Self::default();
        let mut ended = false;
        // A serial line ends its lines as terminals do.
        for line in told.lines().map(str::trim_end).filter(|line| !line.is_empty()) {
            match serde_json::from_str(line).with_context(|| format!("the guest told nonsense: {line}"))? {
                Line::Host(host) => account.host = Some(host),
                Line::Start(start) => account.starts.push(start),
                Line::Event { daemon, event } => account.events.entry(daemon).or_default().push(event),
                Line::Status { status } => account.status = status,
                Line::Service { status } => account.service = status,
                Line::Alive { daemon, servers } => drop(account.alive.insert(daemon, servers)),
                Line::Trouble { text } => bail!("the guest had trouble: {}", first_line(&text)),
                Line::End => ended = true,
            }
        }
        if !ended {
            let last = told.lines().next_back().unwrap_or("nothing at all");
            bail!("the guest broke off; the last it told was: {}", first_line(last));
        }
        Ok(account)
    }
}

/// Of what may be long, what fits into a line. The rest is in the file.
fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().chars().take(300).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_breaks_off_or_tells_of_trouble_is_no_account() {
        let whole = "{\"about\":\"start\",\"daemon\":\"a\",\"agent\":\"1@2\",\"servers\":[\"3@4\"]}\r\n{\"about\":\"end\"}\r\n";
        assert_eq!(Account::read(whole).unwrap().starts[0].agent, "1@2");
        for (told, why) in [
            ("", "broke off; the last it told was: nothing at all"),
            (
                "{\"about\":\"alive\",\"daemon\":\"a\",\"servers\":[]}",
                "broke off; the last it told was: {\"about\"",
            ),
            (
                "{\"about\":\"trouble\",\"text\":\"no server\\nlog\"}\n{\"about\":\"end\"}",
                "had trouble: no server",
            ),
            ("{\"about\":\"en", "told nonsense"),
        ] {
            let error = format!("{:#}", Account::read(told).unwrap_err());
            assert!(error.contains(why) && !error.contains("\nlog"), "{error}");
        }
    }
}
