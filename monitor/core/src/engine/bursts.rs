//! Bursts: what a user may have reported or looked at before others wait for it. A user who starts thousands of agents gets
//! one event, and the events of other users are neither late nor lost.
//!
//! A user may start [`BURST`] agents at once and one more every [`REFILL`]. These are reported as they start. Agents
//! beyond that are withheld: they are not reported, and their run gets no number. A withheld agent is reported, with
//! its number, as soon as it starts a server, or when it has lived for [`LIVED`] and there is room again. Withheld
//! agents that exit before that are counted and coalesced into one event `agents_folded` per user and second. Every
//! agent is therefore reported or counted. Servers, suspects and verdicts are never coalesced.

use std::{collections::BTreeMap, iter, time::Duration};

use super::{Engine, agenda::Task};
use crate::{
    lineage::AgentKey,
    model::{BootTime, Effect, Notice, ProcessId, RunView, Share, Tracking},
    world::Agent,
};

/// Agents that a user may start at once.
const BURST: u32 = 64;
/// After this time the user may start one more.
const REFILL: Duration = Duration::from_millis(100);
/// A withheld agent that has lived this long is reported if there is room. It is also the time between two events of
/// one user.
const LIVED: Duration = Duration::from_secs(1);
/// How many users are kept although they have done nothing lately.
const IDLE_USERS: usize = 256;

#[derive(Debug, Default)]
pub(super) struct Bursts {
    /// How many agents of each user have exited without having been reported, by name.
    ended: BTreeMap<u32, BTreeMap<String, u64>>,
    /// How many agents of each user were reported lately, and until when that was counted.
    told: BTreeMap<Share, (u32, BootTime)>,
}

impl Bursts {
    /// Whether there is room for one more agent of this user. If so, it is counted.
    fn admits(&mut self, uid: u32, now: BootTime) -> bool {
        if self.told.len() > IDLE_USERS {
            self.told.retain(|_, (_, refilled)| now.since(*refilled) < REFILL * BURST);
        }
        let (used, refilled) = self.told.entry(Share::of(uid)).or_default();
        let passed = now.since(*refilled).as_millis() / REFILL.as_millis();
        let passed = u32::try_from(passed).unwrap_or(u32::MAX);
        if passed >= *used {
            (*used, *refilled) = (0, now);
        } else if passed > 0 {
            *used -= passed;
            *refilled = *refilled + REFILL * passed;
        }
        let room = *used < BURST;
        *used += u32::from(room);
        room
    }
}

impl Engine {
    /// A process has just run a program that a rule knows as an agent.
    pub(super) fn agent_started(&mut self, at: BootTime, id: ProcessId, name: String) {
        let Some(node) = self.world.node(id) else { return };
        let (user, above) = (node.uid, node.agent);
        let below_withheld = above.and_then(|a| self.world.agent(a)).is_some_and(|a| a.withheld.is_some());
        // An agent found in /proc is not part of a burst. An agent that has started processes may own a server.
        let plain = !node.provenance.is_found() && self.world.graph().children(id).next().is_none();
        if !plain || (!below_withheld && self.bursts.admits(user, at)) {
            self.agent_recognised(at, id, name, false);
            return;
        }
        let mut new = Agent::new(id, node.origin(), name);
        (new.uid, new.sid, new.above) = (user, node.sid, above);
        new.account = RunView::unknown(&new.name, user);
        (new.withheld, new.unsettled, new.daemon) = (Some(at), above.is_none(), self.is_daemon(node));
        self.world.start_agent(new, false);
        self.agenda.keep(Task::Folded(user), Some(at + LIVED));
        self.leave_server(at, id);
        self.confirm(at, id);
    }

    /// The withheld agents among this agent and its ancestor agents, the top-most first.
    pub(super) fn withheld_from(&self, key: AgentKey) -> Vec<AgentKey> {
        let withheld = |key: AgentKey| self.world.agent(key)?.withheld.map(|_| key);
        let above = |key: &AgentKey| withheld(self.world.agent(*key)?.above?);
        let mut chain: Vec<AgentKey> = iter::successors(withheld(key), above).collect();
        chain.reverse();
        chain
    }

    /// Reports a withheld agent that matters, and the withheld agents above it.
    pub(super) fn report_withheld(&mut self, key: AgentKey) {
        for key in self.withheld_from(key) {
            let above = self.world.agent(key).and_then(|a| a.above).and_then(|a| self.world.agent(a));
            let account = above.map(|above| above.account.clone());
            let Some(agent) = self.world.agent_mut(key) else { continue };
            let Some(born) = agent.withheld.take() else { continue };
            if let Some(account) = account {
                agent.account = account;
            }
            let main = agent.main();
            if self.world.agent_of(main) == Some(key) {
                self.effects.push_back(Effect::Track { process: main, tracking: Tracking::Agent });
            }
            self.report_agent_started(born, key, None);
        }
    }

    pub(super) fn withheld_ended(&mut self, now: BootTime, key: AgentKey) {
        let Some(agent) = self.world.agent_mut(key) else { return };
        agent.withheld = None;
        let (name, user) = (agent.name.clone(), agent.uid);
        self.agenda.keep(Task::Folded(user), Some(now + LIVED));
        *self.bursts.ended.entry(user).or_default().entry(name).or_default() += 1;
    }

    /// Reports the coalesced agents of a user and, as far as there is room, the withheld ones that have lived for a
    /// while.
    pub(super) fn report_coalesced(&mut self, now: BootTime, user: u32) {
        self.report_folded(now, user);
        let withheld = self.agents_where(|_, agent| agent.uid == user && agent.withheld.is_some());
        for key in withheld.iter().take(BURST as usize).copied() {
            let Some(agent) = self.world.agent(key) else { continue };
            let Some(born) = agent.withheld.filter(|born| *born + LIVED <= now) else { break };
            let above = agent.above.and_then(|above| self.world.agent(above));
            if above.is_some_and(|above| above.withheld.is_some()) {
                continue;
            }
            let (main, name) = (agent.main(), agent.name.clone());
            if !self.bursts.admits(user, now) {
                break;
            }
            self.agent_recognised(born, main, name, false);
        }
        self.agenda.set(Task::Folded(user), (!withheld.is_empty()).then_some(now + LIVED));
    }

    fn report_folded(&mut self, now: BootTime, uid: u32) {
        if let Some(names) = self.bursts.ended.remove(&uid) {
            self.emit(now, Notice::AgentsFolded { uid, count: names.values().sum(), names });
        }
    }

    /// Reports the coalesced agents of all users, because the daemon stops.
    pub(super) fn report_all_coalesced(&mut self, now: BootTime) {
        let users: Vec<u32> = self.bursts.ended.keys().copied().collect();
        for user in users {
            self.report_folded(now, user);
        }
    }
}
