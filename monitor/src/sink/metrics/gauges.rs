//! Gauges from a [`Status`], and the counters that the daemon keeps in it.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    families as f, float,
    labels::{self, Labels, OwnersWithSeries},
    scrape::Scrape,
};
use crate::sink::wall_clock::WallClock;
use orphand_core::model::{AgentView, Class, Mode, Report, RunView, ServerReport, State, Status, text::word};

/// How many generations have their own series: the latest, and the latest of those with servers. Older ones share one.
const LATEST: usize = 16;

/// Without a status the daemon does not watch. One that is blind has no gauges.
pub(super) fn write(status: Option<&Status>, wall: WallClock, scrape: &mut Scrape) {
    let version = vec![("version", env!("CARGO_PKG_VERSION").to_owned())];
    scrape.of(&f::BUILD).insert(version, 1.0);
    let watching = status.filter(|status| status.is_watching());
    scrape.one(&f::WATCHING, f64::from(u8::from(watching.is_some())));
    if let Some(status) = status {
        counters(status, scrape);
    }
    let Some(status) = watching else { return };
    // A family is there, if only without samples.
    for family in f::ALL.iter().filter(|one| one.kind == f::Kind::Gauge && one.name != f::SESSIONS.name) {
        scrape.of(family);
    }
    // Both modes, so that an alert sees the number go back to 0.
    for mode in [Mode::Enforce, Mode::Observe] {
        let is_it = f64::from(u8::from(mode == status.mode));
        scrape.of(&f::MODE).insert(vec![("mode", word(mode))], is_it);
    }
    scrape.one(&f::LINEAGE_PROCESSES, float(status.processes));
    if let Some(sessions) = &status.sessions {
        by(scrape, &f::SESSIONS, "state", sessions.states.iter().map(|(state, n)| (word(state), *n)));
    }
    let report = &status.report;
    let own = OwnersWithSeries::of(report);
    let series = Series { generations: own_generations(report, &own), own };
    servers(report, &series, scrape);
    generations(report, &series, wall, scrape);
    reasons(report, &series.own, scrape);
}

fn by<N: Into<String>>(
    scrape: &mut Scrape,
    family: &f::Family,
    label: &'static str,
    values: impl IntoIterator<Item = (N, u64)>,
) {
    let values = values.into_iter().map(|(name, value)| (vec![(label, name.into())], float(value)));
    scrape.of(family).extend(values);
}

fn counters(status: &Status, scrape: &mut Scrape) {
    let of = |kinds: &BTreeMap<String, u64>| kinds.clone().into_iter();
    by(scrape, &f::KERNEL_ERRORS, "kind", of(&status.kernel_errors));
    by(scrape, &f::HOOK_RUNS, "outcome", of(&status.hook_runs));
    // There are no records of the kind "member"; only entries of the membership map can be lost.
    let records = status.records.kinds().into_iter().filter(|(kind, _)| *kind != "member");
    by(scrape, &f::KERNEL_RECORDS, "kind", records);
    by(scrape, &f::KERNEL_RECORDS_LOST, "kind", status.lost.kinds());
    scrape.one(&f::RESYNCS, float(status.resyncs));
    by(scrape, &f::SINK_DROPPED, "sink", of(&status.sink_dropped));
    if let Some(sessions) = &status.sessions {
        by(scrape, &f::REGISTRY_ERRORS, "kind", of(&sessions.errors));
    }
}

/// Finds the series of a server: its owner and generation, or the shared one.
struct Series {
    own: OwnersWithSeries,
    generations: BTreeMap<Labels, BTreeSet<u64>>,
}

impl Series {
    fn labels(&self, run: Option<&RunView>, agent: Option<&AgentView>) -> Labels {
        let labels = labels::owner(run, agent.map(|agent| agent.name.as_str()));
        if !self.own.has(&labels) {
            return labels::other();
        }
        let generation = match run.and_then(|run| run.generation) {
            None => "unknown".to_owned(),
            Some(n) if self.generations.get(&labels).is_none_or(|kept| !kept.contains(&n)) => {
                "older".to_owned()
            }
            Some(n) => n.to_string(),
        };
        labels::with(&labels, "generation", generation)
    }
}

/// The generations that have their own series, by owner: the latest, and the latest of those with servers.
fn own_generations(report: &Report, own: &OwnersWithSeries) -> BTreeMap<Labels, BTreeSet<u64>> {
    let latest = |numbers: BTreeSet<u64>| numbers.into_iter().rev().take(LATEST);
    let mut known: BTreeMap<Labels, [BTreeSet<u64>; 2]> = BTreeMap::new();
    for run in &report.runs {
        let [all, _] = known.entry(labels::owner(Some(&run.run), None)).or_default();
        all.extend(run.run.generation);
    }
    for run in report.servers().filter_map(|(_, server)| server.server.run.as_ref()) {
        let [_, with_servers] = known.entry(labels::owner(Some(run), None)).or_default();
        with_servers.extend(run.generation);
    }
    let known = known.into_iter().filter(|(owner, _)| own.has(owner));
    known.map(|(owner, [all, of_servers])| (owner, latest(all).chain(latest(of_servers)).collect())).collect()
}

fn servers(report: &Report, series: &Series, scrape: &mut Scrape) {
    // A generation without servers is zero, not absent, so that graphs go down.
    let none = |labels: &Labels, scrape: &mut Scrape| {
        for family in [f::SERVERS, f::SERVER_BYTES, f::ORPHANS, f::ORPHAN_PROCESSES, f::ORPHAN_BYTES] {
            scrape.add(&family, labels, 0.0);
        }
    };
    let orphan = |labels: &Labels, server: &ServerReport, scrape: &mut Scrape| {
        scrape.add(&f::ORPHANS, labels, 1.0);
        scrape.add(&f::ORPHAN_PROCESSES, labels, float(server.server.count()));
        scrape.add(&f::ORPHAN_BYTES, labels, float(server.rss_bytes()));
    };
    for run in &report.runs {
        none(&series.labels(Some(&run.run), None), scrape);
    }
    for (owner, server) in report.servers() {
        let labels = series.labels(server.server.run.as_ref(), owner);
        none(&labels, scrape);
        scrape.add(&f::SERVERS, &labels, 1.0);
        scrape.add(&f::SERVER_BYTES, &labels, float(server.rss_bytes()));
        if server.is_orphan() {
            orphan(&labels, server, scrape);
        }
    }
    for (agent, left) in report.left_agents().filter(|(_, left)| left.is_orphan()) {
        let labels = series.labels(left.server.run.as_ref(), agent);
        orphan(&[labels, labels::of_class(Class::Agent)].concat(), left, scrape);
    }
    for left in &report.leftovers {
        let labels = series.labels(Some(&left.run), Some(&left.agent));
        scrape.add(&f::LEFTOVERS, &labels, float(left.count));
        scrape.add(&f::LEFTOVER_BYTES, &labels, float(left.rss_bytes()));
    }
}

fn generations(report: &Report, series: &Series, wall: WallClock, scrape: &mut Scrape) {
    let latest = series.generations.iter().filter_map(|(owner, numbers)| Some((owner, numbers.last()?)));
    scrape.of(&f::AGENT_GENERATION).extend(latest.map(|(owner, number)| (owner.clone(), float(*number))));
    let started = scrape.of(&f::GENERATION_START);
    for run in &report.runs {
        let owner = labels::owner(Some(&run.run), None);
        let Some(number) = run.run.generation else { continue };
        if series.generations.get(&owner).is_some_and(|kept| kept.contains(&number)) {
            let at = wall.timestamp(run.started).as_duration().as_secs_f64();
            started.insert(labels::with(&owner, "generation", number.to_string()), at);
        }
    }
}

/// Why servers stay, and duplicates. Without the generation: an unproven server is not an orphan of a run, and a duplicate
/// counts only while its owner lives. A server with two doubts counts for both.
fn reasons(report: &Report, own: &OwnersWithSeries, scrape: &mut Scrape) {
    for (_, server) in report.servers().chain(report.left_agents()) {
        for guard in server.guards.iter().filter(|_| server.state == State::Kept) {
            scrape.add(&f::SPARED, &vec![("guard", guard.reason().name.to_owned())], 1.0);
        }
    }
    for (owner, server) in report.servers() {
        let labels = own.or_other(labels::owner_of(&server.server, owner));
        for doubt in server.doubts.iter().filter(|_| server.is_unproven()) {
            scrape.add(&f::UNPROVEN, &labels::with(&labels, "doubt", doubt.reason().name), 1.0);
        }
        // Of every owner with servers, so that an alert sees the number go back to 0.
        if owner.is_some() {
            scrape.add(&f::DUPLICATE_SERVERS, &labels, f64::from(u8::from(server.is_duplicate())));
        }
    }
}
