//! Decides whether the report of the guest is right. The first fault is the error.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;

use super::account::{Account, Host, Id, Start};

/// With fewer starts nothing would be left behind twice, with fewer servers none beside another.
const STARTS: usize = 3;
const SERVERS: usize = 2;

/// The capabilities that the service has after its start: `CAP_SYS_PTRACE`, `CAP_KILL`, `CAP_DAC_READ_SEARCH`.
const KEPT: &str = "0000000000080024";
/// With those that are out of effect but for moments: `CAP_SETUID` and `CAP_SETGID`.
const PERMITTED: &str = "00000000000800e4";
/// What its unit gives it: `CAP_BPF` and `CAP_PERFMON`, too.
const GIVEN: &str = "000000c0000800e4";

/// The unit that is restarted.
const UNIT: &str = "untether.service";

/// What was found right.
#[derive(Debug)]
pub struct Verdict {
    kernel: String,
    setsid: String,
    runs: usize,
    servers: usize,
    reaped: usize,
    served: usize,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kernel, setsid, runs, servers, reaped, served } = self;
        write!(
            f,
            "Linux {kernel} ({setsid}), cgroup2 alone with the memory controller: {runs} runs with their own \
             {servers} servers; {reaped} left behind, reaped by number, {served} of them by the service, which is no root and \
             hung once; the present ones untouched"
        )
    }
}

/// Servers by the number of their run.
type ByRun = BTreeMap<u64, BTreeSet<Id>>;

/// The judgement.
pub fn judge(account: &Account) -> Result<Verdict> {
    let host = account.host.as_ref().context("the guest did not say what it is")?;
    layout(host)?;
    let by_hand: Vec<&Start> =
        account.starts.iter().filter(|start| ["observe", "reap"].contains(&start.daemon.as_str())).collect();
    let runs: Vec<BTreeSet<Id>> = by_hand.iter().map(|start| start.servers.clone()).collect();
    ensure!(runs.len() >= STARTS, "the unit was started {} times only", runs.len());
    let fewest = runs.iter().map(BTreeSet::len).min().unwrap_or_default();
    ensure!(fewest >= SERVERS, "a start has {fewest} servers only");
    let until = |number: usize| -> ByRun { (1..).zip(runs.iter().take(number).cloned()).collect() };

    let truth: BTreeSet<Id> = account.starts.iter().flat_map(|start| start.servers.clone()).collect();
    let observed = account.starts.iter().filter(|start| start.daemon == "observe").count();
    ensure!((2..runs.len()).contains(&observed), "{observed} of {} starts were observed", runs.len());
    let (left_at_first, left) = (until(observed - 1), until(runs.len() - 1));
    let observe = Part::of(account, &truth, "observe", "observe")?;
    observe.has_stopped()?;
    observe.numbers(account, &until(observed))?;
    observe.told("orphan_detected", &left_at_first)?;
    observe.accused_only(&all(&left_at_first))?;
    observe.told("orphan_reaped", &ByRun::new())?;
    observe.judged_in_full()?;
    observe.left_alive(&all(&until(observed)))?;
    memory(&account.status, &all(&until(observed)))?;

    let reap = Part::of(account, &truth, "reap", "reap")?;
    reap.has_stopped()?;
    reap.numbers(account, &until(runs.len()))?;
    reap.told("orphan_reaped", &left)?;
    reap.accused_only(&all(&left))?;
    reap.left_alive(runs.last().context("no start")?)?;
    let served = serve(account, &truth, runs.len())?;

    let hooks = reap.ready.get("hooks").and_then(Value::as_array).into_iter().flatten();
    let setsid = hooks.filter_map(Value::as_str).find(|hook| hook.contains("setsid"));
    Ok(Verdict {
        kernel: host.kernel.clone(),
        setsid: setsid.unwrap_or("no hook on setsid").to_owned(),
        runs: account.starts.len(),
        servers: truth.len(),
        reaped: all(&left).len() + served,
        served,
    })
}

/// The service and its successor: each finds the servers of the start number `present`, which are in use, and knows
/// their number; with each start that it sees those of the one before are left behind. How many they ended.
fn serve(account: &Account, truth: &BTreeSet<Id>, mut present: usize) -> Result<usize> {
    let is = |name: &str| account.service.get(name).map(String::as_str).unwrap_or_default();
    ensure!(!matches!(is("Uid"), "" | "0"), "the service runs as user {:?}", is("Uid"));
    let rights = [("CapEff", KEPT), ("CapPrm", PERMITTED), ("CapBnd", GIVEN), ("CapAmb", "0000000000000000")];
    for (name, wanted) in rights.into_iter().chain([("NoNewPrivs", "1"), ("Seccomp", "2")]) {
        ensure!(is(name) == wanted, "the service has {name} {:?}, not {wanted:?}", is(name));
    }
    let mut ended = 0;
    for name in ["service", "again"] {
        let own = account.starts.iter().filter(|start| start.daemon == name).count();
        ensure!(own > 0, "{name}: it saw no start");
        let last = present + own;
        let runs = |until: usize| -> ByRun {
            let starts = (1..).zip(&account.starts).take(until).skip(present - 1);
            starts.map(|(number, start)| (number, start.servers.clone())).collect()
        };
        let left = runs(last - 1);
        let part = Part::of(account, truth, name, "reap")?;
        part.numbers(account, &runs(last))?;
        part.told("orphan_reaped", &left)?;
        part.accused_only(&all(&left))?;
        let living = account.starts.get(last - 1).context("no start")?;
        part.left_alive(&living.servers)?;
        ended += all(&left).len();
        present = last;
        if name == "again" {
            part.has_stopped()?;
            let hooks = part.ready.get("hooks").unwrap_or(&Value::Null);
            ensure!(hooks.to_string().contains("tracepoint:syscalls"), "{name}: the hooks are {hooks}");
        }
    }
    Ok(ended)
}

/// systemd is the first process, cgroup2 is all there is of cgroups, and memory is among its controllers.
fn layout(host: &Host) -> Result<()> {
    ensure!(host.init.ends_with("/systemd"), "pid 1 of the guest is {}", host.init);
    let is_v2 = |mount: &String| mount.split(' ').skip(1).take(2).eq(["/sys/fs/cgroup", "cgroup2"]);
    let pure = host.cgroups.len() == 1 && host.cgroups.iter().all(is_v2);
    ensure!(pure, "the guest's cgroups are not version 2 alone: {:?}", host.cgroups);
    let memory = host.controllers.split(' ').any(|one| one == "memory");
    ensure!(memory, "the guest has no memory controller: {:?}", host.controllers);
    Ok(())
}

/// The status has all of these servers, and each has memory.
fn memory(status: &Value, servers: &BTreeSet<Id>) -> Result<()> {
    let list =
        |value: &Value, path| value.pointer(path).and_then(Value::as_array).cloned().unwrap_or_default();
    let agents = list(status, "/report/agents");
    let told = agents.iter().flat_map(|agent| list(agent, "/servers"));
    let with_memory = told.filter(|one| one.pointer("/server/rss_bytes").and_then(Value::as_u64) > Some(0));
    let ids = with_memory.map(|one| server_of(one.get("server").unwrap_or(&Value::Null), servers));
    same("with memory in the status of the observing daemon", &ids.collect::<Result<_>>()?, servers)
}

/// What a daemon said, and who lived when it had ended.
struct Part<'a> {
    name: &'a str,
    ready: &'a Value,
    events: &'a [Value],
    alive: &'a BTreeSet<Id>,
    /// Every server that was started.
    truth: &'a BTreeSet<Id>,
}

impl<'a> Part<'a> {
    fn of(account: &'a Account, truth: &'a BTreeSet<Id>, name: &'a str, mode: &str) -> Result<Self> {
        let events = account.events.get(name).with_context(|| format!("{name}: no events"))?;
        for (expected, event) in (1u64..).zip(events) {
            let seq = event.get("seq").and_then(Value::as_u64);
            ensure!(seq == Some(expected), "{name}: event {expected} has the number {seq:?}");
        }
        let ready = events.iter().find(|e| kind(e) == "ready");
        let ready = ready.with_context(|| format!("{name}: the daemon was never ready"))?;
        let is = ready.get("mode").and_then(Value::as_str);
        ensure!(is == Some(mode), "{name}: the daemon's mode is {is:?}");
        let lost = events.iter().find(|e| matches!(kind(e), "lost" | "reap_failed"));
        ensure!(lost.is_none(), "{name}: {}", lost.unwrap_or(&Value::Null));
        let alive = account.alive.get(name).with_context(|| format!("{name}: nobody said who lives"))?;
        Ok(Self { name, ready, events, alive, truth })
    }

    /// It was asked to stop, and reported that.
    fn has_stopped(&self) -> Result<()> {
        let last = self.events.last().map(kind);
        ensure!(last == Some("stopping"), "{}: the daemon did not say that it stops", self.name);
        Ok(())
    }

    /// Each agent that it saw start has its number, and so have the servers it told of: exactly those of each start.
    fn numbers(&self, account: &Account, runs: &ByRun) -> Result<()> {
        for event in self.of_kind("agent_started") {
            let agent = event.get("agent").unwrap_or(&Value::Null);
            let id = id_of(agent)?;
            let number = (1..).zip(&account.starts).find(|(_, start)| start.agent == id).map(|(n, _)| n);
            let told = agent.get("generation").and_then(Value::as_u64);
            ensure!(
                number.is_some() && number == told,
                "{}: agent {id} is start {number:?}, not {told:?}",
                self.name
            );
        }
        self.told("server_started", runs)
    }

    /// It reported `what` for exactly these servers, each once and with its number.
    fn told(&self, what: &str, runs: &ByRun) -> Result<()> {
        let mut found = ByRun::new();
        for event in self.of_kind(what) {
            let id = self.server(event)?;
            let unit = event.pointer("/server/run/unit").and_then(Value::as_str);
            ensure!(unit == Some(UNIT), "{}: {what}: {id} is accounted to {unit:?}", self.name);
            let number = event.pointer("/server/run/generation").and_then(Value::as_u64);
            let number = number.with_context(|| format!("{}: {what}: {id} has no number", self.name))?;
            let new = found.entry(number).or_default().insert(id.clone());
            ensure!(new, "{}: {what}: {id} twice", self.name);
        }
        let numbers: BTreeSet<&u64> = found.keys().chain(runs.keys()).collect();
        let none = BTreeSet::new();
        for number in numbers {
            let (told, truth) = (found.get(number).unwrap_or(&none), runs.get(number).unwrap_or(&none));
            same(&format!("in {what} of run {number} ({})", self.name), told, truth)?;
        }
        Ok(())
    }

    /// Nothing was missing when it judged: the wire was looked at, whatever it is, and nothing but observing holds
    /// it back.
    fn judged_in_full(&self) -> Result<()> {
        for event in self.of_kind("orphan_detected") {
            let list = |key: &str| {
                let values = event.get(key).and_then(Value::as_array).into_iter().flatten();
                values.filter_map(Value::as_str).collect::<BTreeSet<_>>()
            };
            let (evidence, guards) = (list("evidence"), list("guards"));
            let full = evidence.is_superset(&["owner_exited", "stdin_hangup"].into());
            ensure!(full, "{}: the evidence is {evidence:?}: {event}", self.name);
            ensure!(guards == ["observe"].into(), "{}: the guards are {guards:?}: {event}", self.name);
        }
        Ok(())
    }

    /// It accused nobody but these, not even for a moment.
    fn accused_only(&self, servers: &BTreeSet<Id>) -> Result<()> {
        for event in self.events.iter().filter(|event| kind(event).starts_with("orphan_")) {
            ensure!(
                servers.contains(&self.server(event)?),
                "{}: a server in use was accused: {event}",
                self.name
            );
        }
        Ok(())
    }

    /// When it had ended these lived and no others.
    fn left_alive(&self, servers: &BTreeSet<Id>) -> Result<()> {
        same(&format!("alive after {}", self.name), self.alive, servers)
    }

    /// The server that an event is about.
    fn server(&self, event: &Value) -> Result<Id> {
        let server = event.get("server").with_context(|| format!("{}: no server: {event}", self.name))?;
        server_of(server, self.truth)
    }

    fn of_kind(&self, what: &str) -> impl Iterator<Item = &'a Value> {
        self.events.iter().filter(move |event| kind(event) == what)
    }
}

fn kind(event: &Value) -> &str {
    event.get("event").and_then(Value::as_str).unwrap_or_default()
}

fn id_of(process: &Value) -> Result<Id> {
    let number = |key: &str| process.get(key).and_then(Value::as_u64);
    let (pid, start) =
        number("pid").zip(number("start")).with_context(|| format!("no process: {process}"))?;
    Ok(format!("{pid}@{start}"))
}

/// Which of the servers that were started this one is: by its processes, for what launched it is part of it while it
/// lives, and gives it its name.
fn server_of(server: &Value, truth: &BTreeSet<Id>) -> Result<Id> {
    let processes = server.get("processes").and_then(Value::as_array).into_iter().flatten();
    let ids = processes.map(id_of).collect::<Result<Vec<_>>>()?;
    let mut known = ids.iter().filter(|id| truth.contains(*id));
    match (known.next(), known.next()) {
        (Some(id), None) => Ok(id.clone()),
        _ => bail!("not one of the servers that were started: {server}"),
    }
}

fn all(runs: &ByRun) -> BTreeSet<Id> {
    runs.values().flatten().cloned().collect()
}

fn same(what: &str, found: &BTreeSet<Id>, truth: &BTreeSet<Id>) -> Result<()> {
    let (missing, more): (Vec<_>, Vec<_>) =
        (truth.difference(found).collect(), found.difference(truth).collect());
    if missing.is_empty() && more.is_empty() {
        return Ok(());
    }
    bail!("{what}: missing {missing:?}, too many {more:?}");
}

#[cfg(test)]
#[path = "judge_tests.rs"]
mod tests;
