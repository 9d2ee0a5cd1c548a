//! Metrics: counters that grow with the notices, gauges from a [`Status`] at each scrape.
//!
//! Invariant: a daemon whose view of the host is incomplete reports `orphand_watching 0` and no gauges, so it
//! never reports zero orphans while it is blind.
//!
//! Labels are bounded: no pid, path or argument; so many owners of a user and in all, the rest is `agent="other"`. No counter's sum
//! over all owners decreases: an owner that loses its series is merged into `other`.

pub mod families;
mod gauges;
mod labels;
mod scrape;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use self::{
    families::{ORPHAN_CPU, ORPHANS_DETECTED, REAP_FAILURES, REAPED, RECLAIMED_BYTES, RECOGNISED},
    scrape::{Histogram, Scrape},
};
use super::wall_clock::WallClock;
use crate::os::lock;
use orphand_core::model::{Notice, Share, Signal, Status, recognised_by};

pub(super) use self::labels::{Labels, OwnersWithSeries, owner as owner_labels};
pub use self::scrape::Exposition;

/// How many owners of one user have series of their own. A program may choose any name.
const OWNERS_OF_USER: usize = 16;
const OWNERS_OF_ALL: usize = 256;

#[derive(Clone, Debug)]
pub struct Metrics {
    wall: WallClock,
    counters: Arc<Mutex<Counters>>,
}

impl Metrics {
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
                    counts.add(ORPHANS_DETECTED.name, labels, 1);
                }
            }
            Notice::OrphanReaped { class, server, owner, signal, freed_bytes, .. } => {
                all.end(&server.id, server.cpu_ms);
                // Without a signal an earlier daemon sent it.
                let signal = signal.map_or("unknown", Signal::word);
                let counts = all.of(labels::owner_of(server, owner.as_ref()), labels::user(server));
                let class = labels::of_class(*class);
                counts.add(REAPED.name, labels::with(&class, "signal", signal), 1);
                counts.add(RECLAIMED_BYTES.name, class, *freed_bytes);
            }
            Notice::OrphanUnproven { server, .. }
            | Notice::OrphanCleared { server, .. }
            | Notice::OrphanExited { server, .. } => all.end(&server.id, server.cpu_ms),
            Notice::ServerStarted { server, .. } => {
                all.host.add(RECOGNISED.name, vec![("by", recognised_by(&server.rule).to_owned())], 1);
            }
            Notice::ReapFailed { errno, .. } => {
                all.host.add(REAP_FAILURES.name, vec![("reason", reason(*errno).to_owned())], 1);
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

/// Values by family and by the labels besides the owner. CPU time is in milliseconds.
#[derive(Clone, Debug, Default)]
struct Counts(BTreeMap<(&'static str, Labels), u64>);

impl Counts {
    fn add(&mut self, family: &'static str, labels: Labels, more: u64) {
        let sum = self.0.entry((family, labels)).or_default();
        *sum = sum.saturating_add(more);
    }
}

#[derive(Debug)]
struct Owner {
    user: u32,
    last: u64,
    counts: Counts,
}

/// An orphan that is alive, and what it has used of the CPU at the last reading: an event that has it, or a scrape. What it
/// used before it was detected does not count, nor what it used after the last reading.
#[derive(Debug)]
struct Orphan {
    owner: Labels,
    user: u32,
    cpu_ms: u64,
}

#[derive(Debug, Default)]
struct Counters {
    owners: BTreeMap<Labels, Owner>,
    other: Counts,
    countings: u64,
    host: Counts,
    latency: Histogram,
    orphans: BTreeMap<String, Orphan>,
}

impl Counters {
    /// The counters of an owner, who belongs to `user`.
    fn of(&mut self, owner: Labels, user: u32) -> &mut Counts {
        if owner == labels::other() {
            return &mut self.other;
        }
        self.countings += 1;
        if !self.owners.contains_key(&owner) {
            self.make_room(user);
        }
        let new = || Owner { user, last: 0, counts: Counts::default() };
        let owner = self.owners.entry(owner).or_insert_with(new);
        owner.last = self.countings;
        &mut owner.counts
    }

    /// Merges owners until this user may have one more.
    fn make_room(&mut self, user: u32) {
        let of_user = self.owners.values().filter(|owner| owner.user == user).count();
        if of_user >= OWNERS_OF_USER {
            self.fold(|owner| owner.user == user);
        } else if self.owners.len() >= OWNERS_OF_ALL {
            let mut of_share: BTreeMap<Share, usize> = BTreeMap::from([(Share::of(user), 1)]);
            for owner in self.owners.values() {
                *of_share.entry(Share::of(owner.user)).or_default() += 1;
            }
            let most = of_share.into_iter().max_by_key(|(_, owners)| *owners).map(|(share, _)| share);
            self.fold(|owner| Some(Share::of(owner.user)) == most);
        }
    }

    fn fold(&mut self, of: impl Fn(&Owner) -> bool) {
        let eldest = self.owners.iter().filter(|(_, owner)| of(owner)).min_by_key(|(_, owner)| owner.last);
        let eldest = eldest.map(|(labels, _)| labels.clone());
        if let Some(owner) = eldest.and_then(|labels| self.owners.remove(&labels)) {
            for ((family, labels), more) in owner.counts.0 {
                self.other.add(family, labels, more);
            }
        }
    }

    /// It is an orphan from now on, and has used so much of the CPU before.
    fn begin(&mut self, id: &str, owner: Labels, user: u32, cpu_ms: u64) {
        self.orphans.entry(id.to_owned()).or_insert(Orphan { owner, user, cpu_ms });
    }

    /// It has used so much by now, if it is an orphan and that was measured.
    fn read(&mut self, id: &str, cpu_ms: Option<u64>) {
        let Some((orphan, cpu_ms)) = self.orphans.get_mut(id).zip(cpu_ms) else { return };
        let used = cpu_ms.saturating_sub(orphan.cpu_ms);
        // What a process has used that ended is not in the sum of those alive.
        orphan.cpu_ms = orphan.cpu_ms.max(cpu_ms);
        if used > 0 {
            let (owner, whose) = (orphan.owner.clone(), orphan.user);
            self.of(owner, whose).add(ORPHAN_CPU.name, Labels::new(), used);
        }
    }

    fn end(&mut self, id: &str, cpu_ms: Option<u64>) {
        self.read(id, cpu_ms);
        self.orphans.remove(id);
    }

    fn write(&self, scrape: &mut Scrape) {
        scrape.latency = self.latency;
        let (host, other) = ((Labels::new(), &self.host), (labels::other(), &self.other));
        let owners = self.owners.iter().map(|(labels, owner)| (labels.clone(), &owner.counts));
        let all: Vec<_> = owners.chain([host, other]).collect();
        for family in [RECOGNISED, REAP_FAILURES, ORPHANS_DETECTED, REAPED, RECLAIMED_BYTES, ORPHAN_CPU] {
            let unit = if family.name == ORPHAN_CPU.name { 1e3 } else { 1.0 };
            let values = scrape.of(&family);
            for (owner, counts) in &all {
                let of_family = counts.0.iter().filter(|((name, _), _)| *name == family.name);
                values.extend(
                    of_family.map(|((_, labels), value)| {
                        ([owner.as_slice(), labels].concat(), float(*value) / unit)
                    }),
                );
            }
        }
    }
}

#[cfg(test)]
mod tests;
