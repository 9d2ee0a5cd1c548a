//! Servers in groups: those that look alike, and among them those of one identity.
//!
//! Every change costs the logarithm of the number of servers; that an identity is found costs the number of servers that
//! have it.

use std::{collections::BTreeSet, num::NonZeroU32, sync::Arc};

use rustc_hash::FxHashMap;

use crate::{
    lineage::{AgentKey, ServerKey},
    model::{BootTime, ProcessId},
};

/// The part of the identity that the host is asked for: the working directory, and the command line where it
/// matters.
pub(super) type Identity = (u64, Option<u64>);

/// The order of servers by age: when the first process started, then when the server was recognised.
type Age = (u64, ServerKey);

/// The part of the identity that is known without a question.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Likeness {
    owner: AgentKey,
    rule: Arc<str>,
    /// As they are shown: a replay has no others.
    arguments: Arc<[String]>,
}

/// All servers that may have a duplicate.
#[derive(Debug, Default)]
pub struct Duplicates {
    servers: FxHashMap<ServerKey, Entry>,
    /// Those that are listed: what looks alike together, among that what is of one identity, the oldest first.
    listed: BTreeSet<Place>,
    /// When each server is asked where it works.
    due: BTreeSet<(BootTime, ServerKey)>,
}

type Place = (Likeness, Option<Identity>, Age);

const OLDEST: Age = (0, ServerKey(NonZeroU32::MIN));
const NEWEST: Age = (u64::MAX, ServerKey(NonZeroU32::MAX));

/// What is kept of a server as long as it exists.
#[derive(Debug)]
struct Entry {
    /// The end of its first grace period: before that it is not compared.
    settles: BootTime,
    /// Whether it was found to be of some identity: it is no newcomer any more.
    counted: bool,
    /// Whether it was reported as a further server.
    told: bool,
    /// How it is listed; absent while it does not count.
    listed: Option<Listed>,
}

#[derive(Debug)]
struct Listed {
    place: Place,
    process: ProcessId,
    due: Option<BootTime>,
    /// What it was started with in its environment.
    environment: Option<u64>,
}

impl Likeness {
    pub(super) fn new(owner: AgentKey, rule: &str, arguments: Vec<String>) -> Self {
        Self { owner, rule: rule.into(), arguments: arguments.into() }
    }
}

impl Duplicates {
    /// Lists a server, or lists it anew if it has changed. `settles`: when it is compared, if it is new.
    pub(super) fn enter(
        &mut self,
        key: ServerKey,
        likeness: &Likeness,
        process: ProcessId,
        age: Age,
        settles: BootTime,
    ) {
        if self.listed(key) == Some((likeness, process)) {
            return;
        }
        self.leave(key);
        let place = (likeness.clone(), None, age);
        self.listed.insert(place.clone());
        let entry =
            self.servers.entry(key).or_insert(Entry { settles, counted: false, told: false, listed: None });
        entry.listed = Some(Listed { place, process, due: None, environment: None });
        let from = (likeness.clone(), None, OLDEST);
        let alike = self.listed.range(from..).take_while(|(other, ..)| other == likeness);
        let first: Vec<ServerKey> = alike.take(3).map(|(.., (_, key))| *key).collect();
        // The first of them is asked about when there is a second.
        match *first {
            [one, other] => [one, other].into_iter().for_each(|one| self.schedule(one)),
            [_, _, _] => self.schedule(key),
            _ => {}
        }
    }

    fn schedule(&mut self, key: ServerKey) {
        let Some(Entry { settles, listed: Some(listed), .. }) = self.servers.get_mut(&key) else { return };
        if listed.place.1.is_none() && listed.due.is_none() {
            listed.due = Some(*settles);
            self.due.insert((*settles, key));
        }
    }

    /// Takes a server off the lists. It does not count at present.
    pub(super) fn leave(&mut self, key: ServerKey) {
        if let Some(listed) = self.servers.get_mut(&key).and_then(|entry| entry.listed.take()) {
            self.listed.remove(&listed.place);
            if let Some(at) = listed.due {
                self.due.remove(&(at, key));
            }
        }
    }

    /// Forgets a server that has ended.
    pub(in crate::engine) fn forget(&mut self, key: ServerKey) {
        self.leave(key);
        self.servers.remove(&key);
    }

    /// A server about which it is time to ask, with its main process.
    pub(super) fn due(&mut self, now: BootTime) -> Option<(ServerKey, ProcessId)> {
        let (at, key) = *self.due.first().filter(|(at, _)| *at <= now)?;
        self.due.remove(&(at, key));
        let listed = self.servers.get_mut(&key)?.listed.as_mut()?;
        listed.due = None;
        Some((key, listed.process))
    }

    /// When to ask next.
    pub(super) fn next(&self) -> Option<BootTime> {
        self.due.first().map(|(at, _)| *at)
    }

    /// Records the identity of a server, if `process` is still its main process. If it is a newcomer among others,
    /// returns the server to report, and how many servers have that identity. That is the newest one that was not
    /// reported before: an older one may have been recognised later.
    pub(super) fn identify(
        &mut self,
        key: ServerKey,
        process: ProcessId,
        (identity, environment): (Identity, Option<u64>),
    ) -> Option<(ServerKey, u64)> {
        let entry = self.servers.get_mut(&key)?;
        let is_new = |listed: &&mut Listed| listed.process == process && listed.place.1.is_none();
        let listed = entry.listed.as_mut().filter(is_new)?;
        self.listed.remove(&listed.place);
        (listed.place.1, listed.environment) = (Some(identity), environment);
        self.listed.insert(listed.place.clone());
        let newcomer = !std::mem::replace(&mut entry.counted, true);
        let same: Vec<ServerKey> = self.same(key).collect();
        if !newcomer || same.len() < 2 {
            return None;
        }
        let is_untold = |key: &ServerKey| self.servers.get(key).is_some_and(|entry| !entry.told);
        let further = same.iter().rev().copied().find(is_untold)?;
        self.servers.get_mut(&further)?.told = true;
        Some((further, same.len() as u64))
    }

    /// The servers of the identity that this one has, itself included, by age; none if that is not known.
    fn same(&self, key: ServerKey) -> impl DoubleEndedIterator<Item = ServerKey> {
        let listed = self.servers.get(&key).and_then(|entry| entry.listed.as_ref());
        let place = listed.map(|listed| &listed.place).filter(|(_, identity, _)| identity.is_some());
        let range = place.map(|(likeness, identity, _)| {
            let at = |age| (likeness.clone(), *identity, age);
            self.listed.range(at(OLDEST)..=at(NEWEST))
        });
        range.into_iter().flatten().map(|(.., (_, key))| *key)
    }

    /// The newest server of the identity that this one has.
    pub(super) fn newest(&self, key: ServerKey) -> Option<ServerKey> {
        self.same(key).next_back()
    }

    /// The servers of the identity that this one has, itself included, by age; only those that were started in the same
    /// environment. None if that is not known.
    pub(in crate::engine) fn twins(&self, key: ServerKey) -> Vec<ServerKey> {
        let environment = |key: &ServerKey| self.servers.get(key)?.listed.as_ref()?.environment;
        let Some(own) = environment(&key) else { return Vec::new() };
        self.same(key).filter(|twin| environment(twin) == Some(own)).collect()
    }

    /// How a server is listed.
    pub(super) fn listed(&self, key: ServerKey) -> Option<(&Likeness, ProcessId)> {
        let listed = self.servers.get(&key)?.listed.as_ref()?;
        Some((&listed.place.0, listed.process))
    }

    /// Broken invariants: the places and the times are those of the listed servers, and no others.
    pub(super) fn check(&self) -> Vec<String> {
        let listed = |key: &ServerKey| self.servers.get(key)?.listed.as_ref();
        let is_listed = |place: &Place| listed(&place.2.1).is_some_and(|one| one.place == *place);
        let is_due = |(at, key): &(BootTime, ServerKey)| listed(key).is_some_and(|one| one.due == Some(*at));
        let all = || self.servers.values().filter_map(|entry| entry.listed.as_ref());
        let due = all().filter(|one| one.due.is_some()).count();
        let holds = self.listed.iter().all(is_listed)
            && self.due.iter().all(is_due)
            && (self.listed.len(), self.due.len()) == (all().count(), due);
        let broken = || format!("{:?} and {:?} are those of {:?}", self.listed, self.due, self.servers);
        (!holds).then(broken).into_iter().collect()
    }
}
