//! Threads that started a server. The end of such a thread opens a case where a rule says of the owner that its
//! servers end with their threads (`thread_scoped`); otherwise it is only evidence.
//!
//! The kernel side reports the end of a thread only if it was told to follow the thread, which is when a server was
//! recognised. The thread may have ended by then: the shell looks, and reports that in the same way.
//!
//! The owner lives and may use the server by another thread. So what the server does is looked at when the thread has
//! ended, a moment later, once more within the grace, and at each inspection. See [`crate::world::Spawner`].

use std::{collections::BTreeSet, num::NonZeroU32, time::Duration};

use super::{Engine, Purpose};
use crate::{
    case::{Event, Phase, Reason},
    lineage::{AgentKey, ServerKey},
    model::{About, BootTime, Effect, Notice, ProcessId, Work},
    verdict::is_thread_scoped,
    world::{Agent, Look, Server, Spawner, agent_view},
};

/// What this many processes do is looked at. A server with more is not proven to be unused.
const PROCESSES: usize = 64;

/// The moment from the end of a thread to the second look, at most: a server may be busy with the end of the thread's
/// last request.
const SETTLE: Duration = Duration::from_secs(1);

/// Servers that are to be looked at.
#[derive(Debug, Default)]
pub(super) struct Looks(BTreeSet<(BootTime, ServerKey, Look)>);

impl Looks {
    /// When the next one is due.
    pub(super) fn due(&self) -> Option<BootTime> {
        self.0.first().map(|(at, _, _)| *at)
    }
}

impl Engine {
    /// Has the end of the thread reported that started this server, if it is a thread of its living owner.
    pub(super) fn follow_spawner(&mut self, key: ServerKey) {
        let Some(server) = self.world.server(key) else { return };
        let owner = server.owner().and_then(|owner| self.world.agent(owner)).filter(|owner| owner.is_alive());
        let Some(spawner) = server.spawner.as_ref().filter(|spawner| spawner.ended().is_none()) else {
            return;
        };
        if owner.is_some_and(|owner| owner.main() == spawner.process) {
            let Spawner { process, thread, until, .. } = *spawner;
            self.effects.push_back(Effect::FollowThread { process, thread, until });
        }
    }

    /// Does so for all servers: the end of a thread may have been among records that were lost.
    pub(super) fn follow_spawners(&mut self) {
        for key in self.world.servers().keys() {
            self.follow_spawner(key);
        }
    }

    /// Forgets which threads started servers: their process may have run another program, which ends all threads but
    /// hands on the wires.
    pub(super) fn forget_spawners(&mut self, now: BootTime, of: Option<AgentKey>) {
        for key in self.world.servers().keys() {
            let Some(server) = self.world.server_mut(key) else { continue };
            if of.is_some() && server.owner() != of {
                continue;
            }
            server.spawner = None;
            self.close_thread_case(now, key);
        }
    }

    /// A thread ended that had started a server. Whatever had its number before has ended, too.
    pub(super) fn thread_ended(
        &mut self,
        now: BootTime,
        at: BootTime,
        process: ProcessId,
        thread: NonZeroU32,
    ) {
        let Some(agent) = self.world.agent_of(process).and_then(|key| self.world.agent(key)) else { return };
        for key in agent.servers().clone() {
            let spawner = self.world.server_mut(key).and_then(|server| server.spawner.as_mut());
            if spawner.is_some_and(|spawner| spawner.end(process, thread, at)) {
                let settled = now + SETTLE.min(self.settings.abandoned_grace / 10);
                self.look(key, Look::AtEnd);
                self.looks.0.insert((settled, key, Look::Settled));
                self.suspect_for_its_thread(now, key);
            }
        }
    }

    /// The rules have changed: what they say of threads may be new.
    pub(super) fn judge_threads_anew(&mut self, now: BootTime) {
        for key in self.world.servers().keys() {
            if self.ends_with_its_thread(key) {
                self.suspect_for_its_thread(now, key);
            } else {
                self.close_thread_case(now, key);
            }
        }
    }

    /// Opens a case for a server whose thread has ended, if a rule says that it ends with its thread.
    fn suspect_for_its_thread(&mut self, now: BootTime, key: ServerKey) {
        let Some(server) = self.world.server(key) else { return };
        let Some(since) = server.spawner.as_ref().and_then(Spawner::ended) else { return };
        if !server.phase.is_clear() || !self.ends_with_its_thread(key) {
            return;
        }
        let grace = self.settings.abandoned_grace;
        let deadline = now + grace;
        let suspected = Event::Suspected { reason: Reason::SpawnerThreadExited, since, deadline };
        self.server_event(now, key, suspected);
        self.looks.0.insert((now + grace * 4 / 5, key, Look::Later));
        let owner = self.world.owner(key).map(agent_view);
        if let Some(server) = self.world.show(key) {
            self.emit(now, Notice::OrphanSuspected { recovered: false, server, owner, deadline });
        }
    }

    /// Closes the case of a server that was opened because its thread has ended.
    fn close_thread_case(&mut self, now: BootTime, key: ServerKey) {
        let cause = self.world.server(key).and_then(|server| server.phase.cause());
        let is_for_the_thread = cause.is_some_and(|cause| cause.reason == Reason::SpawnerThreadExited);
        let has_begun = self.world.server(key).map(|server| &server.phase).is_some_and(Phase::is_terminating);
        if is_for_the_thread && !has_begun && !cause.is_some_and(|cause| cause.asked) {
            self.server_event(now, key, Event::OwnerFound);
        }
    }

    /// Whether a rule says of the living owner that this server ends with the thread that started it.
    fn ends_with_its_thread(&self, key: ServerKey) -> bool {
        let Some(server) = self.world.server(key) else { return false };
        let Some(owner) = server.owner().and_then(|owner| self.world.agent(owner)) else { return false };
        let is_of = |spawner: &Spawner| owner.is_alive() && owner.main() == spawner.process;
        server.spawner.as_ref().is_some_and(is_of)
            && is_thread_scoped(&self.settings.rules, self.world.graph(), owner)
    }

    /// Asks what the processes of a server have done so far.
    fn look(&mut self, key: ServerKey, look: Look) {
        if let Some(server) = self.world.server(key).filter(|server| can_be_looked_at(server)) {
            let processes = server.processes().iter().chain(server.wrappers()).copied().collect();
            self.ask(About::Work(processes), Purpose::Work { server: key, look });
        }
    }

    /// Looks at the servers for which that is due.
    pub(super) fn look_at_servers(&mut self, now: BootTime) {
        while let Some(due) = self.looks.0.first().copied().filter(|(at, _, _)| *at <= now) {
            self.looks.0.remove(&due);
            let (_, key, look) = due;
            self.look(key, look);
        }
    }

    /// What the processes of a server have done until now.
    pub(super) fn work_answered(&mut self, now: BootTime, key: ServerKey, look: Look, work: &[Work]) {
        let spawner = self.world.server_mut(key).and_then(|server| server.spawner.as_mut());
        if let Some(spawner) = spawner {
            spawner.look(now, look, work);
        }
    }

    /// For how long a server must have done nothing. It is less than the time from the second look to the verdict.
    pub(super) fn rest(&self) -> Duration {
        self.settings.abandoned_grace / 10
    }

    /// Whether an inspection has to tell what the processes of this server have done.
    pub(super) fn needs_work(&self, server: &Server) -> bool {
        let owner = server.owner().and_then(|owner| self.world.agent(owner));
        owner.is_some_and(Agent::is_alive)
            && server.spawner.as_ref().is_some_and(|spawner| spawner.ended().is_some())
            && can_be_looked_at(server)
    }
}

fn can_be_looked_at(server: &Server) -> bool {
    server.processes().len() + server.wrappers().len() <= PROCESSES
}
