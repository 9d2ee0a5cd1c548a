//! Metrics: counters that grow with the notices, gauges from a [`Status`] at each scrape.
//!
//! Invariant: a daemon whose view of the host is incomplete reports `orphand_watching 0` and no gauges, so it
//! never reports zero orphans while it is blind.
//!
//! Labels are bounded: they contain no pid, path or argument, and the cost of a scrape does not grow over
//! time. The number of owners with series of their own is bounded per user and in total; the rest is
//! `agent="other"`. No counter's sum over all owners decreases: an owner that loses its series is merged into
//! `other`.

mod counters;
mod exposition;
pub mod families;
mod gauges;
mod labels;
mod owners;
mod processor;

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use prometheus_client::{
    encoding::text,
    metrics::{counter::Counter, family::Family, histogram::Histogram},
    registry::Registry,
};

pub use self::exposition::Exposition;
use self::{
    counters::{Counts, Owners},
    families::{DETECTION_LATENCY, REAP_FAILURES, RECOGNISED},
    processor::{Processor, Used},
};
pub(super) use self::{
    labels::{Labels, owner as owner_labels},
    owners::OwnersWithSeries,
};
use super::wall_clock::WallClock;
use orphand_core::model::{AgentView, Class, Notice, ServerView, Signal, Status, recognised_by};

/// Upper bounds of the latency buckets in seconds. A verdict takes a few milliseconds.
const LATENCY: [f64; 12] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0];

/// How many owners of one user have series of their own. A program may choose any name.
const OWNERS_OF_USER: usize = 16;
/// How many owners of all users together have series of their own.
const OWNERS_OF_ALL: usize = 256;

/// The metrics of a daemon. Clones share their values.
#[derive(Clone, Debug)]
pub struct Metrics {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    wall: WallClock,
    counters: Registry,
    recognised: Family<Labels, Counter>,
    failures: Family<Labels, Counter>,
    latency: Histogram,
    owners: Mutex<Owners>,
    processor: Mutex<Processor>,
}

impl Metrics {
    /// Metrics with all counters at zero. `wall` converts times.
    pub fn new(wall: WallClock) -> Self {
        let mut counters = Registry::default();
        let recognised = Family::<Labels, Counter>::default();
        let failures = Family::<Labels, Counter>::default();
        let latency = Histogram::new(LATENCY);
        // The registry ends each help with a dot of its own.
        let help = |family: &families::Family| family.help.trim_end_matches('.');
        counters.register(RECOGNISED.name, help(&RECOGNISED), recognised.clone());
        counters.register(REAP_FAILURES.name, help(&REAP_FAILURES), failures.clone());
        counters.register(DETECTION_LATENCY.name, help(&DETECTION_LATENCY), latency.clone());
        let (owners, processor) = (Mutex::default(), Mutex::default());
        let inner = Inner { wall, counters, recognised, failures, latency, owners, processor };
        Self { inner: Arc::new(inner) }
    }

    /// Counts a notice. Cheap, and never waits for a slow scrape: a scrape holds the lock only while it
    /// writes one family into memory.
    pub fn observe(&self, notice: &Notice) {
        let inner = &*self.inner;
        inner.observe_processor(notice);
        match notice {
            Notice::OrphanDetected { class, again: false, server, owner, evidence, latency_ms, .. } => {
                inner
                    .count(*class, server, owner.as_ref(), |counts, class| counts.detected(&class, evidence));
                inner.latency.observe(latency_ms / 1e3);
            }
            Notice::OrphanReaped { class, server, owner, signal, freed_bytes, .. } => {
                let signal = match signal {
                    Some(Signal::Term) => "TERM",
                    Some(Signal::Kill) => "KILL",
                    // An earlier daemon sent it.
                    None => "unknown",
                };
                let owner = owner.as_ref();
                inner
                    .count(*class, server, owner, |counts, class| counts.reaped(class, signal, *freed_bytes));
            }
            Notice::ServerStarted { server, .. } => {
                let by = vec![("by", recognised_by(&server.rule).to_owned())];
                inner.recognised.get_or_create(&by).inc();
            }
            Notice::ReapFailed { errno, .. } => {
                let reason = vec![("reason", reason(*errno).to_owned())];
                inner.failures.get_or_create(&reason).inc();
            }
            _ => {}
        }
    }

    /// The text of a scrape. Without a status the daemon does not watch.
    pub fn render(&self, status: Option<&Status>, exposition: Exposition) -> Result<String, fmt::Error> {
        for (_, server) in status.into_iter().flat_map(|status| status.report.servers()) {
            self.inner.used(self.inner.processor().read(&server.server.id, server.server.cpu_ms));
        }
        let mut out = String::with_capacity(64 * 1024);
        text::encode_registry(&mut out, &self.inner.counters)?;
        let mut registry = Registry::default();
        registry.register_collector(Box::new(self.inner.owners().series()));
        registry.register_collector(Box::new(gauges::Gauges::of(status, self.inner.wall)));
        text::encode_registry(&mut out, &registry)?;
        text::encode_eof(&mut out)?;
        Ok(exposition.write(out))
    }
}

impl Inner {
    fn owners(&self) -> MutexGuard<'_, Owners> {
        self.owners.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn processor(&self) -> MutexGuard<'_, Processor> {
        self.processor.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn observe_processor(&self, notice: &Notice) {
        let used = match notice {
            Notice::OrphanDetected { server, owner, cpu_ms, .. } => {
                let owner = labels::owner(server.run.as_ref(), owners::name(owner.as_ref()));
                let user = owners::user(server);
                self.processor().begin(&server.id, owner, user, cpu_ms.unwrap_or_default());
                None
            }
            Notice::OrphanUnproven { server, .. }
            | Notice::OrphanCleared { server, .. }
            | Notice::OrphanExited { server, .. }
            | Notice::OrphanReaped { server, .. } => self.processor().end(&server.id, server.cpu_ms),
            _ => None,
        };
        self.used(used);
    }

    fn used(&self, used: Option<Used>) {
        if let Some(Used { owner, user, cpu_ms }) = used {
            self.owners().of(owner, user).used(cpu_ms);
        }
    }

    /// Counts something for the owner it is about.
    fn count(
        &self,
        class: Class,
        server: &ServerView,
        owner: Option<&AgentView>,
        count: impl FnOnce(&mut Counts, Labels),
    ) {
        let labels = labels::owner(server.run.as_ref(), owner.map(|owner| owner.name.as_str()));
        let mut of_class = Labels::new();
        labels::of_class(&mut of_class, class);
        let mut owners = self.owners();
        count(owners.of(labels, owners::user(server)), of_class);
    }
}

/// The reason as one of a few words.
const fn reason(errno: Option<i32>) -> &'static str {
    match errno {
        Some(1) => "EPERM",
        Some(3) => "ESRCH",
        Some(13) => "EACCES",
        Some(22) => "EINVAL",
        Some(24) => "EMFILE",
        Some(_) => "other",
        // No system call failed: the process survived SIGKILL, or must not be signalled.
        None => "survived",
    }
}

#[cfg(test)]
mod tests;
