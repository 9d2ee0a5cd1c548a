//! Alerts: reports when a value crosses its threshold, and when it has come back.
//!
//! An alert fires when the value has been above the limit for the configured time, and not before the cooldown since
//! the last alert has passed. When the value is back, the end of the alert is reported once, if the alert was
//! reported. Everything in between is counted and not reported.

use std::collections::VecDeque;

use super::{Engine, ends::millis};
use crate::{
    lineage::ServerKey,
    model::{AlertRule, BootTime, Notice, RunView, Watched},
    world::Account,
};

/// How many past events are kept to compute rates; the oldest are dropped first. A host that leaks more than that in
/// an hour has been reported already.
const PAST: usize = 10_000;

/// All alert rules and their state.
#[derive(Debug, Default)]
pub(super) struct Alarms {
    all: Vec<Alarm>,
    /// Past detections of orphans and processes that could not be ended, oldest first, for rules that look back in
    /// time.
    past: VecDeque<Happened>,
    /// Something happened since the values were last computed.
    dirty: bool,
    next: Option<BootTime>,
}

#[derive(Debug)]
struct Alarm {
    rule: AlertRule,
    /// Since when the value is above the limit.
    above: Option<BootTime>,
    /// When the alert was reported. Absent once its end was reported.
    firing: Option<BootTime>,
    /// When the start or the end of the alert was last reported.
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
    /// Replaces the rules. A rule that did not change keeps its state. Returns the removed rules whose alerts are
    /// firing, and when these were reported.
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

    /// When a value must be computed again even if nothing happens.
    pub(super) const fn next(&self) -> Option<BootTime> {
        self.next
    }

    /// Whether a rule watches this.
    pub(super) fn watch(&self, what: Watched) -> bool {
        self.all.iter().any(|alarm| alarm.rule.on == what)
    }

    /// Counts a notice that may change a value.
    pub(super) fn observe(&mut self, at: BootTime, notice: &Notice) {
        if self.all.is_empty() {
            return;
        }
        self.dirty = true;
        let (what, run) = match notice {
            Notice::OrphanDetected { server, again: false, .. } => (Watched::Rate, server.run.as_ref()),
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

    /// Marks the values as outdated: a measured value may change without an event.
    pub(super) fn mark_dirty(&mut self) {
        self.dirty = !self.all.is_empty();
    }

    fn counted(&self, rule: &AlertRule, now: BootTime) -> u64 {
        let recent = |h: &&Happened| h.what == rule.on && now.since(h.at) < rule.within;
        let meant = |h: &&Happened| names(rule, h.agent.as_deref(), h.unit.as_deref());
        self.past.iter().filter(recent).filter(meant).count() as u64
    }

    /// When the first of the events counted now will be too old to be counted.
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
    /// What to report for this value, and when to compute it again.
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

/// Whether a rule applies to what is accounted to this agent and this unit.
fn names(rule: &AlertRule, agent: Option<&str>, unit: Option<&str>) -> bool {
    rule.agent.as_deref().is_none_or(|name| agent == Some(name) || unit == Some(name))
}

/// Whether a rule applies to what is accounted to this run.
fn is_meant(rule: &AlertRule, account: Option<&Account>) -> bool {
    let run = account.map(Account::view);
    let (agent, unit) = run.map(|run| (run.agent, run.unit)).unzip();
    names(rule, agent.as_deref(), unit.flatten().as_deref())
}

impl Engine {
    /// Reports the thresholds that were crossed, if anything happened that may have changed a value.
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

    /// Changes the alert rules. The end of a firing alert is reported here if its rule was removed, because nothing
    /// else would report it.
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
            Watched::Cpu => self.processor_of(rule),
            Watched::Rate | Watched::ReapFailures => self.alarms.counted(rule, now),
            Watched::Blind => u64::from(self.doubtful || !self.crowded.is_empty()),
        }
    }

    /// How much of one CPU the orphans and unproven servers use that a rule applies to, in percent.
    fn processor_of(&self, rule: &AlertRule) -> u64 {
        let meant =
            |key: &ServerKey| self.world.server(*key).is_some_and(|s| is_meant(rule, s.account.as_ref()));
        let servers = self.world.servers().keys().into_iter().filter(meant);
        servers.map(|key| self.processor.percent(key)).fold(0, u64::saturating_add)
    }

    /// The memory of each orphan that a rule applies to, in bytes, agents that were left behind included.
    fn orphans_of<'a>(&'a self, rule: &'a AlertRule) -> impl Iterator<Item = u64> + 'a {
        let meant = |account: Option<&Account>| is_meant(rule, account);
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
