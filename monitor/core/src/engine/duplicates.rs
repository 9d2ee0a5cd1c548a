//! Duplicates: further servers of the same identity under one living owner.
//!
//! The identity is the owner, the rule, the arguments of the main process and its working directory. All but the
//! last are known from the records. The engine asks for the working directory only when a second server with the
//! same arguments is there and both have lived for the grace period: clients start a new server before they close
//! the old one. What cannot be read is no duplicate.
//!
//! Duplicates are reported and never ended, except at a person's request: it is not known which of them is in use. Where a
//! rule says so, an idle one is released ([`super::released`]); of those also the environments are compared.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use rustc_hash::FxHashMap;

use super::Engine;
use crate::{
    lineage::{AgentKey, Provenance, ServerKey},
    model::{About, Answer, BootTime, Notice, ProcessId, Whereabouts, redact},
    world::{Agent, agent_view},
};

/// How many working directories are asked for in one pass. Further ones wait for the next pass.
const ASKED_AT_ONCE: usize = 16;

/// All servers that may have a duplicate.
#[derive(Debug, Default)]
pub(super) struct Duplicates {
    servers: FxHashMap<ServerKey, Entry>,
    /// Those that are listed and look alike, the oldest first.
    alike: BTreeMap<Arc<Likeness>, BTreeSet<Age>>,
    /// When each server is asked where it works.
    due: BTreeSet<(BootTime, ServerKey)>,
}

/// The part of the identity that is known without a question.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Likeness {
    owner: AgentKey,
    rule: String,
    /// As they are shown: a replay has no others.
    arguments: Vec<String>,
}

/// The order of servers by age: when the first process started, then when the server was recognised.
type Age = (u64, ServerKey);

/// The part of the identity that the host is asked for: the working directory, and the command line where it matters.
type Identity = (u64, Option<u64>);

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
    likeness: Arc<Likeness>,
    age: Age,
    process: ProcessId,
    /// Its identity, and what it was started with in its environment.
    found: Option<(Identity, Option<u64>)>,
}

impl Duplicates {
    /// Lists a server, or lists it anew if it has changed. `settles`: when it is compared, if it is new.
    fn enter(&mut self, key: ServerKey, likeness: Likeness, process: ProcessId, age: Age, settles: BootTime) {
        if self.listed(key).is_some_and(|one| *one.likeness == likeness && one.process == process) {
            return;
        }
        self.leave(key);
        let new = Entry { settles, counted: false, told: false, listed: None };
        let likeness = Arc::new(likeness);
        let listed = Listed { likeness: Arc::clone(&likeness), age, process, found: None };
        self.servers.entry(key).or_insert(new).listed = Some(listed);
        let alike = self.alike.entry(likeness).or_default();
        alike.insert(age);
        // The first of them is asked about when there is a second.
        let asked: Vec<Age> = match alike.len() {
            1 => Vec::new(),
            2 => alike.iter().copied().collect(),
            _ => vec![age],
        };
        for (_, one) in asked {
            if let Some(Entry { settles, listed: Some(Listed { found: None, .. }), .. }) =
                self.servers.get(&one)
            {
                self.due.insert((*settles, one));
            }
        }
    }

    /// Takes a server off the lists. It does not count at present.
    fn leave(&mut self, key: ServerKey) {
        let Some(entry) = self.servers.get_mut(&key) else { return };
        let Some(Listed { likeness, age, .. }) = entry.listed.take() else { return };
        self.due.remove(&(entry.settles, key));
        if let Some(alike) = self.alike.get_mut(&likeness) {
            alike.remove(&age);
            if alike.is_empty() {
                self.alike.remove(&likeness);
            }
        }
    }

    /// Forgets a server that has ended.
    pub(super) fn forget(&mut self, key: ServerKey) {
        self.leave(key);
        self.servers.remove(&key);
    }

    /// Records the identity of a server, if `process` is still its main process. If it is a newcomer among others,
    /// returns the server to report, and how many servers have that identity. That is the newest one that was not
    /// reported before: an older one may have been recognised later.
    fn identify(
        &mut self,
        key: ServerKey,
        process: ProcessId,
        found: (Identity, Option<u64>),
    ) -> Option<(ServerKey, u64)> {
        let entry = self.servers.get_mut(&key)?;
        let is_new = |listed: &&mut Listed| listed.process == process && listed.found.is_none();
        entry.listed.as_mut().filter(is_new)?.found = Some(found);
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

    fn listed(&self, key: ServerKey) -> Option<&Listed> {
        self.servers.get(&key)?.listed.as_ref()
    }

    fn identity(&self, key: ServerKey) -> Option<Identity> {
        Some(self.listed(key)?.found?.0)
    }

    /// The servers of the identity that this one has, itself included, by age; none if that is not known.
    fn same(&self, key: ServerKey) -> impl DoubleEndedIterator<Item = ServerKey> {
        let identity = self.identity(key);
        let listed = self.listed(key).filter(|_| identity.is_some());
        let alike = listed.and_then(|listed| self.alike.get(&listed.likeness)).into_iter().flatten();
        alike.map(|(_, key)| *key).filter(move |key| self.identity(*key) == identity)
    }

    /// The servers of the identity that this one has, itself included, by age; only those that were started in the same
    /// environment. None if that is not known.
    pub(super) fn twins(&self, key: ServerKey) -> Vec<ServerKey> {
        let environment = |key: ServerKey| self.listed(key)?.found?.1;
        let Some(own) = environment(key) else { return Vec::new() };
        self.same(key).filter(|twin| environment(*twin) == Some(own)).collect()
    }
}

impl Engine {
    /// Something about a server may have changed that its likeness depends on.
    pub(super) fn compare(&mut self, now: BootTime, key: ServerKey) {
        match self.likeness(key) {
            Some((likeness, process)) => {
                let born = self.world.server(key).map_or(process.start, |server| server.id.start);
                self.duplicates.enter(key, likeness, process, (born, key), now + self.settings.grace);
            }
            None => self.duplicates.leave(key),
        }
    }

    /// As [`Engine::compare`], for all servers.
    pub(super) fn compare_all(&mut self, now: BootTime) {
        for key in self.world.servers().keys() {
            self.compare(now, key);
        }
    }

    /// What is known of a server's identity without a question to the host, and its main process. `None` if it is no
    /// server of a living owner, if it has a case, or if its arguments are not known in full.
    fn likeness(&self, key: ServerKey) -> Option<(Likeness, ProcessId)> {
        let server = self.world.server(key)?;
        let owner = server.owner().filter(|owner| self.world.agent(*owner).is_some_and(Agent::is_alive))?;
        if !server.phase.is_clear() || server.seeks_owner || server.disowned {
            return None;
        }
        let main = self.world.node(server.main_process()).filter(|main| main.server == Some(key))?;
        let program = main.exec.program.as_ref()?;
        if program.image.argv.is_empty() || program.image.argv_truncated {
            return None;
        }
        let arguments = redact::argv(&program.image.argv);
        Some((Likeness { owner, rule: server.rule.clone(), arguments }, main.id))
    }

    /// Asks where the servers work that are due.
    pub(super) fn ask_for_places(&mut self, now: BootTime) {
        if self.doubtful {
            return;
        }
        for _ in 0..ASKED_AT_ONCE {
            let Some((at, server)) = self.duplicates.due.first().copied().filter(|(at, _)| *at <= now) else {
                break;
            };
            self.duplicates.due.remove(&(at, server));
            let Some(process) = self.duplicates.listed(server).map(|listed| listed.process) else { continue };
            self.ask(About::Whereabouts(process), move |engine, now, answer| {
                if let Answer::Whereabouts { place } = answer {
                    engine.place_answered(now, server, process, place);
                }
            });
        }
    }

    /// When the engine next asks where a server works. While records are missing it does not.
    pub(super) fn next_place(&self) -> Option<BootTime> {
        self.duplicates.due.first().map(|(at, _)| *at).filter(|_| !self.doubtful)
    }

    /// The answer to the question where a server works.
    pub(super) fn place_answered(
        &mut self,
        now: BootTime,
        key: ServerKey,
        process: ProcessId,
        place: Option<Whereabouts>,
    ) {
        let identity = |place: Whereabouts| Some((self.identity(process, place)?, place.environment));
        let Some(found) = place.and_then(identity) else { return };
        let Some((further, count)) = self.duplicates.identify(key, process, found) else { return };
        let Some(server) = self.world.view(further) else { return };
        let owner = self.world.owner(further).map(agent_view);
        self.emit(now, Notice::ServerDuplicated { server, owner, count });
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

    /// The newest server of the same identity, if this server is not it.
    pub(super) fn duplicate_of(&self, key: ServerKey) -> Option<ProcessId> {
        let newest = self.duplicates.same(key).next_back().filter(|newest| *newest != key)?;
        self.world.server(newest).map(|server| server.id)
    }

    /// The invariants that are broken: each server is listed by its present likeness, and nothing else is. For tests.
    pub(super) fn check_duplicates(&self) -> Vec<String> {
        let mut broken = Vec::new();
        let mut count = 0;
        for key in self.world.servers().keys() {
            let is = self.likeness(key);
            let listed = self.duplicates.listed(key);
            if is.as_ref().map(|(likeness, process)| (likeness, *process))
                != listed.map(|listed| (&*listed.likeness, listed.process))
            {
                broken.push(format!("server {key:?} is listed as {listed:?}, it is {is:?}"));
            }
            count += usize::from(listed.is_some());
        }
        let alike: usize = self.duplicates.alike.values().map(BTreeSet::len).sum();
        if alike != count || self.duplicates.due.iter().any(|(_, key)| self.duplicates.listed(*key).is_none())
        {
            broken.push(format!("{count} servers are listed, and not the same ones: {:?}", self.duplicates));
        }
        broken
    }
}
