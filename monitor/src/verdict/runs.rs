//! Runs and their numbers: what agents and servers are accounted to.
//!
//! Invariant: a number is given once for a key, and never guessed: an invocation that is over and that nobody counted has none.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use crate::model::{ProcessId, RememberedRun, Run, RunKey, RunReport, RunView, Unit, UnitFacts};

/// Finished runs kept for each key, beside those that somebody still refers to.
const KEPT: usize = 256;

/// What an agent or a server is accounted to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// Whose run.
    pub key: RunKey,
    /// Its number, if it is known.
    pub generation: Option<u64>,
    /// The name of the top-most agent, or of the unit.
    pub agent: String,
    /// The unit's invocation.
    pub invocation_id: Option<String>,
}

impl Account {
    /// As events show it.
    pub fn view(&self) -> RunView {
        let (unit, uid) = match &self.key {
            RunKey::Unit(unit) => (Some(unit), None),
            RunKey::Agent { uid, .. } => (None, Some(*uid)),
        };
        RunView {
            agent: self.agent.clone(),
            generation: self.generation,
            uid,
            unit: unit.map(|u| u.name.clone()),
            manager: unit.map(|u| u.manager.clone()).filter(|m| !m.is_empty()),
            invocation_id: self.invocation_id.clone(),
        }
    }

    /// Of an agent of which nobody could find out whether it lived in a unit.
    pub fn unknown(name: &str, uid: u32) -> Self {
        let name = name.to_owned();
        Self {
            key: RunKey::Agent { name: name.clone(), uid },
            generation: None,
            agent: name,
            invocation_id: None,
        }
    }

    /// The run itself, if it has a number.
    pub fn run(&self) -> Option<(RunKey, u64)> {
        self.generation.map(|generation| (self.key.clone(), generation))
    }
}

/// A top-most agent, as far as its run depends on it.
#[derive(Clone, Copy, Debug)]
pub struct TopMost<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its real user id.
    pub uid: u32,
    /// Its process.
    pub main: ProcessId,
    /// The unit it lives in.
    pub unit: Option<&'a UnitFacts>,
    /// Whether its start was witnessed: starts are witnessed in their order, so it is the next run even if it is over by now.
    pub witnessed: bool,
}

/// All runs that are remembered.
#[derive(Clone, Debug, Default)]
pub struct Runs {
    by_key: BTreeMap<RunKey, BTreeMap<u64, Run>>,
    mains: FxHashMap<ProcessId, (RunKey, u64)>,
    invocations: FxHashMap<(Unit, String), u64>,
}

impl Runs {
    /// What earlier daemons counted.
    pub fn remember(&mut self, remembered: Vec<RememberedRun>) {
        for RememberedRun { run, this_boot } in remembered {
            if this_boot {
                self.mains.insert(run.main, (run.key.clone(), run.generation));
            }
            self.enter(Run { alive: run.alive && this_boot, ..run });
        }
    }

    /// The account of a top-most agent, and its run if that is new or alive again.
    pub fn account(&mut self, agent: &TopMost<'_>) -> (Account, Option<Run>) {
        let of_unit = agent.unit.and_then(|facts| Some((facts, facts.invocation_id.as_ref()?)));
        let Some((facts, invocation)) = of_unit else {
            let key = RunKey::Agent { name: agent.name.to_owned(), uid: agent.uid };
            let known = self.mains.get(&agent.main).filter(|(k, _)| *k == key).map(|(_, g)| *g);
            return self.count(key, known, None, agent);
        };
        let key = RunKey::Unit(facts.unit.clone());
        let known = self.of_invocation(&facts.unit, invocation);
        // Over, and nobody counted it: which number it had cannot be known.
        if known.is_none() && !agent.witnessed && facts.left_behind() {
            let invocation_id = Some(invocation.clone());
            return (Account { key, generation: None, agent: agent.name.to_owned(), invocation_id }, None);
        }
        self.count(key, known, Some(invocation.clone()), agent)
    }

    fn count(
        &mut self,
        key: RunKey,
        known: Option<u64>,
        invocation_id: Option<String>,
        agent: &TopMost<'_>,
    ) -> (Account, Option<Run>) {
        let last = self.by_key.get(&key).and_then(|r| r.keys().next_back().copied()).unwrap_or_default();
        let generation = known.unwrap_or(last + 1);
        let before = self.get(&key, generation).cloned();
        let run = before.clone().unwrap_or_else(|| Run {
            key: key.clone(),
            generation,
            agent: agent.name.to_owned(),
            uid: agent.uid,
            main: agent.main,
            invocation_id: invocation_id.clone(),
            alive: true,
        });
        let run = Run { alive: true, ..run };
        let account = Account { key, generation: Some(generation), agent: run.agent.clone(), invocation_id };
        if before.as_ref() == Some(&run) {
            return (account, None);
        }
        self.mains.insert(run.main, (run.key.clone(), generation));
        self.enter(run.clone());
        (account, Some(run))
    }

    /// The account of a process that a unit left behind and whose agent nobody knows.
    pub fn left_behind(&self, facts: &UnitFacts) -> Account {
        let invocation_id = facts.invocation_id.clone();
        let generation = invocation_id.as_deref().and_then(|id| self.of_invocation(&facts.unit, id));
        let key = RunKey::Unit(facts.unit.clone());
        let agent = generation.and_then(|g| self.get(&key, g)).map_or(&facts.unit.name, |run| &run.agent);
        Account { agent: agent.clone(), key, generation, invocation_id }
    }

    /// The account of what an earlier daemon counted.
    pub fn account_of(&self, key: &RunKey, generation: u64) -> Option<Account> {
        let run = self.get(key, generation)?;
        let invocation_id = run.invocation_id.clone();
        Some(Account {
            key: key.clone(),
            generation: Some(generation),
            agent: run.agent.clone(),
            invocation_id,
        })
    }

    /// No top-most agent of this run lives any more. The run, if that is news.
    pub fn end(&mut self, key: &RunKey, generation: u64) -> Option<Run> {
        let run = self.by_key.get_mut(key)?.get_mut(&generation).filter(|run| run.alive)?;
        run.alive = false;
        let run = run.clone();
        self.forget_old(key);
        Some(run)
    }

    /// The runs that count as alive.
    pub fn alive(&self) -> Vec<(RunKey, u64)> {
        let all = self.by_key.values().flat_map(BTreeMap::values);
        all.filter(|run| run.alive).map(|run| (run.key.clone(), run.generation)).collect()
    }

    /// For a report: those that `matters` names, those alive, and the latest of each key.
    pub fn report(&self, matters: impl Fn(&RunKey, u64) -> bool) -> Vec<RunReport> {
        const LATEST: usize = 16;
        let mut found = Vec::new();
        for runs in self.by_key.values() {
            let old = runs.len().saturating_sub(LATEST);
            let shown = runs
                .values()
                .enumerate()
                .filter(|(at, run)| *at >= old || run.alive || matters(&run.key, run.generation));
            found.extend(shown.map(|(_, run)| {
                RunReport {
                    run: Account {
                        key: run.key.clone(),
                        generation: Some(run.generation),
                        agent: run.agent.clone(),
                        invocation_id: run.invocation_id.clone(),
                    }
                    .view(),
                    started: run.main.born(),
                    alive: run.alive,
                }
            }));
        }
        found
    }

    fn get(&self, key: &RunKey, generation: u64) -> Option<&Run> {
        self.by_key.get(key)?.get(&generation)
    }

    fn of_invocation(&self, unit: &Unit, invocation: &str) -> Option<u64> {
        self.invocations.get(&(unit.clone(), invocation.to_owned())).copied()
    }

    fn enter(&mut self, run: Run) {
        if let (RunKey::Unit(unit), Some(invocation)) = (&run.key, &run.invocation_id) {
            self.invocations.insert((unit.clone(), invocation.clone()), run.generation);
        }
        let key = run.key.clone();
        self.by_key.entry(key.clone()).or_default().insert(run.generation, run);
        self.forget_old(&key);
    }

    /// Bounded whatever restarts: the oldest finished run of a key goes when there are too many. The last number of a key stays.
    fn forget_old(&mut self, key: &RunKey) {
        let Some(runs) = self.by_key.get_mut(key).filter(|runs| runs.len() > KEPT) else { return };
        let last = runs.keys().next_back().copied();
        let finished = |run: &&Run| !run.alive && Some(run.generation) != last;
        let Some(oldest) = runs.values().find(finished).map(|run| run.generation) else { return };
        let Some(run) = runs.remove(&oldest) else { return };
        self.mains.remove(&run.main);
        if let (RunKey::Unit(unit), Some(invocation)) = (run.key, run.invocation_id) {
            self.invocations.remove(&(unit, invocation));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use proptest::prelude::*;

    use super::*;
    use crate::model::UnitState;

    /// What happens to the runs of a few agents and units.
    #[derive(Clone, Debug)]
    enum Act {
        /// An agent starts: in a unit under an invocation, witnessed or found later, or outside of units.
        Start { unit: Option<(u8, u8)>, main: u8, witnessed: bool },
        /// The last agent of a run ends.
        End(u8),
        /// The daemon is killed, and the next one knows what was told to be remembered.
        Restart { same_boot: bool },
    }

    fn act() -> impl Strategy<Value = Act> {
        let unit = prop::option::of((0u8..3, 0u8..6));
        prop_oneof![
            8 => (unit, 0u8..12, any::<bool>())
                .prop_map(|(unit, main, witnessed)| Act::Start { unit, main, witnessed }),
            3 => any::<u8>().prop_map(Act::End),
            1 => any::<bool>().prop_map(|same_boot| Act::Restart { same_boot }),
        ]
    }

    fn facts((unit, invocation): (u8, u8), witnessed: bool) -> UnitFacts {
        let now = if witnessed { invocation.to_string() } else { "another".to_owned() };
        UnitFacts {
            unit: Unit { manager: String::new(), name: format!("{unit}.service") },
            invocation_id: Some(invocation.to_string()),
            state: UnitState::Active(now),
        }
    }

    proptest! {
        /// A number means one run for ever: one invocation of a unit, or one process; the numbers of a key have no gaps; an
        /// invocation that is over and that nobody counted gets none.
        #[test]
        fn a_number_is_given_once(acts in prop::collection::vec(act(), 0..120)) {
            let mut runs = Runs::default();
            let mut disk: BTreeMap<(RunKey, u64), Run> = BTreeMap::new();
            let mut boot = 0u64;
            // Whose each number is: an invocation, or a process of a boot.
            let mut owners: BTreeMap<(RunKey, u64), String> = BTreeMap::new();
            let mut counted: BTreeSet<(u8, u8)> = BTreeSet::new();
            for act in acts {
                match act {
                    Act::Start { unit, main, witnessed } => {
                        let facts = unit.map(|unit| facts(unit, witnessed));
                        let main = ProcessId::new(u32::from(main) + 2, boot + u64::from(main));
                        let top = TopMost { name: "claude", uid: 0, main, unit: facts.as_ref(), witnessed };
                        let (account, run) = runs.account(&top);
                        if let Some(run) = run {
                            disk.insert((run.key.clone(), run.generation), run);
                        }
                        let known = unit.is_none_or(|u| witnessed || counted.contains(&u));
                        prop_assert_eq!(account.generation.is_some(), known);
                        if let Some(number) = account.run() {
                            counted.extend(unit);
                            let owner = unit.map_or(format!("{main} of boot {boot}"), |(_, i)| i.to_string());
                            let before = owners.entry(number.clone()).or_insert_with(|| owner.clone());
                            prop_assert_eq!(&*before, &owner);
                            let of_key = owners.keys().filter(|(key, _)| *key == number.0).count() as u64;
                            prop_assert!(number.1 >= 1 && number.1 <= of_key, "{} of {of_key}", number.1);
                        }
                    }
                    Act::End(which) => {
                        let alive = runs.alive();
                        if let Some((key, generation)) = alive.get(usize::from(which) % alive.len().max(1))
                            && let Some(run) = runs.end(key, *generation)
                        {
                            disk.insert((run.key.clone(), run.generation), run);
                        }
                    }
                    Act::Restart { same_boot } => {
                        boot += if same_boot { 0 } else { 1000 };
                        runs = Runs::default();
                        let remembered = disk.values().cloned();
                        let this_boot = |run: &Run| run.main.start >= boot;
                        runs.remember(
                            remembered.map(|run| RememberedRun { this_boot: this_boot(&run), run }).collect(),
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn many_runs_are_bounded_and_the_last_number_stays() {
        let mut runs = Runs::default();
        for n in 0..2 * KEPT as u32 {
            let top = TopMost { name: "a", uid: 0, main: ProcessId::new(n, 1), unit: None, witnessed: true };
            let (account, _) = runs.account(&top);
            assert_eq!(account.generation, Some(u64::from(n) + 1));
            runs.end(&account.key, u64::from(n) + 1);
        }
        assert_eq!(runs.by_key.values().map(BTreeMap::len).sum::<usize>(), KEPT);
        assert_eq!(runs.mains.len(), KEPT);
        assert_eq!(runs.report(|_, _| false).len(), 16);
    }
}
