//! Reaping at a person's request: which servers a request selects, and which guards hold even against a person.
//!
//! What was there before the first start of orphand on this host. Nobody saw how it came to be left behind, so a person
//! decides: it is judged and reported like the rest, and the guard [`crate::model::Guard::Found`] holds.
//!
//! Invariant: this follows from two stored times, the birth of the process and the first start. So a daemon that is started
//! again says the same, and nothing has to be remembered of a single server.

use std::collections::BTreeSet;

use super::Engine;
use crate::{
    case::Event,
    model::{AgentView, BootTime, Found, ReapRequest, ServerReport},
    world::{Agent, Server},
};

impl Engine {
    /// The servers, or the leftovers, that a request selects, each with the guards that forbid ending it.
    pub fn plan(&self, request: &ReapRequest) -> Vec<ServerReport> {
        let mut report = self.report();
        // A person may overrule what orphand was told not to do by itself, and no other guard.
        report.lift_for_person();
        let leftovers = report.leftovers().map(|(agent, head)| (Some(agent), head));
        let leftovers = leftovers.filter(|_| request.leftovers);
        let servers =
            report.servers().filter(|(_, server)| !request.leftovers && is_asked_for(request, server));
        let planned = servers.chain(leftovers).filter(|(owner, one)| selects(request, *owner, one));
        planned.map(|(_, one)| one.clone()).collect()
    }

    /// Begins to end the servers, or the leftovers, that a request selects and no guard forbids. Each server is
    /// inspected first, like any orphan.
    pub(super) fn reap_on_request(&mut self, now: BootTime, request: &ReapRequest) {
        let planned = self.plan(request).into_iter().filter(|one| one.guards.is_empty());
        let ids: BTreeSet<String> = planned.map(|one| one.server.id).collect();
        if request.leftovers {
            self.end_leftovers(now, &ids);
            return;
        }
        let meant = self.world.servers().iter().filter(|(_, server)| ids.contains(&server.id.to_string()));
        for key in meant.map(|(key, _)| *key).collect::<Vec<_>>() {
            self.server_event(now, key, Event::Asked);
        }
    }

    /// Whether only a person ends this server: it began before the first start, and no daemon saw its owner exit.
    pub(super) fn is_from_before(&self, server: &Server) -> bool {
        let owner = server.owner().and_then(|owner| self.world.agent(owner));
        self.policy.found == Found::Ask
            && self.first_start.is_some_and(|first| BootTime::of_ticks(server.id.start) < first)
            && owner.is_none_or(Agent::is_alive)
    }

    /// The same, of a server that may have been left behind.
    pub(super) fn waits_for_person(&self, server: &Server) -> bool {
        !server.phase.is_clear() && self.is_from_before(server)
    }
}

/// Whether a request is about servers in this state.
fn is_asked_for(request: &ReapRequest, server: &ServerReport) -> bool {
    if request.duplicates {
        server.is_duplicate()
    } else if server.is_unproven() {
        request.include_unproven
    } else {
        request.include_active || server.is_orphan()
    }
}

fn selects(request: &ReapRequest, owner: Option<&AgentView>, server: &ServerReport) -> bool {
    let run = server.server.run.as_ref();
    let named = |name: &str| owner.is_some_and(|o| o.is_called(name)) || server.belongs_to(Some(name));
    request.agent.as_deref().is_none_or(named)
        && request.generation.is_none_or(|g| run.and_then(|r| r.generation) == Some(g))
        && (request.targets.is_empty()
            || server.members.iter().any(|p| request.targets.iter().any(|target| target.is(*p))))
        && request.servers.as_ref().is_none_or(|ids| ids.contains(&server.server.id))
}
