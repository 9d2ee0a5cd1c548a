//! Runs and their numbers: what agents and servers are accounted to.
//!
//! Invariant: a number is given once for a key, as long as the key is remembered, and a number is never guessed. An
//! invocation that is over and was not counted in its time has no number. What is remembered is bounded for each
//! user, see [`bounds`].

mod bounds;

use std::collections::{BTreeMap, BTreeSet};

use crate::model::{ProcessId, RememberedRun, Run, RunKey, RunReport, RunView, UnitFacts};

/// The runs that a living agent or server is accounted to.
pub type Held = BTreeMap<RunKey, BTreeSet<u64>>;

/// A top-most agent: the facts that decide which run it belongs to.
#[derive(Clone, Copy, Debug)]
pub struct TopMost<'a> {
    pub name: &'a str,
    pub uid: u32,
    pub main: ProcessId,
    pub unit: Option<&'a UnitFacts>,
    /// Whether its start was witnessed. Starts are witnessed in order, so the agent is the next run, even if that
    /// run is over by now.
    pub witnessed: bool,
}

#[derive(Clone, Debug)]
struct Entry {
    run: Run,
    /// Whether it began in this boot: otherwise its process means nothing.
    this_boot: bool,
    /// How many runs had ended with it. Absent while it is alive.
    over: Option<u64>,
}

#[derive(Clone, Debug, Default)]
pub struct Runs {
    by_key: BTreeMap<RunKey, BTreeMap<u64, Entry>>,
    /// How many runs have ever ended, and how many had when the bounds were last enforced.
    ended: u64,
    looked: u64,
}

impl Runs {
    /// Takes over the runs that earlier daemons counted.
    pub fn remember(&mut self, remembered: Vec<RememberedRun>) {
        for RememberedRun { run, this_boot } in remembered {
            self.enter(Run { alive: run.alive && this_boot, ..run }, this_boot);
        }
    }

    /// The account of a top-most agent, and its run if the run is new or alive again.
    pub fn account(&mut self, agent: &TopMost<'_>) -> (RunView, Option<Run>) {
        let of_unit = agent.unit.and_then(|facts| Some((facts, facts.invocation_id.as_ref()?)));
        let Some((facts, invocation)) = of_unit else {
            let key = RunKey::Agent { name: agent.name.to_owned(), uid: agent.uid };
            let known = self.last(&key, |entry| entry.this_boot && entry.run.main == agent.main);
            return self.count(key, known, agent);
        };
        let key = RunKey::Unit(facts.unit.family());
        let known = self.of_invocation(&key, invocation);
        // The run is over and was not counted, so its number cannot be known.
        if known.is_none() && !agent.witnessed && facts.left_behind() {
            return (RunView::new(key, None, agent.name.to_owned(), Some(invocation.clone())), None);
        }
        self.count(key, known, agent)
    }

    fn count(&mut self, key: RunKey, known: Option<u64>, agent: &TopMost<'_>) -> (RunView, Option<Run>) {
        let invocation_id = agent.unit.and_then(|unit| unit.invocation_id.clone());
        let last = self.last(&key, |_| true).unwrap_or_default();
        let generation = known.unwrap_or(last + 1);
        let before = self.get(&key, generation).cloned();
        let run = before.clone().unwrap_or_else(|| Run {
            key,
            generation,
            agent: agent.name.to_owned(),
            uid: agent.uid,
            main: agent.main,
            invocation_id: invocation_id.clone(),
            alive: true,
        });
        let run = Run { alive: true, ..run };
        let account = RunView { invocation_id, ..RunView::from(&run) };
        if before.as_ref() == Some(&run) {
            return (account, None);
        }
        self.enter(run.clone(), true);
        (account, Some(run))
    }

    /// The account of a process that a unit left behind and whose agent is unknown.
    pub fn left_behind(&self, facts: &UnitFacts) -> RunView {
        let invocation_id = facts.invocation_id.clone();
        let unit = facts.unit.family();
        let name = unit.name.clone();
        let key = RunKey::Unit(unit);
        let generation = invocation_id.as_deref().and_then(|id| self.of_invocation(&key, id));
        let agent = generation.and_then(|g| self.get(&key, g)).map_or(name, |run| run.agent.clone());
        RunView::new(key, generation, agent, invocation_id)
    }

    /// The account of a run that an earlier daemon counted.
    pub fn account_of(&self, key: &RunKey, generation: u64) -> Option<RunView> {
        self.get(key, generation).map(RunView::from)
    }

    /// Ends a run, because none of its top-most agents is alive. Returns the run if it counted as alive until now.
    pub fn end(&mut self, key: &RunKey, generation: u64) -> Option<Run> {
        let entry = self.by_key.get(key)?.get(&generation).filter(|entry| entry.run.alive)?.clone();
        let run = Run { alive: false, ..entry.run };
        self.enter(run.clone(), entry.this_boot);
        Some(run)
    }

    pub fn alive(&self) -> Vec<(RunKey, u64)> {
        let all = self.by_key.values().flat_map(BTreeMap::values).map(|entry| &entry.run);
        all.filter(|run| run.alive).map(|run| (run.key.clone(), run.generation)).collect()
    }

    /// The runs for a report: those that are held, those alive, and the latest run of each key that is alive or
    /// recent.
    pub fn report(&self, held: &Held) -> Vec<RunReport> {
        const LATEST: usize = 16;
        let recent = self.recent();
        let mut found = Vec::new();
        for (key, runs) in &self.by_key {
            let held = held.get(key);
            let matters = |run: &Run| run.alive || held.is_some_and(|held| held.contains(&run.generation));
            let all = || runs.values().map(|entry| &entry.run);
            let old = if recent.contains(key) || all().any(matters) {
                runs.len().saturating_sub(LATEST)
            } else {
                runs.len()
            };
            let shown = all().enumerate().filter(|(at, run)| *at >= old || matters(run));
            found.extend(shown.map(|(_, run)| RunReport {
                run: RunView::from(run),
                user: run.uid,
                started: run.main.born(),
                alive: run.alive,
            }));
        }
        found
    }

    fn get(&self, key: &RunKey, generation: u64) -> Option<&Run> {
        self.by_key.get(key)?.get(&generation).map(|entry| &entry.run)
    }

    /// The number of the last run of this key of which this holds.
    fn last(&self, key: &RunKey, holds: impl Fn(&Entry) -> bool) -> Option<u64> {
        self.by_key.get(key)?.iter().rev().find(|(_, entry)| holds(entry)).map(|(number, _)| *number)
    }

    fn of_invocation(&self, key: &RunKey, invocation: &str) -> Option<u64> {
        self.last(key, |entry| entry.run.invocation_id.as_deref() == Some(invocation))
    }

    fn enter(&mut self, run: Run, this_boot: bool) {
        self.ended += u64::from(!run.alive);
        let over = (!run.alive).then_some(self.ended);
        let of_key = self.by_key.entry(run.key.clone()).or_default();
        of_key.insert(run.generation, Entry { run, this_boot, over });
    }
}

#[cfg(test)]
mod tests;
