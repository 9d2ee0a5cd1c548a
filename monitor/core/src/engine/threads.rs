//! Threads that started a server. The end of such a thread opens a case where a rule says of the owner that its
//! servers end with their threads (`thread_scoped`); otherwise it is only evidence.
//!
//! The kernel side reports the end of a thread only if it was told to follow the thread, which is when a server was
//! recognised. The thread may have ended by then: the shell looks, and reports that in the same way.

use std::num::NonZeroU32;

use super::{Engine, released::is_released};
use crate::{
    case::{By, Event},
    lineage::{AgentKey, ServerKey},
    model::{BootTime, Effect, ProcessId},
    verdict::rule_of,
    world::{Agent, Server, Spawner},
};

impl Engine {
    /// Has the end of the thread reported that started this server, if it is a thread of its living owner.
    pub(super) fn follow_spawner(&mut self, key: ServerKey) {
        let Some(server) = self.world.server(key) else { return };
        let owner = self.world.owner_of(server).filter(|owner| owner.is_alive()).map(Agent::main);
        let spawner = server.spawner.as_ref().filter(|spawner| spawner.ended.is_none());
        if let Some(spawner) = spawner.filter(|spawner| owner == Some(spawner.process)) {
            let Spawner { process, thread, until, .. } = *spawner;
            self.effects.push_back(Effect::FollowThread { process, thread, until });
        }
    }

    /// Forgets which threads started servers: their process may have run another program, which ends all threads but
    /// hands on the wires. `of`: the servers of this agent, or all.
    pub(super) fn forget_spawners(&mut self, now: BootTime, of: Option<AgentKey>) {
        let servers: Vec<ServerKey> = match of.map(|agent| self.world.agent(agent)) {
            Some(agent) => agent.into_iter().flat_map(Agent::servers).copied().collect(),
            None => self.world.server_keys(),
        };
        for key in servers {
            let Some(server) = self.world.server_mut(key) else { continue };
            server.spawner = None;
            server.watches.remove(&By::Thread);
            self.judge_thread(now, key);
        }
    }

    /// A thread ended that had started a server. Whatever had its number before has ended, too.
    pub(super) fn thread_ended(&mut self, now: BootTime, at: BootTime, of: ProcessId, thread: NonZeroU32) {
        let Some(agent) = self.world.agent_of(of).and_then(|key| self.world.agent(key)) else { return };
        for key in agent.servers().clone() {
            let spawner = self.world.server_mut(key).and_then(|server| server.spawner.as_mut());
            if spawner.is_some_and(|spawner| spawner.end(of, thread, at)) {
                self.watch(now, key, By::Thread);
                self.judge_thread(now, key);
            }
        }
    }

    /// Opens a case for a server whose thread has ended, if a rule says that it ends with its thread. Closes such a case
    /// if none does.
    pub(super) fn judge_thread(&mut self, now: BootTime, key: ServerKey) {
        let Some(server) = self.world.server(key) else { return };
        if !self.ends_with_its_thread(server) {
            if is_released(server, By::Thread) && !server.phase.is_terminating() {
                self.server_event(now, key, Event::OwnerFound);
            }
        } else if let Some(since) = server.spawner.as_ref().and_then(|spawner| spawner.ended)
            && server.phase.is_clear()
        {
            self.release(now, key, By::Thread, since);
        }
    }

    /// Whether a rule says of the living owner that this server ends with the thread that started it.
    fn ends_with_its_thread(&self, server: &Server) -> bool {
        let Some(owner) = self.world.owner_of(server) else { return false };
        let is_of = |spawner: &Spawner| owner.is_alive() && owner.main() == spawner.process;
        server.spawner.as_ref().is_some_and(is_of)
            && rule_of(&self.rules, self.world.graph(), owner).is_some_and(|rule| rule.thread_scoped)
    }
}
