//! Servers that are released although their owner lives: one mechanism, and a module for each who can release one
//! ([`By`]): the owner that let go of the wires, the thread that ended, the registry of sessions, the manager that said so, the
//! rule about idle duplicates.
//!
//! A released server has a case, and `abandoned_grace`. Its owner lives and may still use it. So what the server does is
//! watched ([`crate::world::Watch`]), and a use takes the release back: what the owner holds counts again.
//!
//! Invariant: a watch begins with a look of its own, never with an inspection, and what it compares is what the look
//! saw. None begins late: what was done between the release and the first look is not known. A server is looked at when its
//! watch begins, a moment later, late in the grace, and at each inspection; at no other time, and none is looked at
//! without a watch.

use std::time::Duration;

use super::{Engine, agenda::Task};
use crate::{
    case::{By, Event, Phase, Reason, Wish},
    lineage::ServerKey,
    model::{About, Answer, BootTime, Notice, ProcessId, Work},
    verdict::Finding,
    world::{Look, Server, Watch, agent_view},
};

/// What this many processes do is looked at. A server with more is not proven to be unused.
pub(super) const PROCESSES: usize = 64;

/// The moment from the begin of a watch to the second look, at most: a server may be busy with the end of its last
/// request.
const SETTLE: Duration = Duration::from_secs(1);

/// How late the first look may be after the release. Each look of a busy daemon is late by a part of a second, and from a doubt that it
/// left the server would stay for good.
const LATE: Duration = Duration::from_secs(2);

/// The time to the next inspection, at least.
const LEAST: Duration = Duration::from_millis(1);

impl Engine {
    /// A server was released at `since` although its owner lives: opens a case.
    pub(super) fn release(&mut self, now: BootTime, key: ServerKey, by: By, since: BootTime) {
        let deadline = now + self.policy.abandoned_grace;
        let reason = Reason::Released(by);
        self.server_event(now, key, Event::Suspected { reason, since, deadline });
        match by {
            By::Owner => self.watch_since_its_head_was_killed(now, key),
            // It is watched since the thread ended, which may be long ago.
            By::Thread => self.watch_its_grace(now, key),
            By::Session | By::Manager | By::Idle => {
                self.watch(now, key, by);
                self.watch_its_grace(now, key);
            }
        }
        let owner = self.world.owner(key).map(agent_view);
        if let Some(server) = self.world.show(key) {
            self.emit(now, Notice::OrphanSuspected { recovered: false, server, owner, deadline });
        }
    }

    /// Begins to watch what a server does since it was released. What it did before counts no more.
    pub(super) fn watch(&mut self, now: BootTime, key: ServerKey, by: By) {
        self.world.change_server(key, |server| _ = server.watches.remove(&by));
        let settled = now + SETTLE.min(self.policy.abandoned_grace / 10);
        self.look(key, Look::Begin(by));
        self.agenda.set(Task::Look(key, Look::Settled(by)), Some(settled));
    }

    /// Has a server with a watch looked at late in its grace, which begins now: what it did before is known then, and
    /// it need not rest for longer than necessary.
    fn watch_its_grace(&mut self, now: BootTime, key: ServerKey) {
        let late = now + self.policy.abandoned_grace * 4 / 5;
        self.agenda.set(Task::Look(key, Look::Later), Some(late));
    }

    /// Asks what the processes of a server have done so far.
    pub(super) fn look(&mut self, key: ServerKey, look: Look) {
        let processes = self.all_processes(key);
        if (1..=PROCESSES).contains(&processes.len()) {
            self.ask(None, About::Work(processes), move |engine, now, answer| {
                if let Answer::Work { processes } = answer {
                    engine.work_answered(now, key, look, &processes);
                }
            });
        }
    }

    /// The processes of a server, its launch chain, and what works in its container. None of a server that has ended.
    pub(super) fn all_processes(&self, key: ServerKey) -> Vec<ProcessId> {
        let Some(server) = self.world.server(key) else { return Vec::new() };
        server.all().chain(self.processes_inside(key).iter().copied()).collect()
    }

    pub(super) fn work_answered(&mut self, now: BootTime, key: ServerKey, look: Look, work: &[Work]) {
        self.see_duplicate(now, key, work);
        let Some(server) = self.world.server(key) else { return };
        let begun = match look {
            Look::Begin(by) if holds(server, by) && !is_late(now, server, by) => Some(by),
            _ => None,
        };
        let Some(server) = self.world.server_mut(key) else { return };
        if let Some(by) = begun {
            server.watches.entry(by).or_insert_with(|| Watch::begin(now, work));
        }
        self.tools.entry(key).or_default().look(work);
        for (by, watch) in &mut server.watches {
            watch.look(now, look == Look::Settled(*by), work);
        }
        // The grace lasts from the first look: only then it can show a rest of that time.
        if let Look::Begin(by) = look
            && let Phase::Grace { cause, .. } = &server.phase
            && cause.reason == Reason::Released(by)
            && cause.asked == Wish::None
        {
            let (reason, since, deadline) = (cause.reason, cause.since, now + self.policy.abandoned_grace);
            self.server_event(now, key, Event::Suspected { reason, since, deadline });
        }
    }

    /// The time to the next inspection of a server that was not used, and has not rested for the grace yet. If it
    /// never rests for so long, that is told after a second grace.
    pub(super) fn must_rest(&self, now: BootTime, key: ServerKey, finding: &Finding) -> Option<Duration> {
        let phase = &self.world.server(key)?.phase;
        let waits = phase.grace().is_some_and(|deadline| deadline <= now);
        let is_new = now.since(phase.since()?) < self.policy.abandoned_grace * 2;
        finding.must_rest.filter(|_| waits && is_new).map(|missing| missing.max(LEAST))
    }

    /// The host was asleep, and no time has passed: nobody could end by himself, hand over a wire, or tidy up after a signal. So
    /// whatever was due is due that much later. What a server did not do meanwhile says nothing, and its tools did not work: their
    /// time begins anew.
    pub(super) fn woke(&mut self, now: BootTime, slept: Duration) {
        for key in self.world.server_keys() {
            let Some(server) = self.world.server_mut(key) else { continue };
            server.watches.values_mut().for_each(|watch| watch.rests_from(now));
            server.phase.put_off(slept);
        }
        let agents: Vec<_> = self.world.agents().map(|(key, _)| key).collect();
        for agent in agents {
            self.world.agent_mut(agent).into_iter().for_each(|agent| agent.phase.put_off(slept));
        }
        self.agenda.put_off(slept);
        // Those have their times by this clock.
        self.alarms.dirty = true;
        self.tools.values_mut().for_each(|tools| tools.awaited = tools.awaited.map(|_| now));
    }
}

/// Whether the first look comes so late after the release that the server may have been used between the two.
fn is_late(now: BootTime, server: &Server, by: By) -> bool {
    let since = match by {
        By::Thread => server.spawner.as_ref().and_then(|spawner| spawner.ended),
        By::Owner => server.head_killed,
        By::Session | By::Manager | By::Idle => None,
    };
    since.is_some_and(|since| now.since(since) > LATE)
}

/// Whether what a server does is watched because it was released by this one.
pub(super) fn holds(server: &Server, by: By) -> bool {
    match by {
        By::Thread => server.spawner.as_ref().is_some_and(|spawner| spawner.ended.is_some()),
        By::Owner => server.head_killed.is_some(),
        By::Session | By::Manager | By::Idle => is_released(server, by),
    }
}

/// Whether the case of a server is that it was released by this one, and no person asked.
pub(super) fn is_released(server: &Server, by: By) -> bool {
    server
        .phase
        .cause()
        .is_some_and(|cause| cause.reason == Reason::Released(by) && cause.asked == Wish::None)
}
