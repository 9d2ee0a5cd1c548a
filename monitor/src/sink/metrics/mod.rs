//! Metrics: counters that grow with the notices, gauges made of a [`Status`] at each scrape.
//!
//! Invariant: a daemon that cannot vouch for what it says reports `orphand_watching 0` and no gauge: zero orphans is never
//! said by a blind daemon. Labels are bounded: no pid, path or argument is among them, and the cost of a scrape does not grow
//! with what has ever been.

mod exposition;
mod gauges;
mod labels;

use std::{
    collections::BTreeSet,
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use prometheus_client::{
    encoding::text,
    metrics::{counter::Counter, family::Family, histogram::Histogram},
    registry::Registry,
};

pub use self::exposition::Exposition;
use self::labels::Labels;
use super::wall::Wall;
use crate::model::{AgentView, Class, Notice, ServerView, Signal, Status};

/// Upper bounds of the latency's buckets in seconds: a verdict is due within some milliseconds.
const LATENCY: [f64; 12] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0];

/// Whose counters are told apart; what comes later is counted for `other`. A program may call itself anything.
const OWNERS: usize = 256;

type Counters = Family<Labels, Counter>;

/// The metrics of a daemon. A copy is the same metrics.
#[derive(Clone, Debug)]
pub struct Metrics {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    wall: Wall,
    counters: Registry,
    detected: Counters,
    reaped: Counters,
    failures: Counters,
    reclaimed: Counters,
    latency: Histogram,
    owners: Mutex<BTreeSet<Labels>>,
}

impl Metrics {
    /// Nothing counted yet. `wall` names moments.
    pub fn new(wall: Wall) -> Self {
        let mut counters = Registry::default();
        let mut family = |name: &str, help: &str| {
            let family = Counters::default();
            counters.register(name, help, family.clone());
            family
        };
        let detected = family("orphand_orphans_detected", "Orphans detected, once for each kind of evidence");
        let reaped = family("orphand_reaped", "Orphans ended, by the last signal that was needed");
        let failures = family("orphand_reap_failures", "Processes of orphans that could not be ended");
        let reclaimed =
            family("orphand_reclaimed_bytes", "Resident memory of orphans that were ended, before");
        let latency = Histogram::new(LATENCY);
        let help = "From the owner's exit to the verdict, less the grace";
        counters.register("orphand_detection_latency_seconds", help, latency.clone());
        let owners = Mutex::default();
        let inner = Inner { wall, counters, detected, reaped, failures, reclaimed, latency, owners };
        Self { inner: Arc::new(inner) }
    }

    /// Counts what is told to the world. Cheap, and never waits for a scrape that is slow: those hold no lock but while one
    /// family is written into memory.
    pub fn observe(&self, notice: &Notice) {
        let inner = &*self.inner;
        match notice {
            Notice::OrphanDetected { class, server, owner, evidence, latency_ms, .. } => {
                let labels = inner.owner(*class, server, owner.as_ref());
                for evidence in evidence {
                    let labels = labels::with(&labels, "evidence", labels::word(evidence));
                    inner.detected.get_or_create(&labels).inc();
                }
                inner.latency.observe(latency_ms / 1e3);
            }
            Notice::OrphanReaped { class, server, owner, signal, freed_bytes, .. } => {
                let labels = inner.owner(*class, server, owner.as_ref());
                inner.reclaimed.get_or_create(&labels).inc_by(*freed_bytes);
                let signal = match signal {
                    Some(Signal::Term) => "TERM",
                    Some(Signal::Kill) => "KILL",
                    // An earlier daemon sent it.
                    None => "unknown",
                };
                inner.reaped.get_or_create(&labels::with(&labels, "signal", signal.to_owned())).inc();
            }
            Notice::ReapFailed { errno, .. } => {
                let reason = vec![("reason", reason(*errno).to_owned())];
                inner.failures.get_or_create(&reason).inc();
            }
            _ => {}
        }
    }

    /// The text of a scrape; without a status nobody watches.
    pub fn render(&self, status: Option<&Status>, exposition: Exposition) -> Result<String, fmt::Error> {
        let mut out = String::with_capacity(64 * 1024);
        text::encode_registry(&mut out, &self.inner.counters)?;
        let mut registry = Registry::default();
        registry.register_collector(Box::new(gauges::Gauges::of(status, self.inner.wall)));
        text::encode_registry(&mut out, &registry)?;
        text::encode_eof(&mut out)?;
        Ok(exposition.write(out))
    }
}

impl Inner {
    /// Whose counter it is.
    fn owner(&self, class: Class, server: &ServerView, owner: Option<&AgentView>) -> Labels {
        let mut labels = labels::owner(server.run.as_ref(), owner.map(|owner| owner.name.as_str()));
        let mut known = self.owners.lock().unwrap_or_else(PoisonError::into_inner);
        if !known.contains(&labels) {
            if known.len() >= OWNERS {
                labels = vec![("agent", "other".to_owned())];
            } else {
                known.insert(labels.clone());
            }
        }
        drop(known);
        labels::of_class(&mut labels, class);
        labels
    }
}

/// A reason that is one of few.
const fn reason(errno: Option<i32>) -> &'static str {
    match errno {
        Some(1) => "EPERM",
        Some(3) => "ESRCH",
        Some(13) => "EACCES",
        Some(22) => "EINVAL",
        Some(24) => "EMFILE",
        Some(_) => "other",
        // No system call failed: it outlived SIGKILL, or must not be signalled.
        None => "survived",
    }
}

#[cfg(test)]
mod tests;
