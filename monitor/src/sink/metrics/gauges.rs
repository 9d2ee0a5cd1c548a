//! Gauges from a [`Status`], and the counters that the daemon keeps in it.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric, MetricEncoder},
    metrics::{MetricType, counter::ConstCounter, gauge::ConstGauge, info::Info},
};

use super::{
    families::{self, Family},
    labels::{self, Labels},
    owners::{OwnersWithSeries, name},
};
use crate::sink::{report::word, wall_clock::WallClock};
use orphand_core::model::{
    AgentView, Class, Losses, Mode, Report, RunView, ServerReport, SessionsStatus, State, Status,
};

/// How many generations of an agent have their own series: the latest, and the latest of those with servers.
/// Older ones share one series.
const LATEST: usize = 16;

pub(super) type Values = BTreeMap<Labels, f64>;

/// Families with their values.
type Families = Vec<(Family, Values)>;

/// The families of one scrape.
#[derive(Debug)]
pub(super) struct Gauges {
    gauges: Families,
    counters: Families,
}

/// Sums over the servers of one owner and generation.
#[derive(Default)]
struct Sums {
    servers: Values,
    server_bytes: Values,
    orphans: Values,
    orphan_processes: Values,
    orphan_bytes: Values,
    leftovers: Values,
    leftover_bytes: Values,
}

impl Gauges {
    pub(super) fn of(status: Option<&Status>, wall: WallClock) -> Self {
        let watching = status.is_some_and(Status::is_watching);
        let one = |value: f64| Values::from([(Labels::new(), value)]);
        let mut gauges = vec![(families::WATCHING, one(f64::from(u8::from(watching))))];
        if let Some(status) = status.filter(|_| watching) {
            gauges.push((families::MODE, mode(status.mode)));
            let own = OwnersWithSeries::of(&status.report);
            gauges.extend(servers(&status.report, &own));
            gauges.extend(generations(&status.report, &own, wall));
            gauges.push((families::SPARED, spared(&status.report)));
            gauges.push((families::UNPROVEN, unproven(&status.report, &own)));
            gauges.extend(status.sessions.as_ref().map(sessions));
            gauges.push((families::DUPLICATE_SERVERS, duplicates(&status.report, &own)));
            gauges.push((families::LINEAGE_PROCESSES, one(float(status.processes))));
        }
        Self { gauges, counters: status.map(counters).unwrap_or_default() }
    }
}

impl Collector for Gauges {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        for (Family { name, help, .. }, values) in &self.gauges {
            let family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            series(family, values, ConstGauge::new)?;
        }
        for (Family { name, help, .. }, values) in &self.counters {
            let family = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
            series(family, values, ConstCounter::new)?;
        }
        let info = Info::new(vec![("version", env!("CARGO_PKG_VERSION").to_owned())]);
        let Family { name, help, .. } = families::BUILD;
        info.encode(encoder.encode_descriptor(name, help, None, MetricType::Info)?)
    }
}

/// The series of a family: one without labels, or some with.
pub(super) fn series<V: Copy, M: EncodeMetric>(
    mut family: MetricEncoder<'_>,
    values: &BTreeMap<Labels, V>,
    metric: impl Fn(V) -> M,
) -> Result<(), fmt::Error> {
    for (labels, value) in values {
        let metric = metric(*value);
        if labels.is_empty() {
            return metric.encode(family);
        }
        metric.encode(family.encode_family(labels)?)?;
    }
    Ok(())
}

#[expect(clippy::cast_precision_loss, reason = "a sample is a float; 9 PB are still exact")]
const fn float(number: u64) -> f64 {
    number as f64
}

fn generation(run: Option<&RunView>) -> String {
    run.and_then(|run| run.generation).map_or_else(|| "unknown".to_owned(), |number| number.to_string())
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

/// Finds the series of a server: its owner and generation, or the shared one.
struct SeriesLabels<'a> {
    own: &'a OwnersWithSeries,
    generations: BTreeMap<Labels, BTreeSet<u64>>,
}

impl SeriesLabels<'_> {
    fn labels(&self, run: Option<&RunView>, owner: Option<&AgentView>) -> Labels {
        let labels = labels::owner(run, name(owner));
        if !self.own.has(&labels) {
            return labels::other();
        }
        let number = run.and_then(|run| run.generation);
        let is_old =
            number.is_some_and(|n| self.generations.get(&labels).is_none_or(|kept| !kept.contains(&n)));
        let number = if is_old { "older".to_owned() } else { generation(run) };
        labels::with(&labels, "generation", number)
    }
}

fn servers(report: &Report, own: &OwnersWithSeries) -> Families {
    let mut sums = Sums::default();
    let series_labels = SeriesLabels { own, generations: own_generations(report, own) };
    // A generation without servers is zero, not absent, so that graphs go down.
    for run in &report.runs {
        sums.none(&series_labels.labels(Some(&run.run), None));
    }
    for (owner, server) in report.servers() {
        sums.server(&series_labels.labels(server.server.run.as_ref(), owner), server);
    }
    for agent in &report.agents {
        if let Some(left) = agent.left_behind.as_deref().filter(|left| left.is_orphan()) {
            let mut labels = series_labels.labels(left.server.run.as_ref(), Some(&agent.agent));
            labels::of_class(&mut labels, Class::Agent);
            sums.orphan(&labels, left);
        }
    }
    for left in &report.leftovers {
        let labels = series_labels.labels(Some(&left.run), Some(&left.agent));
        *sums.leftovers.entry(labels.clone()).or_default() += float(left.count);
        *sums.leftover_bytes.entry(labels).or_default() += float(left.rss_bytes());
    }
    vec![
        (families::LEFTOVERS, sums.leftovers),
        (families::LEFTOVER_BYTES, sums.leftover_bytes),
        (families::SERVERS, sums.servers),
        (families::SERVER_BYTES, sums.server_bytes),
        (families::ORPHANS, sums.orphans),
        (families::ORPHAN_PROCESSES, sums.orphan_processes),
        (families::ORPHAN_BYTES, sums.orphan_bytes),
    ]
}

impl Sums {
    fn none(&mut self, labels: &Labels) {
        for values in [
            &mut self.servers,
            &mut self.server_bytes,
            &mut self.orphans,
            &mut self.orphan_processes,
            &mut self.orphan_bytes,
        ] {
            values.entry(labels.clone()).or_default();
        }
    }

    fn server(&mut self, labels: &Labels, server: &ServerReport) {
        self.none(labels);
        *self.servers.entry(labels.clone()).or_default() += 1.0;
        *self.server_bytes.entry(labels.clone()).or_default() += float(server.rss_bytes());
        if server.is_orphan() {
            self.orphan(labels, server);
        }
    }

    fn orphan(&mut self, labels: &Labels, server: &ServerReport) {
        *self.orphans.entry(labels.clone()).or_default() += 1.0;
        let processes = float(server.server.count());
        *self.orphan_processes.entry(labels.clone()).or_default() += processes;
        *self.orphan_bytes.entry(labels.clone()).or_default() += float(server.rss_bytes());
    }
}

fn generations(report: &Report, own: &OwnersWithSeries, wall: WallClock) -> Families {
    let kept = own_generations(report, own);
    let mut present = Values::new();
    for (owner, numbers) in &kept {
        present.extend(numbers.last().map(|latest| (owner.clone(), float(*latest))));
    }
    let mut started = Values::new();
    for run in &report.runs {
        let owner = labels::owner(Some(&run.run), None);
        let Some(number) = run.run.generation else { continue };
        if kept.get(&owner).is_some_and(|kept| kept.contains(&number)) {
            let at = wall.timestamp(run.started).as_duration().as_secs_f64();
            started.insert(labels::with(&owner, "generation", number.to_string()), at);
        }
    }
    vec![(families::AGENT_GENERATION, present), (families::GENERATION_START, started)]
}

fn spared(report: &Report) -> Values {
    let mut values = Values::new();
    let left = report.agents.iter().filter_map(|agent| agent.left_behind.as_deref());
    let servers = report.servers().map(|(_, server)| server);
    for server in servers.chain(left).filter(|server| server.state == State::Kept) {
        for guard in &server.guards {
            *values.entry(vec![("guard", word(guard))]).or_default() += 1.0;
        }
    }
    values
}

/// Without the generation, because an unproven server is not an orphan of a run. A server with two doubts
/// counts for both.
fn unproven(report: &Report, own: &OwnersWithSeries) -> Values {
    let mut values = Values::new();
    for (owner, server) in report.servers().filter(|(_, server)| server.is_unproven()) {
        let run = server.server.run.as_ref();
        let owner = own.or_other(labels::owner(run, name(owner)));
        for doubt in &server.doubts {
            let labels = labels::with(&owner, "doubt", word(doubt));
            *values.entry(labels).or_default() += 1.0;
        }
    }
    values
}

fn sessions(sessions: &SessionsStatus) -> (Family, Values) {
    let states = sessions.states.iter();
    (
        families::SESSIONS,
        states.map(|(state, n)| (vec![("state", state.word().to_owned())], float(*n))).collect(),
    )
}

/// Both modes, so that an alert sees the number go back to 0.
fn mode(now: Mode) -> Values {
    let label = |mode: Mode| vec![("mode", word(mode))];
    [Mode::Reap, Mode::Observe].map(|mode| (label(mode), f64::from(u8::from(mode == now)))).into()
}

/// Of every owner with servers, so that an alert sees the number go back to 0. Without the generation: a duplicate
/// counts only while its owner lives.
fn duplicates(report: &Report, own: &OwnersWithSeries) -> Values {
    let mut values = Values::new();
    for (owner, server) in report.servers().filter(|(owner, _)| owner.is_some()) {
        let labels = own.or_other(labels::owner(server.server.run.as_ref(), name(owner)));
        *values.entry(labels).or_default() += f64::from(u8::from(server.is_duplicate()));
    }
    values
}

fn counters(status: &Status) -> Families {
    let kinds = |losses: &Losses| {
        let Losses { fork, exec, exit, setsid, member } = *losses;
        let kinds = [("fork", fork), ("exec", exec), ("exit", exit), ("setsid", setsid), ("member", member)];
        kinds.map(|(kind, number)| (vec![("kind", kind.to_owned())], float(number)))
    };
    // There are no records of the kind "member"; only entries of the membership map can be lost.
    let records =
        kinds(&status.records).into_iter().filter(|(labels, _)| labels.iter().all(|l| l.1 != "member"));
    let dropped = status.sink_dropped.iter().map(|(sink, n)| (vec![("sink", sink.clone())], float(*n)));
    let runs = status.hook_runs.iter().map(|(outcome, n)| (vec![("outcome", outcome.clone())], float(*n)));
    let registry = status.sessions.iter().flat_map(|sessions| &sessions.errors);
    let registry = registry.map(|(kind, n)| (vec![("kind", kind.clone())], float(*n)));
    let errors = status.kernel_errors.iter().map(|(kind, n)| (vec![("kind", kind.clone())], float(*n)));
    let mut counters = vec![
        (families::KERNEL_ERRORS, errors.collect()),
        (families::HOOK_RUNS, runs.collect()),
        (families::KERNEL_RECORDS, records.collect()),
        (families::KERNEL_RECORDS_LOST, kinds(&status.lost).into()),
        (families::RESYNCS, Values::from([(Labels::new(), float(status.resyncs))])),
        (families::SINK_DROPPED, dropped.collect()),
    ];
    if status.sessions.is_some() {
        counters.push((families::REGISTRY_ERRORS, registry.collect()));
    }
    counters
}
