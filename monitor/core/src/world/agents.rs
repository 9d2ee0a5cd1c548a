//! Agents and their runs.
//!
//! An agent is a process, or a chain of processes each of which took over from the one before by forking
//! itself into the background. A run is one life of an agent with no agent above it; see [`super::Runs`].

use std::{collections::BTreeSet, num::NonZeroU32};

use rustc_hash::FxHashMap;

use super::Account;
use crate::{
    case::Phase,
    lineage::{AgentKey, Origin, ServerKey},
    model::{BootTime, CopyFacts, ProcessId, RunKey, UnitFacts},
};

/// So many dead agents are no burden.
const DEAD_MIN: usize = 32;

/// An agent, alive or remembered because servers of it are alive.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct Agent {
    /// The name shown.
    pub name: String,
    /// Whether it is an agent only because it started a server.
    pub implied: bool,
    /// The process whose exit is the agent's.
    main: ProcessId,
    /// Whether `main` is a copy that took over from the process which was recognised.
    pub took_over: bool,
    /// The exec that brought its program: a process of the same origin is a copy of it.
    pub origin: Origin,
    /// Real user id.
    pub uid: u32,
    /// Session id when it was recognised.
    pub sid: u32,
    /// The agent above it.
    pub above: Option<AgentKey>,
    /// The unit it lives in, as it was when the agent was recognised.
    pub unit: Option<Box<UnitFacts>>,
    /// The run it belongs to: its own, or the top-most agent's.
    pub account: Account,
    /// Whether it ended before anybody could ask what unit it lived in: its first server will tell.
    pub unsettled: bool,
    /// When it began, if it is withheld because of a burst: it was neither reported nor counted.
    pub withheld: Option<BootTime>,
    /// How far its own case has come: it may have been left behind itself.
    pub phase: Phase,
    /// When that case reaches its next deadline.
    pub timer: Option<BootTime>,
    /// When it exited.
    exited: Option<BootTime>,
    /// Whether a signal ended it: then copies of it that are left are workers, not successors.
    pub killed: bool,
    /// Forked copies of it that were there when it ended, and what they had done until then.
    pub copies: Vec<CopyFacts>,
    /// Forked copies that were there when an earlier main process of it left on its own accord: each may be the one that goes on.
    pub peers: BTreeSet<ProcessId>,
    /// Whether a configuration that was read later exempts it: nothing that it leaves is ended.
    pub exempt: bool,
    /// Its servers that are alive.
    pub(super) servers: BTreeSet<ServerKey>,
}

impl Agent {
    /// The process whose exit is the agent's.
    pub const fn main(&self) -> ProcessId {
        self.main
    }

    /// When it exited.
    pub const fn exited(&self) -> Option<BootTime> {
        self.exited
    }

    /// Its servers that are alive.
    pub const fn servers(&self) -> &BTreeSet<ServerKey> {
        &self.servers
    }

    /// Whether it lives.
    pub const fn is_alive(&self) -> bool {
        self.exited.is_none()
    }
}

/// What is known of a process at the moment it turns out to be an agent.
#[derive(Clone, Debug)]
pub struct NewAgent {
    /// The name shown.
    pub name: String,
    /// Whether no rule knows it.
    pub implied: bool,
    /// Its process.
    pub main: ProcessId,
    /// The program it runs.
    pub origin: Origin,
    /// Real user id.
    pub uid: u32,
    /// Session id.
    pub sid: u32,
    /// The nearest agent among its creators.
    pub above: Option<AgentKey>,
    /// The unit it lives in.
    pub unit: Option<Box<UnitFacts>>,
    /// What it is accounted to.
    pub account: Account,
}

/// All agents that live or are remembered.
#[derive(Clone, Debug, Default)]
pub struct Agents {
    by_key: FxHashMap<AgentKey, Agent>,
    by_main: FxHashMap<ProcessId, AgentKey>,
    /// The user of the last agent that was inspected because it may have been left behind.
    served: u32,
    /// The dead that were left when some were forgotten last.
    dead_kept: usize,
    last: Option<NonZeroU32>,
}

impl Agents {
    /// Enters an agent.
    pub(super) fn start(&mut self, new: NewAgent) -> AgentKey {
        let above = new.above.filter(|a| self.by_key.contains_key(a));
        let key = AgentKey(self.last.map_or(NonZeroU32::MIN, |last| last.saturating_add(1)));
        self.last = Some(key.0);
        let NewAgent { name, implied, main, origin, uid, sid, unit, account, .. } = new;
        let agent = Agent {
            name,
            implied,
            main,
            took_over: false,
            origin,
            uid,
            sid,
            above,
            unit,
            account,
            unsettled: false,
            withheld: None,
            phase: Phase::default(),
            timer: None,
            exited: None,
            killed: false,
            copies: Vec::new(),
            peers: BTreeSet::new(),
            exempt: false,
            servers: BTreeSet::new(),
        };
        self.by_key.insert(key, agent);
        self.by_main.insert(main, key);
        key
    }

    /// The agent with this key.
    pub fn get(&self, key: AgentKey) -> Option<&Agent> {
        self.by_key.get(&key)
    }

    /// The same, to be changed.
    pub(super) fn get_mut(&mut self, key: AgentKey) -> Option<&mut Agent> {
        self.by_key.get_mut(&key)
    }

    /// The living agent whose main process this is.
    pub fn of(&self, main: ProcessId) -> Option<AgentKey> {
        self.by_main.get(&main).copied()
    }

    /// Whether a top-most agent of this run lives.
    pub fn run_lives(&self, key: &RunKey, generation: u64) -> bool {
        let of_run = |a: &Agent| a.account.key == *key && a.account.generation == Some(generation);
        self.by_key.values().any(|a| a.is_alive() && a.above.is_none() && of_run(a))
    }

    /// What all of them are accounted to, in no order.
    pub fn accounts(&self) -> impl Iterator<Item = &Account> {
        self.by_key.values().map(|agent| &agent.account)
    }

    /// When to inspect an agent that may have been left behind.
    pub fn next_left(&self) -> Option<BootTime> {
        self.by_main.values().filter_map(|key| self.by_key.get(key)?.timer).min()
    }

    /// The agent whose time for such an inspection has come, the timer removed.
    pub fn left_due(&mut self, now: BootTime) -> Option<AgentKey> {
        let due = self.by_main.values().filter_map(|key| {
            let agent = self.by_key.get(key).filter(|a| a.timer.is_some_and(|at| at <= now))?;
            // Users in turn.
            Some((agent.uid <= self.served, agent.uid, *key))
        });
        let (_, user, due) = due.min()?;
        self.served = user;
        self.by_key.get_mut(&due)?.timer = None;
        Some(due)
    }

    /// `successor`, of this session, continues the work of a living agent. Whether there is such an agent.
    pub(super) fn transfer(&mut self, key: AgentKey, successor: ProcessId, sid: u32) -> bool {
        let Some(agent) = self.by_key.get_mut(&key).filter(|agent| agent.is_alive()) else { return false };
        self.by_main.remove(&agent.main);
        self.by_main.insert(successor, key);
        (agent.main, agent.took_over, agent.sid) = (successor, true, sid);
        true
    }

    /// The agent exited.
    pub(super) fn end(&mut self, key: AgentKey, at: BootTime, killed: bool) {
        if let Some(agent) = self.by_key.get_mut(&key) {
            (agent.exited, agent.killed) = (Some(at), killed);
            self.by_main.remove(&agent.main);
        }
    }

    /// Forgets the dead that have no living servers and that nothing refers to.
    pub(super) fn forget_dead(&mut self, is_referenced: impl Fn(AgentKey) -> bool) {
        self.by_key.retain(|key, a| a.is_alive() || !a.servers.is_empty() || is_referenced(*key));
        self.dead_kept = self.len() - self.alive();
    }

    /// Whether so many have died since the last time that it is worth while to forget some.
    pub fn has_many_dead(&self) -> bool {
        self.len() - self.alive() > 2 * self.dead_kept + DEAD_MIN
    }

    /// The number of agents alive or remembered.
    pub fn len(&self) -> usize {
        self.by_key.len()
    }

    /// Whether none is alive or remembered.
    pub fn is_empty(&self) -> bool {
        self.by_key.is_empty()
    }

    /// All, oldest first.
    pub fn all(&self) -> Vec<(AgentKey, &Agent)> {
        let mut all: Vec<_> = self.by_key.iter().map(|(k, a)| (*k, a)).collect();
        all.sort_unstable_by_key(|(k, _)| *k);
        all
    }

    /// Broken invariants: the living agents are found by their main processes, each by its own.
    pub(super) fn check(&self) -> Vec<String> {
        let living = self.by_key.iter().filter(|(_, agent)| agent.is_alive());
        let of_main: FxHashMap<ProcessId, AgentKey> = living.map(|(key, agent)| (agent.main, *key)).collect();
        if of_main == self.by_main {
            return Vec::new();
        }
        vec![format!("the living agents are {of_main:?}, listed are {:?}", self.by_main)]
    }

    /// The number of agents alive.
    pub fn alive(&self) -> usize {
        self.by_main.len()
    }
}
