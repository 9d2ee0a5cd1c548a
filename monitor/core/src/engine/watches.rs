//! Watching servers whose living owner may still use them: whether one has done anything since the reason for its case
//! arose ([`crate::world::Watch`]).
//!
//! Invariant: a watch begins with a look of its own, never with an inspection, and what it compares is what the look
//! saw. A server is looked at when its watch begins, a moment later, late in the grace, and at each inspection; at no
//! other time, and none is looked at without a watch.

use std::{collections::BTreeSet, time::Duration};

use super::{Engine, Purpose, abandoned, sessions, tools::may_have_tools};
use crate::{
    case::{Event, Phase, Reason},
    lineage::ServerKey,
    model::{About, BootTime, Work},
    verdict::Finding,
    world::{Agent, Look, Server, Spawner, Watch},
};

/// What this many processes do is looked at. A server with more is not proven to be unused.
const PROCESSES: usize = 64;

/// The moment from the begin of a watch to the second look, at most: a server may be busy with the end of its last
/// request.
const SETTLE: Duration = Duration::from_secs(1);

/// The time to the next inspection, at least.
const LEAST: Duration = Duration::from_millis(1);

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
    /// Begins to watch what a server does, because this reason has arisen.
    pub(super) fn watch(&mut self, now: BootTime, key: ServerKey, reason: Reason) {
        let settled = now + SETTLE.min(self.settings.abandoned_grace / 10);
        self.look(key, Look::Begin(reason));
        self.looks.0.insert((settled, key, Look::Settled(reason)));
    }

    /// Has a server with a watch looked at late in its grace, which begins now: what it did before is known then, and
    /// it need not rest for longer than necessary.
    pub(super) fn watch_its_grace(&mut self, now: BootTime, key: ServerKey) {
        self.looks.0.insert((now + self.settings.abandoned_grace * 4 / 5, key, Look::Later));
    }

    /// Has a server with a new case looked at: what its tools do from now on is known then.
    pub(super) fn watch_tools(&mut self, now: BootTime, key: ServerKey) {
        if self.world.server(key).is_some_and(may_have_tools) {
            self.looks.0.insert((now, key, Look::Later));
        }
    }

    /// Asks what the processes of a server have done so far.
    fn look(&mut self, key: ServerKey, look: Look) {
        if let Some(server) = self.world.server(key).filter(|server| can_be_looked_at(server)) {
            let all = server.processes().iter().chain(server.wrappers()).chain(&server.container_processes);
            let processes = all.copied().collect();
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
        let Some(server) = self.world.server_mut(key) else { return };
        if let Look::Begin(reason) = look
            && holds(server, reason)
        {
            server.watches.entry(reason).or_insert_with(|| Watch::begin(now, work));
        }
        server.tools.look(work);
        for (reason, watch) in &mut server.watches {
            watch.look(now, look == Look::Settled(*reason), work);
        }
        // The grace lasts from the first look: only then it can show a rest of that time.
        if let Look::Begin(reason) = look
            && let Phase::Grace { cause, .. } = &server.phase
            && cause.reason == reason
            && !cause.asked
        {
            let (since, deadline) = (cause.since, now + self.settings.abandoned_grace);
            self.server_event(now, key, Event::Suspected { reason, since, deadline });
        }
    }

    /// The time to the next inspection of a server that was not used, and has not rested for the grace yet. If it
    /// never rests for so long, that is told after a second grace.
    pub(super) fn must_rest(&self, now: BootTime, key: ServerKey, finding: &Finding) -> Option<Duration> {
        let phase = &self.world.server(key)?.phase;
        let waits = phase.grace().is_some_and(|deadline| deadline <= now);
        let is_new = now.since(phase.since()?) < self.settings.abandoned_grace * 2;
        finding.must_rest.filter(|_| waits && is_new).map(|missing| missing.max(LEAST))
    }

    /// Whether an inspection has to tell what the processes of this server have done.
    pub(super) fn needs_work(&self, server: &Server) -> bool {
        let owner = server.owner().and_then(|owner| self.world.agent(owner));
        let reasons = [Reason::SpawnerThreadExited, Reason::SessionExpired, Reason::Abandoned];
        let is_used =
            || owner.is_some_and(Agent::is_alive) && reasons.into_iter().any(|reason| holds(server, reason));
        (may_have_tools(server) || is_used()) && can_be_looked_at(server)
    }
}

/// Whether this reason to watch a server holds.
fn holds(server: &Server, reason: Reason) -> bool {
    match reason {
        Reason::SpawnerThreadExited => server.spawner.as_ref().and_then(Spawner::ended).is_some(),
        Reason::SessionExpired => sessions::is_about_session(server),
        Reason::Abandoned => abandoned::is_closed(server),
        _ => false,
    }
}

fn can_be_looked_at(server: &Server) -> bool {
    let inside = server.container_processes.len();
    server.processes().len() + server.wrappers().len() + inside <= PROCESSES
}
