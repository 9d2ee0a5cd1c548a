//! Bursts of agents: whoever starts them by the thousands gets one line, and nobody else's line is late or lost because of it.
//!
//! A user may start [`BURST`] agents at once and one more every [`REFILL`]: those are told as they come. Of what is beyond that nothing
//! is told at first, and no number of a run is given. It is told, with its number, as soon as it starts a server, or when it has lived for
//! [`LIVED`] and the user's turn has come. What ends before is counted: `agents_folded`, one line a user and second. So every agent is
//! told or counted. Servers, suspects, verdicts are never folded.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use super::{Engine, Purpose};
use crate::{
    lineage::{AgentKey, ObservedUnit},
    model::{About, BootTime, Effect, Notice, ProcessId, Tracking},
    world::{Account, NewAgent},
};

/// Agents that a user may start at once.
const BURST: u32 = 64;
/// The user may start one more each time.
const REFILL: Duration = Duration::from_millis(100);
/// Who has lived so long is told of when there is room; between two lines.
const LIVED: Duration = Duration::from_secs(1);
/// Users of whom nothing is owed that are kept.
const IDLE_USERS: usize = 256;

/// The bursts of all users.
#[derive(Debug, Default)]
pub(super) struct Bursts {
    by_user: BTreeMap<u32, Burst>,
}

/// The agents of one user that are told, and those that are not.
#[derive(Debug, Default)]
struct Burst {
    /// How many more may be told than have been refilled: at most [`BURST`].
    told: u32,
    refilled: BootTime,
    /// Alive, not told of, oldest first.
    withheld: BTreeSet<AgentKey>,
    /// Ended without having been told of, by name.
    ended: BTreeMap<String, u64>,
    due: Option<BootTime>,
}

impl Burst {
    /// Whether one more may be told now; it counts then.
    fn admits(&mut self, now: BootTime) -> bool {
        let passed = now.since(self.refilled).as_millis() / REFILL.as_millis();
        let passed = u32::try_from(passed).unwrap_or(u32::MAX);
        if passed >= self.told {
            (self.told, self.refilled) = (0, now);
        } else if passed > 0 {
            self.told -= passed;
            self.refilled = self.refilled + REFILL * passed;
        }
        let room = self.told < BURST;
        self.told += u32::from(room);
        room
    }
}

impl Bursts {
    /// When the next line is due.
    pub fn next(&self) -> Option<BootTime> {
        self.by_user.values().filter_map(|burst| burst.due).min()
    }

    /// A user whose line is due.
    pub fn due(&self, now: BootTime) -> Option<u32> {
        self.by_user.iter().find(|(_, burst)| burst.due.is_some_and(|at| at <= now)).map(|(user, _)| *user)
    }

    fn admits(&mut self, user: u32, now: BootTime) -> bool {
        if self.by_user.len() > IDLE_USERS {
            self.by_user.retain(|_, burst| burst.due.is_some() || now.since(burst.refilled) < REFILL * BURST);
        }
        self.by_user.entry(user).or_default().admits(now)
    }

    fn withhold(&mut self, user: u32, key: AgentKey, now: BootTime) {
        let burst = self.by_user.entry(user).or_default();
        burst.withheld.insert(key);
        burst.due.get_or_insert(now + LIVED);
    }

    fn forget(&mut self, user: u32, key: AgentKey) {
        if let Some(burst) = self.by_user.get_mut(&user) {
            burst.withheld.remove(&key);
        }
    }
}

impl Engine {
    /// A rule knows this process as an agent, and it has just run that program.
    pub(super) fn agent_started(&mut self, at: BootTime, id: ProcessId, name: String) {
        let Some(node) = self.world.node(id) else { return };
        let (user, above) = (node.uid, node.agent);
        let below_withheld = above.and_then(|a| self.world.agent(a)).is_some_and(|a| a.withheld.is_some());
        // What was there before us is no burst; what has started something may be somebody's owner.
        let plain = !node.provenance.is_found() && self.world.graph().children(id).next().is_none();
        if !plain || (!below_withheld && self.bursts.admits(user, at)) {
            self.agent_recognised(at, id, name, false);
            return;
        }
        let (origin, sid) = (node.origin(), node.sid);
        let account = Account::unknown(&name, user);
        let new =
            NewAgent { name, implied: false, main: id, origin, uid: user, sid, above, unit: None, account };
        let key = self.world.start_agent(new, false);
        if let Some(agent) = self.world.agent_mut(key) {
            (agent.withheld, agent.unsettled) = (Some(at), above.is_none());
        }
        self.bursts.withhold(user, key, at);
        self.leave_server(at, id);
        self.confirm(id);
    }

    /// These agents, from this one upwards, have not been told of: the top-most first.
    pub(super) fn withheld_from(&self, key: AgentKey) -> Vec<AgentKey> {
        let mut chain = Vec::new();
        let mut at = Some(key);
        while let Some(agent) = at.and_then(|key| self.world.agent(key).filter(|a| a.withheld.is_some())) {
            chain.extend(at);
            at = agent.above;
        }
        chain.reverse();
        chain
    }

    /// An agent of a burst matters: it is told of, and those above it, as far as they have not been.
    pub(super) fn report_withheld(&mut self, key: AgentKey) {
        for key in self.withheld_from(key) {
            let above = self.world.agent(key).and_then(|a| a.above).and_then(|a| self.world.agent(a));
            let account = above.map(|above| above.account.clone());
            let Some(agent) = self.world.agent_mut(key) else { continue };
            let Some(born) = agent.withheld.take() else { continue };
            if let Some(account) = account {
                agent.account = account;
            }
            let (main, user) = (agent.main(), agent.uid);
            self.bursts.forget(user, key);
            if self.world.agent_of(main) == Some(key) {
                self.effects.push_back(Effect::Track { process: main, tracking: Tracking::Agent });
            }
            self.report_agent_started(born, key, None);
        }
    }

    /// One that was not told of has ended: it is counted.
    pub(super) fn withheld_ended(&mut self, now: BootTime, key: AgentKey) {
        let Some(agent) = self.world.agent_mut(key) else { return };
        agent.withheld = None;
        let (name, user) = (agent.name.clone(), agent.uid);
        self.bursts.forget(user, key);
        let burst = self.bursts.by_user.entry(user).or_default();
        *burst.ended.entry(name).or_default() += 1;
        burst.due.get_or_insert(now + LIVED);
    }

    /// The line of a user, and those of his agents that have lived for a while, as far as there is room.
    pub(super) fn report_coalesced(&mut self, now: BootTime, user: u32) {
        let Some(burst) = self.bursts.by_user.get_mut(&user) else { return };
        burst.due = None;
        let names = std::mem::take(&mut burst.ended);
        let withheld: Vec<AgentKey> = burst.withheld.iter().take(BURST as usize).copied().collect();
        if !names.is_empty() {
            self.emit(now, Notice::AgentsFolded { uid: user, count: names.values().sum(), names });
        }
        for key in withheld {
            let Some(agent) = self.world.agent(key) else { continue };
            let Some(born) = agent.withheld.filter(|born| *born + LIVED <= now) else { break };
            let below_withheld =
                agent.above.and_then(|a| self.world.agent(a)).is_some_and(|a| a.withheld.is_some());
            if below_withheld {
                continue;
            }
            let (main, name) = (agent.main(), agent.name.clone());
            if !self.bursts.admits(user, now) {
                break;
            }
            self.bursts.forget(user, key);
            let unasked = self.world.node(main).is_some_and(|node| node.unit == ObservedUnit::Unasked);
            if unasked {
                self.ask(
                    About::Process(main),
                    Purpose::Unit { process: main, at: born, name, implied: false },
                );
            } else {
                self.agent_recognised(born, main, name, false);
            }
        }
        if let Some(burst) = self.bursts.by_user.get_mut(&user)
            && !burst.withheld.is_empty()
        {
            burst.due = Some(now + LIVED);
        }
    }

    /// Nothing is left uncounted at the end.
    pub(super) fn report_all_coalesced(&mut self, now: BootTime) {
        let users: Vec<u32> = self.bursts.by_user.keys().copied().collect();
        for user in users {
            let Some(burst) = self.bursts.by_user.get_mut(&user) else { continue };
            let names = std::mem::take(&mut burst.ended);
            if !names.is_empty() {
                self.emit(now, Notice::AgentsFolded { uid: user, count: names.values().sum(), names });
            }
        }
    }
}
