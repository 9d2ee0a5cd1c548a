//! Idle duplicates: where a rule says so of the living owner (`idle_duplicates`), a server is released that did nothing at all
//! for so long, while a newer server of the same identity has worked ([`By::Idle`]).
//!
//! Invariant: time counts as idle only if it was looked at. Between two looks the server did nothing, all of its processes could be
//! read, and the owner worked: an owner that is stopped, or asleep with its computer, uses nobody. The longest time
//! that counts between two looks is twice the time at which they are due. Anything else begins anew, a restart of orphand
//! included. After the release the least activity takes it back.
//!
//! Invariant: the newest server of an identity is never released.

use std::{collections::BTreeMap, time::Duration};

use super::{
    Engine,
    agenda::{Task, in_turn, last_of},
    released::{PROCESSES, is_released},
};
use crate::{
    case::{By, Event},
    lineage::ServerKey,
    model::{About, Answer, BootTime, ProcessId, Share, Work},
    verdict::rule_of,
    world::{Accounts, Agent, Server, accounts, served},
};

/// How often a server is looked at in the time of its rule.
const LOOKS: u32 = 16;
/// The shortest and the longest time between two looks.
const EVERY: [Duration; 2] = [Duration::from_millis(250), Duration::from_secs(60)];
/// The most servers that are looked at in one pass. The next pass continues with the others, whose time counts more slowly.
const AT_ONCE: usize = 128;

/// What duplicates do whose owner has such a rule.
#[derive(Debug, Default)]
pub(super) struct IdleDuplicates {
    /// The last one of each user that was looked at.
    last: BTreeMap<Share, ServerKey>,
    all: BTreeMap<ServerKey, Idle>,
}

/// What was done, and whether that is of all processes of a server.
type Done = (Accounts, bool);

#[derive(Debug, Default)]
struct Idle {
    /// What each of its processes had done at the last look.
    done: Accounts,
    /// What its owner had done then.
    owner: Option<Work>,
    looked: BootTime,
    /// The last look that saw anything new, or could not see everything.
    changed: BootTime,
    /// For how long it has done nothing, as far as that counts.
    rested: Duration,
    /// The begin of the last time between two looks in which it read something and answered.
    served: Option<BootTime>,
    /// The newer server for which it was released.
    successor: Option<ServerKey>,
}

impl Idle {
    /// A look. At most `longest` counts.
    fn look(&mut self, now: BootTime, (done, whole): Done, owner: Option<Work>, longest: Duration) {
        let rests = whole && done == self.done && owner.is_some() && self.owner.is_some();
        if rests && owner != self.owner {
            self.rested = self.rested.saturating_add(now.since(self.looked).min(longest));
        }
        self.see(now, (done, whole));
        (self.owner, self.looked) = (owner, now);
    }

    /// Compares what its processes have done by now: if that is anything, its rest begins anew.
    fn see(&mut self, now: BootTime, (done, whole): Done) {
        if whole && done == self.done {
            return;
        }
        let has_served = |(process, after): (&ProcessId, &Work)| {
            self.done.get(process).is_some_and(|before| served(before, after))
        };
        if done.iter().any(has_served) {
            self.served = Some(self.looked);
        }
        (self.done, self.looked, self.changed, self.rested) = (done, now, now, Duration::ZERO);
    }
}

impl Engine {
    /// Looks from time to time while there are servers, and a rule that says something of duplicates.
    pub(super) fn begin_idle_watch(&mut self, now: BootTime) {
        let shortest = self.rules.shortest_idle_duplicates();
        let every = shortest.filter(|_| !self.world.servers().is_empty()).map(between_looks);
        if every.is_none() {
            self.idle.all.clear();
        }
        self.agenda.keep(Task::Idle, every.map(|every| now + every));
    }

    pub(super) fn look_at_duplicates(&mut self, now: BootTime) {
        self.begin_idle_watch(now);
        for key in self.next_duplicates() {
            let Some(user) = self.user_of(key) else { continue };
            let mut processes = self.all_processes(key);
            processes.push(user);
            self.ask(None, About::Work(processes), move |engine, now, answer| {
                if let Answer::Work { processes } = answer {
                    engine.duplicate_answered(now, key, user, &processes);
                }
            });
        }
    }

    /// The duplicates to look at: those after the last one that was looked at come first. Whatever is none any more is
    /// forgotten.
    fn next_duplicates(&mut self) -> Vec<ServerKey> {
        let is_one = |key: &ServerKey| {
            let Some(server) = self.world.server(*key) else { return false };
            server.phase.is_clear() && self.idle_after(*key).is_some()
        };
        let keys: Vec<ServerKey> = self.all_twins().into_iter().filter(is_one).collect();
        let is_released =
            |key: &ServerKey| self.world.server(*key).is_some_and(|server| is_released(server, By::Idle));
        self.idle.all.retain(|key, _| keys.binary_search(key).is_ok() || is_released(key));
        let users = keys.iter().filter_map(|key| Some((*key, self.world.server(*key)?.share())));
        let chosen = in_turn(&self.idle.last, users, AT_ONCE);
        self.idle.last = last_of(&chosen);
        chosen.into_values().flatten().collect()
    }

    /// For how long a duplicate of this server's living owner must do nothing until it is released; `None` if no rule
    /// says so, or its processes are too many to be looked at.
    fn idle_after(&self, key: ServerKey) -> Option<Duration> {
        let server = self.world.server(key)?;
        let owner = self.world.agent(server.owner()?).filter(|owner| owner.is_alive())?;
        let after = rule_of(&self.rules, self.world.graph(), owner)?.idle_duplicates()?;
        (self.all_processes(key).len() <= PROCESSES && !server.disowned).then_some(after)
    }

    /// The process that uses a server: it made its wires.
    fn user_of(&self, key: ServerKey) -> Option<ProcessId> {
        let server = self.world.server(key)?;
        server.maker.or_else(|| self.world.owner(key).map(Agent::main))
    }

    fn duplicate_answered(&mut self, now: BootTime, key: ServerKey, user: ProcessId, work: &[Work]) {
        if !self.world.server(key).is_some_and(|server| server.phase.is_clear()) {
            return;
        }
        let Some(after) = self.idle_after(key) else { return };
        let longest = between_looks(after) * 2;
        let (owner, own): (Vec<Work>, Vec<Work>) =
            work.iter().copied().partition(|work| work.process == user);
        let (owner, done) = (owner.first().copied(), self.done(key, &own));
        self.idle.all.entry(key).or_default().look(now, done, owner, longest);
        let rests = self.idle.all.get(&key).filter(|idle| idle.rested >= after);
        let Some(since) = rests.map(|idle| idle.changed) else { return };
        if let Some(successor) = self.newer_in_use(key)
            && let Some(idle) = self.idle.all.get_mut(&key)
        {
            idle.successor = Some(successor);
            self.release(now, key, By::Idle, since);
        }
    }

    /// The newest of the newer servers of the same identity that have worked since this one did anything.
    fn newer_in_use(&self, key: ServerKey) -> Option<ServerKey> {
        let changed = self.idle.all.get(&key)?.changed;
        let own = self.age_of_twin(key, key)?;
        let served =
            self.idle.all.iter().filter(|(_, idle)| idle.served.is_some_and(|begin| begin >= changed));
        let ages = served.filter_map(|(other, _)| self.age_of_twin(key, *other));
        ages.filter(|age| *age > own).max().map(|(.., newest)| newest)
    }

    /// An inspection, or another look, tells what the processes of a server have done.
    pub(super) fn see_duplicate(&mut self, now: BootTime, key: ServerKey, work: &[Work]) {
        if !self.idle.all.contains_key(&key) {
            return;
        }
        let done = self.done(key, work);
        if let Some(idle) = self.idle.all.get_mut(&key) {
            idle.see(now, done);
        }
    }

    fn done(&self, key: ServerKey, work: &[Work]) -> Done {
        let done = accounts(work);
        let whole = self.all_processes(key).iter().all(|process| done.contains_key(process));
        (done, whole)
    }

    /// Closes the case of an idle duplicate that has done anything since, or whose successor has gone. Returns whether it
    /// did. What is being ended works on its end.
    pub(super) fn keep_duplicate(&mut self, now: BootTime, key: ServerKey) -> bool {
        let Some(server) = self.world.server(key) else { return false };
        if !is_released(server, By::Idle) || server.phase.is_signalled() {
            return false;
        }
        let idle = self.idle.all.get(&key);
        let stands = |idle: &Idle| {
            let successor = idle.successor.and_then(|key| self.world.server(key));
            let is_in_use = |other: &Server| other.phase.is_clear() && other.owner() == server.owner();
            let rests = self.idle_after(key).is_some_and(|after| idle.rested >= after);
            rests && successor.is_some_and(is_in_use)
        };
        if idle.is_some_and(stands) {
            return false;
        }
        self.server_event(now, key, Event::OwnerFound);
        true
    }

    /// When an idle duplicate is released, if it does nothing until then and its owner goes on.
    pub(super) fn released_as_duplicate(&self, key: ServerKey) -> Option<BootTime> {
        self.world.server(key).filter(|server| server.phase.is_clear())?;
        let (idle, after) = (self.idle.all.get(&key)?, self.idle_after(key)?);
        self.newer_in_use(key).map(|_| idle.looked + after.saturating_sub(idle.rested))
    }
}

/// The time between two looks at servers that are released after this time.
fn between_looks(after: Duration) -> Duration {
    let [shortest, longest] = EVERY;
    (after / LOOKS).clamp(shortest, longest)
}
