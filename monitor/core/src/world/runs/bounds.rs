//! Bounds on how many past runs are remembered, and the order in which they are forgotten.
//!
//! Invariants: a user loses only runs that are over, those that ended first come first, and only because of the
//! user's own later runs. If all users together have too many, the user with the most loses first. A run that is
//! alive, or that a living agent or server is accounted to, is never forgotten. The last number of a key is never
//! forgotten either, unless the key is forgotten as a whole; then its numbers may start again.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

use super::{Held, Runs};
use crate::model::{KEYS_OF_USER, RUNS_OF_ALL, RUNS_OF_USER, Run, RunKey, Share};

/// How many runs may end before the bounds are enforced. The bounds may be exceeded by this number.
const SLACK: u64 = 64;
/// For each user: how many keys without a living run are reported.
const RECENT: usize = 8;
/// For all users together: how many such keys are reported.
const ALL_RECENT: usize = 128;

impl Runs {
    /// The runs that are over, in no particular order, each with its index.
    pub(super) fn over(&self) -> impl Iterator<Item = (u64, &Run)> {
        let all = self.by_key.values().flat_map(BTreeMap::values);
        all.filter_map(|entry| Some((entry.over?, &entry.run)))
    }

    /// How many of them each user has, or each of what `owner` makes of a user.
    fn sizes<O: Ord>(&self, owner: impl Fn(u32) -> O) -> BTreeMap<O, usize> {
        let mut sizes = BTreeMap::new();
        for (_, run) in self.over() {
            *sizes.entry(owner(run.uid)).or_default() += 1;
        }
        sizes
    }

    /// Whether enough runs have ended since the bounds were last enforced.
    pub fn is_crowded(&self) -> bool {
        self.ended >= self.looked + SLACK
    }

    /// Enforces the bounds. `held`: the runs that a living agent or server is accounted to. Returns the keys that
    /// are forgotten as a whole.
    pub fn forget(&mut self, held: &Held) -> Vec<RunKey> {
        self.looked = self.ended;
        let mut forgotten = Vec::new();
        for (uid, there) in self.sizes(|uid| uid) {
            if there > KEYS_OF_USER.min(RUNS_OF_USER) {
                forgotten.extend(self.trim(|user| user == uid, usize::min, held));
            }
        }
        // Those of which nothing more can be forgotten.
        let mut spent = BTreeSet::new();
        loop {
            let sizes = self.sizes(Share::of);
            let left = sizes.iter().filter(|(share, _)| !spent.contains(*share));
            let Some((most, _)) = left.max_by_key(|(_, size)| **size) else { break };
            if sizes.values().sum::<usize>() <= RUNS_OF_ALL {
                break;
            }
            forgotten.extend(self.trim(|user| Share::of(user) == *most, |there, _| there / 2, held));
            if self.sizes(Share::of) == sizes {
                spent.insert(*most);
            }
        }
        forgotten
    }

    /// Leaves to these users as many runs, and as many keys, as `rest` says of the number that is there and its bound.
    fn trim(
        &mut self,
        is_theirs: impl Fn(u32) -> bool,
        rest: impl Fn(usize, usize) -> usize,
        held: &Held,
    ) -> Vec<RunKey> {
        let is_held =
            |key: &RunKey, number: u64| held.get(key).is_some_and(|numbers| numbers.contains(&number));
        let is_last = |key: &RunKey, number: u64| {
            self.by_key.get(key).is_some_and(|of| of.range(number + 1..).next().is_none())
        };
        // A key is forgotten as a whole, so no other user may share it.
        let is_over = |key: &RunKey| {
            let mut of_key = self.by_key.get(key).into_iter().flat_map(BTreeMap::values);
            !held.contains_key(key) && of_key.all(|entry| entry.over.is_some() && is_theirs(entry.run.uid))
        };
        // Those that ended first come first.
        let over: BTreeMap<u64, &Run> = self.over().filter(|(_, run)| is_theirs(run.uid)).collect();
        let over = over.into_values().map(|run| (run.key.clone(), run.generation));
        let (mut last, mut earlier): (Vec<_>, Vec<_>) = over.partition(|(key, number)| is_last(key, *number));
        last.retain(|(key, _)| is_over(key));
        earlier.retain(|(key, number)| !is_held(key, *number));
        earlier.truncate(earlier.len().saturating_sub(rest(earlier.len(), RUNS_OF_USER)));
        last.truncate(last.len().saturating_sub(rest(last.len(), KEYS_OF_USER)));
        let forgotten: Vec<RunKey> = last.into_iter().map(|(key, _)| key).collect();
        for key in &forgotten {
            let numbers = self.by_key.get(key).into_iter().flatten();
            earlier.extend(numbers.map(|(number, _)| (key.clone(), *number)));
        }
        for (key, number) in &earlier {
            self.drop_run(key, *number);
        }
        forgotten
    }

    fn drop_run(&mut self, key: &RunKey, number: u64) {
        let Some(of_key) = self.by_key.get_mut(key) else { return };
        of_key.remove(&number);
        if of_key.is_empty() {
            self.by_key.remove(key);
        }
    }

    /// Keys of which a run ended lately: a few for each user, the latest of every user before the earlier ones of
    /// any.
    pub(super) fn recent(&self) -> BTreeSet<&RunKey> {
        let mut shares: BTreeMap<Share, BTreeMap<Reverse<u64>, &RunKey>> = BTreeMap::new();
        for runs in self.by_key.values() {
            let over = runs.values().filter_map(|entry| Some((entry.over?, &entry.run)));
            if let Some((place, run)) = over.max_by_key(|(place, _)| *place) {
                shares.entry(Share::of(run.uid)).or_default().insert(Reverse(place), &run.key);
            }
        }
        let ranked = shares.values().flat_map(|latest| latest.iter().take(RECENT).enumerate());
        let mut candidates: Vec<_> = ranked.map(|(rank, (age, key))| (rank, *age, *key)).collect();
        candidates.sort_unstable();
        candidates.into_iter().take(ALL_RECENT).map(|(_, _, key)| key).collect()
    }
}
