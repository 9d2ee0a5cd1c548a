//! Alerts: reports when a value crosses its threshold, and when it has come back.
//!
//! An alert fires when the value has been above the limit for the configured time, and not before the cooldown since
//! the last alert has passed. When the value is back, the end of the alert is reported once, if the alert was
//! reported. Everything in between is counted and not reported.
//!
//! The processor time of what was left behind, for alerts on `cpu`: how much of a CPU orphans and unproven servers have
//! used over the last minute.
//!
//! Invariant: without an alert on `cpu`, and without such a server, nothing is measured. The readings are those of
//! memory, which tell processor time, too.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    mem,
    time::Duration,
};

use super::{Engine, agenda::Task, lives::millis};
use crate::{
    lineage::ServerKey,
    model::{About, AlertRule, Answer, BootTime, Notice, RunView, Share, Watched},
    world::Server,
};

/// How many past events are kept to compute rates; the oldest are dropped first. A host that leaks more than that in
/// an hour has been reported already.
const PAST: usize = 10_000;

#[derive(Debug, Default)]
pub(super) struct Alarms {
    all: Vec<Alarm>,
    /// Past detections of orphans and processes that could not be ended, oldest first, for rules that look back in
    /// time.
    past: VecDeque<Happened>,
    /// The processor time of what was left behind.
    processor: BTreeMap<ServerKey, Readings>,
    /// Something happened since the values were last computed: an event, or a measurement.
    pub(super) dirty: bool,
}

#[derive(Debug)]
struct Alarm {
    rule: AlertRule,
    /// Since when the value is above the limit.
    above: Option<BootTime>,
    /// When the alert was reported. Absent once its end was reported.
    firing: Option<BootTime>,
    /// When the start of the alert was last reported.
    told: Option<BootTime>,
}

#[derive(Debug)]
struct Happened {
    at: BootTime,
    what: Watched,
    run: Option<RunView>,
}

impl Alarms {
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
            Notice::OrphanDetected { server, again: false, .. } => (Watched::Rate, server.run.clone()),
            Notice::ReapFailed { server, .. } => (Watched::ReapFailures, server.run.clone()),
            _ => return,
        };
        self.past.push_back(Happened { at, what, run });
        if self.past.len() > PAST {
            self.past.pop_front();
        }
    }

    /// The past events that a rule counts now.
    fn recent<'a>(&'a self, rule: &'a AlertRule, now: BootTime) -> impl Iterator<Item = &'a Happened> {
        let recent = self.past.iter().filter(move |h| h.what == rule.on && now.since(h.at) < rule.within);
        recent.filter(|h| is_meant(rule.agent.as_deref(), h.run.as_ref()))
    }
}

impl Alarm {
    /// What to report for this value, and when to compute it again.
    fn judge(&mut self, now: BootTime, value: u64) -> (Option<Notice>, Option<BootTime>) {
        if value <= self.rule.above {
            self.above = None;
            return (self.resolve(now, value), None);
        }
        let since = *self.above.get_or_insert(now);
        if self.firing.is_some() {
            return (None, None);
        }
        let AlertRule { name: rule, on, above: limit, agent, hold, cooldown, .. } = self.rule.clone();
        let due = self.told.map_or(since + hold, |told| (since + hold).max(told + cooldown));
        if due > now {
            return (None, Some(due));
        }
        (self.firing, self.told) = (Some(now), Some(now));
        (Some(Notice::Alert { rule, on, agent, value, limit }), None)
    }

    fn resolve(&mut self, now: BootTime, value: u64) -> Option<Notice> {
        let after_ms = millis(now, self.firing.take()?);
        let AlertRule { name: rule, on, above: limit, agent, .. } = self.rule.clone();
        Some(Notice::AlertResolved { rule, on, agent, value, limit, after_ms })
    }
}

/// Whether what is accounted to this run is of the agent or unit of this name.
fn is_meant(whose: Option<&str>, run: Option<&RunView>) -> bool {
    whose.is_none_or(|name| run.is_some_and(|run| run.is_called(name)))
}

impl Engine {
    /// Reports the thresholds that were crossed, if anything happened that may have changed a value.
    pub(super) fn evaluate_alerts(&mut self, now: BootTime) {
        if !mem::take(&mut self.alarms.dirty) {
            return;
        }
        let longest = self.alarms.all.iter().map(|alarm| alarm.rule.within).max().unwrap_or_default();
        self.alarms.past.retain(|h| now.since(h.at) < longest);
        let mut all = mem::take(&mut self.alarms.all);
        let (mut told, mut next) = (Vec::new(), Vec::new());
        for alarm in &mut all {
            let (notice, again) = alarm.judge(now, self.value(&alarm.rule, now));
            let fades = self.alarms.recent(&alarm.rule, now).map(|h| h.at + alarm.rule.within).min();
            told.extend(notice);
            next.extend([again, fades].into_iter().flatten());
        }
        self.agenda.set(Task::Alerts, next.into_iter().min());
        // Not before all are emitted: an alert changes no value.
        for notice in told {
            self.emit(now, notice);
        }
        self.alarms.all = all;
    }

    /// Changes the alert rules. A rule that did not change keeps its state. The end of a firing alert is reported here
    /// if its rule was removed, because nothing else would report it.
    pub(super) fn change_alerts(&mut self, now: BootTime, rules: &[AlertRule]) {
        let mut before = mem::take(&mut self.alarms.all);
        let take = |rule: &AlertRule| {
            let same = before.iter().position(|alarm| alarm.rule == *rule);
            let new = || Alarm { rule: rule.clone(), above: None, firing: None, told: None };
            same.map_or_else(new, |at| before.swap_remove(at))
        };
        self.alarms.all = rules.iter().map(take).collect();
        for mut alarm in before {
            let value = self.value(&alarm.rule, now);
            if let Some(notice) = alarm.resolve(now, value) {
                self.emit(now, notice);
            }
        }
        self.alarms.dirty = true;
    }

    fn value(&self, rule: &AlertRule, now: BootTime) -> u64 {
        let whose = rule.agent.as_deref();
        match rule.on {
            Watched::Orphans => self.orphans(whose).count() as u64,
            Watched::Rss => self.orphans(whose).sum(),
            Watched::Cpu => {
                let all = self.world.servers().iter();
                let meant = all.filter(|(_, server)| is_meant(whose, server.account.as_ref()));
                let percents = meant.filter_map(|(key, _)| percent(self.alarms.processor.get(key)?));
                percents.fold(0, u64::saturating_add)
            }
            Watched::Rate | Watched::ReapFailures => self.alarms.recent(rule, now).count() as u64,
            Watched::Blind => u64::from(self.doubtful || !self.crowded.is_empty()),
        }
    }

    /// The memory in bytes of each orphan, of all or of those of one agent or unit. Agents that were left behind are included.
    pub fn orphans<'a>(&'a self, whose: Option<&'a str>) -> impl Iterator<Item = u64> + 'a {
        let servers = self.world.servers().values().filter(|server| server.phase.orphan().is_some());
        let servers = servers.map(|server| (server.account.as_ref(), server.rss_bytes.unwrap_or_default()));
        let left = self.world.agents().filter_map(|(_, agent)| {
            let verdict = agent.phase.orphan().filter(|_| agent.is_alive())?;
            Some((Some(&agent.account), verdict.rss_bytes))
        });
        let all = servers.chain(left);
        all.filter(move |(account, _)| is_meant(whose, *account)).map(|(_, bytes)| bytes)
    }

    /// Begins to measure, if an alert wants it and there is something to measure.
    pub(super) fn begin_processor_watch(&mut self, now: BootTime) {
        if self.agenda.at(Task::Processor).is_none()
            && self.alarms.watch(Watched::Cpu)
            && self.world.servers().values().any(is_left_behind)
        {
            self.agenda.set(Task::Processor, Some(now));
        }
    }

    pub(super) fn read_processor(&mut self, now: BootTime) {
        let left = self.world.servers().iter().filter(|(_, server)| is_left_behind(server));
        let left = left.map(|(key, server)| (*key, server.share(), server.processes().len()));
        let servers = measured_at_once(&left.collect::<Vec<_>>());
        self.alarms.processor.retain(|key, _| servers.binary_search(key).is_ok());
        let wanted = !servers.is_empty() && self.alarms.watch(Watched::Cpu);
        self.agenda.set(Task::Processor, wanted.then(|| now + EVERY));
        if wanted {
            self.measure_these(servers);
        }
    }

    /// Asks for memory and CPU time of all servers. The answer goes into the next report.
    pub fn measure(&mut self) {
        self.measure_these(self.world.server_keys());
    }

    fn measure_these(&mut self, servers: Vec<ServerKey>) {
        let of_all = servers.iter().filter_map(|key| self.world.server(*key)).flat_map(Server::own);
        let about = About::Memory(of_all.collect());
        self.ask(None, about, move |engine, now, answer| engine.measured(now, &servers, answer));
    }

    /// Memory and processor time of these servers were measured: keeps the readings of this moment.
    pub(super) fn measured(&mut self, now: BootTime, servers: &[ServerKey], answer: Answer) {
        if !matches!(answer, Answer::Memory { .. }) {
            return;
        }
        self.remember_memory(servers, answer);
        for key in servers {
            let Some(cpu_ms) = self.world.server(*key).and_then(|server| server.cpu_ms) else { continue };
            let readings = self.alarms.processor.entry(*key).or_default();
            readings.push_back((now, cpu_ms));
            // Of those that are older than a minute the latest stays: the others are compared with it.
            while readings.get(1).is_some_and(|(at, _)| now.since(*at) >= MINUTE) {
                readings.pop_front();
            }
        }
        self.alarms.dirty = true;
    }
}

/// Between two readings.
const EVERY: Duration = Duration::from_secs(5);
/// The time that an alert looks back.
const MINUTE: Duration = Duration::from_secs(60);
/// How many processes are measured at once: everybody waits for it.
const PROCESSES: usize = 1024;

/// Those of these servers, with their users and numbers of processes, that are measured: of each user as many processes as of
/// any other, and of a server all or none. Part of its memory would be a wrong figure.
fn measured_at_once(servers: &[(ServerKey, Share, usize)]) -> Vec<ServerKey> {
    let users = servers.iter().map(|(_, user, _)| *user).collect::<BTreeSet<_>>().len();
    let mut rooms = BTreeMap::new();
    let fits = |(key, user, size): &(ServerKey, Share, usize)| {
        let room = rooms.entry(*user).or_insert(PROCESSES / users.max(1));
        *room = room.checked_sub(*size)?;
        Some(*key)
    };
    servers.iter().filter_map(fits).collect()
}

/// The CPU time of a server in milliseconds at some moments of the last minute, the oldest first.
type Readings = VecDeque<(BootTime, u64)>;

/// How much of one CPU a server has used since the oldest reading, in percent.
fn percent(readings: &Readings) -> Option<u64> {
    let (first, last) = (readings.front()?, readings.back()?);
    last.1.saturating_sub(first.1).saturating_mul(100).checked_div(millis(last.0, first.0))
}

fn is_left_behind(server: &Server) -> bool {
    let state = server.phase.state();
    state.is_orphan() || state == crate::model::State::Unproven
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;

    #[test]
    fn a_crowd_leaves_room_to_measure_what_others_left() {
        let of = |number, user, size| (ServerKey(NonZeroU32::new(number).unwrap()), Share::of(user), size);
        let servers =
            [of(1, 1000, 1000), of(2, 1000, 5000), of(3, 1000, 5), of(4, 1001, 20), of(5, 1001, 490)];
        let numbers =
            |servers| measured_at_once(servers).into_iter().map(|key| key.0.get()).collect::<Vec<_>>();
        assert_eq!(numbers(&servers), [3, 4, 5]);
        assert_eq!(numbers(&servers[..3]), [1, 3]);
    }
}
