//! Counters by owner.
//!
//! Invariant: the sum of a counter over all owners grows exactly by what is counted, and never decreases. The
//! number of owners is bounded: if a user has too many, the owner that was counted longest ago is merged into
//! `other`.

use std::{collections::BTreeMap, fmt, time::Duration};

use prometheus_client::{
    collector::Collector,
    encoding::DescriptorEncoder,
    metrics::{MetricType, counter::ConstCounter},
};
use serde::Serialize;

use super::{
    OWNERS_OF_ALL, OWNERS_OF_USER,
    families::{Family, ORPHAN_CPU, ORPHANS_DETECTED, REAPED, RECLAIMED_BYTES},
    gauges::series,
    labels::{self, Labels},
};
use crate::sink::report::word;
use orphand_core::model::Share;

/// Values by their labels besides the owner.
type Values = BTreeMap<Labels, u64>;

const FAMILIES: [Family; 3] = [ORPHANS_DETECTED, REAPED, RECLAIMED_BYTES];

/// The counters of one owner.
#[derive(Clone, Debug, Default)]
pub(super) struct Counts {
    detected: Values,
    reaped: Values,
    reclaimed: Values,
    /// Milliseconds.
    processor: u64,
}

impl Counts {
    /// Counts an orphan of this class that was detected.
    pub(super) fn detected(&mut self, class: &Labels, evidence: &[impl Serialize]) {
        for evidence in evidence {
            *self.detected.entry(labels::with(class, "evidence", word(evidence))).or_default() += 1;
        }
    }

    /// Counts an orphan that was ended.
    pub(super) fn reaped(&mut self, class: Labels, signal: &str, bytes: u64) {
        *self.reaped.entry(labels::with(&class, "signal", signal.to_owned())).or_default() += 1;
        let reclaimed = self.reclaimed.entry(class).or_default();
        *reclaimed = reclaimed.saturating_add(bytes);
    }

    /// Counts CPU time that an orphan used.
    pub(super) const fn used(&mut self, cpu_ms: u64) {
        self.processor = self.processor.saturating_add(cpu_ms);
    }

    fn families(&self) -> [&Values; 3] {
        [&self.detected, &self.reaped, &self.reclaimed]
    }

    fn add(&mut self, more: Self) {
        self.used(more.processor);
        let mine = [&mut self.detected, &mut self.reaped, &mut self.reclaimed];
        for (mine, more) in mine.into_iter().zip([more.detected, more.reaped, more.reclaimed]) {
            for (labels, value) in more {
                let sum = mine.entry(labels).or_default();
                *sum = sum.saturating_add(value);
            }
        }
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
            self.other.add(owner.counts);
        }
    }

    /// A copy of all counters.
    pub(super) fn series(&self) -> Series {
        let mut families = [Values::new(), Values::new(), Values::new()];
        let mut processor = BTreeMap::new();
        let other = (labels::other(), &self.other);
        let known = self.known.iter().map(|(labels, owner)| (labels.clone(), &owner.counts));
        for (owner, counts) in known.chain([other]) {
            for (family, values) in families.iter_mut().zip(counts.families()) {
                let all = values.iter().map(|(more, value)| ([owner.as_slice(), more].concat(), *value));
                family.extend(all);
            }
            if counts.processor > 0 {
                processor.insert(owner, Duration::from_millis(counts.processor).as_secs_f64());
            }
        }
        Series(families, processor)
    }
}

/// The counters at the time of one scrape.
#[derive(Debug)]
pub(super) struct Series([Values; 3], BTreeMap<Labels, f64>);

impl Collector for Series {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        for (Family { name, help, .. }, values) in FAMILIES.into_iter().zip(&self.0) {
            let family = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
            series(family, values, ConstCounter::new)?;
        }
        let Family { name, help, .. } = ORPHAN_CPU;
        series(encoder.encode_descriptor(name, help, None, MetricType::Counter)?, &self.1, ConstCounter::new)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sums(owners: &Owners) -> [u64; 3] {
        owners.series().0.map(|values| values.values().sum())
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
