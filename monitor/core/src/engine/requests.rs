//! Reaping at a person's request: which servers a request selects, and which guards hold even against a person.
//!
//! What was there before the first start of orphand on this host. Nobody saw how it came to be left behind, so a person
//! decides: it is judged and reported like the rest, and the guard [`crate::model::Guard::Found`] holds.
//!
//! Invariant: this follows from two stored times, the birth of the process and the first start. So a daemon that is started
//! again says the same, and nothing has to be remembered of a single server.

use super::Engine;
use crate::{
    case::Event,
    model::{AgentView, BootTime, Found, ReapRequest, ServerReport},
    world::{Agent, Server},
};

impl Engine {
    /// The servers that a request selects, each with the guards that forbid ending it.
    pub fn plan(&self, request: &ReapRequest) -> Vec<ServerReport> {
        if request.leftovers {
            return self.plan_leftovers(request);
        }
        let mut report = self.report();
        // A person may overrule what orphand was told not to do by itself, and no other guard.
        report.lift_for_person();
        let planned = report.servers().filter(|(owner, server)| selects(request, *owner, server));
        planned.map(|(_, server)| server.clone()).collect()
    }

    /// Begins to end the servers that a request selects and no guard forbids. Each server is inspected first, like
    /// any orphan.
    pub(super) fn reap_on_request(&mut self, now: BootTime, request: &ReapRequest) {
        if request.leftovers {
            self.end_leftovers(now, request);
            return;
        }
        let planned = self.plan(request);
        let is_meant = |server: &Server| {
            let id = server.id.to_string();
            planned.iter().any(|one| one.guards.is_empty() && one.server.id == id)
        };
        let meant = self.world.servers().iter().filter(|(_, server)| is_meant(server));
        for key in meant.map(|(key, _)| *key).collect::<Vec<_>>() {
            self.server_event(now, key, Event::Asked);
        }
    }

    /// Whether only a person ends this server: it began before the first start, and no daemon saw its owner exit.
    pub(super) fn is_from_before(&self, server: &Server) -> bool {
        let owner = server.owner().and_then(|owner| self.world.agent(owner));
        self.settings.found == Found::Ask
            && self.first_start.is_some_and(|first| BootTime::of_ticks(server.id.start) < first)
            && owner.is_none_or(Agent::is_alive)
    }

    /// The same, of a server that may have been left behind.
    pub(super) fn waits_for_person(&self, server: &Server) -> bool {
        !server.phase.is_clear() && self.is_from_before(server)
    }
}

fn selects(request: &ReapRequest, owner: Option<&AgentView>, server: &ServerReport) -> bool {
    let run = server.server.run.as_ref();
    let named = |name: &str| owner.is_some_and(|o| o.is_called(name)) || server.belongs_to(Some(name));
    let state = if request.duplicates {
        server.is_duplicate()
    } else if server.is_unproven() {
        request.include_unproven
    } else {
        request.include_active || server.is_orphan()
    };
    state
        && request.agent.as_deref().is_none_or(named)
        && request.generation.is_none_or(|g| run.and_then(|r| r.generation) == Some(g))
        && (request.targets.is_empty()
            || server.members.iter().any(|p| request.targets.iter().any(|target| target.is(*p))))
        && request.servers.as_ref().is_none_or(|ids| ids.contains(&server.server.id))
}
