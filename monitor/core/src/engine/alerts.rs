//! Thresholds: when one is crossed, and when it is not any more.
//!
//! A rule is told when its value has been above the limit for as long as it says, not sooner after its last alert than its
//! cooldown; and once more when the value is back, if it was told. Whatever happens in between is counted, never told.

use std::collections::VecDeque;

use super::{Engine, ends::millis};
use crate::{
    lineage::ServerKey,
    model::{AlertRule, BootTime, Notice, RunView, Watched},
    world::Account,
};

/// How much of the past is kept for rates; the eldest go first. Whoever leaks more than that an hour has been told.
const PAST: usize = 10_000;

/// All rules and how they stand.
#[derive(Debug, Default)]
pub(super) struct Alarms {
    all: Vec<Alarm>,
    /// Orphans detected and processes that could not be ended, the eldest first, for rules that look back.
    past: VecDeque<Happened>,
    /// Something happened since the values were looked at.
    dirty: bool,
    next: Option<BootTime>,
}

#[derive(Debug)]
struct Alarm {
    rule: AlertRule,
    /// Above the limit since then.
    above: Option<BootTime>,
    /// Told then, and not told to be over.
    firing: Option<BootTime>,
    /// When it was told last, over or not.
    told: Option<BootTime>,
}

#[derive(Debug)]
struct Happened {
    at: BootTime,
    what: Watched,
    agent: Option<String>,
    unit: Option<String>,
}

impl Alarms {
    /// Nothing has happened yet.
    pub(super) fn new(rules: &[AlertRule]) -> Self {
        let mut alarms = Self::default();
        // There are none yet that could be gone.
        let _ = alarms.replace(rules);
        alarms
    }

    /// Other rules; one that stays as it was goes on as it stands. Those that were told and are gone, and when they were told.
    pub(super) fn replace(&mut self, rules: &[AlertRule]) -> Vec<(AlertRule, BootTime)> {
        let mut before = std::mem::take(&mut self.all);
        let take = |rule: &AlertRule| {
            let same = before.iter().position(|alarm| alarm.rule == *rule);
            let new = || Alarm { rule: rule.clone(), above: None, firing: None, told: None };
            same.map_or_else(new, |at| before.swap_remove(at))
        };
        self.all = rules.iter().map(take).collect();
        self.dirty = true;
        before.into_iter().filter_map(|alarm| Some((alarm.rule, alarm.firing?))).collect()
    }

    /// When a value has to be looked at again, although nothing happens.
    pub(super) const fn next(&self) -> Option<BootTime> {
        self.next
    }

    /// What is told may move a value.
    pub(super) fn observe(&mut self, at: BootTime, notice: &Notice) {
        if self.all.is_empty() {
            return;
        }
        self.dirty = true;
        let (what, run) = match notice {
            Notice::OrphanDetected { server, .. } => (Watched::Rate, server.run.as_ref()),
            Notice::ReapFailed { server, .. } => (Watched::ReapFailures, server.run.as_ref()),
            _ => return,
        };
        let agent = run.map(|run| run.agent.clone());
        let unit = run.and_then(|run: &RunView| run.unit.clone());
        self.past.push_back(Happened { at, what, agent, unit });
        if self.past.len() > PAST {
            self.past.pop_front();
        }
    }

    /// A measured value may have changed without an event.
    pub(super) fn mark_dirty(&mut self) {
        self.dirty = !self.all.is_empty();
    }

    fn counted(&self, rule: &AlertRule, now: BootTime) -> u64 {
        let recent = |h: &&Happened| h.what == rule.on && now.since(h.at) < rule.within;
        let meant = |h: &&Happened| names(rule, h.agent.as_deref(), h.unit.as_deref());
        self.past.iter().filter(recent).filter(meant).count() as u64
    }

    /// When the first of what is counted now will not be any more.
    fn fades(&self, rule: &AlertRule, now: BootTime) -> Option<BootTime> {
        let recent = |h: &&Happened| h.what == rule.on && now.since(h.at) < rule.within;
        self.past.iter().filter(recent).map(|h| h.at + rule.within).min()
    }

    fn forget(&mut self, now: BootTime) {
        let longest = self.all.iter().map(|alarm| alarm.rule.within).max().unwrap_or_default();
        while self.past.front().is_some_and(|h| now.since(h.at) >= longest) {
            self.past.pop_front();
        }
    }
}

impl Alarm {
    /// What there is to tell now that the value is `value`, and when to look again.
    fn judge(&mut self, now: BootTime, value: u64) -> (Option<Notice>, Option<BootTime>) {
        let AlertRule { name, on, above: limit, agent, hold, cooldown, .. } = self.rule.clone();
        if value <= limit {
            self.above = None;
            let over = self.firing.take().map(|told| Notice::AlertResolved {
                rule: name,
                on,
                agent,
                value,
                limit,
                after_ms: millis(now, told),
            });
            return (over, None);
        }
        let since = *self.above.get_or_insert(now);
        if self.firing.is_some() {
            return (None, None);
        }
        let cooled = self.told.map_or(BootTime::default(), |told| told + cooldown);
        let due = (since + hold).max(cooled);
        if due > now {
            return (None, Some(due));
        }
        (self.firing, self.told) = (Some(now), Some(now));
        (Some(Notice::Alert { rule: name, on, agent, value, limit }), None)
    }
}

/// Whether a rule is about what is accounted to this agent and unit.
fn names(rule: &AlertRule, agent: Option<&str>, unit: Option<&str>) -> bool {
    rule.agent.as_deref().is_none_or(|name| agent == Some(name) || unit == Some(name))
}

impl Engine {
    /// Tells what was crossed, if anything happened that may have.
    pub(super) fn evaluate_alerts(&mut self, now: BootTime) {
        let due = self.alarms.next.is_some_and(|at| at <= now);
        if !due && !self.alarms.dirty {
            return;
        }
        self.alarms.forget(now);
        let mut all = std::mem::take(&mut self.alarms.all);
        let mut told = Vec::new();
        let mut next = Vec::new();
        for alarm in &mut all {
            let value = self.value(&alarm.rule, now);
            let (notice, again) = alarm.judge(now, value);
            told.extend(notice);
            next.extend(again);
            next.extend(self.alarms.fades(&alarm.rule, now));
        }
        self.alarms.all = all;
        self.alarms.next = next.into_iter().min();
        for notice in told {
            self.emit(now, notice);
        }
        self.alarms.dirty = false;
    }

    /// Nobody would ever tell the end of an alert whose rule is gone.
    pub(super) fn change_alerts(&mut self, now: BootTime, rules: &[AlertRule]) {
        for (rule, told) in self.alarms.replace(rules) {
            let value = self.value(&rule, now);
            let AlertRule { name, on, above, agent, .. } = rule;
            let after_ms = millis(now, told);
            self.emit(now, Notice::AlertResolved { rule: name, on, agent, value, limit: above, after_ms });
        }
    }

    fn value(&self, rule: &AlertRule, now: BootTime) -> u64 {
        match rule.on {
            Watched::Orphans => self.orphans_of(rule).count() as u64,
            Watched::Rss => self.orphans_of(rule).sum(),
            Watched::Rate | Watched::ReapFailures => self.alarms.counted(rule, now),
            Watched::Blind => u64::from(self.doubtful || !self.crowded.is_empty()),
        }
    }

    /// The memory of each orphan that a rule is about, agents that were left behind included.
    fn orphans_of<'a>(&'a self, rule: &'a AlertRule) -> impl Iterator<Item = u64> + 'a {
        let meant = |account: Option<&Account>| {
            let run = account.map(Account::view);
            let (agent, unit) = run.map(|run| (run.agent, run.unit)).unzip();
            names(rule, agent.as_deref(), unit.flatten().as_deref())
        };
        let servers = self.world.servers().keys().into_iter().filter_map(move |key: ServerKey| {
            let server = self.world.server(key).filter(|s| s.phase.orphan().is_some())?;
            meant(server.account.as_ref()).then(|| server.rss_bytes.unwrap_or_default())
        });
        let left = self.world.agents().all().into_iter().filter_map(move |(_, agent)| {
            let verdict = agent.phase.orphan().filter(|_| agent.is_alive())?;
            meant(Some(&agent.account)).then_some(verdict.rss_bytes)
        });
        servers.chain(left)
    }
}
