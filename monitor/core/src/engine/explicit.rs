//! Reaping because a person asked: which servers that means, and what forbids it whoever asks.

use super::Engine;
use crate::{
    lineage::ServerKey,
    model::{BootTime, Class, Guard, Notice, Planned, ReapRequest, ServerFacts},
    world::{Agent, Stage, State, agent_view},
};

impl Engine {
    /// The servers that a request means, with what forbids to end them.
    pub fn plan(&self, request: &ReapRequest) -> Vec<Planned> {
        let report = self.report();
        let means = |(owner, server): &(Option<&crate::model::AgentView>, &crate::model::ServerReport)| {
            let run = server.server.run.as_ref();
            let named = |name: &String| {
                owner.is_some_and(|o| o.name == *name || o.unit.as_ref() == Some(name))
                    || run.is_some_and(|r| r.agent == *name || r.unit.as_ref() == Some(name))
            };
            let asked_by_name = request.pid.is_some() && server.is_unproven();
            let unproven = server.is_unproven() && (request.include_unproven || asked_by_name);
            ((request.include_active && !server.is_unproven()) || server.is_orphan() || unproven)
                && request.agent.as_ref().is_none_or(named)
                && request.generation.is_none_or(|g| run.and_then(|r| r.generation) == Some(g))
                && request.pid.is_none_or(|pid| server.members.iter().any(|p| p.pid == pid))
                && request.servers.as_ref().is_none_or(|ids| ids.contains(&server.server.id))
        };
        let planned = report.servers().filter(means).map(|(_, server)| Planned {
            server: server.server.clone(),
            state: server.state.clone(),
            guards: server.guards.iter().copied().filter(|g| forbids_anybody(*g)).collect(),
        });
        planned.collect()
    }
}

/// A person who asks may overrule what orphand does not know or was told not to do by itself, and nothing else.
fn forbids_anybody(guard: Guard) -> bool {
    guard != Guard::Observe
}

impl Engine {
    /// Begins to end what a request means and nothing forbids. Each server is looked at first, as any orphan is.
    pub(super) fn reap_on_request(&mut self, now: BootTime, request: &ReapRequest) {
        let planned = self.plan(request);
        for key in self.world.servers().keys() {
            let Some(server) = self.world.server_mut(key) else { continue };
            let id = server.id.to_string();
            let ends = planned.iter().any(|p| p.guards.is_empty() && p.server.id == id);
            let under_way =
                server.case().is_some_and(|c| matches!(c.stage, Stage::Leaf | Stage::Rest | Stage::Kill));
            if !ends || under_way {
                continue;
            }
            server.asked = true;
            match &mut server.state {
                State::Live => server.state = State::Suspect { since: now, deadline: now },
                State::Suspect { deadline, .. } => *deadline = now,
                State::Unproven(case) => case.refused.clear(),
                State::Orphan(case) => {
                    case.stage = Stage::Spared;
                    case.refused.clear();
                }
            }
            self.look(now, key);
        }
    }

    /// A look at a server that a person asked to end found what forbids it: it is again what it was. Whether that is so.
    pub(super) fn asked_and_refused(&mut self, now: BootTime, key: ServerKey, facts: &ServerFacts) -> bool {
        let Some(guards) = self.examine(key, facts).map(|f| f.guards).filter(|g| !g.is_empty()) else {
            return false;
        };
        let Some(server) = self.world.server_mut(key) else { return true };
        server.asked = false;
        let owner = self.world.owner(key);
        let (owner_exited, view) = (owner.and_then(Agent::exited), owner.map(agent_view));
        let Some(server) = self.world.server_mut(key) else { return true };
        if server.judged().is_some() {
            // It goes on as what it was, and tells what is new about its guards.
            let unproven = server.is_unproven();
            let Some(server) = self.world.view(key) else { return true };
            self.world.set_timer(key, Some(now));
            if unproven {
                self.emit(now, Notice::OrphanSpared { class: Class::Server, server, owner: view, guards });
            }
            return true;
        }
        let deadline = now + self.settings.grace;
        server.state = owner_exited.map_or(State::Live, |since| State::Suspect { since, deadline });
        let due = (owner_exited.is_some() || server.seeks_owner).then_some(deadline);
        let Some(server) = self.world.view(key) else { return true };
        self.world.set_timer(key, due);
        self.emit(now, Notice::OrphanSpared { class: Class::Server, server, owner: view, guards });
        true
    }
}
