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
pub mod families;
mod gauges;
mod labels;
mod scrape;

use std::sync::{Arc, Mutex};

pub(super) use self::labels::{Labels, OwnersWithSeries, owner as owner_labels};
pub use self::scrape::Exposition;
use self::{
    counters::Counters,
    families::{ORPHANS_DETECTED, REAP_FAILURES, REAPED, RECLAIMED_BYTES, RECOGNISED},
    scrape::Scrape,
};
use super::wall_clock::WallClock;
use crate::os::lock;
use orphand_core::model::{Notice, Signal, Status, recognised_by};

/// How many owners of one user have series of their own. A program may choose any name.
const OWNERS_OF_USER: usize = 16;
const OWNERS_OF_ALL: usize = 256;

#[derive(Clone, Debug)]
pub struct Metrics {
    wall: WallClock,
    counters: Arc<Mutex<Counters>>,
}

impl Metrics {
    /// Metrics with all counters at zero. `wall` converts times.
    pub fn new(wall: WallClock) -> Self {
        Self { wall, counters: Arc::default() }
    }

    /// Counts a notice. Cheap, and never waits for a slow scrape: a scrape holds the lock only while it copies the counters.
    pub fn observe(&self, notice: &Notice) {
        let mut all = lock(&self.counters);
        match notice {
            Notice::OrphanDetected { class, again, server, owner, evidence, latency_ms, cpu_ms, .. } => {
                let (labels, user) = (labels::owner_of(server, owner.as_ref()), labels::user(server));
                all.begin(&server.id, labels.clone(), user, cpu_ms.unwrap_or_default());
                if *again {
                    return;
                }
                all.latency.observe(latency_ms / 1e3);
                let counts = all.of(labels, user);
                for evidence in evidence {
                    let labels = labels::with(&labels::of_class(*class), "evidence", evidence.reason().name);
                    counts.add(&ORPHANS_DETECTED, labels, 1);
                }
            }
            Notice::OrphanReaped { class, server, owner, signal, freed_bytes, .. } => {
                all.end(&server.id, server.cpu_ms);
                // Without a signal an earlier daemon sent it.
                let signal = signal.map_or("unknown", Signal::word);
                let counts = all.of(labels::owner_of(server, owner.as_ref()), labels::user(server));
                let class = labels::of_class(*class);
                counts.add(&REAPED, labels::with(&class, "signal", signal), 1);
                counts.add(&RECLAIMED_BYTES, class, *freed_bytes);
            }
            Notice::OrphanUnproven { server, .. }
            | Notice::OrphanCleared { server, .. }
            | Notice::OrphanExited { server, .. } => all.end(&server.id, server.cpu_ms),
            Notice::ServerStarted { server, .. } => {
                all.host.add(&RECOGNISED, vec![("by", recognised_by(&server.rule).to_owned())], 1);
            }
            Notice::ReapFailed { errno, .. } => {
                all.host.add(&REAP_FAILURES, vec![("reason", reason(*errno).to_owned())], 1);
            }
            _ => {}
        }
    }

    /// The text of a scrape. Without a status the daemon does not watch.
    pub fn render(&self, status: Option<&Status>, exposition: Exposition) -> String {
        let mut scrape = Scrape::default();
        let mut counters = lock(&self.counters);
        for (_, server) in status.into_iter().flat_map(|status| status.report.servers()) {
            counters.read(&server.server.id, server.server.cpu_ms);
        }
        counters.write(&mut scrape);
        drop(counters);
        gauges::write(status, self.wall, &mut scrape);
        scrape.write(exposition)
    }
}

#[expect(clippy::cast_precision_loss, reason = "a sample is a float; 9 PB are still exact")]
const fn float(number: u64) -> f64 {
    number as f64
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
