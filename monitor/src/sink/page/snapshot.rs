//! The present state of the host: agents, their generations, and their servers.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

use serde::Serialize;
use serde_json::{Value, json};

use super::{Page, shown_owner, shown_server};
use crate::sink::{
    human::list_doubts,
    metrics::{Labels, OwnersWithSeries, owner_labels},
};
use orphand_core::model::{BootTime, ServerReport, State, Status, list};

/// How many servers are listed one by one, of all agents together; of each agent an equal part, the worst first.
const LISTED: usize = 512;
/// How many generations of an agent are listed, the latest; those before are one.
const GENERATIONS: usize = 24;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
struct Sums {
    live: Sum,
    suspect: Sum,
    unproven: Sum,
    orphan: Sum,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
struct Sum {
    count: u64,
    bytes: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
struct Generation {
    /// Absent for servers of no run that is known.
    number: Option<u64>,
    /// Whether this is all generations before the latest ones.
    older: bool,
    alive: bool,
    /// Milliseconds since 1970.
    started: Option<i64>,
    sums: Sums,
    servers: Vec<Value>,
    more: u64,
}

impl Page {
    /// What the page is told. Times are milliseconds since 1970.
    pub fn snapshot(&self, status: &Status, now: BootTime) -> Value {
        let (report, totals) = (&status.report, status.report.totals());
        let own = OwnersWithSeries::of(report);
        let mut agents: BTreeMap<Labels, Found<'_>> = BTreeMap::new();
        for run in &report.runs {
            let of_run = agents.entry(own.or_other(owner_labels(Some(&run.run), None))).or_default();
            let generation = of_run.generations.entry(run.run.generation).or_default();
            generation.alive |= run.alive;
            let began = self.wall.timestamp(run.started).as_millisecond();
            generation.started = Some(generation.started.map_or(began, |earlier: i64| earlier.min(began)));
        }
        let left = report.left_agents().filter(|(_, left)| left.is_orphan() || left.is_unproven());
        let left = left.map(|(agent, left)| (agent, left, true));
        let servers = report.servers().map(|(owner, server)| (owner, server, false));
        let mut sums = Sums::default();
        for (owner, server, agent) in servers.chain(left) {
            let run = server.server.run.as_ref();
            let labels = own.or_other(owner_labels(run, owner.map(|owner| owner.name.as_str())));
            let found = agents.entry(labels).or_default();
            found.servers.push((run.and_then(|run| run.generation), server, agent));
            sums.add(server);
        }
        let each = (LISTED / agents.len().max(1)).max(1);
        let mut agents: Vec<(Sums, Value)> =
            agents.into_iter().map(|(labels, found)| self.agent(&labels, found, each, now)).collect();
        agents.sort_by_key(|(sums, _)| (Reverse(sums.orphan.bytes), Reverse(sums.unproven.bytes)));
        json!({
            "time": self.wall.timestamp(now).as_millisecond(),
            "version": env!("CARGO_PKG_VERSION"),
            "mode": status.mode,
            // Not who paused: the page names no person.
            "paused": status.standing.pause.as_ref().map(|pause| {
                json!({ "until": pause.until.map(jiff::Timestamp::as_millisecond) })
            }),
            "up_ms": status.up_ms,
            // Whether orphand can vouch for what it says.
            "watching": status.is_watching(),
            "sums": sums,
            "leftovers": Sum { count: totals.leftovers, bytes: totals.leftover_rss_bytes },
            "agents": agents.into_iter().map(|(_, agent)| agent).collect::<Vec<_>>(),
        })
    }

    fn agent(&self, labels: &Labels, found: Found<'_>, each: usize, now: BootTime) -> (Sums, Value) {
        let Found { generations: mut runs, mut servers } = found;
        let numbers: BTreeSet<_> =
            runs.keys().copied().chain(servers.iter().map(|(number, ..)| *number)).collect();
        let named = |number| Generation { number, ..runs.remove(&number).unwrap_or_default() };
        // The latest first, what is older than those at the end.
        let mut generations: Vec<_> = numbers.into_iter().rev().take(GENERATIONS).map(named).collect();
        let mut older = Generation { older: true, ..Generation::default() };
        // The worst first.
        servers
            .sort_by_key(|(number, server, _)| (server.state, Reverse(*number), Reverse(server.rss_bytes())));
        let mut sums = Sums::default();
        for (at, (number, server, agent)) in servers.into_iter().enumerate() {
            let generation = generations.iter_mut().find(|one| one.number == number).unwrap_or(&mut older);
            generation.sums.add(server);
            sums.add(server);
            if at < each {
                generation.servers.push(self.server(server, agent, now));
            } else {
                generation.more += 1;
            }
        }
        generations.extend((older.sums != Sums::default()).then_some(older));
        let (name, unit) = shown_owner(labels);
        let key = self.key(labels);
        (sums, json!({ "key": key, "name": name, "unit": unit, "sums": sums, "generations": generations }))
    }

    /// A server, in words why it is what it is; or an `agent` that was left behind.
    fn server(&self, report: &ServerReport, agent: bool, now: BootTime) -> Value {
        let age = report.server.age(now);
        let is_left = report.state != State::Live;
        let evidence: Vec<_> =
            report.evidence.iter().filter(|_| is_left).map(|one| one.reason().short).collect();
        json!({
            "key": self.key(&report.server.id),
            "name": shown_server(&report.server),
            "state": report.state,
            "bytes": report.rss_bytes(),
            "processes": report.server.count(),
            "age_ms": age.and_then(|age| u64::try_from(age.as_millis()).ok()),
            "evidence": evidence,
            "doubts": report.is_unproven().then(|| list_doubts(&report.doubts, &report.reached_by)),
            "guards": (is_left && !report.guards.is_empty()).then(|| list(&report.guards)),
            "duplicate": report.is_duplicate(),
            "agent": agent,
        })
    }
}

#[derive(Default)]
struct Found<'a> {
    generations: BTreeMap<Option<u64>, Generation>,
    servers: Vec<(Option<u64>, &'a ServerReport, bool)>,
}

impl Sums {
    fn add(&mut self, server: &ServerReport) {
        let sum = match server.state {
            State::Orphan | State::Ending | State::Kept => &mut self.orphan,
            State::Unproven => &mut self.unproven,
            State::Suspect => &mut self.suspect,
            State::Live | State::Leftover => &mut self.live,
        };
        sum.count += 1;
        sum.bytes = sum.bytes.saturating_add(server.rss_bytes());
    }
}
