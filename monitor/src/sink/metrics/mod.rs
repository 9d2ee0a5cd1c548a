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

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub use self::exposition::Exposition;
use self::{
    counters::{Counts, Owners},
    exposition::{Latency, Series, Values},
    families::{DETECTION_LATENCY, Family, REAP_FAILURES, RECOGNISED},
    processor::{Processor, Used},
};
pub(super) use self::{
    labels::{Labels, owner as owner_labels},
    owners::OwnersWithSeries,
};
use super::wall_clock::WallClock;
use orphand_core::model::{AgentView, Class, Notice, ServerView, Signal, Status, recognised_by};

/// How many owners of one user have series of their own. A program may choose any name.
const OWNERS_OF_USER: usize = 16;
/// How many owners of all users together have series of their own.
const OWNERS_OF_ALL: usize = 256;

/// The metrics of a daemon. Clones share their values.
#[derive(Clone, Debug)]
pub struct Metrics {
    wall: WallClock,
    counted: Arc<Mutex<Counted>>,
}

/// What is counted.
#[derive(Debug, Default)]
struct Counted {
    recognised: Values,
    failures: Values,
    latency: Latency,
    owners: Owners,
    processor: Processor,
}

impl Metrics {
    /// Metrics with all counters at zero. `wall` converts times.
    pub fn new(wall: WallClock) -> Self {
        Self { wall, counted: Arc::default() }
    }

    /// Counts a notice. Cheap, and never waits for a slow scrape: a scrape holds the lock only while it copies what was
    /// counted.
    pub fn observe(&self, notice: &Notice) {
        self.counted().observe(notice);
    }

    /// The text of a scrape. Without a status the daemon does not watch.
    pub fn render(&self, status: Option<&Status>, exposition: Exposition) -> String {
        let mut families = self.counted().read(status);
        let gauges = gauges::families(status, self.wall).into_iter();
        families.extend(gauges.map(|(family, values)| (family, Series::Values(values))));
        exposition.write(&families)
    }

    fn counted(&self) -> MutexGuard<'_, Counted> {
        self.counted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Counted {
    fn observe(&mut self, notice: &Notice) {
        self.observe_processor(notice);
        match notice {
            Notice::OrphanDetected { class, again: false, server, owner, evidence, latency_ms, .. } => {
                let (counts, class) = self.of_owner(*class, server, owner.as_ref());
                counts.detected(&class, evidence);
                self.latency.observe(latency_ms / 1e3);
            }
            Notice::OrphanReaped { class, server, owner, signal, freed_bytes, .. } => {
                let signal = match signal {
                    Some(Signal::Term) => "TERM",
                    Some(Signal::Kill) => "KILL",
                    // An earlier daemon sent it.
                    None => "unknown",
                };
                let (counts, class) = self.of_owner(*class, server, owner.as_ref());
                counts.reaped(class, signal, *freed_bytes);
            }
            Notice::ServerStarted { server, .. } => {
                let by = vec![("by", recognised_by(&server.rule).to_owned())];
                *self.recognised.entry(by).or_default() += 1.0;
            }
            Notice::ReapFailed { errno, .. } => {
                let reason = vec![("reason", reason(*errno).to_owned())];
                *self.failures.entry(reason).or_default() += 1.0;
            }
            _ => {}
        }
    }

    /// A copy, after what orphans have used by now was counted.
    fn read(&mut self, status: Option<&Status>) -> Vec<(Family, Series)> {
        for (_, server) in status.into_iter().flat_map(|status| status.report.servers()) {
            let used = self.processor.read(&server.server.id, server.server.cpu_ms);
            self.used(used);
        }
        let mut all = vec![
            (RECOGNISED, Series::Values(self.recognised.clone())),
            (REAP_FAILURES, Series::Values(self.failures.clone())),
            (DETECTION_LATENCY, Series::Latency(self.latency.clone())),
        ];
        all.extend(self.owners.families().map(|(family, values)| (family, Series::Values(values))));
        all
    }

    fn observe_processor(&mut self, notice: &Notice) {
        let used = match notice {
            Notice::OrphanDetected { server, owner, cpu_ms, .. } => {
                let owner = labels::owner(server.run.as_ref(), owners::name(owner.as_ref()));
                let user = owners::user(server);
                self.processor.begin(&server.id, owner, user, cpu_ms.unwrap_or_default());
                None
            }
            Notice::OrphanUnproven { server, .. }
            | Notice::OrphanCleared { server, .. }
            | Notice::OrphanExited { server, .. }
            | Notice::OrphanReaped { server, .. } => self.processor.end(&server.id, server.cpu_ms),
            _ => None,
        };
        self.used(used);
    }

    fn used(&mut self, used: Option<Used>) {
        if let Some(Used { owner, user, cpu_ms }) = used {
            self.owners.of(owner, user).used(cpu_ms);
        }
    }

    /// The counters of the owner that this is about, and the labels of the class.
    fn of_owner(
        &mut self,
        class: Class,
        server: &ServerView,
        owner: Option<&AgentView>,
    ) -> (&mut Counts, Labels) {
        let labels = labels::owner(server.run.as_ref(), owners::name(owner));
        let mut of_class = Labels::new();
        labels::of_class(&mut of_class, class);
        (self.owners.of(labels, owners::user(server)), of_class)
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
