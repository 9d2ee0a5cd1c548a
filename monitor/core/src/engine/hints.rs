//! By what persons recognise agents and servers: it is shown, and nothing is concluded from it.
//!
//! An agent's folder and terminal are read with its unit. The rest is asked for when a server has started: the name of the
//! server in the settings, its folder, and the session that its environment names, which is its owner's.

use super::Engine;
use crate::{
    lineage::{AgentKey, ServerKey},
    model::{About, AgentHints, Answer, BootTime, Fact, FoundHints, Haste, ServerHints},
    world::Agent,
};

impl Engine {
    /// Asks by what a person recognises a server that has started.
    pub(super) fn ask_hints(&mut self, key: ServerKey) {
        let Some(server) = self.world.server(key) else { return };
        let chain = server.wrappers().iter().rev().chain(server.recognised());
        let images = chain.filter_map(|process| self.world.node(*process)?.image());
        let lines = images.filter(|image| !image.argv_truncated).map(|image| image.argv.clone()).collect();
        let owner = self.world.owner(key).map(Agent::main);
        let turn = Some((server.share(), Haste::Never));
        self.ask(turn, About::Hints { server: server.id, owner, lines }, move |engine, now, answer| {
            let Answer::Hints { found: Some(found) } = answer else { return };
            let FoundHints { server: hints, session } = *found;
            let Some(server) = engine.world.server_mut(key) else { return };
            server.hints.clone_from(&hints);
            if let Some(view) = &mut server.last_view {
                view.hints.clone_from(&hints);
            }
            let (server, owner) = (server.id, server.owner());
            if let Some((key, session)) = owner.zip(session)
                && let Some(owner) = engine.world.agent_mut(key)
            {
                owner.hints.session = Some(session);
                engine.remember_agent_hints(now, key);
            }
            if hints != ServerHints::default() {
                engine.persist(now, Fact::ServerHints { server, hints });
            }
        });
    }

    /// Stores what an agent is recognised by, if anything is known.
    pub(super) fn remember_agent_hints(&mut self, at: BootTime, key: AgentKey) {
        let Some(agent) = self.world.agent(key) else { return };
        let (agent, hints) = (agent.main(), agent.hints.clone());
        if hints != AgentHints::default() {
            self.persist(at, Fact::AgentHints { agent, hints });
        }
    }
}
