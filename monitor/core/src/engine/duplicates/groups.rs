//! Servers in groups: those that look alike, and among them those of one identity.
//!
//! Every change costs the logarithm of the number of servers, so ten thousand servers of one identity cost ten
//! thousand such changes and as many questions.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

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
    alike: BTreeMap<Likeness, Alike>,
    /// When each server is asked where it works.
    due: BTreeSet<(BootTime, ServerKey)>,
}

/// Servers that look alike.
#[derive(Debug, Default)]
struct Alike {
    all: BTreeSet<ServerKey>,
    same: BTreeMap<Identity, BTreeSet<Age>>,
}

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
    likeness: Likeness,
    process: ProcessId,
    age: Age,
    due: Option<BootTime>,
    identity: Option<Identity>,
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
        likeness: Likeness,
        process: ProcessId,
        age: Age,
        settles: BootTime,
    ) {
        if self.listed(key) == Some((&likeness, process)) {
            return;
        }
        self.leave(key);
        let entry =
            self.servers.entry(key).or_insert(Entry { settles, counted: false, told: false, listed: None });
        entry.listed = Some(Listed {
            likeness: likeness.clone(),
            process,
            age,
            due: None,
            identity: None,
            environment: None,
        });
        let group = self.alike.entry(likeness).or_default();
        group.all.insert(key);
        // The first of them is asked about when there is a second.
        let news: Vec<ServerKey> =
            if group.all.len() == 2 { group.all.iter().copied().collect() } else { vec![key] };
        if group.all.len() > 1 {
            for one in news {
                self.schedule(one);
            }
        }
    }

    fn schedule(&mut self, key: ServerKey) {
        let Some(Entry { settles, listed: Some(listed), .. }) = self.servers.get_mut(&key) else { return };
        if listed.identity.is_none() && listed.due.is_none() {
            listed.due = Some(*settles);
            self.due.insert((*settles, key));
        }
    }

    /// Takes a server off the lists. It does not count at present.
    pub(super) fn leave(&mut self, key: ServerKey) {
        let Some(listed) = self.servers.get_mut(&key).and_then(|entry| entry.listed.take()) else { return };
        if let Some(at) = listed.due {
            self.due.remove(&(at, key));
        }
        let Some(group) = self.alike.get_mut(&listed.likeness) else { return };
        group.all.remove(&key);
        if let Some(identity) = listed.identity
            && let Some(same) = group.same.get_mut(&identity)
        {
            same.remove(&listed.age);
            if same.is_empty() {
                group.same.remove(&identity);
            }
        }
        if group.all.is_empty() {
            self.alike.remove(&listed.likeness);
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
        let listed = entry.listed.as_mut().filter(|l| l.process == process && l.identity.is_none())?;
        (listed.identity, listed.environment) = (Some(identity), environment);
        let same = self.alike.get_mut(&listed.likeness)?.same.entry(identity).or_default();
        same.insert(listed.age);
        let newcomer = !std::mem::replace(&mut entry.counted, true);
        if !newcomer || same.len() < 2 {
            return None;
        }
        let count = same.len() as u64;
        let is_untold = |key: &ServerKey| self.servers.get(key).is_some_and(|entry| !entry.told);
        let further = same.iter().rev().map(|(_, key)| *key).find(is_untold)?;
        self.servers.get_mut(&further)?.told = true;
        Some((further, count))
    }

    /// The newest server of the identity that this one has.
    pub(super) fn newest(&self, key: ServerKey) -> Option<ServerKey> {
        let listed = self.servers.get(&key)?.listed.as_ref()?;
        let same = self.alike.get(&listed.likeness)?.same.get(&listed.identity?)?;
        same.last().map(|(_, newest)| *newest)
    }

    /// The servers of the identity that this one has, itself included, by age; only those that were started in the same
    /// environment. None if that is not known.
    pub(in crate::engine) fn twins(&self, key: ServerKey) -> Vec<ServerKey> {
        let environment = |key: &ServerKey| self.servers.get(key)?.listed.as_ref()?.environment;
        let same = || {
            let listed = self.servers.get(&key)?.listed.as_ref()?;
            self.alike.get(&listed.likeness)?.same.get(&listed.identity?)
        };
        let Some((own, same)) = environment(&key).zip(same()) else { return Vec::new() };
        same.iter().map(|(_, twin)| *twin).filter(|twin| environment(twin) == Some(own)).collect()
    }

    /// How a server is listed.
    pub(super) fn listed(&self, key: ServerKey) -> Option<(&Likeness, ProcessId)> {
        let listed = self.servers.get(&key)?.listed.as_ref()?;
        Some((&listed.likeness, listed.process))
    }

    /// Broken invariants: the groups and the times are those of the listed servers, and no others.
    pub(super) fn check(&self) -> Vec<String> {
        let (mut due, mut alike, mut same) = (BTreeSet::new(), 0, 0);
        let mut broken = Vec::new();
        for (key, listed) in
            self.servers.iter().filter_map(|(key, entry)| Some((key, entry.listed.as_ref()?)))
        {
            due.extend(listed.due.map(|at| (at, *key)));
            let group = self.alike.get(&listed.likeness);
            let of_identity = |group: &Alike| {
                listed
                    .identity
                    .is_none_or(|i| group.same.get(&i).is_some_and(|same| same.contains(&listed.age)))
            };
            if !group.is_some_and(|group| group.all.contains(key) && of_identity(group)) {
                broken.push(format!("server {key:?} is not in its group: {listed:?}"));
            }
            (alike, same) = (alike + 1, same + usize::from(listed.identity.is_some()));
        }
        let groups = || self.alike.values();
        let counted = groups().map(|g| g.all.len()).sum::<usize>();
        let identified = groups().flat_map(|g| g.same.values()).map(BTreeSet::len).sum::<usize>();
        if (counted, identified) != (alike, same) || due != self.due {
            broken.push(format!("{counted} servers in groups of {alike}, {identified} of {same}, {due:?}"));
        }
        broken
    }
}
