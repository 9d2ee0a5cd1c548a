//! Counters: those by owner, and those without.
//!
//! Invariant: the sum of a counter over all owners grows exactly by what is counted, and never decreases. The
//! number of owners is bounded: if a user has too many, the owner that was counted longest ago is merged into
//! `other`.

use std::collections::BTreeMap;

use super::{
    OWNERS_OF_ALL, OWNERS_OF_USER,
    families::{Family, ORPHAN_CPU, ORPHANS_DETECTED, REAP_FAILURES, REAPED, RECLAIMED_BYTES, RECOGNISED},
    labels::{self, Labels},
    scrape::{Histogram, Scrape},
};
use orphand_core::model::Share;

/// Values by family and by the labels besides the owner. CPU time is in milliseconds.
#[derive(Clone, Debug, Default)]
pub(super) struct Counts(BTreeMap<(&'static str, Labels), u64>);

impl Counts {
    pub(super) fn add(&mut self, family: &Family, labels: Labels, more: u64) {
        self.add_to((family.name, labels), more);
    }

    fn add_to(&mut self, series: (&'static str, Labels), more: u64) {
        let sum = self.0.entry(series).or_default();
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
pub(super) struct Counters {
    owners: BTreeMap<Labels, Owner>,
    other: Counts,
    countings: u64,
    /// What counts for no owner.
    pub(super) host: Counts,
    pub(super) latency: Histogram,
    orphans: BTreeMap<String, Orphan>,
}

impl Counters {
    /// The counters of an owner, who belongs to `user`.
    pub(super) fn of(&mut self, owner: Labels, user: u32) -> &mut Counts {
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
            owner.counts.0.into_iter().for_each(|(series, more)| self.other.add_to(series, more));
        }
    }

    /// It is an orphan from now on, and has used so much of the CPU before.
    pub(super) fn begin(&mut self, id: &str, owner: Labels, user: u32, cpu_ms: u64) {
        self.orphans.entry(id.to_owned()).or_insert(Orphan { owner, user, cpu_ms });
    }

    /// It has used so much by now, if it is an orphan and that was measured.
    pub(super) fn read(&mut self, id: &str, cpu_ms: Option<u64>) {
        let Some((orphan, cpu_ms)) = self.orphans.get_mut(id).zip(cpu_ms) else { return };
        let used = cpu_ms.saturating_sub(orphan.cpu_ms);
        // What a process has used that ended is not in the sum of those alive.
        orphan.cpu_ms = orphan.cpu_ms.max(cpu_ms);
        if used > 0 {
            let (owner, whose) = (orphan.owner.clone(), orphan.user);
            self.of(owner, whose).add(&ORPHAN_CPU, Labels::new(), used);
        }
    }

    pub(super) fn end(&mut self, id: &str, cpu_ms: Option<u64>) {
        self.read(id, cpu_ms);
        self.orphans.remove(id);
    }

    pub(super) fn write(&self, scrape: &mut Scrape) {
        scrape.latency = self.latency;
        let (host, other) = ((Labels::new(), &self.host), (labels::other(), &self.other));
        let owners = self.owners.iter().map(|(labels, owner)| (labels.clone(), &owner.counts));
        let all: Vec<_> = owners.chain([host, other]).collect();
        for family in [RECOGNISED, REAP_FAILURES, ORPHANS_DETECTED, REAPED, RECLAIMED_BYTES, ORPHAN_CPU] {
            let unit = if family.name == ORPHAN_CPU.name { 1e3 } else { 1.0 };
            let values = scrape.of(&family);
            for (owner, counts) in &all {
                let of_family = counts.0.iter().filter(|((name, _), _)| *name == family.name);
                values.extend(of_family.map(|((_, labels), value)| {
                    ([owner.as_slice(), labels].concat(), super::float(*value) / unit)
                }));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sum(counters: &Counters, family: &Family) -> u64 {
        let owners = counters.owners.values().map(|owner| &owner.counts).chain([&counters.other]);
        let all = owners.flat_map(|counts| &counts.0).filter(|((name, _), _)| *name == family.name);
        all.map(|(_, value)| value).sum()
    }

    #[test]
    fn what_an_orphan_uses_counts_once() {
        let owner = vec![("agent", "claude".to_owned())];
        let mut all = Counters::default();
        all.begin("1@2", owner.clone(), 7, 500);
        for (id, cpu_ms, counted) in [
            ("3@4", Some(900), 0), // It is no orphan.
            ("1@2", Some(900), 400),
            ("1@2", Some(900), 400),
            ("1@2", None, 400),
            ("1@2", Some(100), 400), // A child of it ended: less is no use.
        ] {
            all.read(id, cpu_ms);
            assert_eq!(sum(&all, &ORPHAN_CPU), counted);
        }
        // Told again, after it was unproven for a while: what it used counts on.
        all.begin("1@2", owner, 7, 950);
        all.end("1@2", Some(1000));
        all.read("1@2", Some(2000));
        assert_eq!(sum(&all, &ORPHAN_CPU), 500);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        /// In whatever order owners are counted, sums are exact, owners are bounded, and a user with few
        /// owners keeps them.
        #[test]
        fn sums_are_exact_and_series_bounded(
            counted in prop::collection::vec((0_u32..60, 0_u32..40, any::<bool>()), 0..600),
            honest in 0_usize..600,
        ) {
            let mut all = Counters::default();
            let mut expected = [0, 0];
            let of_honest = |n: u32| vec![("agent", format!("claude{n}")), ("uid", "1000".to_owned())];
            let mut count = |all: &mut Counters, owner, user, reaped: bool| {
                let family = if reaped { REAPED } else { ORPHANS_DETECTED };
                all.of(owner, user).add(&family, Labels::new(), 3);
                expected[usize::from(reaped)] += 3;
                expected
            };
            (0..4).for_each(|n| { count(&mut all, of_honest(n), 1000, true); });
            for (at, (user, name, reaped)) in counted.into_iter().enumerate() {
                // Separate users, and one user with a range of user ids.
                let user = if at % 2 == 0 { 100_000 + user * 40 + name } else { 1001 + user % 3 };
                let owner = vec![("agent", format!("a{name}")), ("uid", user.to_string())];
                let mut expected = count(&mut all, owner, user, reaped);
                if at == honest {
                    expected = count(&mut all, of_honest(9), 1000, true);
                }
                prop_assert_eq!([sum(&all, &ORPHANS_DETECTED), sum(&all, &REAPED)], expected);
                prop_assert!(all.owners.len() <= OWNERS_OF_ALL);
                let of_user = all.owners.values().filter(|owner| owner.user == user).count();
                prop_assert!(of_user <= OWNERS_OF_USER, "{of_user}");
            }
            for n in 0..4 {
                prop_assert!(all.owners.contains_key(&of_honest(n)), "{n} of the honest user lost its series");
            }
        }
    }
}
