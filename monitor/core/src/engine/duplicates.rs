//! Duplicates: further servers of the same identity under one living owner.
//!
//! The identity is the owner, the rule, the arguments of the main process and its working directory. All but the
//! last are known from the records. The engine asks for the working directory only when a second server with the
//! same arguments is there and both have lived for the grace period: clients start a new server before they close
//! the old one. What cannot be read is no duplicate.
//!
//! Invariant: what the host said of a server counts only as long as its main process runs the same program, and who else is
//! of its identity is found out whenever that matters.
//!
//! Duplicates are reported and never ended, except at a person's request: it is not known which of them is in use. Where a
//! rule says so, an idle one is released ([`super::released`]); of those also the environments are compared.

use std::{
    collections::{BTreeMap, BTreeSet},
    mem,
    time::Duration,
};

use super::{Engine, agenda::Task};
use crate::{
    lineage::{AgentKey, Node, Origin, Provenance, ServerKey},
    model::{About, Answer, BootTime, Notice, ProcessId, Whereabouts, redact},
    world::{Agent, agent_view},
};

/// How many working directories are asked for in one pass. Further ones wait for the next pass.
const ASKED_AT_ONCE: usize = 16;
/// Between two passes over all servers: at least this, and so much for each server.
const PAUSE: Duration = Duration::from_millis(20);
const EACH: Duration = Duration::from_micros(20);
/// While records are missing, nothing is asked.
const WHILE_DOUBTFUL: Duration = Duration::from_secs(1);

/// The part of the identity that the host is asked for: the working directory, and the command line where it matters.
type Identity = (u64, Option<u64>);
type Compared<'a> = (AgentKey, &'a str, &'a [String], Identity);
/// Births are told in clock ticks: of those of one tick the number tells, which was given out later.
type Age = (u64, u32, ServerKey);
/// Of duplicates, the newest server of the same identity.
pub(super) type Newest = BTreeMap<ServerKey, ProcessId>;

/// What is kept of a server as long as it exists.
#[derive(Debug, Default)]
pub(super) struct Entry {
    /// The end of its first grace period: before that it is not compared.
    settles: BootTime,
    /// Its main process, and the exec of that, of which the rest is told.
    of: Option<(ProcessId, Origin)>,
    /// As they are shown: a replay has no others.
    arguments: Vec<String>,
    asked: bool,
    /// Its identity, and what it was started with in its environment.
    found: Option<(Identity, Option<u64>)>,
    /// Whether it was found to be of some identity: it is no newcomer any more.
    counted: bool,
    /// Whether it was reported as a further server.
    told: bool,
}

impl Engine {
    /// Something about a server may have changed that its identity depends on.
    pub(super) fn compare(&mut self, now: BootTime, key: ServerKey) {
        let settles = now + self.policy.grace;
        let entry = self.duplicates.entry(key).or_insert_with(|| Entry { settles, ..Entry::default() });
        let at = entry.settles;
        self.agenda.hasten(Task::Duplicates, at.max(now + self.pause()));
    }

    /// For whoever looks once and does not wait for the pause between two passes.
    pub fn compare_at_once(&mut self) {
        let is_due = self.agenda.at(Task::Duplicates).is_some();
        self.agenda.set(Task::Duplicates, is_due.then(BootTime::default));
    }

    fn pause(&self) -> Duration {
        EACH.saturating_mul(u32::try_from(self.duplicates.len()).unwrap_or(u32::MAX)).max(PAUSE)
    }

    /// The owner of a server, its rule and its main process. `None` if it is no server of a living owner, if it has a case, or
    /// if its arguments are not known in full.
    fn comparable(&self, key: ServerKey) -> Option<(AgentKey, &str, &Node)> {
        let server = self.world.server(key)?;
        let owner = server.owner().filter(|owner| self.world.agent(*owner).is_some_and(Agent::is_alive))?;
        let main = self.world.node(server.main_process()).filter(|main| main.server == Some(key))?;
        let is_known = main.image().is_some_and(|image| !image.argv.is_empty() && !image.argv_truncated);
        let counts = is_known && server.phase.is_clear() && !server.seeks_owner && !server.disowned;
        counts.then_some((owner, server.rule.as_str(), main))
    }

    /// Reports the duplicates that were found, and asks where further servers work that look alike.
    pub(super) fn look_for_duplicates(&mut self, now: BootTime) {
        if self.doubtful {
            self.agenda.set(Task::Duplicates, Some(now + WHILE_DOUBTFUL));
            return;
        }
        let mut all = mem::take(&mut self.duplicates);
        let mut alike = BTreeMap::<_, Vec<ServerKey>>::new();
        for (key, entry) in &mut all {
            let Some((owner, rule, main)) = self.comparable(*key) else { continue };
            let of = Some((main.id, main.origin()));
            if entry.of != of {
                let arguments = main.image().map(|image| redact::argv(&image.argv)).unwrap_or_default();
                let Entry { settles, counted, told, .. } = *entry;
                *entry = Entry { settles, of, arguments, counted, told, ..Entry::default() };
            }
            alike.entry((owner, rule, &*entry.arguments)).or_default().push(*key);
        }
        let mut asked: Vec<ServerKey> = alike.into_values().filter(|one| one.len() > 1).flatten().collect();
        asked.sort_unstable();
        self.duplicates = all;
        self.report_duplicates(now);
        let (mut room, mut next, pause) = (ASKED_AT_ONCE, None::<BootTime>, self.pause());
        for key in asked {
            let Some(entry) = self.duplicates.get_mut(&key).filter(|entry| !entry.asked) else { continue };
            if entry.settles > now || room == 0 {
                let at = entry.settles.max(now + pause);
                next = Some(next.map_or(at, |next| next.min(at)));
                continue;
            }
            room -= 1;
            entry.asked = true;
            let Some((process, _)) = entry.of else { continue };
            self.ask(None, About::Whereabouts(process), move |engine, now, answer| {
                if let Answer::Whereabouts { place: Some(place) } = answer {
                    engine.place_answered(now, key, process, place);
                }
            });
        }
        self.agenda.set(Task::Duplicates, next);
    }

    fn place_answered(&mut self, now: BootTime, key: ServerKey, process: ProcessId, place: Whereabouts) {
        let Some(identity) = self.identity(process, place) else { return };
        let at = now + self.pause();
        let Some(entry) = self.duplicates.get_mut(&key) else { return };
        if entry.found.is_none() && entry.of.is_some_and(|(of, _)| of == process) {
            entry.found = Some((identity, place.environment));
            self.agenda.hasten(Task::Duplicates, at);
        }
    }

    /// For each newcomer among others of its identity, the newest one is reported that was not before: an older one may have
    /// been recognised later.
    fn report_duplicates(&mut self, now: BootTime) {
        let is_new = |entry: &Entry| entry.found.is_some() && !entry.counted;
        if !self.duplicates.values().any(is_new) {
            return;
        }
        let groups: Vec<Vec<ServerKey>> = self.groups(false).collect();
        for group in groups {
            for newcomer in &group {
                let Some(entry) = self.duplicates.get_mut(newcomer).filter(|entry| is_new(entry)) else {
                    continue;
                };
                entry.counted = true;
                let of = |key: &ServerKey| self.duplicates.get(key);
                let same: Vec<ServerKey> =
                    group.iter().copied().filter(|key| of(key).is_some_and(|entry| entry.counted)).collect();
                let untold = same.iter().rev().find(|key| of(key).is_some_and(|entry| !entry.told));
                let Some(further) = untold.copied().filter(|_| same.len() > 1) else { continue };
                let owner = self.world.owner(further).map(agent_view);
                if let Some((entry, server)) = self.duplicates.get_mut(&further).zip(self.world.view(further))
                {
                    entry.told = true;
                    self.emit(now, Notice::ServerDuplicated { server, owner, count: same.len() as u64 });
                }
            }
        }
    }

    /// Arguments of which something is masked are compared in full. So are those that /proc shows: a title may have been
    /// written over them, and two programs may have the same title.
    fn identity(&self, process: ProcessId, place: Whereabouts) -> Option<Identity> {
        let node = self.world.node(process)?;
        let masked = redact::argv(&node.image()?.argv).iter().any(|argument| redact::is_masked(argument));
        if (masked || node.provenance != Provenance::Witnessed) && place.command.is_none() {
            return None;
        }
        Some((place.directory, place.command.filter(|_| masked)))
    }

    /// What a server is compared by, as far as that is known, and its environment.
    fn compared(&self, key: ServerKey) -> Option<(Compared<'_>, Option<u64>)> {
        let entry = self.duplicates.get(&key)?;
        let (identity, environment) = entry.found?;
        let (owner, rule, main) = self.comparable(key)?;
        let is_same = entry.of == Some((main.id, main.origin()));
        is_same.then_some(((owner, rule, &*entry.arguments, identity), environment))
    }

    /// The servers of each identity, the oldest first. `started_alike`: apart by the environments that they were started with, and
    /// only where those are known.
    fn groups(&self, started_alike: bool) -> impl Iterator<Item = Vec<ServerKey>> {
        let mut groups = BTreeMap::<_, Vec<Age>>::new();
        for key in self.duplicates.keys() {
            let Some(((one, environment), server)) = self.compared(*key).zip(self.world.server(*key)) else {
                continue;
            };
            if !started_alike || environment.is_some() {
                let environment = environment.filter(|_| started_alike);
                groups.entry((one, environment)).or_default().push((server.id.start, server.id.pid, *key));
            }
        }
        groups.into_values().map(|mut one| {
            one.sort_unstable();
            one.into_iter().map(|(.., key)| key).collect()
        })
    }

    /// The age of another server, in the order of [`Engine::groups`], if it has the identity and the environment of this one.
    pub(super) fn age_of_twin(&self, key: ServerKey, other: ServerKey) -> Option<Age> {
        let own = self.compared(key).filter(|(_, environment)| environment.is_some())?;
        let server = self.world.server(other).filter(|_| self.compared(other) == Some(own))?;
        Some((server.id.start, server.id.pid, other))
    }

    /// Those of which there is another one with the same identity and environment.
    pub(super) fn all_twins(&self) -> BTreeSet<ServerKey> {
        self.groups(true).filter(|one| one.len() > 1).flatten().collect()
    }

    /// The newest server of the same identity, of each that is not it.
    pub(super) fn newest(&self) -> Newest {
        let of_group = |mut one: Vec<ServerKey>| {
            let newest = one.pop().and_then(|key| self.world.server(key)).map(|server| server.id);
            one.into_iter().filter_map(move |key| Some((key, newest?)))
        };
        self.groups(false).flat_map(of_group).collect()
    }
}
