//! Counters by owner.
//!
//! Invariant: the sum of a counter over all owners grows exactly by what is counted, and never decreases. The
//! number of owners is bounded: if a user has too many, the owner that was counted longest ago is merged into
//! `other`.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{
    OWNERS_OF_ALL, OWNERS_OF_USER,
    exposition::Values,
    families::{Family, ORPHAN_CPU, ORPHANS_DETECTED, REAPED, RECLAIMED_BYTES},
    gauges::float,
    labels::{self, Labels},
};
use crate::sink::report::word;
use orphand_core::model::Share;

const FAMILIES: [Family; 4] = [ORPHANS_DETECTED, REAPED, RECLAIMED_BYTES, ORPHAN_CPU];

/// The counters of one owner: by the name of the family, and the labels besides the owner. CPU time is in milliseconds.
#[derive(Clone, Debug, Default)]
pub(super) struct Counts(BTreeMap<(&'static str, Labels), u64>);

impl Counts {
    /// Counts an orphan of this class that was detected.
    pub(super) fn detected(&mut self, class: &Labels, evidence: &[impl Serialize]) {
        for evidence in evidence {
            self.add(&ORPHANS_DETECTED, labels::with(class, "evidence", word(evidence)), 1);
        }
    }

    /// Counts an orphan that was ended.
    pub(super) fn reaped(&mut self, class: Labels, signal: &str, bytes: u64) {
        self.add(&REAPED, labels::with(&class, "signal", signal.to_owned()), 1);
        self.add(&RECLAIMED_BYTES, class, bytes);
    }

    /// Counts CPU time that an orphan used.
    pub(super) fn used(&mut self, cpu_ms: u64) {
        if cpu_ms > 0 {
            self.add(&ORPHAN_CPU, Labels::new(), cpu_ms);
        }
    }

    fn add(&mut self, family: &Family, labels: Labels, more: u64) {
        let sum = self.0.entry((family.name, labels)).or_default();
        *sum = sum.saturating_add(more);
    }
}

#[derive(Debug)]
struct Owner {
    user: u32,
    /// When it was last counted, as a sequence number.
    last: u64,
    counts: Counts,
}

/// All counters by owner.
#[derive(Debug, Default)]
pub(super) struct Owners {
    known: BTreeMap<Labels, Owner>,
    other: Counts,
    countings: u64,
}

impl Owners {
    /// The counters of an owner, who belongs to `user`.
    pub(super) fn of(&mut self, owner: Labels, user: u32) -> &mut Counts {
        if owner == labels::other() {
            return &mut self.other;
        }
        self.countings += 1;
        if !self.known.contains_key(&owner) {
            self.make_room(user);
        }
        let new = || Owner { user, last: 0, counts: Counts::default() };
        let owner = self.known.entry(owner).or_insert_with(new);
        owner.last = self.countings;
        &mut owner.counts
    }

    /// Merges owners until this user may have one more.
    fn make_room(&mut self, user: u32) {
        let of_user = self.known.values().filter(|owner| owner.user == user).count();
        if of_user >= OWNERS_OF_USER {
            self.fold(|owner| owner.user == user);
        } else if self.known.len() >= OWNERS_OF_ALL {
            let mut of_share: BTreeMap<Share, usize> = BTreeMap::from([(Share::of(user), 1)]);
            for owner in self.known.values() {
                *of_share.entry(Share::of(owner.user)).or_default() += 1;
            }
            let most = of_share.into_iter().max_by_key(|(_, owners)| *owners).map(|(share, _)| share);
            self.fold(|owner| Some(Share::of(owner.user)) == most);
        }
    }

    fn fold(&mut self, of: impl Fn(&Owner) -> bool) {
        let eldest = self.known.iter().filter(|(_, owner)| of(owner)).min_by_key(|(_, owner)| owner.last);
        if let Some(owner) =
            eldest.map(|(labels, _)| labels.clone()).and_then(|labels| self.known.remove(&labels))
        {
            for (key, more) in owner.counts.0 {
                let sum = self.other.0.entry(key).or_default();
                *sum = sum.saturating_add(more);
            }
        }
    }

    /// A copy of all counters.
    pub(super) fn families(&self) -> [(Family, Values); 4] {
        let other = (labels::other(), &self.other);
        let known = self.known.iter().map(|(labels, owner)| (labels.clone(), &owner.counts));
        let mut values: BTreeMap<&str, Values> = BTreeMap::new();
        for (owner, counts) in known.chain([other]) {
            for ((family, more), value) in &counts.0 {
                let unit = if *family == ORPHAN_CPU.name { 1e3 } else { 1.0 };
                let labels = [owner.as_slice(), more].concat();
                values.entry(*family).or_default().insert(labels, float(*value) / unit);
            }
        }
        FAMILIES.map(|family| {
            let values = values.remove(family.name).unwrap_or_default();
            (family, values)
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sums(owners: &Owners) -> [u64; 3] {
        let all = || owners.known.values().map(|owner| &owner.counts).chain([&owners.other]);
        [ORPHANS_DETECTED, REAPED, RECLAIMED_BYTES].map(|family| {
            all()
                .flat_map(|counts| &counts.0)
                .filter(|((name, _), _)| *name == family.name)
                .map(|(_, n)| n)
                .sum()
        })
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
            let mut owners = Owners::default();
            let mut expected = [0, 0, 0];
            let of_honest = |n: u32| vec![("agent", format!("claude{n}")), ("uid", "1000".to_owned())];
            for n in 0..4 {
                owners.of(of_honest(n), 1000).reaped(Labels::new(), "TERM", 1);
                expected = [expected[0], expected[1] + 1, expected[2] + 1];
            }
            let (mut before, last) = (sums(&owners), counted.len().saturating_sub(1));
            for (at, (user, name, reaped)) in counted.into_iter().enumerate() {
                // Separate users, and one user with a range of user ids.
                let user = if at % 2 == 0 { 100_000 + user * 40 + name } else { 1001 + user % 3 };
                let owner = vec![("agent", format!("a{name}")), ("uid", user.to_string())];
                let counts = owners.of(owner, user);
                if reaped {
                    counts.reaped(Labels::new(), "KILL", 10);
                    expected = [expected[0], expected[1] + 1, expected[2] + 10];
                } else {
                    counts.detected(&Labels::new(), &["owner_exited", "stdin_hangup"]);
                    expected[0] += 2;
                }
                // Adding up takes long, and a sum that went wrong stays wrong.
                if at % 7 == 0 || at == last {
                    let now = sums(&owners);
                    prop_assert!(before.iter().zip(&now).all(|(before, now)| before <= now));
                    prop_assert_eq!(now, expected);
                    before = now;
                }
                prop_assert!(owners.known.len() <= OWNERS_OF_ALL);
                let of_user = owners.known.values().filter(|owner| owner.user == user).count();
                prop_assert!(of_user <= OWNERS_OF_USER, "{of_user}");
                if at == honest {
                    owners.of(of_honest(9), 1000).reaped(Labels::new(), "TERM", 1);
                    expected = [expected[0], expected[1] + 1, expected[2] + 1];
                }
            }
            for n in 0..4 {
                prop_assert!(owners.known.contains_key(&of_honest(n)), "{n} of the honest user lost its series");
            }
        }
    }
}
