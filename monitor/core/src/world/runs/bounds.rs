//! Bounds on how many past runs are remembered, and the order in which they are forgotten.
//!
//! Invariants: a user loses only runs that are over, those that ended first come first, and only because of the
//! user's own later runs. If all users together have too many, the user with the most loses first. A run that is
//! alive, or that a living agent or server is accounted to, is never forgotten. The last number of a key is never
//! forgotten either, unless the key is forgotten as a whole; then its numbers may start again.

use std::collections::{BTreeMap, BTreeSet};

use super::{Held, Runs};
use crate::model::{KEYS_OF_USER, RUNS_OF_ALL, RUNS_OF_USER, Run, RunKey, Share};

/// How many runs may end before the bounds are enforced. The bounds may be exceeded by this number.
const SLACK: u64 = 64;
/// For each user: how many keys without a living run are reported.
const RECENT: usize = 8;
/// For all users together: how many such keys are reported.
const ALL_RECENT: usize = 128;

/// The runs that are over, by user, those that ended first come first.
#[derive(Clone, Debug, Default)]
pub(super) struct Finished {
    by_user: BTreeMap<u32, BTreeMap<u64, (RunKey, u64)>>,
    /// How many runs have ever been added.
    added: u64,
    /// The value of `added` when the bounds were last enforced.
    looked: u64,
}

impl Finished {
    /// Adds a run that is over. Returns its index.
    pub(super) fn add(&mut self, run: &Run) -> u64 {
        self.added += 1;
        let of_user = self.by_user.entry(run.uid).or_default();
        of_user.insert(self.added, (run.key.clone(), run.generation));
        self.added
    }

    /// Removes the run with this index: it is alive again, or forgotten.
    pub(super) fn remove(&mut self, uid: u32, place: u64) {
        if let Some(of_user) = self.by_user.get_mut(&uid) {
            of_user.remove(&place);
            if of_user.is_empty() {
                self.by_user.remove(&uid);
            }
        }
    }

    pub(super) fn len(&self) -> usize {
        self.by_user.values().map(BTreeMap::len).sum()
    }

    /// The users that share each bound.
    fn shares(&self) -> BTreeMap<Share, BTreeSet<u32>> {
        let mut shares: BTreeMap<Share, BTreeSet<u32>> = BTreeMap::new();
        for uid in self.by_user.keys() {
            shares.entry(Share::of(*uid)).or_default().insert(*uid);
        }
        shares
    }

    /// The runs of all these users, those that ended first come first.
    fn of(&self, users: &BTreeSet<u32>) -> Vec<(RunKey, u64)> {
        let all = users.iter().filter_map(|uid| self.by_user.get(uid)).flatten();
        let all: BTreeMap<u64, &(RunKey, u64)> = all.map(|(place, run)| (*place, run)).collect();
        all.into_values().cloned().collect()
    }
}

impl Runs {
    /// Whether enough runs have ended since the bounds were last enforced.
    pub fn is_crowded(&self) -> bool {
        self.finished.added >= self.finished.looked + SLACK
    }

    /// Enforces the bounds. `held`: the runs that a living agent or server is accounted to. Returns the keys that
    /// are forgotten as a whole.
    pub fn forget(&mut self, held: &Held) -> Vec<RunKey> {
        self.finished.looked = self.finished.added;
        let of_user = |(uid, runs): (&u32, &BTreeMap<_, _>)| {
            (runs.len() > KEYS_OF_USER.min(RUNS_OF_USER)).then_some(*uid)
        };
        let crowded: Vec<u32> = self.finished.by_user.iter().filter_map(of_user).collect();
        let mut forgotten = Vec::new();
        for uid in crowded {
            let (runs, keys) =
                (|there: usize| there.min(RUNS_OF_USER), |there: usize| there.min(KEYS_OF_USER));
            forgotten.extend(self.trim(&BTreeSet::from([uid]), runs, keys, held));
        }
        let mut shares =
            if self.finished.len() > RUNS_OF_ALL { self.finished.shares() } else { BTreeMap::new() };
        while self.finished.len() > RUNS_OF_ALL {
            let size = |users: &BTreeSet<u32>| -> usize {
                users.iter().filter_map(|uid| self.finished.by_user.get(uid)).map(BTreeMap::len).sum()
            };
            let Some(most) = shares.iter().max_by_key(|(_, users)| size(users)).map(|(s, _)| *s) else {
                break;
            };
            let Some(users) = shares.get(&most) else { break };
            let before = self.finished.len();
            forgotten.extend(self.trim(users, |there| there / 2, |there| there / 2, held));
            if self.finished.len() == before {
                shares.remove(&most);
            }
        }
        forgotten
    }

    /// Enforces the bounds `runs` and `keys` on what these users have.
    fn trim(
        &mut self,
        users: &BTreeSet<u32>,
        runs: impl Fn(usize) -> usize,
        keys: impl Fn(usize) -> usize,
        held: &Held,
    ) -> Vec<RunKey> {
        let is_held =
            |key: &RunKey, number: u64| held.get(key).is_some_and(|numbers| numbers.contains(&number));
        let is_last = |key: &RunKey, number: u64| {
            self.by_key.get(key).is_some_and(|of| of.range(number + 1..).next().is_none())
        };
        let (last, earlier): (Vec<_>, Vec<_>) =
            self.finished.of(users).into_iter().partition(|(key, number)| is_last(key, *number));
        // A key is forgotten as a whole, so no other user may share it.
        let is_over = |key: &RunKey| {
            let of_key = self.by_key.get(key).into_iter().flat_map(BTreeMap::values);
            !held.contains_key(key)
                && of_key.into_iter().all(|entry| entry.over.is_some() && users.contains(&entry.run.uid))
        };
        let last: Vec<_> = last.into_iter().map(|(key, _)| key).filter(is_over).collect();
        let earlier: Vec<_> = earlier.into_iter().filter(|(key, number)| !is_held(key, *number)).collect();
        let surplus = earlier.len().saturating_sub(runs(earlier.len()));
        for (key, number) in earlier.into_iter().take(surplus) {
            self.drop_run(&key, number);
        }
        let surplus = last.len().saturating_sub(keys(last.len()));
        let forgotten: Vec<RunKey> = last.into_iter().take(surplus).collect();
        for key in &forgotten {
            let numbers: Vec<u64> = self.by_key.get(key).into_iter().flatten().map(|(n, _)| *n).collect();
            for number in numbers {
                self.drop_run(key, number);
            }
            self.by_key.remove(key);
        }
        forgotten
    }

    fn drop_run(&mut self, key: &RunKey, number: u64) {
        let Some(entry) = self.by_key.get_mut(key).and_then(|of| of.remove(&number)) else { return };
        let Run { uid, main, key, invocation_id, .. } = entry.run;
        if let Some(place) = entry.over {
            self.finished.remove(uid, place);
        }
        if self.mains.get(&main).is_some_and(|(of, n)| *of == key && *n == number) {
            self.mains.remove(&main);
        }
        if let (RunKey::Unit(unit), Some(invocation)) = (key, invocation_id) {
            self.invocations.remove(&(unit, invocation));
        }
    }

    /// Keys of which a run ended lately: a few for each user, the latest of every user before the earlier ones of
    /// any.
    pub(super) fn recent(&self) -> BTreeSet<&RunKey> {
        let mut candidates = Vec::new();
        for users in self.finished.shares().into_values() {
            let mut latest: BTreeMap<&RunKey, u64> = BTreeMap::new();
            for of_user in users.iter().filter_map(|uid| self.finished.by_user.get(uid)) {
                let mut seen = BTreeSet::new();
                for (place, (key, _)) in of_user.iter().rev() {
                    if seen.len() >= RECENT && !seen.contains(key) {
                        break;
                    }
                    seen.insert(key);
                    let known = latest.entry(key).or_default();
                    *known = (*known).max(*place);
                }
            }
            let mut latest: Vec<_> = latest.into_iter().map(|(key, place)| (place, key)).collect();
            latest.sort_unstable_by(|a, b| b.cmp(a));
            let ranked = latest.into_iter().take(RECENT).enumerate();
            candidates.extend(ranked.map(|(rank, (place, key))| (rank, u64::MAX - place, key)));
        }
        candidates.sort_unstable();
        candidates.into_iter().take(ALL_RECENT).map(|(_, _, key)| key).collect()
    }
}
