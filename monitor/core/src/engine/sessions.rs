//! Sessions: which of them have expired, by what the registry said, and what that means for their servers.
//!
//! Invariant: the absence of an answer, or of a proof that the answer is about this session, is never "expired".
//!
//! - A session is expired if its key was missing in every answer for the configured time, in two answers at least. Time
//!   in which nobody asked does not count.
//! - A key that disappeared together with a change of the registry's life (it restarted, was emptied, or refused to write),
//!   together with all other keys, or while its owner was kept from running, says nothing: the session is unknown until its
//!   key is seen again. Many keys run out unless they are renewed. What nobody could renew is not over.
//! - A key that was never seen may have another name. It counts only if another session of the same owner has its key,
//!   the server is old enough, and the registry has lost nothing since the server started.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use super::{Engine, released::is_released};
use crate::{
    case::{By, Event, Reason},
    lineage::{AgentKey, Provenance, ServerKey},
    model::{
        About, Answer, BootTime, KeyState, ProcessId, RegistryLife, SessionPolicy, SessionState,
        SessionSubject, SessionsSeen,
    },
    world::{Agent, Server},
};

/// Between two inspections of a server, if the registry gave no answer.
const LEAST: Duration = Duration::from_secs(1);

#[derive(Debug, Default)]
pub(super) struct Sessions {
    by_id: BTreeMap<String, Session>,
    life: Option<RegistryLife>,
    /// Owners of which another session has its key: their keys have the name that is asked for.
    named: BTreeSet<AgentKey>,
    /// When the question of the last complete answer was sent.
    asked: Option<BootTime>,
    /// Those whose id was read when no owner was known. It may have been inherited from one, so it is told only.
    pub(super) told_only: BTreeSet<ServerKey>,
}

#[derive(Debug, Default)]
struct Session {
    servers: BTreeSet<ServerKey>,
    /// The last answer, or the lack of one.
    state: KeyState,
    /// Whether its key existed in some answer.
    seen: bool,
    /// Whether it disappeared together with what else the registry had.
    lost: bool,
    /// In how many answers in a row it was missing, those without a reply not counted.
    missing: u32,
    /// For how long that was seen.
    lasting: Duration,
    /// The last of these answers; absent if the registry has not replied since.
    at: Option<BootTime>,
}

impl Session {
    /// What was said of its key. `lost`: much else has disappeared. `anew`: the registry has another life, or the owner could
    /// not renew the key. At most `longest` passes between two answers.
    fn hear(&mut self, now: BootTime, said: KeyState, [lost, anew]: [bool; 2], longest: Duration) {
        match said {
            KeyState::Active => {
                (self.seen, self.lost, self.missing, self.lasting) = (true, false, 0, Duration::ZERO);
            }
            KeyState::Missing if self.lost => {}
            KeyState::Missing if self.exists() && (lost || anew) => self.lost = true,
            KeyState::Missing => {
                let gap = self.at.filter(|_| self.missing > 0 && !anew).map(|at| now.since(at).min(longest));
                if anew {
                    (self.missing, self.lasting) = (0, Duration::ZERO);
                }
                self.missing = self.missing.saturating_add(1);
                self.lasting = self.lasting.saturating_add(gap.unwrap_or_default());
                self.at = (!anew).then_some(now);
            }
            KeyState::Unknown => self.at = None,
        }
        self.state = if self.lost { KeyState::Unknown } else { said };
    }

    /// Whether its key existed when that was last said.
    const fn exists(&self) -> bool {
        self.seen && !self.lost && self.missing == 0
    }
}

impl Sessions {
    pub(super) fn forget(&mut self, key: ServerKey, id: Option<&str>) {
        self.told_only.remove(&key);
        let Some((id, session)) = id.and_then(|id| Some((id, self.by_id.get_mut(id)?))) else { return };
        session.servers.remove(&key);
        if session.servers.is_empty() {
            self.by_id.remove(id);
        }
    }

    /// `held`: the servers of owners that are kept from running.
    fn see(&mut self, now: BootTime, seen: &SessionsSeen, held: &BTreeSet<ServerKey>, every: Duration) {
        let said: BTreeMap<&str, KeyState> =
            seen.sessions.iter().map(|(id, state)| (id.as_str(), *state)).collect();
        let said = |id: &str| said.get(id).copied().filter(|_| seen.registry.is_some()).unwrap_or_default();
        let is_other =
            |before: &RegistryLife| seen.registry.as_ref().is_some_and(|now| now.name != before.name);
        let changed = self.life.as_ref().is_some_and(is_other);
        let vanished =
            |(id, session): &(&String, &Session)| session.exists() && said(id) == KeyState::Missing;
        let emptied = self.by_id.iter().filter(vanished).count() > 1
            && seen.sessions.iter().all(|(_, state)| *state != KeyState::Active);
        for (id, session) in &mut self.by_id {
            let anew = changed || !session.servers.is_disjoint(held);
            session.hear(now, said(id), [emptied, anew], every * 2);
        }
        if let Some(life) = &seen.registry {
            self.life = Some(life.clone());
            self.asked = Some(seen.asked);
        }
    }
}

impl Engine {
    /// The ids of the sessions that living servers were started for, in order.
    pub fn session_ids(&self) -> impl Iterator<Item = &String> + Clone {
        self.sessions.by_id.keys()
    }

    /// How many sessions are in each state; `None` if sessions are not judged.
    pub fn session_counts(&self) -> Option<BTreeMap<SessionState, u64>> {
        let policy = self.policy.sessions.as_ref()?;
        let mut counts: BTreeMap<SessionState, u64> = SessionState::ALL.map(|state| (state, 0)).into();
        for session in self.sessions.by_id.values() {
            *counts.entry(self.state_of(session, policy)).or_default() += 1;
        }
        Some(counts)
    }

    pub(super) fn session_state(&self, server: &Server) -> Option<SessionState> {
        let policy = self.policy.sessions.as_ref()?;
        Some(self.state_of(self.session_of(server)?, policy))
    }

    fn session_of(&self, server: &Server) -> Option<&Session> {
        self.sessions.by_id.get(server.session_id.as_ref()?)
    }

    fn state_of(&self, session: &Session, policy: &SessionPolicy) -> SessionState {
        match session.state {
            KeyState::Active => SessionState::Active,
            KeyState::Unknown => SessionState::Unknown,
            KeyState::Missing if session.servers.iter().any(|key| self.is_expired(*key, policy)) => {
                SessionState::Expired
            }
            KeyState::Missing => SessionState::Missing,
        }
    }

    /// Asks for the session that a server was started for, unless it is known.
    pub(super) fn ask_session(&mut self, key: ServerKey) {
        let owner = self.world.owner(key).filter(|owner| owner.is_alive()).map(Agent::main);
        if owner.is_some() {
            self.ask_session_below(key, owner);
        }
    }

    /// Asks for the session of a server that was found in a container, and whose owner nobody knows. It is told only.
    pub(super) fn ask_session_found_late(&mut self, key: ServerKey) {
        if self.world.server(key).is_some_and(|server| server.owner().is_none()) {
            self.ask_session_below(key, None);
        }
    }

    fn ask_session_below(&mut self, key: ServerKey, owner: Option<ProcessId>) {
        let Some(policy) = &self.policy.sessions else { return };
        let may_be_other = owner.is_some() && self.sessions.told_only.contains(&key);
        let is_sought = |server: &&Server| server.session_id.is_none() || may_be_other;
        let Some(server) = self.world.server(key).filter(is_sought) else { return };
        let main = server.main_process();
        // A gateway's own servers are for other sessions.
        let chain = self.world.links(server).map(|node| node.id).chain(server.wrappers().iter().copied());
        let subject = SessionSubject {
            main,
            chain: chain.filter(|process| *process != main).collect(),
            inside: self.processes_inside(key).first().copied(),
            owner,
            mark: policy.mark.clone(),
        };
        self.ask(None, About::Session(Box::new(subject)), move |engine, _, answer| {
            if let Answer::Session { id } = answer {
                engine.session_answered(key, id, owner.is_none());
            }
        });
    }

    /// The session that a server was started for is known, or it has none.
    fn session_answered(&mut self, key: ServerKey, id: Option<String>, told_only: bool) {
        if self.policy.sessions.is_none() {
            return;
        }
        let Some(server) = self.world.server_mut(key) else { return };
        if told_only && server.owner().is_some() {
            return;
        }
        if !told_only && self.sessions.told_only.contains(&key) {
            // Only now it is known whether the id was inherited.
            let before = server.session_id.take();
            self.sessions.forget(key, before.as_deref());
        }
        let Some(id) = id.filter(|_| server.session_id.is_none()) else { return };
        server.session_id = Some(id.clone());
        self.sessions.by_id.entry(id).or_default().servers.insert(key);
        if told_only {
            self.sessions.told_only.insert(key);
        }
        self.world.show(key);
    }

    /// Another configuration is in effect: where the sessions are, and how they are named, may have changed.
    pub(super) fn reconfigure_sessions(&mut self, now: BootTime) {
        let before = std::mem::take(&mut self.sessions);
        for key in self.world.server_keys() {
            self.world.change_server(key, |server| server.session_id = None);
            self.server_event(now, key, Event::SessionLives);
            self.ask_session(key);
            if before.told_only.contains(&key) {
                self.ask_session_found_late(key);
            }
        }
    }

    /// Whether a key is missing because nobody renewed it depends on what its owner could do.
    pub(super) fn sessions_seen(&mut self, seen: SessionsSeen) {
        if self.policy.sessions.is_none() {
            return;
        }
        let missing = seen.sessions.iter().filter(|(_, state)| *state == KeyState::Missing);
        let missing = missing.filter_map(|(id, _)| self.sessions.by_id.get(id));
        let servers: BTreeSet<ServerKey> = missing.flat_map(|session| &session.servers).copied().collect();
        let users: BTreeMap<ServerKey, Vec<ProcessId>> =
            servers.into_iter().map(|key| (key, self.users_of(key))).collect();
        let all: BTreeSet<ProcessId> = users.values().flatten().copied().collect();
        let about = About::Work(all.into_iter().collect());
        self.ask(None, about, move |engine, now, answer| {
            let Answer::Work { processes } = answer else { return };
            let works = |user: &ProcessId| processes.iter().any(|work| work.process == *user);
            let held = users.iter().filter(|(_, users)| !users.iter().all(works)).map(|(key, _)| *key);
            engine.sessions_told(now, &seen, &held.collect());
        });
    }

    /// The processes that use a server of a living owner: the owner, and the one of its processes that made the wires.
    fn users_of(&self, key: ServerKey) -> Vec<ProcessId> {
        let owner = self.world.owner(key).filter(|owner| owner.is_alive()).map(Agent::main);
        let maker = self.world.server(key).and_then(|server| server.maker);
        let maker = maker.filter(|maker| owner.is_some() && self.world.node(*maker).is_some());
        owner.into_iter().chain(maker).collect()
    }

    fn sessions_told(&mut self, now: BootTime, seen: &SessionsSeen, held: &BTreeSet<ServerKey>) {
        let Some(policy) = self.policy.sessions.clone() else { return };
        self.sessions.see(now, seen, held, policy.every);
        let active = self.sessions.by_id.values().filter(|session| session.state == KeyState::Active);
        let active = active.flat_map(|session| session.servers.difference(&self.sessions.told_only));
        let owners = active.filter_map(|key| self.world.server(*key)?.owner());
        self.sessions.named = owners.collect();
        let servers: Vec<ServerKey> =
            self.sessions.by_id.values().flat_map(|session| &session.servers).copied().collect();
        for key in servers {
            let Some(server) = self.world.server(key) else { continue };
            let reason = server.phase.cause().map(|cause| cause.reason);
            let expired = self.is_expired(key, &policy);
            match reason {
                Some(Reason::Released(By::Session)) if !expired => {
                    self.server_event(now, key, Event::SessionLives);
                }
                None if expired
                    && !server.seeks_owner
                    && !self.sessions.told_only.contains(&key)
                    && self.world.owner(key).is_some_and(Agent::is_alive) =>
                {
                    self.release(now, key, By::Session, now);
                }
                _ => {}
            }
        }
    }

    fn is_expired(&self, key: ServerKey, policy: &SessionPolicy) -> bool {
        let server = self.world.server(key);
        let Some((server, session)) = server.and_then(|server| Some((server, self.session_of(server)?)))
        else {
            return false;
        };
        let is_missing = !session.lost && session.missing >= 2 && session.lasting >= policy.idle;
        is_missing && (session.seen || self.must_have_been(server, policy))
    }

    /// Whether the key of this server's session, which nobody has seen, must have existed. An earlier daemon may have
    /// seen a use of the server since it was gone.
    fn must_have_been(&self, server: &Server, policy: &SessionPolicy) -> bool {
        if self.recall.restarted && server.provenance != Provenance::Witnessed {
            return false;
        }
        let (Some(life), Some(asked)) = (&self.sessions.life, self.sessions.asked) else { return false };
        let born = server.id.born();
        server.owner().is_some_and(|owner| self.sessions.named.contains(&owner))
            && life.began.is_some_and(|began| began < born)
            && asked.since(born) >= policy.idle
    }

    /// The time to the next inspection of a server whose session has expired, if nothing follows from this one because
    /// the last answer of the registry is too old.
    pub(super) fn judge_session(&self, now: BootTime, key: ServerKey) -> Option<Duration> {
        let server = self.world.server(key).filter(|server| is_released(server, By::Session))?;
        let Some(policy) = &self.policy.sessions else { return Some(LEAST) };
        let missing = self.session_of(server).is_some_and(|session| session.state == KeyState::Missing);
        let fresh = self.sessions.asked.is_some_and(|asked| now.since(asked) <= policy.every * 2);
        if !missing || !fresh || !self.is_expired(key, policy) {
            return Some(policy.every.max(LEAST));
        }
        None
    }
}
